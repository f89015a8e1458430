package server

import (
	"context"
	"slices"

	"github.com/quittance/quittance/internal/endpoint"
	"github.com/quittance/quittance/internal/store"
)

// eventLog is the store's log of events. It knows which deliveries wait for an
// endpoint, and wakes the webhook worker when some are scheduled again.
type eventLog struct {
	*store.Store
	hooks *endpoint.Directory
	due   chan struct{}
}

// Events is store.Store's. It notes which deliveries wait for an endpoint.
func (l eventLog) Events(ctx context.Context, f store.EventFilter) ([]store.EventRow, error) {
	rows, err := l.Store.Events(ctx, f)
	if err != nil {
		return nil, err
	}
	return rows, l.mark(ctx, rows)
}

// EventRecord is store.Store's. It notes whether the delivery waits for an
// endpoint.
func (l eventLog) EventRecord(ctx context.Context, id string) (store.EventRow, []store.Attempt, error) {
	row, attempts, err := l.Store.EventRecord(ctx, id)
	if err != nil {
		return row, nil, err
	}
	rows := []store.EventRow{row}
	err = l.mark(ctx, rows)
	return rows[0], attempts, err
}

// mark notes which of the events' deliveries wait for an endpoint.
func (l eventLog) mark(ctx context.Context, rows []store.EventRow) error {
	var pending []string
	for _, r := range rows {
		if r.Status == store.DeliveryPending && !slices.Contains(pending, r.MerchantID) {
			pending = append(pending, r.MerchantID)
		}
	}
	if pending == nil {
		return nil
	}
	reachable, err := l.hooks.Reachable(ctx, pending)
	for i, r := range rows {
		rows[i].NoEndpoint = err == nil && r.Status == store.DeliveryPending && !reachable[r.MerchantID]
	}
	return err
}

// Redeliver is store.Store's.
func (l eventLog) Redeliver(ctx context.Context, eventID string, nowMS int64) error {
	err := l.Store.Redeliver(ctx, eventID, nowMS)
	if err == nil {
		poke(l.due)
	}
	return err
}

// RedeliverMany is store.Store's.
func (l eventLog) RedeliverMany(ctx context.Context, f store.RedeliverFilter, nowMS int64, limit int) (scheduled, next int64, err error) {
	scheduled, next, err = l.Store.RedeliverMany(ctx, f, nowMS, limit)
	if scheduled > 0 {
		poke(l.due)
	}
	return scheduled, next, err
}
