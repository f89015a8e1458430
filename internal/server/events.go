package server

import (
	"context"

	"github.com/quittance/quittance/internal/store"
)

// eventLog is the store's log of events. It wakes the webhook worker when
// deliveries are scheduled again.
type eventLog struct {
	*store.Store
	due chan struct{}
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
