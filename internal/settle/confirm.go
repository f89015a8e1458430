package settle

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// keptHeaders is how many headers of final blocks are kept, to tell a deep
// reorg when there is one.
const keptHeaders = 256

// expireBatch is how many invoices one transaction expires at most.
const expireBatch = 500

// Confirm makes everything in blocks up to the line final: payments and
// refunds are confirmed, invoices are paid, and intents whose event is there are
// done. Then the invoices expire whose last second the chain has
// passed. The line must be a block that was read, and not one between two that
// were; one that is final already changes nothing.
//
// The revision is that of the cursor when what becomes final was verified.
// When the chain has another one by now, somebody took back what was verified,
// and perhaps read it anew: it returns ErrCursorMoved and changes nothing, as
// it does when the line is not a block that was read.
func (s *Service) Confirm(ctx context.Context, chainKey string, line invoice.Header, revision int64) error {
	return s.expiring(ctx, chainKey, func(tx *store.Tx, out *outbox, cur *store.Cursor) error {
		if line.Number <= cur.Confirmed.Number {
			return nil
		}
		kept, err := tx.Headers(ctx, chainKey, line.Number, line.Number)
		if err != nil {
			return err
		}
		if cur.Revision != revision || len(kept) != 1 || kept[0].Hash != line.Hash {
			return ErrCursorMoved
		}
		if err := s.confirmTransfers(ctx, tx, out, chainKey, line.Number, cur.Indexed.Number); err != nil {
			return err
		}
		if err := tx.FinishIntents(ctx, chainKey, line.Number); err != nil {
			return err
		}
		if err := tx.DeleteHeaders(ctx, chainKey, line.Number-min(line.Number, keptHeaders), math.MaxInt64); err != nil {
			return err
		}
		cur.Confirmed = line
		return tx.SaveCursor(ctx, chainKey, *cur)
	})
}

// confirmTransfers confirms what is pending up to a block and reckons the
// invoices that it touches. height is how far the chain is read.
func (s *Service) confirmTransfers(ctx context.Context, tx *store.Tx, out *outbox, chainKey string, through, height uint64) error {
	payments, err := tx.UnfinalPayments(ctx, chainKey, 0, through)
	if err != nil {
		return err
	}
	refunds, err := tx.UnfinalRefunds(ctx, chainKey, 0, through)
	if err != nil {
		return err
	}
	if len(payments)+len(refunds) == 0 {
		return nil
	}
	now := s.Now().Unix()
	ids := make([]string, 0, len(payments)+len(refunds))
	confirmed := make([]invoice.Payment, len(payments))
	for i, p := range payments {
		confirmed[i] = p.Payment
		confirmed[i].Status, confirmed[i].ConfirmedAt = invoice.Confirmed, now
		if p.Attributed() {
			ids = append(ids, p.InvoiceID)
		}
	}
	refunds = slices.DeleteFunc(refunds, func(r invoice.Refund) bool { return !r.Attributed() })
	for i := range refunds {
		refunds[i].Status, refunds[i].ConfirmedAt = invoice.Confirmed, now
		ids = append(ids, refunds[i].InvoiceID)
	}
	invoices := newInvoiceSet(tx)
	if err := invoices.load(ctx, ids...); err != nil {
		return err
	}
	if err := tx.ConfirmThrough(ctx, chainKey, through, now); err != nil {
		return err
	}
	if err := s.recompute(ctx, out, invoices, confirmed, refunds); err != nil {
		return err
	}
	return s.saveInvoices(ctx, invoices, height)
}

// expiring runs a transaction that may move the finality line or close the
// gap, under the chain's cursor, and in it decides payments that waited for the
// gap and expires the invoices that are due then. Should these be more than one
// transaction takes, others follow.
func (s *Service) expiring(ctx context.Context, chainKey string, fn func(tx *store.Tx, out *outbox, cur *store.Cursor) error) error {
	for {
		full := false
		err := s.update(ctx, func(tx *store.Tx, out *outbox) error {
			cur, err := s.lock(ctx, tx, chainKey)
			if err != nil {
				return err
			}
			if err := fn(tx, out, &cur); err != nil {
				return err
			}
			undecided, err := s.decide(ctx, tx, out, chainKey, &cur)
			if err != nil {
				return err
			}
			full, err = s.expire(ctx, tx, out, chainKey, cur)
			full = full || undecided
			return err
		})
		if err != nil || !full {
			return err
		}
		fn = func(*store.Tx, *outbox, *store.Cursor) error { return nil }
	}
}

// expire expires open invoices whose expiresAt lies before the chain's final
// block, and reports whether there may be more than it takes at once. Every
// payment up to that block is reckoned, so none that was mined in time is
// missed; but for the gap and for payments that are not decided, so that an
// invoice which these could pay waits.
func (s *Service) expire(ctx context.Context, tx *store.Tx, out *outbox, chainKey string, cur store.Cursor) (full bool, err error) {
	var from uint64
	if cur.Gap != nil {
		from = cur.Gap.Last
	}
	if cur.Unread != nil {
		last, err := tx.LastUndecidedBlock(ctx, chainKey)
		if err != nil {
			return false, err
		}
		from = max(from, last)
	}
	due, err := tx.ExpiringInvoices(ctx, chainKey, from, cur.Confirmed.Time, expireBatch)
	if err != nil {
		return false, err
	}
	for i, inv := range due {
		after, ok := inv.Expire(cur.Confirmed.Time)
		if !ok {
			return false, fmt.Errorf("invoice %s does not expire at %d, though it was found to", inv.ID, cur.Confirmed.Time)
		}
		due[i] = after
		s.enqueueIntent(out, invoice.IntentClose, after)
		if err := s.emit(out, invoice.EventExpired, after.ID, after, apiconv.InvoiceData(after)); err != nil {
			return false, err
		}
	}
	if err := tx.UpdateInvoices(ctx, due); err != nil {
		return false, err
	}
	return len(due) == expireBatch, nil
}
