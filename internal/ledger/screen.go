package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Errors of decisions about quarantined payments.
var (
	// ErrOperatorDecides: only the operator decides about a quarantined payment.
	ErrOperatorDecides = errors.New("only the operator decides about a quarantined payment")
	// ErrScreened: a payment was released or rejected, which cannot be undone.
	ErrScreened = errors.New("the payment was released or rejected, which cannot be undone")
)

const (
	// ScreeningBatch is how many payments one call of LeaseScreenings returns at most.
	ScreeningBatch = 8
	// screeningPause and maxScreeningPause bound how long after a question the hook is asked again about the payment. In
	// between it is as long as the payment has waited.
	screeningPause, maxScreeningPause = 10 * time.Second, time.Minute
	// overdueBatch is how many payments one call of OverdueScreenings returns.
	overdueBatch = 200
)

// LeaseScreenings returns payments that wait for a verdict and about which the hook is to be asked now, fairly over
// merchants. No other call returns them for some seconds. waiting is how many payments wait in all.
func (s *Service) LeaseScreenings(ctx context.Context) (due []PaymentRow, waiting int64, err error) {
	now := s.scheduled()
	if waiting, err = countWaiting(ctx, s.conf.Store); err != nil || waiting == 0 {
		return nil, 0, err
	}
	err = s.conf.Store.Update(ctx, func(tx *db.Tx) error {
		due, err = leaseScreenings(ctx, tx, now)
		return err
	})
	return due, waiting, err
}

// OverdueScreenings returns some payments that began to wait for a verdict before a time of the schedule's clock.
func (s *Service) OverdueScreenings(ctx context.Context, before time.Time) ([]PaymentRow, error) {
	return overdueScreenings(ctx, s.conf.Store, before, overdueBatch)
}

// Screen ends the screening of a payment with a verdict: accepted or quarantined. It has no effect, and ok is false, if
// the payment has changed since it was asked about.
func (s *Service) Screen(ctx context.Context, asked PaymentRow, verdict invoice.Screening, reason string) (ok bool, err error) {
	err = s.update(ctx, func(tx *db.Tx, out *outbox) error {
		ok = false
		if _, err := LockCursor(ctx, tx, asked.ChainKey); err != nil {
			return err
		}
		p, err := NewReader(tx).Payment(ctx, asked.ID)
		if err != nil || p.Screening != invoice.ScreeningWaiting || p.ScreeningSince != asked.ScreeningSince || !p.SameMovement(asked.Transfer) {
			return err
		}
		ok = true
		return s.setScreening(ctx, tx, out, p, verdict, reason)
	})
	return ok && err == nil, err
}

// setScreening ends the screening of a payment, or a quarantine. If the payment was held and is not any more, it is
// confirmed, and its invoice is recomputed. It works on a halted chain. The chain's cursor must be locked.
func (s *Service) setScreening(ctx context.Context, tx *db.Tx, out *outbox, p PaymentRow, to invoice.Screening, reason string) error {
	if !p.Screening.MayBecome(to) {
		return fmt.Errorf("payment %s is %q, which cannot become %s", p.ID, p.Screening, to)
	}
	cur, err := NewReader(tx).Cursor(ctx, p.ChainKey)
	if err != nil {
		return err
	}
	past, err := lostPast(ctx, tx, p.ChainKey)
	if err != nil {
		return err
	}
	ch, err := change(ctx, tx, s.scope(p.ChainKey, cur), func(ch *Changes) {
		ch.lostPast = past
		ch.screen(p, to, reason, cur.Indexed.Number-cur.Confirmed.Number)
	})
	if err != nil {
		return err
	}
	if err := s.save(ctx, tx, out, ch); err != nil {
		return err
	}
	// An invoice that the payment covered did not become void when it ended in a lost past.
	if left := ch.byID[p.InvoiceID]; to == invoice.ScreeningRejected && left.EndedInLostPast() {
		if err := markClosed(ctx, tx, left.CommitmentID, true); err != nil {
			return err
		}
	}
	return AddToDeposits(ctx, tx, ch.confirmed, nil)
}

// screen changes the screening of a payment. A rejected payment leaves its invoice. Another one stays in the sums in
// time, so that the other payments of its invoice are not read. unfinal is how many of the chain's newest blocks are not
// final.
func (ch *Changes) screen(p PaymentRow, to invoice.Screening, reason string, unfinal uint64) {
	was := p.Payment
	p.Screening, p.ScreeningReason, p.ScreeningSince = to, reason, time.Time{}
	if p.Status == invoice.Held && !to.Holds() {
		p.Status, p.ConfirmedAt = invoice.Confirmed, ch.chain.now
	}
	if to == invoice.ScreeningRejected {
		p.Payment = p.WithAttribution(invoice.Attribution{})
		if was.Attributed() {
			ch.moveRefunds(was, p.Payment)
			ch.effects.unattributed = append(ch.effects.unattributed, p.Payment)
		}
		ch.put(was, p)
	} else {
		ch.keep(p)
	}
	if p.Status != was.Status {
		ch.confirmed = append(ch.confirmed, p.Payment)
		// An invoice was paid in a lost past if its payments were final there before they were refunded.
		if p.Attributed() && (ch.lostPast.has(p.BlockNumber) || ch.wasRefundedInPast(p.InvoiceID) || ch.invoice(p.InvoiceID).EndedInLostPast()) {
			ch.settleInOrder([]string{p.InvoiceID}, unfinal)
		}
	}
	ch.finish()
}

// wasRefundedInPast reports whether payments of an invoice were refunded in a lost past. The backup may have the
// payments, without their verdicts.
func (ch *Changes) wasRefundedInPast(invoiceID string) bool {
	if ch.lostPast == (blockRange{}) || ch.invoice(invoiceID).Sums.Returned.IsZero() {
		return false
	}
	return slices.ContainsFunc(ch.paymentsOf(invoiceID), func(p invoice.Payment) bool {
		return slices.ContainsFunc(ch.refundsOf(p.ID), func(r invoice.Refund) bool { return isActive(r) && ch.lostPast.has(r.BlockNumber) })
	})
}
