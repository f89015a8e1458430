package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// paid mines the payment of an invoice over n minor units, and makes it final. It returns the payment.
func (w *world) paid(n uint64) ledger.PaymentRow {
	w.t.Helper()
	inv := w.create(amount(n))
	t := tagged(w.pay(inv.Amount), invoice.Evidence{Calldata: inv.CommitmentID})
	w.mine(w.head().Time.Unix()+1, t)
	w.final()
	return w.payment(t)
}

// prepare prepares a refund of n minor units to the payer; 0 means the rest.
func (w *world) prepare(p ledger.PaymentRow, n uint64, change ...func(*ledger.RefundRequest)) (invoice.RefundRecord, error) {
	w.t.Helper()
	req := ledger.RefundRequest{PaymentID: p.ID, Amount: invoice.NewAmount(n), Account: invoice.AccountWithKey}
	for _, apply := range change {
		apply(&req)
	}
	return w.PrepareRefund(open(w.t), req)
}

func (w *world) mustPrepare(p ledger.PaymentRow, n uint64, change ...func(*ledger.RefundRequest)) invoice.RefundRecord {
	w.t.Helper()
	r, err := w.prepare(p, n, change...)
	w.must(err)
	return r
}

func to(a invoice.Address) func(*ledger.RefundRequest) {
	return func(req *ledger.RefundRequest) { req.To = a }
}

func askPayer(req *ledger.RefundRequest) { req.AskPayer = true }

// send returns the transfer of a prepared refund.
func (w *world) send(r invoice.RefundRecord) invoice.Transfer {
	t := w.back(r.Amount)
	t.To, t.Evidence.Calldata = r.To, r.Tag
	return t
}

func (w *world) refund(id string) invoice.RefundRecord {
	w.t.Helper()
	r, err := ledger.NewReader(w.db.store).RefundRecord(w.t.Context(), id)
	w.must(err)
	return r
}

func (w *world) wantRefund(what, id string, status invoice.RefundStatus, transferred uint64) {
	w.t.Helper()
	if r := w.refund(id); r.Status != status || number(r.Transfer.Amount) != transferred {
		w.t.Errorf("%s: the refund is %s, with a transfer of %s; want %s, of %d", what, r.Status, r.Transfer.Amount, status, transferred)
	}
}

// wantRefunded fails the test unless a payment has refunds of n on the chain.
func (w *world) wantRefunded(what string, p ledger.PaymentRow, n uint64) {
	w.t.Helper()
	sums, err := ledger.RefundedSums(w.t.Context(), w.db.store, []string{p.ID})
	w.must(err)
	expect.Equal(w.t, number(sums[p.ID].All), n, "%s: refunded of the payment:", what)
}

func TestPrepareRefundIsIdempotent(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		p := w.paid(1000)
		keyed := func(scope, key string) func(*ledger.RefundRequest) {
			return func(req *ledger.RefundRequest) { req.Scope, req.Key = scope, key }
		}
		first := w.mustPrepare(p, 300, keyed("", "a"))
		if again := w.mustPrepare(p, 300, keyed("", "a")); again.ID != first.ID {
			t.Errorf("the second is %s, the first %s", again.ID, first.ID)
		}
		expect.Error(t, ledger.ErrIdempotencyMismatch, "another request")(w.prepare(p, 301, keyed("", "a")))
		if other := w.mustPrepare(p, 300, keyed("merchant acme", "a")); other.ID == first.ID {
			t.Error("two scopes share a key")
		}
		w.mine(w.head().Time.Unix()+1, w.send(first))
		w.final()
		if now := w.mustPrepare(p, 300, keyed("", "a")); now.ID != first.ID || now.Status != invoice.RefundConfirmed || now.CanBeSent(at(start)) {
			t.Errorf("a repeated request gives %+v", now)
		}
	})
}

func TestWhatCannotBeRefunded(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		pending := w.pay(inv.TransferAmount)
		w.mine(start+1, pending)
		p := w.payment(pending)
		expect.Error(t, ledger.ErrPaymentPending, "pending")(w.prepare(p, 1))
		w.reorg(1)
		_, err := w.prepare(p, 1)
		expect.Error(t, ledger.ErrOrphaned, "orphaned")(err)
		w.mine(start+2, pending)
		w.final()
		_, err = w.prepare(p, 1, func(req *ledger.RefundRequest) { req.MerchantID = "another" })
		expect.Error(t, db.ErrNotFound, "another merchant")(err)
		_, err = w.prepare(ledger.PaymentRow{Payment: invoice.Payment{ID: "pay_none"}}, 1)
		expect.Error(t, db.ErrNotFound, "no payment")(err)
		for name, address := range map[string]invoice.Address{"token": usdc, "registry": registry, "itself": w.address} {
			if _, err := w.prepare(p, 1, to(address)); !isFieldError(err, "to") {
				t.Errorf("to %s: %v", name, err)
			}
		}
		expect.Error(t, ledger.ErrRefundExceeds, "too much")(w.prepare(p, number(p.Amount)+1))
		w.must(func() error { _, err := w.prepare(p, 1); return err }())
	})
}

func isFieldError(err error, field string) bool {
	var e *invoice.FieldError
	return errors.As(err, &e) && e.Field == field
}

// TestTransfersOfPreparedRefunds sends transfers that differ from the prepared one. docs/refunds.md has the table.
func TestTransfersOfPreparedRefunds(t *testing.T) {
	t.Parallel()
	elsewhere := invoice.Address{0xee}
	onSQLite(t, func(t *testing.T, d *database) {
		for name, test := range map[string]struct {
			change   func(w *world, r invoice.RefundRecord) []invoice.Transfer
			to       invoice.Address // of the refund of 600 of 1000; zero: the payer
			status   invoice.RefundStatus
			sent     uint64 // by the refund's transfer
			refunded uint64 // of the payment
		}{
			"nothing": {func(*world, invoice.RefundRecord) []invoice.Transfer { return nil }, invoice.Address{}, invoice.RefundPending, 0, 0},
			"as prepared": {func(w *world, r invoice.RefundRecord) []invoice.Transfer { return []invoice.Transfer{w.send(r)} },
				invoice.Address{}, invoice.RefundConfirmed, 600, 600},
			"less": {func(w *world, r invoice.RefundRecord) []invoice.Transfer {
				return []invoice.Transfer{withAmount(w.send(r), 250)}
			},
				invoice.Address{}, invoice.RefundConfirmed, 250, 250},
			"more": {func(w *world, r invoice.RefundRecord) []invoice.Transfer {
				return []invoice.Transfer{withAmount(w.send(r), 700)}
			},
				invoice.Address{}, invoice.RefundConfirmed, 700, 700},
			"more than was paid": {func(w *world, r invoice.RefundRecord) []invoice.Transfer {
				return []invoice.Transfer{withAmount(w.send(r), 1001)}
			},
				invoice.Address{}, invoice.RefundPending, 0, 0},
			"twice": {func(w *world, r invoice.RefundRecord) []invoice.Transfer {
				return []invoice.Transfer{withAmount(w.send(r), 300), withAmount(w.send(r), 350)}
			}, invoice.Address{}, invoice.RefundConfirmed, 300, 650},
			"twice, more than was paid": {func(w *world, r invoice.RefundRecord) []invoice.Transfer {
				return []invoice.Transfer{w.send(r), w.send(r)}
			},
				invoice.Address{}, invoice.RefundConfirmed, 600, 600},
			"to somebody else": {func(w *world, r invoice.RefundRecord) []invoice.Transfer {
				return []invoice.Transfer{toward(w.send(r), elsewhere)}
			},
				invoice.Address{}, invoice.RefundPending, 0, 0},
			"without tag": {func(w *world, r invoice.RefundRecord) []invoice.Transfer {
				return []invoice.Transfer{tagged(w.send(r), invoice.Evidence{})}
			},
				invoice.Address{}, invoice.RefundConfirmed, 600, 600},
			"without tag, less": {func(w *world, r invoice.RefundRecord) []invoice.Transfer {
				return []invoice.Transfer{tagged(withAmount(w.send(r), 250), invoice.Evidence{})}
			}, invoice.Address{}, invoice.RefundPending, 0, 250},
			"elsewhere, as prepared": {func(w *world, r invoice.RefundRecord) []invoice.Transfer { return []invoice.Transfer{w.send(r)} },
				elsewhere, invoice.RefundConfirmed, 600, 600},
			"elsewhere, without tag": {func(w *world, r invoice.RefundRecord) []invoice.Transfer {
				return []invoice.Transfer{tagged(w.send(r), invoice.Evidence{})}
			}, elsewhere, invoice.RefundConfirmed, 600, 600},
			"elsewhere, without tag, less": {func(w *world, r invoice.RefundRecord) []invoice.Transfer {
				return []invoice.Transfer{tagged(withAmount(w.send(r), 250), invoice.Evidence{})}
			}, elsewhere, invoice.RefundPending, 0, 0},
			"elsewhere, but sent to the payer": {func(w *world, r invoice.RefundRecord) []invoice.Transfer {
				return []invoice.Transfer{toward(w.send(r), payer)}
			},
				elsewhere, invoice.RefundConfirmed, 600, 600},
			"canceled": {func(w *world, r invoice.RefundRecord) []invoice.Transfer {
				w.must(w.CancelRefund(w.t.Context(), r.ID, ""))
				return []invoice.Transfer{w.send(r)}
			}, invoice.Address{}, invoice.RefundConfirmed, 600, 600},
			"expired": {func(w *world, r invoice.RefundRecord) []invoice.Transfer {
				w.seconds.Add(int64(invoice.RefundLifetime / time.Second))
				w.must(w.ExpireRefunds(w.t.Context()))
				w.wantRefund("expired", r.ID, invoice.RefundExpired, 0)
				return []invoice.Transfer{w.send(r)}
			}, invoice.Address{}, invoice.RefundConfirmed, 600, 600},
		} {
			w := d.world(t)
			p := w.paid(1000)
			r := w.mustPrepare(p, 600, to(test.to))
			transfers := test.change(w, r)
			w.mine(w.head().Time.Unix()+1, transfers...)
			w.reorg(1)
			w.mine(w.head().Time.Unix()+1, transfers...)
			w.final()
			w.wantRefund(name, r.ID, test.status, test.sent)
			w.wantRefunded(name, p, test.refunded)
			if got := number(w.invoice(p.InvoiceID).AmountRefunded); got != test.refunded {
				t.Errorf("%s: of the invoice %d are refunded, want %d", name, got, test.refunded)
			}
		}
	})
}

func withAmount(t invoice.Transfer, n uint64) invoice.Transfer {
	t.Amount = invoice.NewAmount(n)
	return t
}

func toward(t invoice.Transfer, to invoice.Address) invoice.Transfer {
	t.To = to
	return t
}

func TestPayerNamesTheAddress(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		customer, stranger := newAccount(t), newAccount(t)
		inv := w.create(amount(1000))
		pays := tagged(w.pay(inv.Amount), invoice.Evidence{Calldata: inv.CommitmentID})
		pays.From = customer.address
		w.mine(start+1, pays)
		w.final()
		p := w.payment(pays)
		home := invoice.Address{0x77}
		sign := func(a account, r invoice.RefundRecord, to invoice.Address) string { return a.signRefund(t, r, to) }
		name := func(r invoice.RefundRecord, to invoice.Address, signature string) (invoice.RefundRecord, error) {
			return w.NameRefundAddress(t.Context(), ledger.RefundClaim{Token: r.ClaimToken, To: to, Account: invoice.AccountContract, Signature: signature})
		}

		signed := w.mustPrepare(p, 300, askPayer)
		if signed.Status != invoice.RefundAwaitingAddress || !signed.To.IsZero() || len(signed.ClaimToken) != 32 || signed.CanBeSent(at(start)) {
			t.Fatalf("prepared %+v", signed)
		}
		expect.Error(t, ledger.ErrNotThePayer, "a stranger's signature")(name(signed, home, sign(stranger, signed, home)))
		_, err := name(signed, home, sign(customer, signed, payer))
		expect.Error(t, ledger.ErrNotThePayer, "the signature of another address")(err)
		expect.Error(t, chain.ErrSignature, "no signature")(name(signed, home, "0x12"))
		if _, err = name(signed, usdc, ""); !isFieldError(err, "to") {
			t.Errorf("to the token: %v", err)
		}
		got, err := name(signed, home, sign(customer, signed, home))
		if err != nil || got.Status != invoice.RefundPending || got.To != home || !w.refund(signed.ID).CanBeSent(at(start)) {
			t.Errorf("signed: %+v, %v", got, err)
		}
		if w := got.Warnings(at(w.seconds.Load())); len(w) != 2 || w[0] != invoice.WarnContract || w[1] != invoice.WarnOtherRecipient {
			t.Errorf("warnings %v", w)
		}
		expect.Error(t, nil, "sent twice")(name(signed, home, sign(customer, signed, home)))
		expect.Error(t, ledger.ErrRefundNotOpen, "another address later")(name(signed, payer, sign(customer, signed, payer)))

		asked := w.mustPrepare(p, 300, askPayer)
		got, err = name(asked, home, "")
		if err != nil || got.Status != invoice.RefundAwaitingApproval || got.CanBeSent(at(start)) {
			t.Errorf("unsigned: %+v, %v", got, err)
		}
		expect.Error(t, ledger.ErrRefundNotOpen, "another address without a signature")(name(asked, payer, ""))
		expect.Error(t, ledger.ErrRefundNotOpen, "approve another address")(w.ApproveRefund(open(t), asked.ID, "", payer))
		expect.Error(t, db.ErrNotFound, "another merchant approves")(w.ApproveRefund(open(t), asked.ID, "another", home))
		for range 2 {
			got, err = w.ApproveRefund(open(t), asked.ID, w.merchant, home)
			if err != nil || got.Status != invoice.RefundPending || !got.CanBeSent(at(start)) {
				t.Errorf("approved: %+v, %v", got, err)
			}
		}
		replaced := w.mustPrepare(p, 300, askPayer)
		w.must(name(replaced, payer, ""))
		got, err = name(replaced, home, sign(customer, replaced, home))
		if err != nil || got.Status != invoice.RefundPending || got.To != home {
			t.Errorf("signed later: %+v, %v", got, err)
		}
		for _, r := range []string{signed.ID, asked.ID, replaced.ID} {
			w.mine(w.head().Time.Unix()+1, w.send(w.refund(r)))
			w.final()
			w.wantRefund("sent", r, invoice.RefundConfirmed, 300)
		}
	})
}

func TestManyInvoicesOfOneAccount(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		var last ledger.PaymentRow
		for n := range invoice.ManyInvoices {
			if n == invoice.ManyInvoices-1 && w.mustPrepare(last, 1).ManyInvoices {
				t.Errorf("%d invoices are many", n)
			}
			last = w.paid(1000)
		}
		if r := w.mustPrepare(last, 1); !r.ManyInvoices || len(r.Warnings(at(w.seconds.Load()))) != 1 {
			t.Errorf("%d invoices are not many: %+v", invoice.ManyInvoices, r)
		}
	})
}

// TestTaggedRefundKeepsItsRecord sends two refunds of one amount to one account in a block. One has the tag of the older
// refund, the other has none and is first. Each pays its own.
func TestTaggedRefundKeepsItsRecord(t *testing.T) {
	eachWorld(t, func(_ *testing.T, w *world) {
		older, newer := w.paid(1000), w.paid(1000)
		first := w.mustPrepare(older, 0)
		w.seconds.Add(1)
		second := w.mustPrepare(newer, 0)
		untagged, named := tagged(w.send(second), invoice.Evidence{}), w.send(first)
		w.mine(w.head().Time.Unix()+1, untagged, named)
		w.final()
		for what, c := range map[string]struct{ r, transfer string }{"named": {first.ID, named.TxHash.String()}, "not named": {second.ID, untagged.TxHash.String()}} {
			if got := w.refund(c.r); got.Status != invoice.RefundConfirmed || got.Transfer.TxHash.String() != c.transfer {
				t := got.Transfer.TxHash.String()
				w.t.Errorf("%s: the refund is %s by %s, want %s", what, got.Status, t, c.transfer)
			}
		}
		w.wantRefunded("the older payment", older, 1000)
		w.wantRefunded("the newer payment", newer, 1000)
	})
}

// TestTaggedRefundOfTooMuch has a transfer that names a refund, of more than the payment, and in the same block an
// untagged one of the refund's amount, which pays it.
func TestTaggedRefundOfTooMuch(t *testing.T) {
	eachWorld(t, func(_ *testing.T, w *world) {
		p := w.paid(1000)
		r := w.mustPrepare(p, 0)
		untagged, tooMuch := tagged(w.send(r), invoice.Evidence{}), w.send(r)
		tooMuch.Amount = invoice.NewAmount(1001)
		w.mine(w.head().Time.Unix()+1, untagged, tooMuch)
		w.final()
		if got := w.refund(r.ID); got.Status != invoice.RefundConfirmed || got.Transfer.TxHash != untagged.TxHash {
			w.t.Errorf("the refund is %s by %s, want confirmed by %s", got.Status, got.Transfer.TxHash, untagged.TxHash)
		}
		w.wantRefunded("the payment", p, 1000)
	})
}

// TestCanceledRefundArrives drops, by a reorg, a transfer that was mined after its refund was canceled.
func TestCanceledRefundArrives(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		p := w.paid(1000)
		r := w.mustPrepare(p, 600)
		w.must(w.CancelRefund(t.Context(), r.ID, ""))
		w.mine(w.head().Time.Unix()+1, w.send(r))
		w.wantRefund("mined", r.ID, invoice.RefundPending, 600)
		_, err := w.CancelRefund(t.Context(), r.ID, "")
		expect.Error(t, ledger.ErrRefundNotOpen, "cancel what was sent")(err)
		w.reorg(1)
		w.wantRefund("dropped", r.ID, invoice.RefundCanceled, 600)
	})
}

// TestChainWithoutExpiry expires the refunds of a chain although the refunds of the chain before it cannot be written.
func TestChainWithoutExpiry(t *testing.T) {
	d := alone(t)
	broken, w := d.world(t), d.world(t)
	s := w.service(func(cfg *ledger.Config) {
		cfg.Chains = append([]chain.Chain{{Key: broken.chainKey, ID: 8}}, cfg.Chains...)
	})
	first, second := broken.mustPrepare(broken.paid(1000), 0), w.mustPrepare(w.paid(1000), 0)
	if _, err := d.sql.ExecContext(t.Context(), `CREATE TRIGGER broken BEFORE UPDATE ON refund_records
		WHEN NEW.status = 'expired' AND NEW.chain_key = '`+broken.chainKey+`' BEGIN SELECT RAISE(ABORT, 'broken'); END`); err != nil {
		t.Fatal(err)
	}
	w.seconds.Add(int64(invoice.RefundLifetime/time.Second) + 1)
	if err := s.ExpireRefunds(t.Context()); err == nil {
		t.Error("the broken chain has no error")
	}
	if got := w.refund(first.ID).Status; got != invoice.RefundPending {
		t.Errorf("of the broken chain, the refund is %s", got)
	}
	expect.Equal(t, w.refund(second.ID).Status, invoice.RefundExpired, "of the chain behind it, the refund is")
}
