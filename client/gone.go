package client

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/quittance/quittance/apitypes"
)

const (
	// MaxRecentEvents bounds the events that a client remembers for a position. The client does not return these again
	// if the service's database was restored from a backup.
	MaxRecentEvents = 10_000
	// maxPositions bounds the positions for which a client remembers events.
	maxPositions = 16
	// maxMoves bounds the consecutive answers that the log cannot be continued from a position.
	maxMoves = 8
)

// EventsLostError means that events after the requested position were removed before they were requested. They cannot
// be retrieved any more: compare with the lists of invoices and payments.
type EventsLostError struct {
	// Position is where the remaining events begin: StreamEvents, StreamDeliveries and EventsAfter continue there.
	Position string
	Detail   string // the service's explanation
	err      error
}

// Error returns the service's explanation.
func (e *EventsLostError) Error() string { return "client: events are lost: " + e.Detail }

// Unwrap returns the error of the call.
func (e *EventsLostError) Unwrap() error { return e.err }

// moves follows a log that cannot be continued from the requested positions.
type moves int

// from returns the position from which to continue after an error. Otherwise it returns the error,
// which is an *EventsLostError if events are lost.
func (m *moves) from(err error) (position string, _ error) {
	var refused *Error
	if !errors.As(err, &refused) || refused.Code != apitypes.CodeCursorGone || refused.After == "" {
		return "", err
	}
	if refused.Reason == "removed" {
		return "", &EventsLostError{Position: refused.After, Detail: refused.Detail, err: err}
	}
	if *m++; *m > maxMoves {
		return "", err
	}
	return refused.After, nil
}

// follow is like from, for a caller who got events and has a position.
func (m *moves) follow(err error, got *recent, given *string) (position string, _ error) {
	if position, err = m.from(err); err == nil {
		got.move()
		return position, nil
	}
	if lost := (*EventsLostError)(nil); errors.As(err, &lost) {
		*given = lost.Position
	}
	return "", err
}

// recent is the ids of the last events that a caller got.
type recent struct {
	before map[string]struct{} // the last events before the log was interrupted: these may come again
	ids    map[string]struct{}
	order  []string
	next   int // in order; a ring once it is full
}

// move records that the log could not be continued from a position.
func (r *recent) move() {
	if len(r.before) > MaxRecentEvents || r.before == nil {
		r.before = make(map[string]struct{}, len(r.ids))
	}
	maps.Copy(r.before, r.ids)
}

// repeats records an event. It reports whether the caller got it before the log was interrupted.
func (r *recent) repeats(id string) bool {
	if _, known := r.before[id]; known {
		return true
	}
	if _, known := r.ids[id]; known || id == "" {
		return false
	}
	if r.ids == nil {
		r.ids = make(map[string]struct{})
	}
	if len(r.order) < MaxRecentEvents {
		r.order = append(r.order, id)
	} else {
		delete(r.ids, r.order[r.next])
		r.order[r.next] = id
		r.next = (r.next + 1) % MaxRecentEvents
	}
	r.ids[id] = struct{}{}
	return false
}

// positions has the events that callers got before their last positions.
type positions struct {
	mu  sync.Mutex
	all []behind // the oldest position first
}

type behind struct {
	position string
	got      *recent
}

// take returns and forgets the events of the caller who continues from a position.
func (p *positions) take(position string) *recent {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.all, func(b behind) bool { return b.position == position })
	if i < 0 || position == AfterStart || position == AfterEnd {
		return new(recent)
	}
	got := p.all[i].got
	p.all = slices.Delete(p.all, i, i+1)
	return got
}

// put remembers the events that a caller got before a position.
func (p *positions) put(position string, got *recent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = slices.DeleteFunc(p.all, func(b behind) bool { return b.position == position })
	if p.all = append(p.all, behind{position, got}); len(p.all) > maxPositions {
		p.all = slices.Delete(p.all, 0, 1)
	}
}
