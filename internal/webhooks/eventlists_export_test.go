package webhooks

import (
	"context"

	"github.com/quittance/quittance/internal/db"
)

// FewDeliveries is fewDeliveries.
const FewDeliveries = fewDeliveries

// EventsInParts lists events from the ones of their type, regardless of the number in the state.
func EventsInParts(ctx context.Context, s *db.DB, f EventFilter) ([]EventRow, error) {
	seqs, err := seqsInParts(ctx, s, f)
	if err != nil {
		return nil, err
	}
	return eventPage(ctx, s, f, seqs)
}
