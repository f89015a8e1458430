package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

const (
	// maxAppliedAttributions bounds the attributions of one call of ApplyAttributions.
	maxAppliedAttributions = 100
	// maxUndoneBy bounds the column that names who undid a decision, in characters.
	maxUndoneBy = 200
)

// ApplyAttributions attributes the payments whose attribution was decided invoice.AttributionDelay ago and not undone,
// each in a separate transaction. A decision that cannot take effect any more is undone, and names the reason. A
// failure does not stop the others.
func (s *Service) ApplyAttributions(ctx context.Context) error {
	ids, err := attributionsToApply(ctx, s.conf.Store, s.conf.Now(), maxAppliedAttributions)
	for _, id := range ids {
		if failed := s.applyAttribution(ctx, id); failed != nil {
			err = errors.Join(err, fmt.Errorf("decision %s: %w", id, failed))
		}
	}
	return err
}

// applyAttribution makes the decision with the id take effect, unless it was undone or has taken effect.
func (s *Service) applyAttribution(ctx context.Context, id string) error {
	return s.update(ctx, func(tx *db.Tx, out *outbox) error {
		d, err := decision(ctx, tx, id)
		if err != nil {
			return err
		}
		if _, _, err := s.lockItem(ctx, tx, d.ObjectID, ""); err != nil { // which an undo locks, too
			return err
		}
		if d, err = decision(ctx, tx, id); err != nil || d.UndoneBy != "" || !d.AppliedAt.IsZero() {
			return err
		}
		was := d
		d.AppliedAt = s.seconds()
		if err := endDecision(ctx, tx, d); err != nil { // first, since the decision keeps the payment from other uses
			return err
		}
		p, err := NewReader(tx).Payment(ctx, d.ObjectID)
		if err != nil {
			return err
		}
		m := ManualAttribution{PaymentID: p.ID, InvoiceID: d.InvoiceID, By: d.By, Note: d.Reason}
		inv, err := s.wantAttributable(ctx, tx, p, m) // people have approved the decision, if they had to
		if err == nil {
			err = s.attributeByHand(ctx, tx, out, &p, inv, m)
		}
		if !isAttributionRefused(err) {
			return err
		}
		d.AppliedAt, d.UndoneBy, d.UndoneAt = was.AppliedAt, fmt.Sprintf("the service: %.*s", maxUndoneBy-20, err), s.seconds()
		out.audit = append(out.audit, access.NewEntry(ctx, s.conf.Now(), access.Change{
			MerchantID: d.MerchantID, Action: access.ActionInboxUndo, Object: d.ID, Before: auditDecision(was), After: auditDecision(d),
		}))
		return endDecision(ctx, tx, d)
	})
}

// isAttributionRefused reports whether an error is one with which AttributeManually refuses an attribution.
func isAttributionRefused(err error) bool {
	var decided *DecidedError
	var used *UsedError
	var field *invoice.FieldError
	return errors.As(err, &decided) || errors.As(err, &used) || errors.As(err, &field) ||
		errors.Is(err, ErrAttributed) || errors.Is(err, ErrOrphaned) || errors.Is(err, ErrRejected) || errors.Is(err, ErrUndecided) || errors.Is(err, ErrIsRefund)
}
