package ledger

import (
	"context"
	"errors"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// save writes the changes of a decision, in an order in which each row finds the rows that it refers to.
func (s *Service) save(ctx context.Context, tx *db.Tx, out *outbox, ch *Changes) error {
	for _, write := range []func() error{
		func() error { return SaveSweeps(ctx, tx, ch.effects.sweeps) },
		func() error { return s.savePayments(ctx, tx, ch) },
		func() error { return SaveRefundedSums(ctx, tx, ch.refundedSums) }, // which decide the uses below
		func() error { return s.saveRefunds(ctx, tx, out, ch) },
		func() error { return SetRefundInvoices(ctx, tx, ch.effects.reattributed) },
		func() error { return setReturned(ctx, tx, ch.returned()) },
		func() error { return RefreshItems(ctx, tx, ch.effects.judged...) },
		func() error { return refreshRefundsOf(ctx, tx, ch.effects.minedAgain) },
		func() error { return InsertUnrecognizedTransfers(ctx, tx, ch.unrecognized()) },
		func() error { return deferRefunds(ctx, tx, ch.effects.deferred) },
		func() error { return s.addToDeposits(ctx, tx, ch) },
		func() error { return s.saveInvoices(ctx, tx, ch) },
		func() error { return markInvoicesPaid(ctx, tx, ch.paid) },
	} {
		if err := write(); err != nil {
			return err
		}
	}
	out.unattributed = append(out.unattributed, ch.effects.unattributed...)
	for _, e := range ch.effects.events {
		if err := s.emit(out, e.kind, e.subject, e.invoice, e.data()); err != nil {
			return err
		}
	}
	for _, inv := range ch.effects.closed {
		s.enqueueIntent(out, invoice.IntentClose, inv)
	}
	return nil
}

// addToDeposits adds what was confirmed to the balances of deposit addresses.
func (s *Service) addToDeposits(ctx context.Context, tx *db.Tx, ch *Changes) error {
	if !ch.chain.final && !ch.chain.deferred {
		return nil // Confirm adds them
	}
	return AddToDeposits(ctx, tx, ch.confirmed, ch.effects.sweeps)
}

// savePayments writes the changed payments, and links the notices that announced them.
func (s *Service) savePayments(ctx context.Context, tx *db.Tx, ch *Changes) error {
	if len(ch.unsaved) == 0 {
		return nil
	}
	var rows, undecided []PaymentRow
	var decided []string
	for _, id := range ch.unsaved {
		p := ch.payments[id]
		if p.SeenID == "" {
			p.SeenID = s.ids.New("")
		}
		rows = append(rows, p)
		if ch.undecided[id] {
			undecided = append(undecided, p)
		} else if ch.before.undecided.rows[id] {
			decided = append(decided, id)
		}
	}
	if err := SavePayments(ctx, tx, rows); err != nil {
		return err
	}
	if err := SetAuthorizationPayments(ctx, tx, ch.effects.authorized); err != nil {
		return err
	}
	if err := UnmarkUndecided(ctx, tx, decided); err != nil {
		return err
	}
	if err := MarkUndecided(ctx, tx, undecided); err != nil {
		return err
	}
	announced, err := Announced(ctx, tx, rows)
	for _, p := range announced {
		err = errors.Join(err, LinkNotices(ctx, tx, p.Payment))
	}
	return err
}

// saveRefunds writes the changed refunds, and what depends on them.
func (s *Service) saveRefunds(ctx context.Context, tx *db.Tx, out *outbox, ch *Changes) error {
	if err := s.insertRestored(ctx, tx, ch); err != nil {
		return err
	}
	for _, r := range ch.effects.proofs {
		if err := proveAddress(ctx, tx, r); err != nil {
			return err
		}
	}
	refunds := make([]invoice.Refund, len(ch.unsavedRefunds))
	for i, id := range ch.unsavedRefunds {
		refunds[i] = ch.refunds[id]
		ch.effects.judge(refunds[i])
	}
	if err := SaveRefunds(ctx, tx, refunds...); err != nil {
		return err
	}
	for _, w := range ch.effects.waivers {
		d := w.waiver
		d.UndoneBy, d.UndoneAt = "the refund "+w.refundID, ch.chain.now
		out.audit = append(out.audit, access.NewEntry(ctx, s.conf.Now(), access.Change{
			MerchantID: d.MerchantID, Action: access.ActionInboxUndo, Object: d.ID, Before: auditDecision(w.waiver), After: auditDecision(d),
		}))
		if err := endDecision(ctx, tx, d); err != nil {
			return err
		}
	}
	return saveSubmissions(ctx, tx, ch.effects.withdrawn...)
}

// insertRestored inserts the records of prepared refunds that were lost.
func (s *Service) insertRestored(ctx context.Context, tx *db.Tx, ch *Changes) error {
	many := make(map[Pair]bool)
	rows := make([][]any, len(ch.effects.restored))
	for i, r := range ch.effects.restored {
		p, _ := ch.payment(r.PaymentID)
		pair := Pair{Payer: p.From, Receiver: p.RefundedFrom()}
		if _, known := many[pair]; !known {
			var err error
			if many[pair], err = HasPaidManyInvoices(ctx, tx, p.Payment, invoice.ManyInvoices); err != nil {
				return err
			}
		}
		r.ManyInvoices = many[pair]
		rows[i] = preparedValues(r, "", "", invoice.Hash{})
		ch.effects.judged = append(ch.effects.judged, r.ID)
	}
	return insertPreparedRefunds(ctx, tx, rows)
}

// unrecognized returns, during a recovery, the transfers out of settlement addresses that are no known refunds. The
// database may have lost that they were refunds.
func (ch *Changes) unrecognized() (unknown []invoice.Transfer) {
	for _, e := range ch.effects.outgoing {
		r, _ := ch.refund(e.refundID)
		if p, _ := ch.payment(e.paymentID); !isActive(r) && !p.Attributed() {
			unknown = append(unknown, e.Transfer)
		}
	}
	return unknown
}

// returned returns what was returned of the payments of which that has changed.
func (ch *Changes) returned() map[string]invoice.Amount {
	amounts := make(map[string]invoice.Amount)
	for _, id := range ch.effects.returned {
		amounts[id] = ch.payments[id].Returned
	}
	return amounts
}
