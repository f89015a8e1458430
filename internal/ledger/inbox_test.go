package ledger_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// inbox returns the items of a kind, and checks that they are counted.
func (w *world) inbox(kind invoice.ItemKind) []ledger.InboxItem {
	w.t.Helper()
	items, next, err := w.Inbox(w.t.Context(), ledger.InboxFilter{MerchantID: w.merchant, Kind: kind, Limit: 10})
	w.must(err)
	counts, err := w.InboxCounts(w.t.Context(), w.merchant)
	w.must(err)
	for _, c := range counts {
		if c.Kind == kind && (c.Count != len(items) || c.More || next != "") {
			w.t.Errorf("%s: %d are listed, until %q, and counted as %+v", kind, len(items), next, c)
		}
	}
	return items
}

// only returns the one item of a kind.
func (w *world) only(kind invoice.ItemKind) ledger.InboxItem {
	w.t.Helper()
	items := w.inbox(kind)
	if len(items) != 1 {
		w.t.Fatalf("%d items are %s, want 1", len(items), kind)
	}
	return items[0]
}

// dismissal returns the request that dismisses an item.
func (w *world) dismissal(i ledger.InboxItem) ledger.DecisionRequest {
	return ledger.DecisionRequest{Kind: i.Kind, ObjectID: i.ObjectID(), Version: i.Version, Outcome: invoice.Dismissed, Reason: "Settled by phone", MerchantID: w.merchant}
}

// TestInboxApprovals lists refunds to addresses without a payer's signature.
func TestInboxApprovals(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		p := w.paid(1000)
		r := w.mustPrepare(p, 400, askPayer)
		if got := w.inbox(invoice.ItemApproval); len(got) != 0 {
			t.Errorf("a refund that awaits an address is in the inbox: %+v", got)
		}
		name := func(r invoice.RefundRecord, to invoice.Address) {
			t.Helper()
			_, err := w.NameRefundAddress(t.Context(), ledger.RefundClaim{Token: r.ClaimToken, To: to, Account: invoice.AccountWithKey})
			w.must(err)
		}
		name(r, invoice.Address{0xcc})
		item := w.only(invoice.ItemApproval)
		if item.Refund.ID != r.ID || item.Version != (invoice.Address{0xcc}).String() {
			t.Errorf("the item is %+v", item)
		}
		_, err := w.ApproveRefund(open(t), r.ID, w.merchant, invoice.Address{0xcc})
		w.must(err)
		if got := w.inbox(invoice.ItemApproval); len(got) != 0 {
			t.Errorf("an approved refund is in the inbox: %+v", got)
		}
		_, err = w.Decide(open(t), w.dismissal(item))
		wantErr(t, "dismissed after the approval", err, ledger.ErrItemChanged)

		second := w.mustPrepare(p, 300, askPayer)
		name(second, invoice.Address{0xdd})
		d, err := w.Decide(w.as("maria"), w.dismissal(w.only(invoice.ItemApproval)))
		if err != nil || d.By != "maria" || len(w.inbox(invoice.ItemApproval)) != 0 {
			t.Errorf("dismissed: %+v, %v", d, err)
		}
		if _, err := w.UndoDecision(t.Context(), d.ID, w.merchant); err != nil || len(w.inbox(invoice.ItemApproval)) != 1 {
			t.Errorf("a decision that is taken back: %v", err)
		}
		w.advance(second.ExpiresAt.Unix())
		if got := w.inbox(invoice.ItemApproval); len(got) != 0 {
			t.Errorf("an expired refund is in the inbox: %+v", got)
		}
	})
}

// TestInboxClaims lists payments that payers claim. Another claim brings a dismissed one back.
func TestInboxClaims(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		first, second := w.create(), w.create()
		p := w.unattributedPaymentOf(newAccount(t), start+10, 990_000)
		if item := w.only(invoice.ItemUnattributed); item.Payment.ID != p.ID {
			t.Errorf("the item is %+v", item)
		}
		_, err := w.claimFor(first, p, nil)
		w.must(err)
		item := w.only(invoice.ItemClaimed)
		if item.Payment.ID != p.ID || len(w.inbox(invoice.ItemUnattributed)) != 0 {
			t.Errorf("the claimed one is %+v", item)
		}
		_, err = w.Decide(w.as("maria"), w.dismissal(item))
		w.must(err)
		if got := w.inbox(invoice.ItemClaimed); len(got) != 0 {
			t.Errorf("a dismissed claim is in the inbox: %+v", got)
		}
		_, err = w.claimFor(second, p, nil)
		w.must(err)
		again := w.only(invoice.ItemClaimed)
		if again.Version == item.Version {
			t.Error("another claim does not change the version")
		}
		_, err = w.attribute(p, first)
		w.must(err)
		if got := w.inbox(invoice.ItemClaimed); len(got) != 0 {
			t.Errorf("an attributed payment is in the inbox: %+v", got)
		}
		var attributed *ledger.AttributedError
		if _, err := w.Decide(open(t), w.dismissal(again)); !errors.As(err, &attributed) {
			t.Errorf("dismissed after the attribution: %v", err)
		}
	})
}

// TestDecideConcurrently decides as many people at the same time: one succeeds, and the others see who.
func TestDecideConcurrently(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.create() // has the address watched
		w.unattributedPaymentOf(newAccount(t), start+10, 990_000)
		request := w.dismissal(w.only(invoice.ItemUnattributed))
		people := []string{"maria", "juan", "li", "noor", "ana", "olu", "tim", "eva"}
		errs := make([]error, len(people))
		var group sync.WaitGroup
		for i, name := range people {
			group.Go(func() { _, errs[i] = w.Decide(w.as(name), request) })
		}
		group.Wait()
		winner := ""
		for i, err := range errs {
			if err == nil && winner == "" {
				winner = people[i]
			} else if err == nil {
				t.Errorf("%s and %s have decided", winner, people[i])
			}
		}
		for i, err := range errs {
			var decided *ledger.DecidedError
			if people[i] != winner && (!errors.As(err, &decided) || decided.By != winner || decided.At.IsZero()) {
				t.Errorf("%s learns %v, want that %s has decided", people[i], err, winner)
			}
		}
		entries := 0
		for _, e := range w.entries() {
			if e.Action == access.ActionInboxDecide && e.MerchantID == w.merchant {
				entries++
			}
		}
		if entries != 1 {
			t.Errorf("the audit log has %d decisions", entries)
		}
	})
}
