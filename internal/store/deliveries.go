package store

import (
	"context"
	"fmt"
)

// Delivery is an event on its way to a merchant's endpoint.
type Delivery struct {
	ID         string
	EventID    string
	MerchantID string
	EventType  string
	Body       []byte // the envelope, as it is sent
	Attempts   int    // finished ones
	DueMS      int64  // Unix milliseconds: when this attempt was due
	DeadlineMS int64  // Unix milliseconds: no attempt but the first starts after it
}

// DeliveryStatus is the state of a delivery.
type DeliveryStatus string

// A delivery is pending until an attempt succeeded or none is left.
const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliveryDelivered DeliveryStatus = "delivered"
	DeliveryFailed    DeliveryStatus = "failed"
)

// Attempt is one exchange with a merchant's endpoint.
type Attempt struct {
	Number     int   // from 1
	StartedMS  int64 // Unix milliseconds
	DurationMS int64
	StatusCode int    // 100 to 999; 0 when there was no answer
	Error      string // why it was not a success; empty when it was
}

// Outcome is what became of a leased delivery.
type Outcome struct {
	DeliveryID string
	LeaseID    string
	Attempt    *Attempt // nil when the deadline had passed before one more could start
	Status     DeliveryStatus
	NextDueMS  int64 // Unix milliseconds: the next attempt, of a pending one
	FinishedMS int64 // Unix milliseconds: when it became delivered or failed
}

// FinishDelivery records the outcome and ends the lease on the delivery. It
// returns ErrConflict, and records nothing, when the lease is no longer the
// outcome's.
func (s *Store) FinishDelivery(ctx context.Context, o Outcome) error {
	err := s.Update(ctx, func(tx *Tx) error { return tx.finishDelivery(ctx, o) })
	if err != nil {
		return fmt.Errorf("finish delivery %s: %w", o.DeliveryID, err)
	}
	return nil
}

func (tx *Tx) finishDelivery(ctx context.Context, o Outcome) error {
	attempts := 0
	if o.Attempt != nil {
		attempts = 1
	}
	var n int64
	var err error
	if o.Status == DeliveryPending {
		n, err = tx.exec(ctx, `UPDATE deliveries SET attempts = attempts + $3, due_ms = $4, lease_id = NULL, lease_ms = NULL
			WHERE id = $1 AND lease_id = $2`, o.DeliveryID, o.LeaseID, attempts, o.NextDueMS)
	} else {
		n, err = tx.exec(ctx, `UPDATE deliveries SET attempts = attempts + $3, status = $4, finished_ms = $5, lease_id = NULL, lease_ms = NULL
			WHERE id = $1 AND lease_id = $2`, o.DeliveryID, o.LeaseID, attempts, string(o.Status), o.FinishedMS)
	}
	if err != nil {
		return err
	}
	if n == 0 {
		return ErrConflict
	}
	if a := o.Attempt; a != nil {
		_, err = tx.exec(ctx, `INSERT INTO attempts (delivery_id, number, started_ms, duration_ms, status_code, error)
			VALUES ($1, $2, $3, $4, $5, $6)`, o.DeliveryID, a.Number, a.StartedMS, a.DurationMS, orNull(a.StatusCode), a.Error)
	}
	return err
}

// ReleaseDeliveries ends a lease before its time: whoever asks next gets what
// was not finished. It returns how many that were.
func (s *Store) ReleaseDeliveries(ctx context.Context, leaseID string) (released int64, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		released, err = tx.exec(ctx, "UPDATE deliveries SET lease_id = NULL, lease_ms = NULL WHERE lease_id = $1", leaseID)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("release deliveries: %w", err)
	}
	return released, nil
}

// Agenda says when deliveries are due, in Unix milliseconds; 0 is never.
type Agenda struct {
	OldestMS int64 // the oldest that is pending, leased or not
	// NextMS is when something becomes due, or a lease ends, after now. What
	// is due already and not leased waits for one of its merchant's to finish.
	NextMS int64
}

// DeliveryAgenda returns when to ask for deliveries again.
func (q *queries) DeliveryAgenda(ctx context.Context, nowMS int64) (Agenda, error) {
	return one(ctx, q, func(row scanner) (Agenda, error) {
		var a Agenda
		var due, lease int64
		err := row.Scan(seconds{&a.OldestMS}, seconds{&due}, seconds{&lease})
		a.NextMS = due
		if due == 0 || lease != 0 && lease < due {
			a.NextMS = lease
		}
		return a, err
	}, `SELECT (SELECT min(due_ms) FROM deliveries WHERE status = 'pending'),
		(SELECT min(due_ms) FROM deliveries WHERE status = 'pending' AND due_ms > $1),
		(SELECT min(lease_ms) FROM deliveries WHERE lease_id IS NOT NULL AND lease_ms > $1)`, nowMS)
}

// DeliveryOf returns the state of an event's delivery and its attempts in
// their order, or ErrNotFound when the event has no delivery.
func (q *queries) DeliveryOf(ctx context.Context, eventID string) (DeliveryRecord, error) {
	r, err := one(ctx, q, func(row scanner) (r DeliveryRecord, err error) {
		err = row.Scan(&r.ID, &r.Status, &r.DueMS, seconds{&r.FinishedMS})
		return r, err
	}, "SELECT id, status, due_ms, finished_ms FROM deliveries WHERE event_id = $1", eventID)
	if err != nil {
		return r, err
	}
	r.Attempts, err = collect(ctx, q, func(row scanner) (a Attempt, err error) {
		err = row.Scan(&a.Number, &a.StartedMS, &a.DurationMS, &a.StatusCode, &a.Error)
		return a, err
	}, "SELECT number, started_ms, duration_ms, coalesce(status_code, 0), error FROM attempts WHERE delivery_id = $1 ORDER BY number", r.ID)
	return r, err
}

// DeliveryRecord is what is known of a delivery.
type DeliveryRecord struct {
	ID         string
	Status     DeliveryStatus
	DueMS      int64 // Unix milliseconds: the next attempt, of a pending one
	FinishedMS int64 // Unix milliseconds; 0 while pending
	Attempts   []Attempt
}
