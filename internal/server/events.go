package server

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// eventLog is the store's log of events for the API. It marks deliveries that wait
// for an endpoint, converts times of the schedule to this machine's, and wakes the
// webhook worker when deliveries are scheduled again.
type eventLog struct {
	webhooks.Tables
	auditLog
	endpoints *webhooks.Directory
	clock     *db.Clock // of the schedule
	now       func() time.Time
	wake      chan struct{} // of the webhook worker
	wakeFeed  func()
}

// auditLog reads the audit log.
type auditLog struct{ access.Reader }

// Events returns the store's events, and marks those that wait for an endpoint.
func (l eventLog) Events(ctx context.Context, f webhooks.EventFilter) ([]webhooks.EventRow, error) {
	rows, err := webhooks.NewReader(l.DB).Events(ctx, f)
	if err != nil {
		return nil, err
	}
	l.convertTimes(rows)
	return rows, l.mark(ctx, rows)
}

// EventRecord returns the store's record of an event, and marks it if it waits for
// an endpoint.
func (l eventLog) EventRecord(ctx context.Context, id string) (webhooks.EventRow, []webhooks.Attempt, error) {
	row, attempts, err := webhooks.NewReader(l.DB).EventRecord(ctx, id)
	if err != nil {
		return row, nil, err
	}
	rows := []webhooks.EventRow{row}
	l.convertTimes(rows)
	err = l.mark(ctx, rows)
	return rows[0], attempts, err
}

// convertTimes converts times of the schedule to this machine's.
func (l eventLog) convertTimes(rows []webhooks.EventRow) {
	for i, r := range rows {
		rows[i].Due, rows[i].Deadline = l.clock.Wall(r.Due), l.clock.Wall(r.Deadline)
	}
}

// mark sets NoEndpoint of the events that wait for an endpoint, and the time until which their endpoint is paused.
func (l eventLog) mark(ctx context.Context, rows []webhooks.EventRow) error {
	var pending []string
	for _, r := range rows {
		if r.Status == webhooks.Pending && !slices.Contains(pending, r.MerchantID) {
			pending = append(pending, r.MerchantID)
		}
	}
	if pending == nil {
		return nil
	}
	breakers, err := l.Breakers(ctx, pending)
	if err != nil {
		return err
	}
	reachable, err := l.endpoints.Reachable(ctx, l.DB, pending)
	for i, r := range rows {
		rows[i].NoEndpoint = err == nil && r.Status == webhooks.Pending && !reachable[r.MerchantID]
		if until := l.clock.Wall(breakers[r.MerchantID].Until); until.After(r.Due) {
			rows[i].Due = until
		}
	}
	return err
}

// listenerTime is for how long a listener is noted. It is renewed each third of it.
const listenerTime = 30 * time.Second

// Listen notes that redelivered events reach the listener for listenerTime, by the
// schedule's clock.
func (l eventLog) Listen(ctx context.Context, listener *webhooks.Listener) error {
	now := l.clock.Now()
	if listener.Until.Sub(now) > listenerTime*2/3 {
		return nil
	}
	renewed := *listener
	renewed.Until = now.Add(listenerTime)
	if err := webhooks.PutListener(ctx, l.DB, renewed, now); err != nil {
		return err
	}
	*listener = renewed
	return nil
}

// Redeliver schedules an event's delivery for now, by the schedule's clock. The audit entry makes
// streams with deliveries send the event, also if its delivery is pending or does not exist.
func (l eventLog) Redeliver(ctx context.Context, eventID string, _ time.Time) error {
	err := l.DB.Update(ctx, func(tx *db.Tx) error {
		was, err := webhooks.Redeliver(ctx, tx, eventID, l.clock.Now())
		is := redeliveredEvent{string(webhooks.Pending), was.Attempts}
		if errors.Is(err, webhooks.ErrPending) || errors.Is(err, webhooks.ErrNoDelivery) {
			listened, readErr := webhooks.HasListener(ctx, tx, was.Event, l.clock.Now())
			if readErr != nil || !listened {
				return cmp.Or(readErr, err)
			}
			is.Delivery, err = string(was.Status), nil
		}
		if err != nil {
			return err
		}
		return access.AppendAudit(ctx, tx, access.NewEntry(ctx, l.now(), access.Change{
			MerchantID: was.MerchantID, Action: access.ActionEventRedeliver, Object: was.ID,
			Before: redeliveredEvent{string(was.Status), was.Attempts}, After: is,
		}))
	})
	if err == nil {
		clock.Wake(l.wake)
		l.wakeFeed()
	}
	return err
}

// RedeliverMany schedules the deliveries of the selected events for now, by the
// schedule's clock.
func (l eventLog) RedeliverMany(ctx context.Context, f webhooks.RedeliverFilter, _ time.Time, limit int) (scheduled, next int64, err error) {
	seqs, next, err := webhooks.NewReader(l.DB).Redeliverable(ctx, f, limit)
	if err != nil || len(seqs) == 0 {
		return 0, next, err
	}
	err = l.DB.Update(ctx, func(tx *db.Tx) (err error) {
		if scheduled, err = webhooks.RedeliverMany(ctx, tx, seqs, l.clock.Now()); err != nil || scheduled == 0 {
			return err
		}
		return access.AppendAudit(ctx, tx, access.NewEntry(ctx, l.now(), access.Change{
			MerchantID: f.MerchantID, Action: access.ActionEventRedeliver, After: redeliveredEvents{
				Redelivered: scheduled, Type: string(f.Type), InvoiceID: f.InvoiceID, From: invoice.UnixSeconds(f.CreatedFrom), To: invoice.UnixSeconds(f.CreatedTo), FailedOnly: f.OnlyFailed,
			},
		}))
	})
	if scheduled > 0 {
		clock.Wake(l.wake)
	}
	return scheduled, next, err
}

// redeliveredEvent is the delivery of an event in the audit log.
type redeliveredEvent struct {
	Delivery string `json:"delivery"` // its status
	Attempts int    `json:"attempts"`
}

// redeliveredEvents is, in the audit log, which events were sent again by one
// transaction, and how many.
type redeliveredEvents struct {
	Redelivered int64  `json:"redelivered"`
	Type        string `json:"type,omitempty"`
	InvoiceID   string `json:"invoiceId,omitempty"`
	From        int64  `json:"from,omitempty"` // Unix seconds
	To          int64  `json:"to,omitempty"`   // Unix seconds
	FailedOnly  bool   `json:"failedOnly,omitempty"`
}

// clockedStore is the store for callers without the schedule's clock: it converts
// between the schedule's times and this machine's.
type clockedStore struct {
	*db.DB
	clock *db.Clock
}

// Breakers returns the store's breakers, with times of this machine.
func (s clockedStore) Breakers(ctx context.Context, merchantIDs []string) (map[string]webhooks.Breaker, error) {
	all, err := webhooks.NewReader(s.DB).Breakers(ctx, merchantIDs)
	for id, b := range all {
		b.Since, b.Until, b.Failing, b.Failed = s.clock.Wall(b.Since), s.clock.Wall(b.Until), s.clock.Wall(b.Failing), s.clock.Wall(b.Failed)
		all[id] = b
	}
	return all, err
}

// AcquireWorkLease acquires or renews a lease for until-now, by the schedule's clock. So a lease of a
// dead process ends although a machine's clock is set back, and replicas with different clocks do not
// take it from each other.
func (s clockedStore) AcquireWorkLease(ctx context.Context, l db.WorkLease, now, until time.Time) (bool, error) {
	scheduled := s.clock.Now()
	return s.DB.AcquireWorkLease(ctx, l, scheduled, scheduled.Add(until.Sub(now)))
}

// ShareWork shares work until-now, by the schedule's clock.
func (s clockedStore) ShareWork(ctx context.Context, holder string, works, wanted []string, now, until time.Time) (map[string]db.SharedWork, error) {
	scheduled := s.clock.Now()
	return s.DB.ShareWork(ctx, holder, works, wanted, scheduled, scheduled.Add(until.Sub(now)))
}

// committed passes events on after their transaction.
func (s *Server) committed(events []webhooks.Event) {
	s.worker.Committed(events)
	s.feed.Wake()
}

// eventLog returns the log of events for the API and the feed.
func (s *Server) eventLog() eventLog {
	return eventLog{webhooks.NewTables(s.store), auditLog{access.NewReader(s.store)}, s.endpoints, s.clock, s.cfg.Now, s.deliveryWake, func() { s.feed.Wake() }}
}
