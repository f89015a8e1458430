package ledger_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// useGame is a world with a final payment that no rule attributes.
type useGame struct {
	*world
	by      account // who paid
	payment ledger.PaymentRow
	item    ledger.InboxItem // the payment's item in the inbox
	first   invoice.Invoice  // for the first of two acts
	second  invoice.Invoice  // for the second
}

func newUseGame(t *testing.T, d *database) *useGame {
	t.Helper()
	g := &useGame{world: d.world(t), by: newAccount(t)}
	g.first, g.second = g.create(), g.create()
	g.payment = g.unattributedPaymentOf(g.by, start+10, 990_000)
	g.final()
	g.item = g.only(invoice.ItemUnattributed)
	return g
}

// errKept: a claim was stored for the merchant.
var errKept = errors.New("the claim was kept")

// acts are the ways in which people use a payment.
var acts = map[string]func(g *useGame, inv invoice.Invoice) error{
	"claim": func(g *useGame, inv invoice.Invoice) error {
		result, err := g.claimFor(inv, g.payment, &g.by)
		if err == nil && result == ledger.ClaimKept {
			err = errKept
		}
		return err
	},
	"attribute": func(g *useGame, inv invoice.Invoice) error {
		_, err := g.attribute(g.payment, inv)
		return err
	},
	"decide": func(g *useGame, inv invoice.Invoice) error {
		_, err := g.Decide(g.as("maria"), g.attribution(g.item, inv))
		return err
	},
	"prepare": func(g *useGame, _ invoice.Invoice) error {
		_, err := g.prepare(g.payment, 0, of(g.merchant))
		return err
	},
	"dismiss": func(g *useGame, _ invoice.Invoice) error {
		_, err := g.Decide(g.as("maria"), g.dismissal(g.item))
		return err
	},
}

func of(merchantID string) func(*ledger.RefundRequest) {
	return func(req *ledger.RefundRequest) { req.MerchantID = merchantID }
}

// events are other things that happen to a payment.
var events = map[string]func(g *useGame){
	"nothing": func(*useGame) {},
	"plain transfer": func(g *useGame) {
		g.mine(g.head().Time.Unix()+1, toward(g.back(g.payment.Amount), g.by.address))
	},
	"plain transfer, final": func(g *useGame) {
		g.mine(g.head().Time.Unix()+1, toward(g.back(g.payment.Amount), g.by.address))
		g.final()
	},
	"submitted": func(g *useGame) {
		g.must(g.SubmitRefund(g.as("juan"), g.mustPrepare(g.payment, 0, of(g.merchant)).ID, g.merchant, invoice.Hash{1}, ledger.Once{}))
	},
	"sent": func(g *useGame) { g.mine(g.head().Time.Unix()+1, g.send(g.mustPrepare(g.payment, 0, of(g.merchant)))) },
	"sent, final": func(g *useGame) {
		g.mine(g.head().Time.Unix()+1, g.send(g.mustPrepare(g.payment, 0, of(g.merchant))))
		g.final()
	},
	"sent, dropped": func(g *useGame) {
		g.mine(g.head().Time.Unix()+1, g.send(g.mustPrepare(g.payment, 0, of(g.merchant))))
		g.reorg(1)
	},
	"canceled": func(g *useGame) {
		g.must(g.CancelRefund(g.t.Context(), g.mustPrepare(g.payment, 0, of(g.merchant)).ID, ""))
	},
	"expired": func(g *useGame) {
		g.mustPrepare(g.payment, 0, of(g.merchant))
		g.seconds.Add(int64(invoice.RefundLifetime/time.Second) + 1)
		g.must(g.ExpireRefunds(g.t.Context()))
	},
	"undone": func(g *useGame) {
		d, err := g.Decide(g.as("maria"), g.dismissal(g.item))
		g.must(err)
		g.must(g.UndoDecision(g.t.Context(), d.ID, g.merchant))
	},
	"rescan": func(g *useGame) {
		g.rescan()
		g.read()
	},
}

// usesAfter are the uses of a payment after an act or an event.
var usesAfter = map[string]invoice.PaymentUse{
	"claim": invoice.UseCounted, "attribute": invoice.UseCounted, "prepare": invoice.UseRefunding, "dismiss": invoice.UseDismissed, "decide": invoice.UseAttributing,
	"nothing": invoice.UseUndecided, "canceled": invoice.UseUndecided, "expired": invoice.UseUndecided, "undone": invoice.UseUndecided, "rescan": invoice.UseUndecided,
	"plain transfer": invoice.UseRefunding, "submitted": invoice.UseRefunding, "sent": invoice.UseRefunding, "sent, dropped": invoice.UseRefunding,
	"plain transfer, final": invoice.UseRefunded, "sent, final": invoice.UseRefunded,
}

// useName returns the use that an error names, as in outcomes.
func useName(err error) string {
	var attributed *ledger.AttributedError
	var decided *ledger.DecidedError
	var used *ledger.UsedError
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &attributed):
		return "attributed"
	case errors.As(err, &decided):
		return "decided"
	case errors.As(err, &used):
		return string(used.Use)
	}
	return err.Error()
}

// outcomes are the results of an act on a payment with each use.
var outcomes = map[string]map[invoice.PaymentUse]string{
	"claim": {invoice.UseUndecided: "done", invoice.UseCounted: ledger.ErrNothingToClaim.Error(), invoice.UseRefunding: errKept.Error(), invoice.UseRefunded: errKept.Error(),
		invoice.UseDismissed: errKept.Error(), invoice.UseAttributing: errKept.Error()},
	"attribute": {invoice.UseUndecided: "done", invoice.UseCounted: "attributed", invoice.UseRefunding: "refunding", invoice.UseRefunded: "refunded", invoice.UseDismissed: "decided",
		invoice.UseAttributing: "decided"},
	"decide": {invoice.UseUndecided: "done", invoice.UseCounted: "attributed", invoice.UseRefunding: "refunding", invoice.UseRefunded: "refunded", invoice.UseDismissed: "decided",
		invoice.UseAttributing: "decided"},
	"prepare": {invoice.UseUndecided: "done", invoice.UseCounted: "done", invoice.UseRefunding: ledger.ErrRefundExceeds.Error(), invoice.UseRefunded: ledger.ErrRefundExceeds.Error(),
		invoice.UseDismissed: "decided", invoice.UseAttributing: "decided"},
	"dismiss": {invoice.UseUndecided: "done", invoice.UseCounted: "attributed", invoice.UseRefunding: "refunding", invoice.UseRefunded: "refunded", invoice.UseDismissed: "decided",
		invoice.UseAttributing: "decided"},
}

// checkUse fails the test unless a payment has a use, as computed from all stored rows, and an invoice
// only if one of the two acts attributed it.
func (g *useGame) checkUse(what string, want invoice.PaymentUse, counted bool) {
	g.t.Helper()
	p := g.world.payment(g.payment.Transfer)
	uses, err := ledger.PaymentUses(g.t.Context(), g.db.store, []ledger.PaymentRow{p})
	g.must(err)
	made, _ := invoice.ChangeUse(uses[p.ID].UseFacts, invoice.ActNone)
	if p.Use != want || made != want || p.Attributed() != counted {
		g.t.Errorf("%s: the payment is %s, and %s by what is stored, with the invoice %q; want %s, with one: %t", what, p.Use, made, p.InvoiceID, want, counted)
	}
}

// TestUsesInPairs tries each act after each act and each event. The second act is refused with the
// payment's use, or has a defined result.
func TestUsesInPairs(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for before, use := range usesAfter {
			for name, act := range acts {
				g := newUseGame(t, d)
				if first, ok := acts[before]; ok {
					g.must(first(g, g.first))
				} else {
					events[before](g)
				}
				what := before + ", then " + name
				counted := use == invoice.UseCounted
				g.checkUse(what+": before", use, counted)
				got := useName(act(g, g.second))
				if want := outcomes[name][use]; got != want {
					t.Errorf("%s: %s, want %s", what, got, want)
				}
				switch {
				case got == "done":
					use, counted = usesAfter[name], counted || name == "claim" || name == "attribute"
				case name == "claim" && use == invoice.UseDismissed:
					use = invoice.UseUndecided // it is in the inbox again
				}
				g.checkUse(what, use, counted)
				g.rescan()
				g.read()
				g.checkUse(what+", read again", use, counted)
				use = usesAfter[before]
			}
		}
	})
}

// TestTransfersAfterUses sends a payment back by a plain transfer after each act. The mined transfer is
// a refund even after a decision of people, and no act is accepted afterwards.
func TestTransfersAfterUses(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for name, act := range acts {
			g := newUseGame(t, d)
			g.must(act(g, g.first))
			counted := usesAfter[name] == invoice.UseCounted
			back := toward(g.back(g.payment.Amount), g.by.address)
			g.mine(g.head().Time.Unix()+1, back)
			g.checkUse(name+", in a block", invoice.UseRefunding, counted)
			expect.Len(t, g.inbox(invoice.ItemUnattributed), 0, "%s: the inbox has what was sent back:", name)
			g.reorg(1)
			g.mine(g.head().Time.Unix()+1, back)
			g.final()
			g.checkUse(name+", final", invoice.UseRefunded, counted)
			for again, then := range acts {
				if got := useName(then(g, g.second)); got == "done" {
					t.Errorf("%s, sent back, then %s: %s", name, again, got)
				}
			}
			g.checkUse(name+", used again", invoice.UseRefunded, counted)
		}
	})
}

// TestUsesConcurrently acts as two people at the same time, many times. The result is the result of
// one of the two orders.
func TestUsesConcurrently(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		for a := range acts {
			for b := range acts {
				g := newUseGame(t, d)
				var got [2]string
				var group sync.WaitGroup
				group.Go(func() { got[0] = useName(acts[a](g, g.first)) })
				group.Go(func() { got[1] = useName(acts[b](g, g.second)) })
				group.Wait()
				ab := [2]string{"done", outcomes[b][usesAfter[a]]}
				ba := [2]string{outcomes[a][usesAfter[b]], "done"}
				if got != ab && got != ba {
					t.Errorf("%s and %s at once: %v, want %v or %v", a, b, got, ab, ba)
				}
				use := usesAfter[a] // of who was first, or refunding
				if got[0] != "done" || got[1] == "done" && b == "prepare" {
					use = usesAfter[b]
				}
				if use == invoice.UseDismissed && (got[0] == errKept.Error() || got[1] == errKept.Error()) {
					use = invoice.UseUndecided // the claim came later
				}
				p := g.world.payment(g.payment.Transfer)
				g.checkUse(fmt.Sprintf("%s and %s at once: %v", a, b, got), use, p.Attributed())
			}
		}
	})
}

// TestPartlyRefundedPayment attributes the rest of a payment that was sent back in part.
func TestPartlyRefundedPayment(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		g := newUseGame(t, w.db)
		g.mine(g.head().Time.Unix()+1, toward(g.back(invoice.NewAmount(90_000)), g.by.address))
		g.checkUse("a part in a block", invoice.UseRefunding, false)
		expect.Equal(t, useName(acts["attribute"](g, g.first)), "refunding", "attributed while a part is in a block:")
		g.final()
		g.checkUse("a part is final", invoice.UseUndecided, false)
		expect.Equal(t, useName(acts["claim"](g, g.first)), errKept.Error(), "a claim to the rest:")
		g.must(acts["attribute"](g, g.first))
		g.checkUse("attributed", invoice.UseCounted, true)
	})
}

// TestDismissalsOutlastClaims: a signed claim to a payment that the merchant dismissed is kept, also if
// it is repeated, until the merchant decides.
func TestDismissalsOutlastClaims(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		g := newUseGame(t, w.db)
		g.must(acts["dismiss"](g, g.first))
		for range 3 {
			expect.Equal(t, useName(acts["claim"](g, g.first)), errKept.Error(), "a claim to a dismissed payment:")
		}
		if item := g.only(invoice.ItemClaimed); item.Payment.ID != g.payment.ID {
			t.Errorf("the inbox has %+v", item)
		}
		g.must(acts["attribute"](g, g.first))
	})
}

// TestUsesAtASharedAddress: an act of one merchant of an address on a payment binds the other merchant.
// The other merchant does not learn of the first one's people and refunds.
func TestUsesAtASharedAddress(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		g := newUseGame(t, w.db)
		partner := g.merchant + "-partner"
		theirs := g.create(func(d *invoice.Draft) { d.MerchantID = partner })
		g.payment = g.unattributedPaymentOf(g.by, start+20, 980_000)
		g.final()
		byPartner := ledger.ManualAttribution{PaymentID: g.payment.ID, InvoiceID: theirs.ID, By: "olu", MerchantID: partner}
		refused := func(what string, want invoice.PaymentUse) {
			t.Helper()
			_, err := g.AttributeManually(open(t), byPartner)
			var used *ledger.UsedError
			if !errors.As(err, &used) || used.Use != want || used.RefundID != "" {
				t.Errorf("%s: the other merchant attributes: %v; want that it is %s, without names", what, err, want)
			}
		}
		for _, item := range g.inbox(invoice.ItemUnattributed) {
			if item.Payment.ID == g.payment.ID {
				g.item = item
			}
		}
		d, err := g.Decide(g.as("maria"), g.dismissal(g.item))
		g.must(err)
		refused("dismissed", invoice.UseDismissed)
		_, err = g.prepare(g.payment, 0, of(partner))
		expect.Equal(t, useName(err), "dismissed", "the other merchant refunds what was dismissed:")
		_, err = g.attribute(g.payment, theirs)
		expect.Equal(t, useName(err), "decided", "the operator attributes:")
		g.must(g.UndoDecision(t.Context(), d.ID, ""))

		r := g.mustPrepare(g.payment, 0, of(g.merchant))
		g.must(g.SubmitRefund(g.as("juan"), r.ID, g.merchant, invoice.Hash{}, ledger.Once{}))
		refused("being sent", invoice.UseRefunding)
		var used *ledger.UsedError
		if _, err := g.attribute(g.payment, theirs); !errors.As(err, &used) || used.RefundID != r.ID {
			t.Errorf("the operator attributes: %v, want the refund %s named", err, r.ID)
		}
		if mine, err := ledger.NewReader(g.db.store).RefundRecords(t.Context(), ledger.RefundFilter{MerchantID: g.merchant, Limit: 10}); err != nil || len(mine) != 1 || mine[0].ID != r.ID {
			t.Errorf("the refunds of who prepared it are %+v, %v", mine, err)
		}
	})
}

// TestRefundOfAnotherMerchantStays: a refund that one merchant of an address prepared and canceled stays in
// its list when the payment goes to an invoice of the other.
func TestRefundOfAnotherMerchantStays(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		g := newUseGame(t, w.db)
		theirs := g.create(func(d *invoice.Draft) { d.MerchantID = g.merchant + "-partner" })
		r := g.mustPrepare(g.payment, 0, of(g.merchant))
		g.must(g.CancelRefund(t.Context(), r.ID, g.merchant))
		g.must(g.attribute(g.payment, theirs))
		if got := g.refund(r.ID); got.MerchantID != g.merchant || got.InvoiceID != "" {
			t.Errorf("the refund is of %q and the invoice %q, want it as it was", got.MerchantID, got.InvoiceID)
		}
		own := g.mustPrepare(g.payment, 0)
		if got := g.refund(own.ID); got.MerchantID != theirs.MerchantID || got.InvoiceID != theirs.ID {
			t.Errorf("a refund of the attributed payment is of %q and the invoice %q", got.MerchantID, got.InvoiceID)
		}
	})
}
