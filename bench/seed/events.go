package seed

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

const (
	// quiet: of this many merchants, the last has no endpoint.
	quiet = 10
	// pendingFor is the age up to which events still wait for their delivery.
	pendingFor = time.Minute
	// tries is how often a failing delivery is attempted, with tryPause in between.
	tries, tryPause = 4, time.Hour
)

// event is an event that was not written yet.
type event struct {
	n       int // of the invoice
	typ     invoice.EventType
	at      time.Time
	subject string
	to      invoice.Invoice
	data    any
}

// emit adds an event to the story, unless retention has removed it.
func (s *story) emit(typ invoice.EventType, subject string, at time.Time, data func() any) {
	if at = at.Truncate(time.Second); s.Until.Sub(at) < s.KeepEvents {
		s.events = append(s.events, event{s.n, typ, at, subject, s.invoice, data()})
	}
}

// eventLog has the events that are later than the written ones, the next first.
type eventLog struct {
	next queue
	seq  int64 // of the last event written
}

type queued struct {
	event
	order int // among events of the same second
}

type queue []queued

// Len implements heap.Interface.
func (q *queue) Len() int { return len(*q) }

// Less implements heap.Interface.
func (q *queue) Less(i, j int) bool {
	a, b := (*q)[i], (*q)[j]
	if !a.at.Equal(b.at) {
		return a.at.Before(b.at)
	}
	return a.order < b.order
}

// Swap implements heap.Interface.
func (q *queue) Swap(i, j int) { (*q)[i], (*q)[j] = (*q)[j], (*q)[i] }

// Push implements heap.Interface.
func (q *queue) Push(e any) { *q = append(*q, e.(queued)) } //nolint:forcetypeassert // add pushes only queued

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}

// kindsOfEvents orders the events of an invoice in one second.
var kindsOfEvents = map[invoice.EventType]int{invoice.EventCreated: 0, invoice.EventReceived: 1, invoice.EventPaid: 2, invoice.EventExpired: 3, invoice.EventRefunded: 4}

func (l *eventLog) add(e event) {
	heap.Push(&l.next, queued{e, e.n*len(kindsOfEvents) + kindsOfEvents[e.typ]})
}

// eventsBefore takes the events up to a time from the log.
func (m *Maker) eventsBefore(until time.Time, log *eventLog) (rows []Event, err error) {
	for len(log.next) > 0 && !log.next[0].at.After(until) {
		e := heap.Pop(&log.next).(queued) //nolint:forcetypeassert // add pushes only queued
		log.seq++
		row, err := m.logged(e.event, log.seq)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// logged returns an event as it is stored.
func (m *Maker) logged(e event, seq int64) (row Event, err error) {
	id := m.id(invoice.PrefixEvent, e.at, int(seq), idEvent)
	body, err := apiconv.EventBody(id, e.typ, e.at, e.data)
	if err != nil {
		return row, fmt.Errorf("event of invoice %d: %w", e.n, err)
	}
	row.Event = webhooks.Event{ID: id, Seq: seq, Type: e.typ, Subject: e.subject, MerchantID: e.to.MerchantID, InvoiceID: e.to.ID, Body: body, CreatedAt: e.at, Due: e.at}
	if m.Owner(e.n)%quiet != quiet-1 {
		row.DeliveryID = invoice.DeliveryID(e.typ, e.subject, e.to.MerchantID, e.to.ID)
		m.deliver(&row)
	}
	return row, nil
}

// deliver decides the outcome of an event's delivery.
func (m *Maker) deliver(e *Event) {
	drawn := m.below(1000, int(e.Seq), drawDelivery)
	switch {
	case m.Until.Sub(e.CreatedAt) < pendingFor:
		e.Status = webhooks.Pending
		return
	case drawn < 5 && m.Until.Sub(e.CreatedAt) > webhooks.RetryWindow:
		e.Status, e.Tried = webhooks.Failed, tries
	case drawn < 50 && m.Until.Sub(e.CreatedAt) > tryPause+pendingFor:
		e.Status, e.Tried = webhooks.Delivered, 2
	default:
		e.Status, e.Tried = webhooks.Delivered, 1
	}
	for n := range e.Tried {
		a := webhooks.Attempt{
			Number: n + 1, Started: e.CreatedAt.Add(time.Duration(n) * tryPause), StatusCode: 204,
			Duration: time.Duration(20+m.below(200, int(e.Seq)*tries+n, drawDuration)) * time.Millisecond,
		}
		a.Answer = a.Duration / 2
		e.Finished = a.Started.Add(a.Duration)
		if n+1 < e.Tried || e.Status == webhooks.Failed {
			a.StatusCode, a.Error, a.Excerpt = 503, "the endpoint answered 503", "upstream connect error"
		}
		if m.Until.Sub(a.Started) < m.KeepAttempts {
			e.Attempts = append(e.Attempts, a)
		}
	}
}
