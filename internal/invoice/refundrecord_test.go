package invoice_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// preparedRefund returns a pending refund of 600 with the tag n.
func preparedRefund(n byte) invoice.RefundRecord {
	return invoice.RefundRecord{
		ID: "ref_" + string('0'+n), ChainKey: "base", Token: invoice.Address{1}, From: invoice.Address{2}, Payer: invoice.Address{3}, To: invoice.Address{3},
		Left: invoice.NewAmount(1000), Amount: invoice.NewAmount(600), Status: invoice.RefundPending, Tag: invoice.Hash{n}, ExpiresAt: time.Unix(1000, 0),
	}
}

// sentBy returns the refund with a transfer of an amount in a state.
func sentBy(r invoice.RefundRecord, id string, amount uint64, status invoice.PaymentStatus) invoice.RefundRecord {
	r.Transfer = invoice.Refund{ID: id, Status: status, Transfer: invoice.Transfer{TxHash: invoice.Hash{9}, Amount: invoice.NewAmount(amount)}}
	return r
}

// TestTwoEqualRefunds: two refunds have the same recipient and amount. A second transfer without a tag
// pays the refund that no other transfer pays, so that neither refund can be sent again.
func TestTwoEqualRefunds(t *testing.T) {
	t.Parallel()
	first, second := sentBy(preparedRefund(1), "ref_t1", 600, invoice.Pending), preparedRefund(2)
	sent := invoice.Transfer{ChainKey: "base", Token: first.Token, From: first.From, To: first.To, Amount: first.Amount}
	for id, want := range map[string]string{"ref_t1": first.ID, "ref_t2": second.ID} {
		got, named, ok := invoice.PreparedFor(sent, id, []invoice.RefundRecord{first, second}, "")
		if !ok || named || got.ID != want {
			t.Errorf("the transfer %s pays %q, named %t, found %t; want %s", id, got.ID, named, ok, want)
		}
	}
	if got, _, ok := invoice.PreparedFor(sent, "ref_t3", []invoice.RefundRecord{first, sentBy(second, "ref_t2", 600, invoice.Confirmed)}, ""); ok {
		t.Errorf("a third transfer pays %s, which another one pays", got.ID)
	}
}

// TestReserved checks how much refunds reserve of their payment, and whether they can be sent.
func TestReserved(t *testing.T) {
	t.Parallel()
	canceled := func(r invoice.RefundRecord) invoice.RefundRecord {
		r.CanceledAt = time.Unix(1, 0)
		if !r.Sent() {
			r.Status = invoice.RefundCanceled
		}
		return r
	}
	awaited := func(r invoice.RefundRecord) invoice.RefundRecord {
		r.SubmittedTx, r.MayReturn = r.Transfer.TxHash, true
		return r
	}
	submitted := preparedRefund(1)
	submitted.SubmittedTx = invoice.Hash{8}
	byHand := invoice.RefundRecord{Status: invoice.RefundOrphaned, Left: invoice.NewAmount(1000)}
	recorded := func(r invoice.RefundRecord, left uint64) invoice.RefundRecord {
		r.SubmittedTx, r.Left = invoice.Hash{8}, invoice.NewAmount(left)
		return r
	}
	beside := func(underway uint64) invoice.RefundRecord {
		r := preparedRefund(1)
		r.Underway = invoice.NewAmount(underway)
		return r
	}
	const early, late = 999, 1000
	for name, c := range map[string]struct {
		refund  invoice.RefundRecord
		at      int64
		want    uint64
		canSend bool
	}{
		"prepared":                                   {preparedRefund(1), early, 600, true},
		"expired, not stored as expired":             {preparedRefund(1), late, 600, false},
		"submitted":                                  {submitted, early, 600, true},
		"submitted, after it could be sent":          {submitted, late, 600, false},
		"canceled":                                   {canceled(preparedRefund(1)), early, 0, false},
		"in a block":                                 {sentBy(preparedRefund(1), "t", 600, invoice.Pending), early, 0, false},
		"in a block, less":                           {sentBy(preparedRefund(1), "t", 250, invoice.Pending), early, 350, false},
		"in a block, less, canceled before":          {canceled(sentBy(preparedRefund(1), "t", 250, invoice.Pending)), early, 0, false},
		"dropped, and nobody awaits it":              {sentBy(preparedRefund(1), "t", 600, invoice.Orphaned), early, 600, true},
		"dropped":                                    {awaited(sentBy(preparedRefund(1), "t", 600, invoice.Orphaned)), early, 600, false},
		"dropped, less":                              {awaited(sentBy(preparedRefund(1), "t", 250, invoice.Orphaned)), early, 600, false},
		"dropped, more":                              {awaited(sentBy(preparedRefund(1), "t", 700, invoice.Orphaned)), early, 700, false},
		"dropped, after it could be sent":            {awaited(sentBy(preparedRefund(1), "t", 600, invoice.Orphaned)), late, 600, false},
		"dropped, canceled before":                   {awaited(canceled(sentBy(preparedRefund(1), "t", 250, invoice.Orphaned))), early, 250, false},
		"by hand, dropped":                           {awaited(sentBy(byHand, "t", 300, invoice.Orphaned)), early, 300, false},
		"beside one that leaves enough":              {beside(400), early, 600, true},
		"beside one that leaves too little":          {beside(401), early, 600, false},
		"beside one that leaves nothing":             {beside(2000), early, 600, false},
		"recorded, canceled, after it could be sent": {recorded(canceled(preparedRefund(1)), 600), early, 600, false},
		"recorded, canceled, too little, after it could be sent": {recorded(canceled(preparedRefund(1)), 599), early, 0, false},
		"recorded instead of what was dropped by hand":           {recorded(sentBy(byHand, "t", 300, invoice.Orphaned), 300), early, 300, false},
		"by hand, dropped, nobody awaits it":                     {sentBy(byHand, "t", 300, invoice.Orphaned), early, 0, false},
	} {
		now := time.Unix(c.at, 0)
		if got := c.refund.Reserved(); got != invoice.NewAmount(c.want) || c.refund.CanBeSent(now) != c.canSend {
			t.Errorf("%s: %s is reserved, can be sent: %t; want %d, %t", name, got, c.refund.CanBeSent(now), c.want, c.canSend)
		}
		warned := slices.Contains(c.refund.Warnings(now), invoice.WarnTransferDropped)
		if want := c.refund.MayReturn && c.refund.Prepared(); warned != want {
			t.Errorf("%s: a warning that it may be mined again: %t, want %t", name, warned, want)
		}
		exceeds := slices.Contains(c.refund.Warnings(now), invoice.WarnExceedsRemainder)
		if want := strings.HasPrefix(name, "beside") && !c.canSend; exceeds != want {
			t.Errorf("%s: a warning that too little is left: %t, want %t", name, exceeds, want)
		}
		late := slices.Contains(c.refund.Warnings(now), invoice.WarnNotMined)
		if want := strings.HasSuffix(name, "after it could be sent"); late != want || c.refund.StatusAt(now) == invoice.RefundExpired && late {
			t.Errorf("%s: it is %s, with a warning that it may be mined: %t, want %t", name, c.refund.StatusAt(now), late, want)
		}
	}
}
