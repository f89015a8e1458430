package server

import (
	"context"
	"slices"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/endpoint"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/wait"
)

// eventLog is the store's log of events. It knows which deliveries wait for an
// endpoint, shows times of the schedule as those of this machine, and wakes the
// webhook worker when deliveries are scheduled again.
type eventLog struct {
	*store.Store
	hooks *endpoint.Directory
	clock *clock.Clock // of the schedule
	due   chan struct{}
}

// Events is store.Store's. It notes which deliveries wait for an endpoint.
func (l eventLog) Events(ctx context.Context, f store.EventFilter) ([]store.EventRow, error) {
	rows, err := l.Store.Events(ctx, f)
	if err != nil {
		return nil, err
	}
	l.show(rows)
	return rows, l.mark(ctx, rows)
}

// EventRecord is store.Store's. It notes whether the delivery waits for an
// endpoint.
func (l eventLog) EventRecord(ctx context.Context, id string) (store.EventRow, []delivery.Attempt, error) {
	row, attempts, err := l.Store.EventRecord(ctx, id)
	if err != nil {
		return row, nil, err
	}
	rows := []store.EventRow{row}
	l.show(rows)
	err = l.mark(ctx, rows)
	return rows[0], attempts, err
}

// show converts the schedule's times.
func (l eventLog) show(rows []store.EventRow) {
	for i, r := range rows {
		rows[i].DueMS, rows[i].DeadlineMS = l.clock.Wall(r.DueMS), l.clock.Wall(r.DeadlineMS)
	}
}

// mark notes which of the events' deliveries wait for an endpoint.
func (l eventLog) mark(ctx context.Context, rows []store.EventRow) error {
	var pending []string
	for _, r := range rows {
		if r.Status == delivery.Pending && !slices.Contains(pending, r.MerchantID) {
			pending = append(pending, r.MerchantID)
		}
	}
	if pending == nil {
		return nil
	}
	reachable, err := l.hooks.Reachable(ctx, pending)
	for i, r := range rows {
		rows[i].NoEndpoint = err == nil && r.Status == delivery.Pending && !reachable[r.MerchantID]
	}
	return err
}

// Redeliver is store.Store's, by the schedule's time.
func (l eventLog) Redeliver(ctx context.Context, eventID string, _ int64) error {
	err := l.Store.Redeliver(ctx, eventID, l.clock.Now().UnixMilli())
	if err == nil {
		wait.Wake(l.due)
	}
	return err
}

// RedeliverMany is store.Store's, by the schedule's time.
func (l eventLog) RedeliverMany(ctx context.Context, f store.RedeliverFilter, _ int64, limit int) (scheduled, next int64, err error) {
	scheduled, next, err = l.Store.RedeliverMany(ctx, f, l.clock.Now().UnixMilli(), limit)
	if scheduled > 0 {
		wait.Wake(l.due)
	}
	return scheduled, next, err
}

// clockedStore is the store for those that do not know the schedule's clock.
type clockedStore struct {
	*store.Store
	clock *clock.Clock
}

// Breakers is store.Store's. Its times are those of this machine.
func (s clockedStore) Breakers(ctx context.Context, merchantIDs []string) (map[string]delivery.Breaker, error) {
	all, err := s.Store.Breakers(ctx, merchantIDs)
	for id, b := range all {
		b.SinceMS, b.UntilMS = s.clock.Wall(b.SinceMS), s.clock.Wall(b.UntilMS)
		all[id] = b
	}
	return all, err
}

// AcquireLease is store.Store's, for as long as is asked for, by the schedule's
// time: a clock that is set back keeps no dead process's lease alive, and
// replicas whose clocks differ do not take it from each other.
func (s clockedStore) AcquireLease(ctx context.Context, l store.Lease, nowMS, untilMS int64) (bool, error) {
	now := s.clock.Now().UnixMilli()
	return s.Store.AcquireLease(ctx, l, now, now+untilMS-nowMS)
}
