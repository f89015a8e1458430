package ledger_test

import (
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
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
		expect.Len(t, w.inbox(invoice.ItemApproval), 0, "a refund that awaits an address is in the inbox:")
		name := func(r invoice.RefundRecord, to invoice.Address) {
			t.Helper()
			w.must(w.NameRefundAddress(t.Context(), ledger.RefundClaim{Token: r.ClaimToken, To: to, Account: invoice.AccountWithKey}))
		}
		name(r, invoice.Address{0xcc})
		item := w.only(invoice.ItemApproval)
		if item.Refund.ID != r.ID || item.Version != (invoice.Address{0xcc}).String() {
			t.Errorf("the item is %+v", item)
		}
		w.must(w.ApproveRefund(open(t), r.ID, w.merchant, invoice.Address{0xcc}))
		expect.Len(t, w.inbox(invoice.ItemApproval), 0, "an approved refund is in the inbox:")
		_, err := w.Decide(open(t), w.dismissal(item))
		expect.Error(t, ledger.ErrItemChanged, "dismissed after the approval")(err)

		second := w.mustPrepare(p, 300, askPayer)
		name(second, invoice.Address{0xdd})
		d, err := w.Decide(w.as("maria"), w.dismissal(w.only(invoice.ItemApproval)))
		if err != nil || d.By != "maria" || len(w.inbox(invoice.ItemApproval)) != 0 {
			t.Errorf("dismissed: %+v, %v", d, err)
		}
		if _, err := w.UndoDecision(t.Context(), d.ID, w.merchant); err != nil || len(w.inbox(invoice.ItemApproval)) != 1 {
			t.Errorf("a decision that is taken back: %v", err)
		}
		expect.Equal(t, w.newestEntry(d.ID).Action, access.ActionInboxUndo, "the newest entry of the audit log is")
		w.advance(second.ExpiresAt.Unix())
		expect.Len(t, w.inbox(invoice.ItemApproval), 0, "an expired refund is in the inbox:")
	})
}
