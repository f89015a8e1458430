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

// Verdict ends the screening of a payment, or a quarantine.
type Verdict struct {
	Payment PaymentRow // as it was asked about
	To      invoice.Screening
	Reason  string
}

// Screen records verdicts about payments of a chain: accepted or quarantined. It returns those that had an effect: the
// others are about payments that have changed since they were asked about.
func (s *Service) Screen(ctx context.Context, chainKey string, verdicts []Verdict) (recorded []Verdict, err error) {
	err = s.update(ctx, func(tx *db.Tx, out *outbox) error {
		recorded = nil
		if _, err := LockCursor(ctx, tx, chainKey); err != nil {
			return err
		}
		var ids []string
		for _, v := range verdicts {
			ids = append(ids, v.Payment.ID)
		}
		now, err := PaymentsByID(ctx, tx, ids)
		if err != nil {
			return err
		}
		byID := make(map[string]PaymentRow, len(now))
		for _, p := range now {
			byID[p.ID] = p
		}
		for _, v := range verdicts {
			asked, p := v.Payment, byID[v.Payment.ID]
			if p.ChainKey == chainKey && p.Screening == invoice.ScreeningWaiting && p.ScreeningSince == asked.ScreeningSince && p.SameMovement(asked.Transfer) {
				recorded = append(recorded, Verdict{p, v.To, v.Reason})
			}
		}
		return s.setScreening(ctx, tx, out, chainKey, recorded)
	})
	if err != nil {
		return nil, err
	}
	return recorded, nil
}

// setScreening ends the screening of payments of a chain, or quarantines. The payments that were held and are not any
// more are confirmed, and their invoices are recomputed. It works on a halted chain. The chain's cursor must be locked.
func (s *Service) setScreening(ctx context.Context, tx *db.Tx, out *outbox, chainKey string, verdicts []Verdict) error {
	if len(verdicts) == 0 {
		return nil
	}
	for _, v := range verdicts {
		if !v.Payment.Screening.MayBecome(v.To) {
			return fmt.Errorf("payment %s is %q, which cannot become %s", v.Payment.ID, v.Payment.Screening, v.To)
		}
	}
	cur, err := NewReader(tx).Cursor(ctx, chainKey)
	if err != nil {
		return err
	}
	scope := s.scope(chainKey, cur)
	if scope.past, err = lostPast(ctx, tx, chainKey); err != nil {
		return err
	}
	ch, err := change(ctx, tx, scope, func(ch *Changes) {
		var ofPast []string
		for _, v := range verdicts {
			// An invoice was paid in a lost past if its payments were final there before they were refunded.
			if id := ch.screen(v); id != "" && (scope.past.has(v.Payment.BlockNumber) || ch.wasRefundedInPast(id) || ch.invoice(id).EndedInLostPast()) {
				ofPast = append(ofPast, id)
			}
		}
		ch.settleInOrder(ofPast, cur.Indexed.Number-cur.Confirmed.Number)
		ch.finish()
	})
	if err != nil {
		return err
	}
	if err := s.save(ctx, tx, out, ch); err != nil {
		return err
	}
	if err := markScreened(ctx, tx, ch, verdicts); err != nil {
		return err
	}
	return AddToDeposits(ctx, tx, ch.confirmed, nil)
}

// markScreened marks the invoices of payments that are not held any more to become void, if they ended in a lost past and
// are still open: they did not, because of these payments.
func markScreened(ctx context.Context, tx *db.Tx, ch *Changes, verdicts []Verdict) error {
	for _, v := range verdicts {
		if of := ch.byID[v.Payment.InvoiceID]; !v.To.Holds() && of.EndedInLostPast() {
			if err := markClosed(ctx, tx, of.CommitmentID, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// screen changes the screening of a payment, and returns its invoice if that confirms it. A rejected payment leaves its
// invoice. Another one stays in the sums in time, so that the other payments of its invoice are not read.
func (ch *Changes) screen(v Verdict) (invoiceID string) {
	p, was := v.Payment, v.Payment.Payment
	p.Screening, p.ScreeningReason, p.ScreeningSince = v.To, v.Reason, time.Time{}
	if p.Status == invoice.Held && !v.To.Holds() {
		p.Status, p.ConfirmedAt = invoice.Confirmed, ch.chain.now
	}
	if v.To == invoice.ScreeningRejected {
		p.Payment = p.WithAttribution(invoice.Attribution{})
		if was.Attributed() {
			ch.moveRefunds(was, p.Payment)
			ch.effects.unattributed = append(ch.effects.unattributed, p.Payment)
		}
		ch.put(was, p)
	} else {
		ch.keep(p)
	}
	if p.Status == was.Status {
		return ""
	}
	ch.confirmed = append(ch.confirmed, p.Payment)
	return p.InvoiceID
}

// wasRefundedInPast reports whether payments of an invoice were refunded in a lost past. The backup may have the
// payments, without their verdicts.
func (ch *Changes) wasRefundedInPast(invoiceID string) bool {
	if ch.chain.past == (blockRange{}) || ch.invoice(invoiceID).Sums.Returned.IsZero() {
		return false
	}
	return slices.ContainsFunc(ch.paymentsOf(invoiceID), func(p invoice.Payment) bool {
		ofPast := func(r invoice.Refund) bool { return ch.chain.past.has(r.BlockNumber) }
		return len(ch.droppedOfPast(p.ID)) > 0 || slices.ContainsFunc(ch.activeRefunds(p.ID), ofPast)
	})
}
