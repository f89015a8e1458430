package webhooks

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// The functions below run others in separate transactions.

// PutEndpointOnce runs PutEndpoint in a transaction.
func PutEndpointOnce(ctx context.Context, s *db.DB, e EndpointRow, seal Seal) (first bool, err error) {
	err = s.Update(ctx, func(tx *db.Tx) error { first, err = PutEndpoint(ctx, tx, e, seal); return err })
	return first, err
}

// RedeliverOnce runs Redeliver in a transaction.
func RedeliverOnce(ctx context.Context, s *db.DB, eventID string, now time.Time) error {
	return s.Update(ctx, func(tx *db.Tx) error { _, err := Redeliver(ctx, tx, eventID, now); return err })
}

// RedeliverManyOnce runs Redeliverable, and RedeliverMany in a transaction.
func RedeliverManyOnce(ctx context.Context, s *db.DB, f RedeliverFilter, now time.Time, limit int) (scheduled, next int64, err error) {
	seqs, next, err := NewReader(s).Redeliverable(ctx, f, limit)
	if err != nil {
		return 0, 0, err
	}
	err = s.Update(ctx, func(tx *db.Tx) error { scheduled, err = RedeliverMany(ctx, tx, seqs, now); return err })
	return scheduled, next, err
}

// ReplaceSealedOnce runs ReplaceSealed in a transaction.
func ReplaceSealedOnce(ctx context.Context, s *db.DB, r, old SecretRow) error {
	return s.Update(ctx, func(tx *db.Tx) error { return replaceSealed(ctx, tx, r, old) })
}

// LeaseInTransaction leases in a transaction that the test commits.
func LeaseInTransaction(ctx context.Context, tx *db.Tx, r LeaseRequest) error {
	_, err := leaseDeliveriesIn(ctx, tx, r)
	return err
}

// FinishInTransaction records outcomes in a transaction of the test.
func FinishInTransaction(ctx context.Context, tx *db.Tx, outcomes []Outcome) error {
	_, err := finish(ctx, tx, outcomes)
	return err
}

// RedeliverInTransaction schedules deliveries again in a transaction of the test.
func RedeliverInTransaction(ctx context.Context, tx *db.Tx, seqs []int64) error {
	_, err := scheduleAgain(ctx, tx, seqs, time.UnixMilli(1))
	return err
}

// CleanInTransaction removes old events in a transaction of the test.
func CleanInTransaction(ctx context.Context, tx *db.Tx) error {
	_, _, err := cleanTables(ctx, tx, time.Unix(1000, 0), 0, 10, "attempts", "finished_deliveries", "events")
	return err
}

// PutListenerInTransaction puts a listener.
func PutListenerInTransaction(ctx context.Context, tx *db.Tx, l Listener, now time.Time) error {
	return insertListener(ctx, tx, l, now)
}

// SaveBreaker sets the breaker of an endpoint.
func SaveBreaker(ctx context.Context, s *db.DB, merchantID string, b Breaker) error {
	return s.Update(ctx, func(tx *db.Tx) error {
		if err := forgetBreaker(ctx, tx, merchantID); err != nil {
			return err
		}
		return saveBreakers(ctx, tx, []string{merchantID}, func(string) Breaker { return b }, "NOTHING")
	})
}

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

// Endpoints exports endpoints for its tests.
var Endpoints = endpoints
