package indexer

import (
	"math"
	"slices"

	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
)

// compareReturned checks how much of the order's timely payments was sent back while the invoice was open, according to
// the ledger. Refunds in blocks that were read before the invoice was paid or expired count; refunds that were made
// afterwards do not. Whether the ones in between count depends on when the blocks were read. A refund that a reorg
// dropped may count.
func (v *oracle) compareReturned(o *order, got invoice.Invoice) {
	ended := v.endOf(o, got)
	for _, m := range v.paid[o] {
		if b, _ := v.blockOf(m.of); b.Time > o.ExpiresAt.Unix() {
			continue // it does not count
		}
		var least, most uint64
		for _, r := range v.refundsOf(m) {
			b, _, must := v.mayRefund(r)
			if len(r.of.at) > 0 && !r.afterEnd {
				most += r.amount
			}
			if must && b.Number <= ended && !v.wasPaidBelow(o, m, b) {
				least += r.amount
			}
		}
		if sum := v.returned(m); sum < least || sum > most {
			v.report(misread, "of payment %s of %d of invoice %s, which is %s, %d was sent back, want %d to %d",
				v.id(invoice.PrefixPayment, m), m.amount, o.ID, got.Status, sum, least, most)
		}
	}
}

// wasPaidBelow reports whether the order was paid below a block, by the order of the chain, although transactions were
// read in another order. Then a refund of a payment in that block is one of a paid invoice.
func (v *oracle) wasPaidBelow(o *order, paid *move, block *chaintest.Block) bool {
	var sum uint64
	for _, m := range v.paid[o] {
		if b, _ := v.blockOf(m.of); b.Number < block.Number && b.Time <= o.ExpiresAt.Unix() {
			if sum += m.amount; m != paid {
				sum -= v.returned(m)
			}
		}
	}
	return v.skipped && sum >= o.enough
}

// endOf returns a block that was read before the invoice was paid or expired. It is the block of the
// payment that completed it, or the first one after its expiresAt.
func (v *oracle) endOf(o *order, got invoice.Invoice) uint64 {
	switch got.Status {
	case invoice.Paid:
		for _, m := range v.paid[o] {
			if got.SettledTx == invoice.Hash(m.of.tx.Hash) {
				b, _ := v.blockOf(m.of)
				return b.Number
			}
		}
		return 0
	case invoice.Expired:
		i := slices.IndexFunc(v.blocks, func(b *chaintest.Block) bool { return b.Time > o.ExpiresAt.Unix() })
		return v.blocks[max(i, 0)].Number
	default:
		return math.MaxUint64
	}
}

// refundsOf returns the transfers that refund a payment, on the chain or not.
func (v *oracle) refundsOf(paid *move) (refunds []*move) {
	for _, d := range v.actions {
		for _, m := range d.moves {
			if m.back == paid {
				refunds = append(refunds, m)
			}
		}
	}
	return refunds
}

// returned returns how much of a payment the ledger does not count because it was sent back.
func (v *oracle) returned(m *move) uint64 {
	return small(v.payments[v.id(invoice.PrefixPayment, m)].Returned)
}

// wasDropped reports whether a reorg has dropped a refund of a payment of the order. The refund's amount did not count,
// and may count now.
func (v *oracle) wasDropped(o *order) bool {
	return slices.ContainsFunc(v.paid[o], func(m *move) bool {
		return slices.ContainsFunc(v.refundsOf(m), func(r *move) bool {
			return slices.ContainsFunc(r.of.at, func(b *chaintest.Block) bool { return v.blocks[min(b.Number, uint64(len(v.blocks)-1))] != b })
		})
	})
}

// mayRefund returns the block of a refund, or nil, and whether the refund may and must be recognized. A refund that is
// mined before its payment is recognized if both are read together, or read again. Once recognized it stays, even if a
// reorg drops its payment.
func (v *oracle) mayRefund(m *move) (b *chaintest.Block, may, must bool) {
	b, _ = v.blockOf(m.of)
	paid := v.payments[v.id(invoice.PrefixPayment, m.back)]
	final := paid.Status == invoice.Confirmed
	may = b != nil && (final || paid.Status == invoice.Orphaned && v.wereTogether(m, m.back))
	must = may && final && !v.gapped && !v.partial &&
		(paid.BlockNumber < b.Number || paid.BlockNumber == b.Number && v.isBefore(m.back, m, b))
	return b, may, must
}
