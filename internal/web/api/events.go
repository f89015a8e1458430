package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// Values of the parameter after that are not cursors.
const (
	afterStart = "start"
	afterEnd   = "end"
)

// deliveryStates are the values of the filter by delivery state.
var deliveryStates = []webhooks.Status{webhooks.Pending, webhooks.Delivered, webhooks.Failed, webhooks.None}

// listEvents answers GET /api/events.
func (a *API) listEvents(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	filter, scope := q.eventFilter(), q.scope("events", "merchantId", "type", "invoiceId", "delivery")
	if _, ok := q.get("after"); ok {
		return a.catchUp(w, r, q, filter)
	}
	before, ok := q.position("cursor", scope)
	if q.err != nil {
		return q.err
	}
	h, err := a.history(r.Context(), filter.MerchantID)
	if err != nil {
		return err
	}
	if ok {
		shared, _, reason := h.branch(before)
		if filter.Before, err = h.resumeBefore(scope, before, shared, h.Head, reason); err != nil {
			return err
		}
	}
	page := a.eventPage(q, filter)
	page.cursor = descendingCursor(scope, func(e *webhooks.EventRow) string { return h.at(e.Seq, -1, 0).key() })
	return page.serve(a, w, r)
}

// catchUp answers GET /api/events with after: oldest first, with a nextCursor also on
// the last page, for events that are recorded later.
func (a *API) catchUp(w http.ResponseWriter, r *http.Request, q *query, filter webhooks.EventFilter) error {
	for _, other := range []string{"cursor", "delivery"} {
		if _, ok := q.values[other]; ok {
			q.reject("after", "must not stand beside %s", other)
		}
	}
	scope := q.catchUpScope()
	h, after, err := a.beginAfter(r.Context(), q, scope, filter.MerchantID)
	if err != nil {
		return err
	}
	filter.After = &after.Event
	page := a.eventPage(q, filter)
	page.read = a.whileStored(scope, filter.MerchantID, &after, page.read)
	page.cursor = func(last *webhooks.EventRow, more bool) string {
		if last != nil {
			after.Event = last.Seq
		}
		if !more { // later events are behind the newest one from before the page was read
			after.Event = max(after.Event, h.Head)
		}
		return formatCursor(scope, after.key())
	}
	return page.serve(a, w, r)
}

// beginAfter returns the position that the parameter after names.
func (a *API) beginAfter(ctx context.Context, q *query, scope, merchantID string) (h history, after position, err error) {
	from, _ := q.get("after")
	isCursor := from != afterStart && from != afterEnd
	if isCursor {
		after, _ = q.position("after", scope)
	}
	if q.err != nil {
		return h, after, q.err
	}
	switch h, err = a.history(ctx, merchantID); {
	case err != nil:
	case isCursor:
		after, err = h.resume(scope, after)
	case from == afterStart:
		after = h.start()
	default:
		after = h.at(h.Head, -1, 0)
	}
	return h, after, err
}

// whileStored returns the read function of a page. The page begins at a position, which the function advances. If
// retention has removed events before they were read, it ends the page, or fails if the page is empty.
func (a *API) whileStored(scope, merchantID string, after *position, read readPage[webhooks.EventRow]) readPage[webhooks.EventRow] {
	begun, ended := false, false
	return func(ctx context.Context, last *webhooks.EventRow, n int) ([]webhooks.EventRow, string, error) {
		if last != nil {
			after.Event, begun = last.Seq, true
		}
		found, stopped, err := read(ctx, last, n)
		if err != nil {
			return nil, "", err
		}
		h, err := a.history(ctx, merchantID)
		if err != nil {
			return nil, "", err
		}
		if _, err := h.resume(scope, *after); err != nil {
			if !begun || ended {
				return nil, "", err
			}
			ended = true
			return nil, formatCursor(scope, after.key()), nil
		}
		return found, stopped, nil
	}
}

// catchUpScope returns the scope of the cursors of events in their order.
func (q *query) catchUpScope() string {
	return q.scope("events after", "merchantId", "type", "invoiceId")
}

// eventPage returns a page of the matching events, without its cursor.
func (a *API) eventPage(q *query, filter webhooks.EventFilter) listing[webhooks.EventRow] {
	return listing[webhooks.EventRow]{
		name: "events", query: q, elements: elementsOf(EventRecord), table: eventTable(),
		read: func(ctx context.Context, last *webhooks.EventRow, n int) ([]webhooks.EventRow, string, error) {
			switch {
			case last == nil:
			case filter.After != nil:
				filter.After = &last.Seq
			default:
				filter.Before = last.Seq
			}
			filter.Limit = n
			found, err := a.conf.Events.Events(ctx, filter)
			return all(found, db.During("list events", err))
		},
	}
}

// eventFilter parses the filter.
func (q *query) eventFilter() webhooks.EventFilter {
	f := webhooks.EventFilter{MerchantID: q.merchantID(), InvoiceID: q.invoiceID()}
	if typ, ok := q.get("type"); ok {
		var err error
		if f.Type, err = parseEventType(typ); err != nil {
			q.reject("type", "%v", err)
		}
	}
	f.Created = q.span("createdAfter", "createdBefore")
	f.Delivery = webhooks.Status(one(q, "delivery", deliveryStates))
	return f
}

func parseEventType(text string) (invoice.EventType, error) {
	typ := invoice.EventType(text)
	if !slices.Contains(invoice.EventTypes, typ) {
		return "", fmt.Errorf("must be one of %s; it is %.40q", enumerate(invoice.EventTypes), text)
	}
	return typ, nil
}

// position returns the position in a parameter that is a cursor. ok is false if it is absent.
func (q *query) position(name, scope string) (p position, ok bool) {
	cursor, given := q.get(name)
	if !given {
		return p, false
	}
	if p, ok = parsePosition(scope, cursor); !ok {
		q.reject(name, wrongCursor)
	}
	return p, ok
}

// getEvent answers GET /api/events/{id}.
func (a *API) getEvent(w http.ResponseWriter, r *http.Request) error {
	return a.writeEvent(w, r, true)
}

// writeEvent answers with the event in the request's path.
func (a *API) writeEvent(w http.ResponseWriter, r *http.Request, withAttempts bool) error {
	row, attempts, err := a.visibleEvent(r.Context(), r.PathValue("id"))
	if err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	record := EventRecord(row)
	if withAttempts {
		record.Attempts = db.Each(attempts, Attempt)
	}
	return a.writeJSON(w, r, http.StatusOK, record, nil)
}

// visibleEvent returns an event with its attempts, or db.ErrNotFound unless the principal may see it.
func (a *API) visibleEvent(ctx context.Context, id string) (webhooks.EventRow, []webhooks.Attempt, error) {
	row, attempts, err := a.conf.Events.EventRecord(ctx, id)
	if err == nil && !access.FromContext(ctx).Sees(row.MerchantID) {
		return webhooks.EventRow{}, nil, db.ErrNotFound
	}
	return row, attempts, err
}

// EventRecord returns an entry of the event log, without its attempts.
func EventRecord(r webhooks.EventRow) apitypes.EventRecord {
	w := apitypes.EventRecord{Event: json.RawMessage(r.Body), MerchantID: r.MerchantID, InvoiceID: r.InvoiceID}
	switch r.Status {
	case webhooks.None:
	case webhooks.Pending:
		w.Delivery = &apitypes.Delivery{
			ID: r.DeliveryID, Status: apitypes.DeliveryPending, Attempts: r.Attempts,
			NextAttemptAt: r.Due.Unix(), Deadline: r.Deadline.Unix(),
		}
		if r.NoEndpoint {
			w.Delivery.WaitingFor, w.Delivery.NextAttemptAt = apitypes.DeliveryWaitEndpoint, 0
		}
	case webhooks.Delivered, webhooks.Failed:
		w.Delivery = &apitypes.Delivery{
			ID: r.DeliveryID, Status: apitypes.DeliveryStatus(r.Status), Attempts: r.Attempts, FinishedAt: r.Finished.Unix(),
		}
	}
	return w
}

// Attempt returns a delivery attempt.
func Attempt(a webhooks.Attempt) apitypes.Attempt {
	return apitypes.Attempt{
		Number: a.Number, StartedAt: a.Started.Unix(), DurationMs: a.Duration.Milliseconds(),
		LookupMs: a.Lookup.Milliseconds(), ConnectMs: a.Connect.Milliseconds(),
		HandshakeMs: a.Handshake.Milliseconds(), AnswerMs: a.Answer.Milliseconds(),
		StatusCode: a.StatusCode, Error: a.Error, Excerpt: a.Excerpt,
	}
}
