package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// headChecker accepts every authorization as of the head, unless fail is set.
type headChecker struct {
	w    *world
	fail error
	used bool // the token has seen the nonce
	// meanwhile, if set, is called once after a check has read the chain.
	meanwhile func()
}

func (c *headChecker) CheckAuthorization(context.Context, string, invoice.Address, invoice.Authorization) (ledger.AuthorizationCheck, error) {
	checked := ledger.AuthorizationCheck{Time: c.w.head().Time, Gas: 60_000, IsUsed: c.used}
	if meanwhile := c.meanwhile; meanwhile != nil {
		c.meanwhile = nil
		meanwhile()
	}
	return checked, c.fail
}

// gasless makes the world's service take authorizations with a budget, after other changes of its configuration.
func (w *world) gasless(budget ledger.AuthorizationBudget, change ...func(*ledger.Config)) *headChecker {
	checker := &headChecker{w: w}
	w.Service = w.service(append(change, func(c *ledger.Config) {
		c.Gasless = ledger.Gasless{Checker: checker, Budgets: map[string]ledger.AuthorizationBudget{w.chainKey: budget}}
	})...)
	return checker
}

// plenty is a budget that no test uses up.
var plenty = ledger.AuthorizationBudget{PerMerchant: 1000, PerPayer: 1000, PerDay: 1000}

// authorization returns an authorization of the payer over the amount due of the invoice, with the nonce.
func (w *world) authorization(inv invoice.Invoice, nonce invoice.Hash) invoice.Authorization {
	return invoice.Authorization{
		From: payer, To: inv.PayTo(), Value: w.invoice(inv.ID).Due(), ValidAfter: invoice.Unix(0),
		ValidBefore: invoice.Unix(w.seconds.Load() + 600), Nonce: nonce, Signature: []byte{1, 2, 3},
	}
}

// transferOf returns the transfer that an authorization makes, in a separate transaction.
func (w *world) transferOf(a invoice.Authorization) invoice.Transfer {
	t := w.pay(a.Value)
	t.From, t.To = a.From, a.To
	return tagged(t, invoice.Evidence{Authorization: a.Nonce})
}

// stored returns the current state of an authorization.
func (w *world) stored(id string) ledger.Authorization {
	w.t.Helper()
	a, err := ledger.NewReader(w.db.store).Authorization(w.t.Context(), id)
	w.must(err)
	return a
}

// wantRefused demands that an error refuses an authorization for a reason.
func wantRefused(t *testing.T, err error, want invoice.Refusal) {
	t.Helper()
	var refusal *invoice.RefusalError
	if !errors.As(err, &refusal) || refusal.Reason != want || refusal.Detail == "" {
		t.Errorf("refused with %v, want %s and a sentence", err, want)
	}
}

func TestAuthorize(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.gasless(plenty)
		inv := w.create()
		a := w.authorization(inv, w.hash("nonce"))
		w.signals()
		accepted, err := w.Authorize(t.Context(), inv.ID, a)
		w.must(err)
		if accepted.Status != ledger.AuthorizationAccepted || accepted.InvoiceID != inv.ID || accepted.Gas != 60_000 || accepted.Paid() {
			t.Fatalf("accepted %+v", accepted)
		}
		if got := w.signals(); !slices.Contains(got, "intents "+w.chainKey) {
			t.Errorf("signalled %v, want the transaction manager", got)
		}
		again, err := w.Authorize(t.Context(), inv.ID, a)
		if err != nil || again.ID != accepted.ID {
			t.Errorf("again it is %s, %v; want %s", again.ID, err, accepted.ID)
		}

		transfer := w.transferOf(a)
		w.mine(start+1, transfer)
		p := w.payment(transfer)
		if p.InvoiceID != inv.ID || p.Method != invoice.ByAuthorization {
			t.Errorf("the transfer belongs to %q by %q", p.InvoiceID, p.Method)
		}
		if got := w.stored(accepted.ID); !got.Paid() || got.Payment.ID != p.ID || got.Payment.Status != invoice.Pending || got.Payment.TxHash != transfer.TxHash {
			t.Errorf("observed, it is %+v", got)
		}
		w.final()
		if got := w.stored(accepted.ID); got.Status != ledger.AuthorizationPaid || got.Payment.Status != invoice.Confirmed || got.EndedAt.IsZero() {
			t.Errorf("final, it is %+v", got)
		}
		if got := w.invoice(inv.ID); got.Status != invoice.Paid {
			t.Errorf("the invoice is %s", got.Status)
		}
		if again, err = w.Authorize(t.Context(), inv.ID, a); err != nil || again.Status != ledger.AuthorizationPaid {
			t.Errorf("afterwards it is %s, %v", again.Status, err)
		}
	})
}

// TestAuthorizationIsBound expects the nonce of an accepted authorization to name one invoice, with
// one payload, permanently.
func TestAuthorizationIsBound(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.gasless(plenty)
		inv, other := w.create(), w.create()
		a := w.authorization(inv, w.hash("nonce"))
		w.must(w.Authorize(t.Context(), inv.ID, a))
		for name, change := range map[string]func(*invoice.Authorization){
			"value":       func(a *invoice.Authorization) { a.Value = a.Value.Plus(invoice.NewAmount(1)) },
			"recipient":   func(a *invoice.Authorization) { a.To = invoice.Address{9} },
			"validBefore": func(a *invoice.Authorization) { a.ValidBefore = a.ValidBefore.Add(time.Second) },
			"validAfter":  func(a *invoice.Authorization) { a.ValidAfter = a.ValidAfter.Add(time.Second) },
			"signature":   func(a *invoice.Authorization) { a.Signature = []byte{9} },
		} {
			changed := a
			change(&changed)
			if _, err := w.Authorize(t.Context(), inv.ID, changed); err == nil {
				t.Errorf("with another %s it is accepted", name)
			} else {
				wantRefused(t, err, invoice.RefusedMismatch)
			}
		}
		_, err := w.Authorize(t.Context(), other.ID, a)
		wantRefused(t, err, invoice.RefusedMismatch)
		_, err = w.Authorize(t.Context(), inv.ID, w.authorization(inv, w.hash("another nonce")))
		wantRefused(t, err, invoice.RefusedPending)
		_, err = w.Authorize(t.Context(), other.ID, w.authorization(other, inv.CommitmentID))
		wantRefused(t, err, invoice.RefusedNonceOfOther)
		_, err = w.Authorize(t.Context(), "inv_none", a)
		expect.Error(t, db.ErrNotFound, "of no invoice it is")(err)
	})
}

// TestUsedNonce submits an authorization that another account has carried out already. If its nonce names the invoice,
// its outcome follows from the chain. Any other nonce is refused: everybody can read it there.
func TestUsedNonce(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		checker := w.gasless(plenty)
		checker.used = true
		inv := w.create()
		_, err := w.Authorize(t.Context(), inv.ID, w.authorization(inv, w.hash("nonce")))
		wantRefused(t, err, invoice.RefusedNonceUsed)
		_, err = w.CheckAuthorization(t.Context(), invoice.Invoice{
			ChainKey: inv.ChainKey, Status: invoice.Open, Terms: inv.Terms, MerchantID: inv.MerchantID,
		}, w.authorization(inv, invoice.Hash{}))
		wantRefused(t, err, invoice.RefusedNonceUsed)

		a := w.authorization(inv, inv.CommitmentID)
		accepted, err := w.Authorize(t.Context(), inv.ID, a)
		w.must(err)
		if accepted.Paid() || accepted.Status != ledger.AuthorizationAccepted {
			t.Errorf("before its block is read it is %+v", accepted)
		}
		w.mine(start+1, w.transferOf(a))
		if got := w.stored(accepted.ID); !got.Paid() {
			t.Errorf("afterwards it is %+v", got)
		}
	})
}

// TestStoredPaymentByTheNonce submits an authorization that another account has carried out. Its
// transfer is stored, but the node answers from an older block, in which the nonce is unused.
func TestStoredPaymentByTheNonce(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.gasless(plenty)
		inv, twin := w.create(), w.create() // of one amount, so that the amount does not identify the invoice
		a := w.authorization(inv, w.hash("nonce"))
		transfer := w.transferOf(a)
		w.mine(start+1, transfer)
		if p := w.payment(transfer); p.Attributed() {
			t.Fatalf("the transfer belongs to %s", p.InvoiceID)
		}
		for _, inv := range []invoice.Invoice{inv, twin} {
			_, err := w.Authorize(t.Context(), inv.ID, a)
			wantRefused(t, err, invoice.RefusedNonceUsed)
			_, err = w.CheckAuthorization(t.Context(), inv, a)
			wantRefused(t, err, invoice.RefusedNonceUsed)
		}
		other := a
		other.From = invoice.Address{0xbc}
		accepted, err := w.Authorize(t.Context(), twin.ID, other) // another payer's
		if err != nil || accepted.Paid() {
			t.Errorf("the nonce of another payer: %+v, %v", accepted, err)
		}

		// Once a reorg has dropped the transfer, the nonce is unused. Bound, the payment is the invoice's when it is mined again.
		w.reorg(1)
		accepted, err = w.Authorize(t.Context(), inv.ID, a)
		w.must(err)
		if accepted.Paid() {
			t.Errorf("accepted after a reorg, it is %+v", accepted)
		}
		w.mine(start+2, transfer)
		if got := w.stored(accepted.ID); !got.Paid() || w.payment(transfer).InvoiceID != inv.ID {
			t.Errorf("mined again, it is %+v, of %q", got, w.payment(transfer).InvoiceID)
		}
	})
}

// TestBlockBeforeAcceptance reads a block, or accepts another request, after an authorization was
// checked and before it is accepted.
func TestBlockBeforeAcceptance(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(w *world, inv invoice.Invoice, a invoice.Authorization)
		want      invoice.Refusal
	}{
		"the transfer by somebody else": {func(w *world, _ invoice.Invoice, a invoice.Authorization) {
			w.mine(start+1, w.transferOf(a))
		}, invoice.RefusedNonceUsed},
		"a transfer of another amount by the nonce": {func(w *world, inv invoice.Invoice, a invoice.Authorization) {
			a.To, a.Value = inv.Merchant, invoice.NewAmount(3)
			w.mine(start+1, w.transferOf(a))
		}, invoice.RefusedNonceUsed},
		"another payment": {func(w *world, inv invoice.Invoice, _ invoice.Authorization) {
			w.mine(start+1, tagged(w.pay(inv.Amount), invoice.Evidence{Calldata: inv.CommitmentID}))
		}, invoice.RefusedNotPayable},
		"a part of the amount": {func(w *world, inv invoice.Invoice, _ invoice.Authorization) {
			w.mine(start+1, tagged(w.pay(invoice.NewAmount(500_000)), invoice.Evidence{Calldata: inv.CommitmentID}))
		}, invoice.RefusedValue},
		"another authorization": {func(w *world, inv invoice.Invoice, _ invoice.Authorization) {
			w.must(w.Authorize(w.t.Context(), inv.ID, w.authorization(inv, w.hash("another nonce"))))
		}, invoice.RefusedPending},
		"the last of the budget": {func(w *world, _ invoice.Invoice, _ invoice.Authorization) {
			other := w.create()
			w.must(w.Authorize(w.t.Context(), other.ID, w.authorization(other, w.hash("another nonce"))))
		}, invoice.RefusedBudget},
	} {
		t.Run(name, func(t *testing.T) {
			eachWorld(t, func(t *testing.T, w *world) {
				checker := w.gasless(ledger.AuthorizationBudget{PerMerchant: 9, PerPayer: 9, PerDay: 1})
				inv := w.create()
				w.create() // of the same amount
				a := w.authorization(inv, w.hash("nonce"))
				checker.meanwhile = func() { test.meanwhile(w, inv, a) }
				_, err := w.Authorize(t.Context(), inv.ID, a)
				wantRefused(t, err, test.want)
				if _, err := ledger.NewReader(w.db.store).AuthorizationByNonce(t.Context(), w.chainKey, usdc, a.From, a.Nonce); !errors.Is(err, db.ErrNotFound) {
					t.Errorf("the nonce is bound: %v", err)
				}
			})
		})
	}
}

// TestMadeBeforeAcceptance submits an authorization with a nonce that names the invoice. A block with
// its transfer is read before it is accepted, so it is paid when it is accepted.
func TestMadeBeforeAcceptance(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		checker := w.gasless(plenty)
		inv := w.create()
		a := w.authorization(inv, inv.CommitmentID)
		transfer := w.transferOf(a)
		checker.meanwhile = func() { w.mine(start+1, transfer) }
		accepted, err := w.Authorize(t.Context(), inv.ID, a)
		w.must(err)
		if !accepted.Paid() || accepted.Payment.TxHash != transfer.TxHash || !w.stored(accepted.ID).Paid() {
			t.Errorf("it is %+v, stored %+v", accepted, w.stored(accepted.ID))
		}
		w.final()
		if got := w.stored(accepted.ID); got.Status != ledger.AuthorizationPaid {
			t.Errorf("final, it is %+v", got)
		}
	})
}

// TestVoidWhilePaying makes an invoice void while an authorization of it is accepted, paid, and after it has lapsed.
func TestVoidWhilePaying(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.gasless(plenty)
		inv, lapses := w.create(), w.create()
		a := w.authorization(inv, w.hash("nonce"))
		for _, of := range []invoice.Invoice{inv, lapses} {
			b := a
			b.Nonce = w.hash("nonce of", of.ID)
			w.must(w.Authorize(t.Context(), of.ID, b))
			_, err := w.Void(t.Context(), w.own(), of.ID)
			expect.Error(t, ledger.ErrOutcomeUnknown, "while a payment is being made")(err)
		}
		a.Nonce = w.hash("nonce of", inv.ID)
		w.mine(start+1, w.transferOf(a))
		_, err := w.Void(t.Context(), w.own(), inv.ID)
		expect.Error(t, invoice.ErrCovered, "once it is observed")(err)
		w.mine(a.ValidBefore.Unix())
		w.final()
		got, err := w.Void(t.Context(), w.own(), lapses.ID)
		if err != nil || got.Status != invoice.Void {
			t.Errorf("after the window it is %s, %v", got.Status, err)
		}
	})
}

// TestAuthorizationLapses expects a refusal when a final block is at the end of the window, and not before. Meanwhile
// gasless payments are turned off, and the operator key is removed.
func TestAuthorizationLapses(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.gasless(plenty)
		inv := w.create()
		a := w.authorization(inv, w.hash("nonce"))
		accepted, err := w.Authorize(t.Context(), inv.ID, a)
		w.must(err)
		w.Service = w.service()
		w.mine(a.ValidBefore.Unix() - 1)
		w.final()
		if got := w.stored(accepted.ID); got.Status != ledger.AuthorizationAccepted {
			t.Errorf("in the last second it is %s", got.Status)
		}
		w.mine(a.ValidBefore.Unix())
		if got := w.stored(accepted.ID); got.Status != ledger.AuthorizationAccepted {
			t.Errorf("before the block is final it is %s", got.Status)
		}
		w.final()
		if got := w.stored(accepted.ID); got.Status != ledger.AuthorizationRefused || got.Reason != invoice.RefusedWindowClosed || got.Reason.Detail() == "" {
			t.Errorf("afterwards it is %+v", got)
		}
		w.seconds.Store(a.ValidBefore.Unix())
		_, err = w.Authorize(t.Context(), inv.ID, w.authorization(inv, w.hash("another nonce")))
		wantRefused(t, err, invoice.RefusedGaslessOff)
		w.gasless(plenty)
		next, err := w.Authorize(t.Context(), inv.ID, w.authorization(inv, w.hash("another nonce")))
		if err != nil || next.ID == accepted.ID {
			t.Errorf("another one: %v", err)
		}
	})
}

// TestAuthorizationBudgets tests each bound at its edge, and that it comes back after 24 hours.
func TestAuthorizationBudgets(t *testing.T) {
	for name, budget := range map[string]ledger.AuthorizationBudget{
		"payer":    {PerPayer: 2, PerMerchant: 9, PerDay: 9},
		"merchant": {PerPayer: 9, PerMerchant: 2, PerDay: 9},
		"day":      {PerPayer: 9, PerMerchant: 9, PerDay: 4}, // half for one merchant
	} {
		t.Run(name, func(t *testing.T) {
			eachWorld(t, func(t *testing.T, w *world) {
				w.gasless(budget)
				authorize := func(n int) error {
					inv := w.create(func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(w.seconds.Load() + 7200) })
					_, err := w.Authorize(t.Context(), inv.ID, w.authorization(inv, w.hash("nonce", n)))
					return err
				}
				w.must(authorize(1))
				w.must(authorize(2))
				wantRefused(t, authorize(3), invoice.RefusedBudget)
				w.seconds.Add(24*3600 - 1)
				w.mine(w.seconds.Load())
				wantRefused(t, authorize(4), invoice.RefusedBudget)
				w.seconds.Add(1)
				w.must(authorize(5))
			})
		})
	}
}

// TestAuthorizationBudgetByTheSchedule counts 24 hours by the schedule's clock. A clock that is ahead for a while does
// not free any budget. The schedule's clock does not count an outage of days, and the window is no longer after one.
func TestAuthorizationBudgetByTheSchedule(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		schedule := w.seconds.Load()
		w.gasless(ledger.AuthorizationBudget{PerPayer: 1, PerMerchant: 9, PerDay: 9}, func(cfg *ledger.Config) {
			cfg.Schedule = func() time.Time { return time.Unix(schedule, 0) }
		})
		tries := 0
		authorize := func() error {
			tries++
			w.mine(max(w.seconds.Load(), w.head().Time.Unix()))
			inv := w.create(func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(w.seconds.Load() + 7200) })
			_, err := w.Authorize(t.Context(), inv.ID, w.authorization(inv, w.hash("nonce", tries)))
			return err
		}
		w.must(authorize())
		w.seconds.Add(5 * day) // an outage, or a clock that is ahead
		wantRefused(t, authorize(), invoice.RefusedBudget)
		pass := func(seconds int64) {
			w.seconds.Add(seconds)
			schedule += seconds
		}
		pass(day - 1)
		wantRefused(t, authorize(), invoice.RefusedBudget)
		pass(1)
		w.must(authorize())
		pass(day - 1)
		wantRefused(t, authorize(), invoice.RefusedBudget)
		pass(1)
		w.must(authorize()) // 24 hours after the previous one, though the clocks differ by days
	})
}

// TestAuthorizationsOfAll divides the authorizations of a day among merchants: the first gets half, and
// the next a share of the rest. The last authorization remains for a merchant without any.
func TestAuthorizationsOfAll(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.gasless(ledger.AuthorizationBudget{PerPayer: 9, PerMerchant: 9, PerDay: 4})
		n := 0
		authorize := func(merchant string, address byte) error {
			n++
			inv := w.create(func(d *invoice.Draft) { d.MerchantID, d.Merchant = merchant, invoice.Address{address} })
			_, err := w.Authorize(t.Context(), inv.ID, w.authorization(inv, w.hash("nonce", n)))
			return err
		}
		w.must(authorize(w.merchant+"-b", 0xb1))
		w.must(authorize(w.merchant+"-b", 0xb1))
		wantRefused(t, authorize(w.merchant+"-b", 0xb1), invoice.RefusedBudget)
		w.must(authorize(w.merchant+"-c", 0xc1))
		wantRefused(t, authorize(w.merchant+"-c", 0xc1), invoice.RefusedBudget)
		w.must(authorize(w.merchant+"-d", 0xd1))
		wantRefused(t, authorize(w.merchant+"-e", 0xe1), invoice.RefusedBudget)
	})
}

// TestAuthorizeAtOnce submits the same authorization many times concurrently: it is accepted once, and
// all callers get it.
func TestAuthorizeAtOnce(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.gasless(plenty)
		inv := w.create()
		a := w.authorization(inv, w.hash("nonce"))
		ids := make([]string, 8)
		var group sync.WaitGroup
		for i := range ids {
			group.Go(func() {
				accepted, err := w.Authorize(t.Context(), inv.ID, a)
				expect.NoError(t, err)
				ids[i] = accepted.ID
			})
		}
		group.Wait()
		if slices.Sort(ids); ids[0] == "" || ids[0] != ids[len(ids)-1] {
			t.Errorf("accepted %v", ids)
		}
	})
}

func TestAuthorizeRefusals(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		_, err := w.Authorize(t.Context(), inv.ID, w.authorization(inv, w.hash("nonce")))
		wantRefused(t, err, invoice.RefusedGaslessOff)

		checker := w.gasless(plenty)
		checker.fail = invoice.Refuse(invoice.RefusedSignature)
		_, err = w.Authorize(t.Context(), inv.ID, w.authorization(inv, w.hash("nonce")))
		wantRefused(t, err, invoice.RefusedSignature)
		checker.fail = errors.New("no node answers")
		if _, err = w.Authorize(t.Context(), inv.ID, w.authorization(inv, w.hash("nonce"))); !errors.Is(err, checker.fail) {
			t.Errorf("without a node: %v", err)
		}
		checker.fail = nil
		if found, err := ledger.NewReader(w.db.store).AuthorizationsOfInvoice(t.Context(), inv.ID, 10); err != nil || len(found) > 0 {
			t.Errorf("stored %d, %v; want nothing", len(found), err)
		}
		w.mine(start+1, tagged(w.pay(inv.Amount), invoice.Evidence{Calldata: inv.CommitmentID}))
		_, err = w.Authorize(t.Context(), inv.ID, invoice.Authorization{From: payer, To: inv.PayTo(), Value: inv.Amount, ValidBefore: invoice.Unix(start + 600)})
		wantRefused(t, err, invoice.RefusedNotPayable)

		late := w.create(func(d *invoice.Draft) { d.ChainKey = "unregistered" })
		_, err = w.Authorize(t.Context(), late.ID, w.authorization(late, w.hash("nonce")))
		wantRefused(t, err, invoice.RefusedGaslessOff)
	})
}

// TestBoundNonces plays random histories of authorizations with any nonce, transfers, reorgs and
// restarts. Each transfer with a bound nonce belongs to the invoice of the nonce, and the outcome of
// each authorization is the chain's.
func TestBoundNonces(t *testing.T) {
	t.Parallel()
	storedProperties(t, func(d *database, random *rand.Rand) string {
		h := &boundHistory{w: d.world(t), random: random, bound: make(map[string]ledger.Authorization)}
		h.w.gasless(plenty)
		for range 40 {
			if wrong := h.step(); wrong != "" {
				return wrong
			}
		}
		h.w.mine(h.w.seconds.Load() + 7200)
		h.w.final()
		return h.check(true)
	})
}

// boundHistory is a history of authorizations.
type boundHistory struct {
	w        *world
	random   *rand.Rand
	invoices []invoice.Invoice
	bound    map[string]ledger.Authorization // by id
}

func (h *boundHistory) step() string {
	w := h.w
	switch h.random.IntN(7) {
	case 0, 1:
		h.invoices = append(h.invoices, w.create(amount(uint64(1+h.random.IntN(3))*1_000_000)))
	case 2, 3:
		if len(h.invoices) == 0 {
			return ""
		}
		inv := pick(h.random, h.invoices...)
		nonce := pick(h.random, inv.CommitmentID, w.hash("nonce", h.random.IntN(8)))
		a := w.authorization(inv, nonce)
		a.From = invoice.Address{0xbb, byte(h.random.IntN(3))}
		if accepted, err := w.Authorize(w.t.Context(), inv.ID, a); err == nil {
			if was, ok := h.bound[accepted.ID]; ok && was.InvoiceID != accepted.InvoiceID {
				return fmt.Sprintf("%s was bound to %s, and is bound to %s", accepted.ID, was.InvoiceID, accepted.InvoiceID)
			}
			h.bound[accepted.ID] = accepted
		} else if refusal := (*invoice.RefusalError)(nil); !errors.As(err, &refusal) {
			return err.Error()
		}
	case 4:
		h.mine()
	case 5:
		if n := len(w.blocks) - 1; n > 0 && w.head().Number > h.finalNumber() {
			w.reorg(1)
		}
	case 6:
		w.final()
		return h.check(false)
	}
	return ""
}

// finalNumber returns the newest final block.
func (h *boundHistory) finalNumber() uint64 {
	cursor, err := ledger.NewReader(h.w.db.store).Cursor(h.w.t.Context(), h.w.chainKey)
	h.w.must(err)
	return cursor.Confirmed.Number
}

// mine mines a block with the transfers of some authorizations that were not carried out.
func (h *boundHistory) mine() {
	var transfers []invoice.Transfer
	for id := range h.bound {
		if a := h.w.stored(id); !a.Paid() && a.Status != ledger.AuthorizationRefused && h.random.IntN(2) == 0 {
			transfers = append(transfers, h.w.transferOf(a.Authorization))
		}
	}
	h.w.seconds.Add(int64(h.random.IntN(60)))
	h.w.mine(h.w.seconds.Load(), transfers...)
}

// check compares the stored rows with the bound nonces. done is set once every window is over.
func (h *boundHistory) check(done bool) string {
	for id, was := range h.bound {
		a := h.w.stored(id)
		if a.InvoiceID != was.InvoiceID {
			return fmt.Sprintf("%s moved from %s to %s", id, was.InvoiceID, a.InvoiceID)
		}
		switch {
		case a.Status == ledger.AuthorizationPaid && (!a.Paid() || a.Payment.Status != invoice.Confirmed):
			return fmt.Sprintf("%s is paid without a confirmed payment", id)
		case a.Status == ledger.AuthorizationRefused && a.Paid():
			return fmt.Sprintf("%s is refused and was carried out", id)
		case done && a.Status != ledger.AuthorizationPaid && a.Status != ledger.AuthorizationRefused:
			return fmt.Sprintf("%s is %s after its window", id, a.Status)
		}
		if a.Payment == nil {
			continue
		}
		p, err := ledger.NewReader(h.w.db.store).Payment(h.w.t.Context(), a.Payment.ID)
		h.w.must(err)
		if p.InvoiceID != was.InvoiceID || p.Method != invoice.ByAuthorization {
			return fmt.Sprintf("%s is bound to %s, and its transfer belongs to %q by %q", id, was.InvoiceID, p.InvoiceID, p.Method)
		}
	}
	return ""
}

var _ ledger.AuthorizationChecker = (*headChecker)(nil)
