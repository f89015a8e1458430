package ledger_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// refundWithoutPayment has an invoice paid and paid back in full, a reorg drop both transfers,
// and the second one mined again.
func (w *world) refundWithoutPayment() (inv invoice.Invoice, paid, back invoice.Transfer) {
	w.t.Helper()
	inv = w.create()
	paid = w.pay(inv.TransferAmount)
	w.mine(start+1, paid)
	back = w.back(inv.TransferAmount)
	w.mine(start+2, back)
	w.reorg(2)
	w.mine(start + 3)
	w.mine(start+4, back)
	return inv, paid, back
}

// storedRefund returns the record and the refund of a transfer.
func (w *world) storedRefund(t invoice.Transfer) (invoice.RefundRecord, invoice.Refund) {
	w.t.Helper()
	id := invoice.TransferID(invoice.PrefixRefund, t.ChainKey, t.TxHash, t.Ordinal)
	found, err := ledger.RefundsByID(w.t.Context(), w.db.store, []string{id})
	if err != nil || len(found) != 1 {
		w.t.Fatalf("the refund is %+v, %v", found, err)
	}
	return w.refund(id), found[0]
}

// wantRefundOf checks the state of a refund, at the head.
func (w *world) wantRefundOf(t invoice.Transfer, status invoice.PaymentStatus, of invoice.Transfer) {
	w.t.Helper()
	record, refund := w.storedRefund(t)
	if refund.Status != status || refund.BlockHash != w.head().Hash || refund.PaymentID != w.payment(of).ID {
		w.t.Errorf("the refund is %s of %s in block %d", refund.Status, refund.PaymentID, refund.BlockNumber)
	}
	if record.Status != invoice.RefundStatus(status) || record.PaymentID != refund.PaymentID {
		w.t.Errorf("its record is %s of %s", record.Status, record.PaymentID)
	}
}

// TestRefundWithoutPaymentIsRead reads the inbox of the operator and of others.
func TestRefundWithoutPaymentIsRead(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		_, _, back := w.refundWithoutPayment()
		record, _ := w.storedRefund(back)
		for merchant, want := range map[string]bool{"": true, w.merchant: true, "stranger": false} {
			items, _, err := w.Inbox(t.Context(), ledger.InboxFilter{MerchantID: merchant, Limit: 100})
			w.must(err)
			if got := slices.ContainsFunc(items, func(i ledger.InboxItem) bool { return i.Refund.ID == record.ID }); got != want {
				t.Errorf("in the inbox of %q: %t", merchant, got)
			}
		}
	})
}

// TestRefundWithoutPaymentFollowsIt mines a payment again with evidence for another invoice, after its
// refund became final.
func TestRefundWithoutPaymentFollowsIt(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv, paid, back := w.refundWithoutPayment()
		other := w.create(amount(9_000_000))
		w.final()
		w.mine(start+5, tagged(paid, invoice.Evidence{Registry: other.CommitmentID}))
		for id, want := range map[string]invoice.Amount{inv.ID: {}, other.ID: back.Amount} {
			expect.Equal(t, w.invoice(id).AmountRefunded, want, "refunded of invoice %s:", id)
		}
		if record, _ := w.storedRefund(back); record.InvoiceID != other.ID {
			t.Errorf("the refund is one of invoice %s, want %s", record.InvoiceID, other.ID)
		}
		if got := w.refunds(); got[inv.ID] != 1 || got[other.ID] != 0 {
			t.Errorf("refunds were announced %v", got)
		}
	})
}

// next returns a child of the head, and remembers what is final then.
func (m *machine) next(at int64, transfers ...invoice.Transfer) ledger.Block {
	b := m.world.next(at, transfers...)
	if m.finality == nil {
		m.finality = make(map[invoice.Hash]uint64)
	}
	m.finality[b.Hash] = m.blocks[m.line].Number
	return b
}

// isMined reports whether the transaction of a transfer is on the chain.
func (m *machine) isMined(t invoice.Transfer) bool {
	return slices.ContainsFunc(m.blocks, func(b ledger.Block) bool {
		return slices.ContainsFunc(b.Transfers, func(s invoice.Transfer) bool { return s.TxHash == t.TxHash })
	})
}

// losePayment mines a payment with its refund, and has a reorg drop the payment.
func (m *machine) losePayment(r *rapid.T) {
	inv, ok := some(r, "lost of", m.made)
	if !ok {
		return
	}
	paid := m.pay(rapid.SampledFrom([]invoice.Amount{inv.Amount, cmp.Or(inv.TransferAmount, inv.Amount), invoice.NewAmount(700)}).Draw(r, "lost"))
	if rapid.Bool().Draw(r, "lost by name") {
		paid.Evidence.Calldata = inv.CommitmentID
	}
	back := m.back(paid.Amount)
	m.transfers, m.lost = append(m.transfers, paid, back), append(m.lost, paid)
	at := m.head().Time.Unix() + 1
	m.observe(m.next(at, paid, back))
	m.world.reorg(1)
	m.observe(m.next(at, back))
}

// returnPayment mines a payment again that losePayment dropped, possibly with less, but not dust.
func (m *machine) returnPayment(r *rapid.T) {
	t, ok := some(r, "returned", m.lost)
	if !ok || m.isMined(t) {
		return
	}
	if n := rapid.Uint64Range(100, number(t.Amount)).Draw(r, "returned amount"); n < number(t.Amount) && rapid.Bool().Draw(r, "with less") {
		t.Amount = invoice.NewAmount(n)
		m.lessen(t)
	}
	m.observe(m.next(m.head().Time.Unix()+1, t))
}

// lessen gives a transfer another amount from now on.
func (m *machine) lessen(t invoice.Transfer) {
	if m.lessened == nil {
		m.lessened = make(map[string]bool)
	}
	m.lessened[invoice.TransferID(invoice.PrefixPayment, t.ChainKey, t.TxHash, t.Ordinal)] = true
	for _, all := range [][]invoice.Transfer{m.transfers, m.lost} {
		for i := range all {
			if all[i].TxHash == t.TxHash {
				all[i].Amount = t.Amount
			}
		}
	}
}

// isLessened reports whether an event is about a payment that was mined again with less, or a refund of such a payment.
func (m *machine) isLessened(subject string) bool {
	id, _, _ := strings.Cut(subject, "/")
	refunds, err := ledger.RefundsByID(m.t.Context(), m.db.store, []string{id})
	m.must(err)
	return m.lessened[id] || len(refunds) > 0 && m.lessened[refunds[0].PaymentID]
}

// refundedBy returns the stored refunded amounts on the chain, by invoice. Some payments have left the
// chain since, but their refunds have not.
func (m *machine) refundedBy(r *rapid.T, payments []ledger.PaymentRow) map[string]uint64 {
	sums := make(map[string]uint64)
	for _, p := range payments {
		refunds, err := ledger.RefundsOfPayments(m.t.Context(), m.db.store, []string{p.ID})
		expect.OK(r, err)
		sums[p.InvoiceID] += m.checkRefundsOf(r, p, refunds)
	}
	return sums
}

// checkRefundsOf checks that the refunds of a payment are on the chain, as many as fit into it. Only
// refunds that were final before the payment came back with less may exceed it. It returns their sum.
func (m *machine) checkRefundsOf(r *rapid.T, p ledger.PaymentRow, refunds []invoice.Refund) (sum uint64) {
	var early uint64
	for _, refund := range refunds {
		if refund.InvoiceID != p.InvoiceID {
			r.Errorf("refund %s is of %s, and its payment of %s", refund.ID, refund.InvoiceID, p.InvoiceID)
		}
		if refund.Status == invoice.Orphaned {
			continue
		}
		stands := slices.ContainsFunc(m.blocks, func(b ledger.Block) bool { return b.Hash == refund.BlockHash })
		if !stands || refund.Status != invoice.Confirmed {
			r.Errorf("refund %s is %s; on the chain: %t", refund.ID, refund.Status, stands)
		}
		sum += number(refund.Amount)
		if m.lessened[p.ID] && refund.BlockNumber <= m.finality[p.BlockHash] {
			early += number(refund.Amount)
		}
	}
	if sum > max(number(p.Amount), early) {
		r.Errorf("of payment %s over %s, %d was paid back, of that %d before it was mined", p.ID, p.Amount, sum, early)
	}
	for _, refund := range refunds {
		if refund.Status == invoice.Orphaned && m.isMined(refund.Transfer) && sum+number(refund.Amount) <= number(p.Amount) {
			r.Errorf("refund %s of %s is orphaned, and %d of %s are paid back", refund.ID, refund.Amount, sum, p.Amount)
		}
	}
	return sum
}
