package store

import "context"

// FewDeliveries is fewDeliveries.
const FewDeliveries = fewDeliveries

// EventsInParts lists events among those of their type, whatever is in the state.
func (s *Store) EventsInParts(ctx context.Context, f EventFilter) ([]EventRow, error) {
	seqs, err := s.seqsInParts(ctx, f)
	if err != nil {
		return nil, err
	}
	return s.eventPage(ctx, f, seqs)
}
