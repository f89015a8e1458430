package settle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// Cursor returns how far the chain is read.
func (s *Service) Cursor(ctx context.Context, chainKey string) (Cursor, error) {
	cur, err := s.Store.Cursor(ctx, chainKey)
	if errors.Is(err, store.ErrNotFound) {
		return Cursor{}, nil
	}
	return Cursor{Started: err == nil, Indexed: cur.Indexed, Confirmed: cur.Confirmed, Halted: cur.Halted, Gap: cur.Gap, Revision: cur.Revision}, err
}

// SinceFirstInvoice returns how long ago the first invoice of a chain was created, by
// this service's clock at both times; ok is false while there is none.
func (s *Service) SinceFirstInvoice(ctx context.Context, chainKey string) (d time.Duration, ok bool, err error) {
	first, err := s.Store.FirstInvoice(ctx, chainKey)
	if errors.Is(err, store.ErrNotFound) {
		return 0, false, nil
	}
	return max(0, s.Now().Sub(time.Unix(first.CreatedAt, 0))), err == nil, err
}

// Start records a chain that is read for the first time. The block after the
// header, which is final, is the first that Observe takes. The blocks from the
// number given up to the header are a gap, for Fill; there is none when the
// number lies above the header's. It returns ErrCursorMoved when another
// process started the chain already.
func (s *Service) Start(ctx context.Context, chainKey string, at invoice.Header, from uint64) error {
	var gap *Gap
	if from <= at.Number {
		gap = &Gap{Next: from, Last: at.Number, LastTime: at.Time}
	}
	return s.Store.Update(ctx, func(tx *store.Tx) error {
		fresh, err := tx.InsertChain(ctx, chainKey, at, gap)
		if err != nil {
			return err
		}
		if !fresh {
			return ErrCursorMoved
		}
		return tx.InsertHeaders(ctx, chainKey, []invoice.Header{at})
	})
}

// Headers returns the kept headers from one number to another, both included,
// in ascending order: those above the finality line, and the newest below it.
func (s *Service) Headers(ctx context.Context, chainKey string, from, to uint64) ([]invoice.Header, error) {
	return s.Store.Headers(ctx, chainKey, from, to)
}

// Watched returns which of the addresses are settlement addresses.
func (s *Service) Watched(ctx context.Context, chainKey string, addrs []invoice.Address) (map[invoice.Address]bool, error) {
	return s.Store.SettlementAddresses(ctx, chainKey, addrs)
}

// Pending returns the transfers up to a block that are not final yet: those of
// payments, of refunds, and what may be a refund. They are to be held against their receipts before
// Confirm, which is to be given the revision: with another one, they are not
// what is pending.
func (s *Service) Pending(ctx context.Context, chainKey string, through uint64) (all []invoice.Transfer, revision int64, err error) {
	cur, err := s.Store.Cursor(ctx, chainKey) // before what it counts
	if err != nil {
		return nil, 0, err
	}
	payments, err := s.Store.UnfinalPayments(ctx, chainKey, 0, through)
	if err != nil {
		return nil, 0, err
	}
	refunds, err := s.Store.UnfinalRefunds(ctx, chainKey, 0, through)
	if err != nil {
		return nil, 0, err
	}
	for _, p := range payments {
		all = append(all, p.Transfer)
	}
	for _, r := range refunds {
		all = append(all, r.Transfer)
	}
	undecided, err := s.Store.UndecidedRefunds(ctx, chainKey, cur.Confirmed.Number+1, through, math.MaxInt32)
	return append(all, undecided...), cur.Revision, err
}

// Orphaned returns the transfers of payments that are orphaned, and whose block
// lies above the finality line and up to a number. Most of their blocks left the
// chain; a payment whose block is on it was left out when that was read again.
func (s *Service) Orphaned(ctx context.Context, chainKey string, through uint64) ([]invoice.Transfer, error) {
	cur, err := s.Store.Cursor(ctx, chainKey)
	if err != nil {
		return nil, err
	}
	payments, err := s.Store.OrphanedPayments(ctx, chainKey, cur.Confirmed.Number+1, through)
	transfers := make([]invoice.Transfer, len(payments))
	for i, p := range payments {
		transfers[i] = p.Transfer
	}
	return transfers, err
}

// Rollback leaves the blocks above a header, which is the newest that the
// chain still has: their payments and refunds are orphaned, and kept. Invoices
// that were created since then can be paid in the blocks that follow it. It
// returns ErrFinalityViolated when that would undo a final block, and
// ErrCursorMoved when the header is not one that was read, below the newest.
func (s *Service) Rollback(ctx context.Context, chainKey string, to invoice.Header) error {
	return s.Store.Update(ctx, func(tx *store.Tx) error {
		cur, err := s.lock(ctx, tx, chainKey)
		if err != nil {
			return err
		}
		if err := tx.LockBinding(ctx, chainKey); err != nil {
			return err
		}
		kept, err := tx.Headers(ctx, chainKey, to.Number, to.Number)
		if err != nil {
			return err
		}
		line := cur.Confirmed
		switch {
		case to.Number < line.Number, to.Number == line.Number && to.Hash != line.Hash:
			return ErrFinalityViolated
		case to.Number >= cur.Indexed.Number, to.Number > line.Number && (len(kept) == 0 || kept[0].Hash != to.Hash):
			return ErrCursorMoved
		}
		if err := s.orphanAbove(ctx, tx, chainKey, to.Number); err != nil {
			return err
		}
		if err := tx.BindTo(ctx, chainKey, to.Number); err != nil {
			return err
		}
		if err := tx.UnmarkIntentsObserved(ctx, chainKey, to.Number); err != nil {
			return err
		}
		if err := tx.DeleteHeaders(ctx, chainKey, 0, to.Number); err != nil {
			return err
		}
		cur.Indexed = to
		// What a reorg left of the gap is read again as part of the head.
		cur.Gap = cur.Gap.UpTo(to)
		cur.Revision++
		return tx.SaveCursor(ctx, chainKey, cur)
	})
}

// orphanAbove orphans the payments and refunds of blocks above the number, and
// takes them out of the sums.
func (s *Service) orphanAbove(ctx context.Context, tx *store.Tx, chainKey string, number uint64) error {
	payments, err := tx.UnfinalPayments(ctx, chainKey, number+1, math.MaxInt64)
	if err != nil {
		return err
	}
	var ids []string
	for _, p := range payments {
		if p.Attributed() {
			ids = append(ids, p.InvoiceID)
		}
	}
	invoices := newInvoiceSet(tx)
	if err := invoices.load(ctx, ids...); err != nil {
		return err
	}
	for _, p := range payments {
		orphan := p.Payment
		orphan.Status = invoice.Orphaned
		invoices.replace(p.Payment, orphan)
	}
	for _, inv := range invoices.invoices {
		invoices.put(inv.WithoutBlocksAbove(number))
	}
	refunds, err := tx.UnfinalRefunds(ctx, chainKey, number+1, math.MaxInt64)
	if err != nil {
		return err
	}
	back := newRefundedSums(tx)
	for _, r := range refunds {
		orphan := r
		orphan.Status = invoice.Orphaned
		if err := back.replace(ctx, r, orphan); err != nil {
			return err
		}
	}
	if err := back.save(ctx); err != nil {
		return err
	}
	if err := tx.OrphanAbove(ctx, chainKey, number); err != nil {
		return err
	}
	return s.saveInvoices(ctx, invoices, number)
}

// Halt stops the chain's indexer until somebody has looked at it. Nothing
// else of the chain is changed. It returns ErrNotStarted for a chain that was
// never read.
func (s *Service) Halt(ctx context.Context, chainKey, reason string) error {
	return s.mark(ctx, chainKey, func(cur *store.Cursor) error { cur.Halted = reason; return nil })
}

// Resume lets the indexer of a halted chain go on. It returns ErrNotStarted
// for a chain that was never read.
func (s *Service) Resume(ctx context.Context, chainKey string) error {
	return s.Halt(ctx, chainKey, "")
}

// mark changes the chain's cursor, halted or not.
func (s *Service) mark(ctx context.Context, chainKey string, change func(*store.Cursor) error) error {
	return s.Store.Update(ctx, func(tx *store.Tx) error {
		cur, err := tx.LockCursor(ctx, chainKey)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("%s: %w", chainKey, ErrNotStarted)
		}
		if err != nil {
			return err
		}
		if err := change(&cur); err != nil {
			return err
		}
		return tx.SaveCursor(ctx, chainKey, cur)
	})
}
