package ledger

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/tracing"
)

// keptHeaders is how many headers of final blocks are kept, to detect a deep reorg.
const keptHeaders = 256

// Confirm makes the blocks up to a finalized one final: payments, refunds and sweeps are confirmed,
// invoices are paid, and intents with an event in these blocks are finished. Then it expires invoices
// if the chain has passed their expiresAt; more reports that it left some of them to Expire, because
// there are very many. The finalized block must be one that was read; if it is final already, Confirm
// has no effect. unfinal is how many of the chain's newest blocks are not final now.
//
// revision is the cursor's revision when the transfers in the blocks were verified. If the chain has
// another revision, they have been replaced since. Then, and if the finalized block is not one that
// was read, Confirm returns ErrCursorMoved and makes no change.
func (s *Service) Confirm(ctx context.Context, chainKey string, finalized invoice.Header, revision int64, unfinal uint64) (more bool, err error) {
	ctx, end := tracing.Begin(ctx, "confirm blocks", tracing.Chain(chainKey))
	defer end(&err)
	return s.updateAndExpire(ctx, chainKey, unfinal, func(tx *db.Tx, out *outbox, cur *Cursor) error {
		if finalized.Number <= cur.Confirmed.Number {
			return nil
		}
		kept, err := Headers(ctx, tx, chainKey, finalized.Number, finalized.Number)
		if err != nil {
			return err
		}
		if cur.Revision != revision || finalized.Number > cur.Indexed.Number || len(kept) != 1 || !kept[0].SameBlock(finalized) {
			return ErrCursorMoved
		}
		if err := s.confirmTransfers(ctx, tx, out, chainKey, finalized.Number, cur.Indexed.Number, unfinal); err != nil {
			return err
		}
		if err := FinishIntents(ctx, tx, chainKey, finalized.Number); err != nil {
			return err
		}
		if finalized.Number > keptHeaders {
			if err := DeleteHeaders(ctx, tx, chainKey, 0, finalized.Number-keptHeaders-1); err != nil {
				return err
			}
		}
		cur.Confirmed = finalized
		if err := s.endAuthorizations(ctx, tx, chainKey, *cur); err != nil {
			return err
		}
		return SaveCursor(ctx, tx, chainKey, *cur)
	})
}

// confirmTransfers confirms the pending payments, refunds and sweeps up to a block and recomputes their invoices.
// indexed is the newest block that was read, and unfinal is how many of the chain's newest blocks are not final.
func (s *Service) confirmTransfers(ctx context.Context, tx *db.Tx, out *outbox, chainKey string, through, indexed, unfinal uint64) error {
	payments, err := PendingPayments(ctx, tx, chainKey, 0, through)
	if err != nil {
		return err
	}
	refunds, err := PendingRefunds(ctx, tx, chainKey, 0, through)
	if err != nil {
		return err
	}
	sweeps, err := PendingSweeps(ctx, tx, chainKey, 0, through)
	if err != nil || len(payments)+len(refunds)+len(sweeps) == 0 {
		return err
	}
	scope := s.scope(chainKey, Cursor{Indexed: invoice.Header{Number: indexed}})
	if scope.past, err = lostPast(ctx, tx, chainKey); err != nil {
		return err
	}
	ch, err := change(ctx, tx, scope, func(ch *Changes) { ch.confirm(payments, refunds, unfinal) })
	if err != nil {
		return err
	}
	if err := ConfirmThrough(ctx, tx, chainKey, through, scope.now, scope.recovery); err != nil {
		return err
	}
	final := db.Each(payments, func(p PaymentRow) invoice.Payment { return p.Payment })
	if err := recordConfirmations(ctx, tx, chainKey, final, indexed); err != nil {
		return err
	}
	if err := AddToDeposits(ctx, tx, ch.confirmed, sweeps); err != nil {
		return err
	}
	return s.save(ctx, tx, out, ch)
}

// confirm makes pending payments and refunds final, and finds out which invoices they pay.
func (ch *Changes) confirm(payments []PaymentRow, refunds []invoice.Refund, unfinal uint64) {
	var refundedInPast []string
	for _, p := range payments {
		if p.Status = p.InFinalBlock(); p.Status == invoice.Held {
			ch.setPayment(p)
			continue
		}
		p.ConfirmedAt = ch.chain.confirmedAt(p.Position)
		ch.setPayment(p)
		ch.confirmed = append(ch.confirmed, p.Payment)
		// The invoice of a payment of which something was refunded was paid in the lost past if its payments were
		// final before that. Otherwise what is read as refunded by now does not count.
		if p.Attributed() && !ch.invoice(p.InvoiceID).Sums.Returned.IsZero() && ch.chain.isLost(p.BlockNumber) {
			refundedInPast = append(refundedInPast, p.InvoiceID)
		}
	}
	for _, was := range refunds {
		r := was
		r.Status, r.ConfirmedAt = invoice.Confirmed, ch.chain.confirmedAt(r.Position)
		ch.replaceRefund(was, r)
		ch.effects.judge(r)
		if r.Attributed() {
			ch.refunded = append(ch.refunded, r)
			// A smaller transfer than was prepared reserves no rest any more.
			ch.returning = append(ch.returning, r.PaymentID)
		}
	}
	ch.settleInOrder(refundedInPast, unfinal)
	ch.finish()
}

// Expire expires invoices that an earlier call left open, and attributes undecided payments that it
// left. more reports whether some are left again.
func (s *Service) Expire(ctx context.Context, chainKey string) (more bool, err error) {
	ctx, end := tracing.Begin(ctx, "expire invoices", tracing.Chain(chainKey))
	defer end(&err)
	return s.updateAndExpire(ctx, chainKey, 0, unchanged)
}

// unchanged is a step that makes no change in a transaction.
func unchanged(*db.Tx, *outbox, *Cursor) error { return nil }

// updateAndExpire runs a transaction that may raise the finalized height or close the gap, under the chain's cursor. It
// then attributes undecided payments and expires invoices if they are due. If there are more than one transaction
// handles, further ones follow for expiryShift, and waiting creates have priority. more reports whether some are left.
// unfinal is how many of the chain's newest blocks are not final; if it is 0, the blocks that were read count.
func (s *Service) updateAndExpire(ctx context.Context, chainKey string, unfinal uint64, fn func(tx *db.Tx, out *outbox, cur *Cursor) error) (more bool, err error) {
	started := s.conf.Schedule()
	for pace := newExpiryPace(); ; {
		var held time.Duration // that others waited
		began := time.Now()
		err := s.update(ctx, func(tx *db.Tx, out *outbox) error {
			out.held = &held
			cur, err := lockRunning(ctx, tx, chainKey)
			if err != nil {
				return err
			}
			if err := fn(tx, out, &cur); err != nil {
				return err
			}
			moreUndecided, err := s.attributeDeferred(ctx, tx, out, chainKey, &cur, cmp.Or(unfinal, cur.Indexed.Number-cur.Confirmed.Number))
			if err != nil {
				return err
			}
			moreClosed, err := s.voidClosed(ctx, tx, out, chainKey, cur)
			if err != nil {
				return err
			}
			more, err = s.expire(ctx, tx, out, chainKey, cur, pace.batch)
			more = more || moreUndecided || moreClosed
			return err
		})
		if err != nil {
			return false, err
		}
		if !more || s.conf.Schedule().Sub(started) >= expiryShift {
			return more, nil
		}
		fn = unchanged
		s.GiveWay(ctx, pace.next(time.Since(began), held))
	}
}

// expire expires up to a batch of open invoices with an expiresAt before the time of the chain's finalized block, and
// reports whether there may be more than it handles at once. Payments up to that block are counted, except payments in
// the gap, undecided ones and those that wait for a verdict: invoices that these could pay do not expire yet. During a
// recovery no invoice expires, because the registry may have closed it for another reason.
func (s *Service) expire(ctx context.Context, tx *db.Tx, out *outbox, chainKey string, cur Cursor, batch int) (more bool, err error) {
	if s.conf.Recovery {
		return false, nil
	}
	uncounted, err := newestUncounted(ctx, tx, chainKey, cur)
	if err != nil {
		return false, err
	}
	due, err := ExpiringInvoices(ctx, tx, chainKey, uncounted, cur.Confirmed.Time, batch)
	if err != nil {
		return false, err
	}
	for i, inv := range due {
		after, ok := inv.Expire(cur.Confirmed.Time)
		if !ok {
			return false, fmt.Errorf("invoice %s does not expire at %d, but was selected to", inv.ID, cur.Confirmed.Time.Unix())
		}
		due[i] = after
		s.enqueueIntent(out, invoice.IntentClose, after)
		if err := s.emit(out, invoice.EventExpired, after.ID, after, apiconv.InvoiceData(after)); err != nil {
			return false, err
		}
	}
	if err := ExpireInvoices(ctx, tx, chainKey, due); err != nil {
		return false, err
	}
	return len(due) == batch, nil
}

// newestUncounted returns the newest block with payments that may not be counted: in the gap, of unread
// transactions, or undecided. It is 0 without such a block.
func newestUncounted(ctx context.Context, tx *db.Tx, chainKey string, cur Cursor) (uncounted uint64, err error) {
	uncounted = cur.UnreadTx
	if cur.Gap != nil {
		uncounted = max(uncounted, cur.Gap.Last)
	}
	if cur.Unread == nil {
		return uncounted, nil
	}
	last, err := LastUndecidedBlock(ctx, tx, chainKey)
	return max(uncounted, last), err
}

const (
	// leastExpiring and mostExpiring bound the invoices that one transaction expires.
	leastExpiring, mostExpiring = 25, 500
	// expiryTurn is how long such a transaction may keep others from inserting events before its
	// commit. A commit takes as long with few invoices as with many.
	expiryTurn = 3 * time.Millisecond
	// expiryShare is the part of a transaction's time for which it may keep others from inserting events,
	// if that is longer than expiryTurn. On SQLite it is all of its time.
	expiryShare = 5
	// expiryRest is the part of the time of others for which the next transaction gives priority to
	// waiting creates, so that very many creates do not keep invoices from expiring.
	expiryRest = 4
	// expiryShift is how long invoices are expired before the chain's newer blocks are read.
	expiryShift = 2 * time.Second
)

// expiryPace is how many invoices a transaction expires, so that others do not wait long for it.
type expiryPace struct{ batch int }

func newExpiryPace() *expiryPace { return &expiryPace{4 * leastExpiring} }

// next sets the size of the next batch from how long this one took and how long it kept others from
// inserting events. It returns how long creates have priority. The size at most halves or doubles,
// because one measurement is not reliable.
func (p *expiryPace) next(took, held time.Duration) (rest time.Duration) {
	next := 2 * p.batch
	if held > 0 {
		next = min(next, int(int64(p.batch)*int64(max(expiryTurn, took/expiryShare))/int64(held)))
	}
	p.batch = min(max(next, p.batch/2, leastExpiring), mostExpiring)
	return held / expiryRest
}
