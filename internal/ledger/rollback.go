package ledger

import (
	"context"
	"math"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/tracing"
)

// Rollback orphans all payments, refunds and sweeps above the given header, which is the newest that is still
// canonical. The headers above it stay, so that Observe learns which of these blocks were replaced. Unread transactions
// that these blocks named are forgotten, since reading the blocks again names them again. Rollback returns
// ErrFinalityViolated when that would undo a final block, and ErrCursorMoved when the header is not one that was read,
// below the newest.
func (s *Service) Rollback(ctx context.Context, chainKey string, to invoice.Header) (err error) {
	ctx, end := tracing.Begin(ctx, "roll back blocks", tracing.Chain(chainKey))
	defer end(&err)
	return s.conf.Store.Update(ctx, func(tx *db.Tx) error {
		cur, err := lockRunning(ctx, tx, chainKey)
		if err != nil {
			return err
		}
		kept, err := Headers(ctx, tx, chainKey, to.Number, to.Number)
		if err != nil {
			return err
		}
		finalized := cur.Confirmed
		switch {
		case to.Number < finalized.Number, to.Number == finalized.Number && to.Hash != finalized.Hash:
			return ErrFinalityViolated
		case to.Number >= cur.Indexed.Number, to.Number > finalized.Number && (len(kept) == 0 || kept[0].Hash != to.Hash):
			return ErrCursorMoved
		}
		if err := s.orphanAbove(ctx, tx, chainKey, to.Number); err != nil {
			return err
		}
		if err := UnmarkIntentsObserved(ctx, tx, chainKey, to.Number); err != nil {
			return err
		}
		if err := deleteUnreadAbove(ctx, tx, chainKey, to.Number); err != nil {
			return err
		}
		if err := reopenClosed(ctx, tx, chainKey, to.Number); err != nil {
			return err
		}
		cur.Indexed = to
		// The replaced blocks of the gap are read again as part of the head.
		cur.Gap = cur.Gap.UpTo(to)
		if cur.Unread != nil && *cur.Unread > to.Number {
			cur.Unread = &to.Number // payments in the blocks that replace them wait for the gap
		}
		cur.Revision++
		return SaveCursor(ctx, tx, chainKey, cur)
	})
}

// orphanAbove orphans the payments, refunds and sweeps of blocks above the number, and removes them from the sums.
func (s *Service) orphanAbove(ctx context.Context, tx *db.Tx, chainKey string, number uint64) error {
	payments, err := PendingPayments(ctx, tx, chainKey, number+1, math.MaxInt64)
	if err != nil {
		return err
	}
	var dropped, loose []string // payments, and those that may be items of the inbox
	for _, p := range payments {
		dropped = append(dropped, p.ID)
		if p.IsOpen() {
			loose = append(loose, p.ID)
		}
	}
	refunds, err := PendingRefunds(ctx, tx, chainKey, number+1, math.MaxInt64)
	if err != nil {
		return err
	}
	scope := s.scope(chainKey, Cursor{Indexed: invoice.Header{Number: number}})
	ch, err := change(ctx, tx, scope, func(ch *Changes) { ch.orphan(payments, refunds, number) })
	if err != nil {
		return err
	}
	if err := SaveRefundedSums(ctx, tx, ch.refundedSums); err != nil {
		return err
	}
	if err := OrphanAbove(ctx, tx, chainKey, number, s.conf.Now()); err != nil {
		return err
	}
	if err := s.awaitDropped(ctx, tx, refunds); err != nil {
		return err
	}
	if err := RefreshItems(ctx, tx, append(loose, ch.effects.judged...)...); err != nil {
		return err
	}
	if err := refreshRefundsOf(ctx, tx, dropped); err != nil {
		return err
	}
	return s.saveInvoices(ctx, tx, ch)
}

// orphan orphans pending payments and refunds above the block with the number.
func (ch *Changes) orphan(payments []PaymentRow, refunds []invoice.Refund, number uint64) {
	for _, p := range payments {
		was := p.Payment
		p.Status = invoice.Orphaned
		ch.replace(was, p.Payment)
		ch.setPayment(p)
	}
	for _, inv := range ch.byID {
		ch.putInvoice(inv.WithoutBlocksAbove(number))
	}
	for _, r := range refunds {
		was := r
		r.Status = invoice.Orphaned
		ch.replaceRefund(was, r)
		ch.effects.judge(r)
	}
	ch.recountRemainders()
}
