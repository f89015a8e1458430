package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// Values of the parameter after that are not cursors.
const (
	afterStart = "start"
	afterEnd   = "end"
)

// deliveryStates are the values of the filter by delivery state.
var deliveryStates = []delivery.Status{delivery.Pending, delivery.Delivered, delivery.Failed, delivery.None}

// listEvents answers GET /api/events.
func (a *API) listEvents(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	filter, possible := q.eventFilter()
	limit, scope := q.limit(), q.scope("events", "merchantId", "type", "invoiceId", "delivery")
	if _, ok := q.get("after"); ok {
		return a.catchUp(w, r, q, filter, possible, limit)
	}
	filter.Before = q.seq("cursor", scope)
	if q.err != nil {
		return q.err
	}
	return a.eventPage(limit, possible, filter, func(f *store.EventFilter, last store.EventRow) { f.Before = last.Seq },
		descendingCursor(scope, func(e *store.EventRow) string { return strconv.FormatInt(e.Seq, 10) })).serve(a, w, r)
}

// catchUp answers GET /api/events with after: oldest first, with a nextCursor also on
// the last page, for events that are recorded later.
func (a *API) catchUp(w http.ResponseWriter, r *http.Request, q *query, filter store.EventFilter, possible bool, limit int) error {
	for _, other := range []string{"cursor", "delivery"} {
		if _, ok := q.values[other]; ok {
			q.reject("after", "must not stand beside %s", other)
		}
	}
	scope := q.catchUpScope()
	var after int64
	switch from, _ := q.get("after"); from {
	case afterStart:
	case afterEnd:
		var err error
		if after, err = a.events.LastSeq(r.Context()); err != nil {
			return fmt.Errorf("find the newest event: %w", err)
		}
	default:
		after = q.seq("after", scope)
	}
	if q.err != nil {
		return q.err
	}
	filter.After = &after
	return a.eventPage(limit, possible, filter, func(f *store.EventFilter, last store.EventRow) { f.After = &last.Seq },
		func(last *store.EventRow, _ bool) string {
			if last != nil {
				after = last.Seq
			}
			return formatCursor(scope, strconv.FormatInt(after, 10))
		}).serve(a, w, r)
}

// catchUpScope returns the scope of the cursors of events in their order.
func (q *query) catchUpScope() string {
	return q.scope("events after", "merchantId", "type", "invoiceId")
}

// eventPage returns a page of the matching events. behind makes the filter start behind
// an event.
func (a *API) eventPage(
	limit int, possible bool, filter store.EventFilter, behind func(*store.EventFilter, store.EventRow), cursor func(*store.EventRow, bool) string,
) listing[store.EventRow] {
	return listing[store.EventRow]{
		name: "events", limit: limit, cursor: cursor,
		read: func(ctx context.Context, last *store.EventRow, n int) ([]store.EventRow, string, error) {
			if !possible {
				return nil, "", nil
			}
			if last != nil {
				behind(&filter, *last)
			}
			filter.Limit = n
			found, err := a.events.Events(ctx, filter)
			if err != nil {
				return nil, "", fmt.Errorf("list events: %w", err)
			}
			return found, "", nil
		},
		elements: elementsOf(apiconv.EventRecord),
		table:    eventTable(),
	}
}

// eventFilter parses the filter. possible is false if no event can match.
func (q *query) eventFilter() (f store.EventFilter, possible bool) {
	f.MerchantID, possible = q.merchantID()
	if typ, ok := q.get("type"); ok {
		f.Type = q.eventType("type", typ)
	}
	if id, ok := q.get("invoiceId"); ok {
		f.InvoiceID = id
		possible = possible && strings.HasPrefix(id, invoice.PrefixInvoice) && isVisibleASCII(id)
	}
	f.Created = q.span("createdAfter", "createdBefore")
	if state, ok := q.get("delivery"); ok {
		f.Delivery = delivery.Status(state)
		if !slices.Contains(deliveryStates, f.Delivery) {
			q.reject("delivery", "must be one of %s; it is %.40q", enumerate(deliveryStates), state)
		}
	}
	return f, possible
}

func (q *query) eventType(name, text string) invoice.EventType {
	typ, err := parseEventType(text)
	if err != nil {
		q.reject(name, "%v", err)
	}
	return typ
}

func parseEventType(text string) (invoice.EventType, error) {
	typ := invoice.EventType(text)
	if !slices.Contains(invoice.EventTypes, typ) {
		return "", fmt.Errorf("must be one of %s; it is %.40q", enumerate(invoice.EventTypes), text)
	}
	return typ, nil
}

// seq returns the sequence number in a parameter that is a cursor, or 0 if it is absent.
func (q *query) seq(name, scope string) int64 {
	cursor, ok := q.get(name)
	if !ok {
		return 0
	}
	seq, ok := parseSeq(scope, cursor)
	if !ok {
		q.reject(name, wrongCursor)
	}
	return seq
}

// parseSeq returns the sequence number in a cursor with the scope.
func parseSeq(scope, cursor string) (int64, bool) {
	p, ok := parsePosition(scope, cursor)
	return p.Event, ok
}

// getEvent answers GET /api/events/{id}.
func (a *API) getEvent(w http.ResponseWriter, r *http.Request) error {
	return a.writeEvent(w, r, true)
}

// writeEvent answers with the event in the request's path.
func (a *API) writeEvent(w http.ResponseWriter, r *http.Request, withAttempts bool) error {
	id, err := pathID(r, invoice.PrefixEvent)
	if err != nil {
		return err
	}
	row, attempts, err := a.visibleEvent(r.Context(), id)
	if err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	record := apiconv.EventRecord(row)
	if withAttempts {
		for _, attempt := range attempts {
			record.Attempts = append(record.Attempts, apiconv.Attempt(attempt))
		}
	}
	a.writeJSON(w, r, http.StatusOK, record)
	return nil
}

// visibleEvent returns an event with its attempts, or store.ErrNotFound unless the
// principal may see it.
func (a *API) visibleEvent(ctx context.Context, id string) (store.EventRow, []delivery.Attempt, error) {
	row, attempts, err := a.events.EventRecord(ctx, id)
	if err == nil && !access.FromContext(ctx).Sees(row.MerchantID) {
		return store.EventRow{}, nil, store.ErrNotFound
	}
	return row, attempts, err
}
