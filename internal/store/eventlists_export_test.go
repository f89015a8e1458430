package store

import "context"

// FewDeliveries is fewDeliveries.
const FewDeliveries = fewDeliveries

// EventsInParts lists events as if too many were in a state to read all of them.
func (s *Store) EventsInParts(ctx context.Context, f EventFilter) ([]EventRow, error) {
	seqs, err := s.seqsInParts(ctx, f)
	if err != nil {
		return nil, err
	}
	return s.eventPage(ctx, f, seqs)
}
