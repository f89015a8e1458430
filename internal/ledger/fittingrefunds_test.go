package ledger_test

import (
	"encoding/binary"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// prepareMany prepares n refunds of some units to one account that has paid nothing.
func (w *world) prepareMany(n int, units uint64) (all []invoice.RefundRecord) {
	w.t.Helper()
	var p ledger.PaymentRow
	for i := range n {
		if i%invoice.MaxPreparedRefunds == 0 {
			p = w.paid(1_000)
		}
		all = append(all, w.mustPrepare(p, units, to(invoice.Address{7})))
	}
	return all
}

// costOfPending returns how many kilobytes each of 200 transfers to an account allocates while n refunds to it are pending.
func (w *world) costOfPending(n int) uint64 {
	w.t.Helper()
	w.prepareMany(n, 2)
	transfers := make([]invoice.Transfer, 200)
	for i := range transfers {
		transfers[i] = w.back(invoice.NewAmount(1))
		transfers[i].To = invoice.Address{7}
	}
	return allocated(func() { w.mine(w.head().Time.Unix()+1, transfers...) }) / uint64(len(transfers))
}

// TestCostOfPendingRefunds prepares refunds to one account. A transfer of another amount must not read them.
func TestCostOfPendingRefunds(t *testing.T) {
	d := alone(t)
	few, many := d.world(t).costOfPending(100), d.world(t).costOfPending(2_000)
	t.Logf("each of 200 transfers allocates %d kB with 100 pending refunds, %d kB with 2000", few, many)
	if 2*many > 3*max(few, 1) {
		t.Errorf("a transfer allocates %d kB while 2000 refunds to its recipient are pending, %d kB while 100 are", many, few)
	}
}

// TestManyEqualRefunds submits more equal refunds than the first list has. A submitted transaction pays its own refund, and
// each other transfer pays one that no other transfer pays, the submitted ones first.
func TestManyEqualRefunds(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		all := w.prepareMany(203, 2)
		hash := func(i int) (h invoice.Hash) {
			binary.BigEndian.PutUint32(h[:], uint32(i)+1)
			return h
		}
		submitted := all[2:]
		for i, r := range submitted {
			s, err := w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{}, ledger.Once{})
			w.must(err)
			_, err = w.RecordTransaction(w.as("maria"), r.ID, s.ID, w.merchant, hash(i), invoice.Hash{})
			w.must(err)
		}
		untagged := func() invoice.Transfer {
			transfer := w.back(invoice.NewAmount(2))
			transfer.To = invoice.Address{7}
			return transfer
		}
		last := len(submitted) - 1
		own := untagged()
		own.TxHash = hash(last)
		w.mine(w.head().Time.Unix()+1, own)
		expect.Equal(t, w.refund(submitted[last].ID).Transfer.TxHash, own.TxHash, "the submitted refund is paid by")

		others := make([]invoice.Transfer, len(all)) // one more than are left
		for i := range others {
			others[i] = untagged()
		}
		w.mine(w.head().Time.Unix()+1, others...)
		for i, r := range append(submitted[:last:last], all[:2]...) {
			if got := w.refund(r.ID); got.Transfer.TxHash != others[i].TxHash {
				t.Fatalf("refund %d is paid by %s, want %s", i, got.Transfer.TxHash, others[i].TxHash)
			}
		}
		w.reorg(1)
		w.mine(w.head().Time.Unix()+2, others...)
		w.final()
		for i, r := range all {
			expect.Equal(t, w.refund(r.ID).Status, invoice.RefundConfirmed, "refund %d is", i)
		}
	})
}
