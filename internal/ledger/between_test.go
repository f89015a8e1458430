package ledger_test

import (
	"fmt"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// partnerChain is a chain with transfers between a merchant and a partner, who has an open
// invoice. The partner's transfer is in block 101, or 102 if above is set; the merchant's
// is in block 103.
type partnerChain struct {
	paid    uint64 // what the partner paid
	stray   bool   // the partner's transfer does not pay an invoice
	above   bool
	sent    string // amount of the merchant's transfer: "amount" or "transfer amount" of the partner's invoice, or "another"
	tagged  bool   // the merchant's transfer names the partner's invoice
	bound   bool   // the partner's invoice was created when block 101 was indexed
	outcome string // expected role of the merchant's transfer
}

// TestPaymentOrRefundInAnyOrder checks that a transfer that matches both an invoice's
// amount and a refund gets the same role in every order in which the blocks are read.
func TestPaymentOrRefundInAnyOrder(t *testing.T) {
	t.Parallel()
	const pays, back, nothing = "payment by %s", "refund of %s", "nothing"
	each(t, func(t *testing.T, d *database) {
		for _, b := range []partnerChain{
			{paid: 1_000_000, sent: "amount", outcome: fmt.Sprintf(back, "1000000")},
			{paid: 1_000_000, sent: "amount", bound: true, outcome: fmt.Sprintf(back, "1000000")},
			{paid: 1_000_000, sent: "amount", stray: true, outcome: fmt.Sprintf(back, "1000000")},
			{paid: 1_000_000, sent: "amount", stray: true, bound: true, outcome: fmt.Sprintf(back, "1000000")},
			{paid: 1_000_000, sent: "amount", above: true, outcome: fmt.Sprintf(back, "1000000")},
			{paid: 1_000_000, sent: "amount", above: true, bound: true, outcome: fmt.Sprintf(back, "1000000")},
			{paid: 1_000_000, sent: "amount", tagged: true, outcome: fmt.Sprintf(pays, invoice.ByCalldata)},
			{paid: 1_000_000, sent: "amount", tagged: true, bound: true, outcome: fmt.Sprintf(pays, invoice.ByCalldata)},
			{paid: 1_500_000, sent: "amount", outcome: fmt.Sprintf(pays, invoice.ByAmount)},
			{paid: 1_500_000, sent: "amount", bound: true, outcome: fmt.Sprintf(pays, invoice.ByAmount)},
			{paid: 1_500_000, sent: "transfer amount", outcome: fmt.Sprintf(pays, invoice.ByTransferAmount)},
			{paid: 1_500_000, sent: "transfer amount", bound: true, outcome: fmt.Sprintf(pays, invoice.ByTransferAmount)},
			{paid: 1_500_000, sent: "another", outcome: fmt.Sprintf(back, "700000")},
			{paid: 1_500_000, sent: "another", bound: true, outcome: fmt.Sprintf(back, "700000")},
			{paid: 500_000, sent: "another", outcome: nothing},
			{paid: 500_000, sent: "another", bound: true, outcome: nothing},
		} {
			for _, order := range []string{"in order", "one batch", "gap", "gap, read again"} {
				if got := b.read(d.world(t), order); got != b.outcome {
					t.Errorf("%+v, %s: %s", b, order, got)
				}
			}
		}
	})
}

// read makes a world read the chain in an order, and returns the role of the merchant's
// transfer.
func (b partnerChain) read(w *world, order string) string {
	w.t.Helper()
	w.late()
	w.prove(w.address)
	partner := invoice.Address{0: 0xad, 18: w.address[18], 19: w.address[19]}
	theirs := func() invoice.Invoice { return w.create(func(d *invoice.Draft) { d.Merchant = partner }) }
	ours := w.create(amount(b.paid))
	var inv invoice.Invoice
	if !b.bound {
		inv = theirs()
	}
	paid := w.pay(invoice.NewAmount(b.paid))
	paid.From = partner
	if !b.stray {
		paid.Evidence.Calldata = ours.CommitmentID
	}
	first, second := []invoice.Transfer{paid}, []invoice.Transfer(nil)
	if b.above {
		first, second = second, first
	}
	add := func(transfers ...invoice.Transfer) ledger.Block {
		w.blocks = append(w.blocks, w.next(w.head().Time.Unix()+1, transfers...))
		return w.blocks[len(w.blocks)-1]
	}
	genesis, below := w.head(), add(first...)
	if gap := order[0] == 'g'; gap {
		w.startLate()
	} else {
		w.must(w.Start(w.t.Context(), w.chainKey, genesis, 101))
		w.must(w.Observe(w.t.Context(), w.chainKey, []ledger.Block{below}))
	}
	if b.bound {
		inv = theirs()
	}
	sent := w.back(map[string]invoice.Amount{"amount": inv.Amount, "transfer amount": inv.TransferAmount, "another": invoice.NewAmount(700_000)}[b.sent])
	sent.To = partner
	if b.tagged {
		sent.Evidence.Calldata = inv.CommitmentID
	}
	rest := []ledger.Block{add(second...), add(sent)}
	if order == "one batch" {
		w.must(w.Observe(w.t.Context(), w.chainKey, rest))
	} else {
		for _, one := range rest {
			w.must(w.Observe(w.t.Context(), w.chainKey, []ledger.Block{one}))
		}
	}
	w.final()
	switch order {
	case "gap":
		w.fill(101, below.Header, below)
	case "gap, read again":
		w.rescan()
		w.fill(101, w.head(), w.blocks[1:]...)
	}
	return w.storedAs(sent)
}

// storedAs returns the role of a transfer between two settlement addresses.
func (w *world) storedAs(t invoice.Transfer) string {
	w.t.Helper()
	p := w.payment(t)
	refunds, err := ledger.RefundsByID(w.t.Context(), w.db.store, []string{invoice.TransferID(invoice.PrefixRefund, t.ChainKey, t.TxHash, t.Ordinal)})
	w.must(err)
	back := len(refunds) > 0 && refunds[0].Status == invoice.Confirmed
	switch {
	case back && p.Attributed():
		return "both"
	case back:
		return fmt.Sprintf("refund of %s", refunds[0].Amount)
	case p.Attributed():
		return fmt.Sprintf("payment by %s", p.Method)
	}
	return "nothing"
}
