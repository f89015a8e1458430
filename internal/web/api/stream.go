package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/web/webpage"
	"github.com/quittance/quittance/internal/webhooks"
)

const (
	// streamHeartbeat is how often a comment is sent while there are no events.
	streamHeartbeat = 15 * time.Second
	// streamRetry is how long a client should wait before it connects again.
	streamRetry = 2 * time.Second
	// streamPage bounds the events, and the entries of the audit log, that a stream reads from the logs at once.
	streamPage = 64
)

// headerLastEventID is the header with the id of the last event that a client has.
const headerLastEventID = "Last-Event-ID"

// includeDeliveries is the value of the parameter include that adds the events' deliveries, and
// redelivered events, to a stream.
const includeDeliveries = "deliveries"

// eventStream is an answer to GET /api/events/stream.
type eventStream struct {
	api        *API
	w          http.ResponseWriter
	r          *http.Request
	filter     webhooks.EventFilter
	scope      string // of the ids
	none       bool   // no event can match
	deliveries bool   // include is deliveries
	listener   webhooks.Listener
	after      position          // everything up to it was sent
	sent       webhooks.Position // in the last id
	page       int               // how many events are read from the log at once
	checked    time.Time
	written    time.Time
}

// streamed is an event of a stream, and the position behind it.
type streamed struct {
	event webhooks.EventRow
	at    webhooks.Position
	again bool // it was redelivered
}

// streamEvents answers GET /api/events/stream.
func (a *API) streamEvents(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	filter := q.eventFilter()
	s := &eventStream{
		api: a, w: w, r: r, filter: filter, scope: q.catchUpScope(), none: q.none,
		deliveries: len(q.set("include", includeDeliveries)) > 0, page: 1, // it grows while the events are small
	}
	if err := s.begin(q); err != nil {
		return err
	}
	leave, err := a.waiting.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := webpage.RequestContext(a.conf.Stopping, r)
	defer cancel()
	if s.deliveries && !s.none {
		if err := s.listen(ctx); err != nil {
			return err
		}
		defer s.leave(ctx)
	}
	if err := s.run(ctx); err != nil && ctx.Err() == nil {
		a.conf.Logger.DebugContext(ctx, "event stream ended", "err", err)
	}
	return nil
}

// begin finds the position at which the stream begins.
func (s *eventStream) begin(q *query) error {
	last := s.r.Header.Values(headerLastEventID)
	if q.err != nil {
		return q.err
	}
	var err error
	if len(last) == 0 || last[0] == "" {
		if !q.values.Has("after") {
			q.values.Set("after", afterEnd)
		}
		_, s.after, err = s.api.beginAfter(s.r.Context(), q, s.scope, s.filter.MerchantID)
	} else {
		s.after, err = s.continueAfter(last)
	}
	switch {
	case err != nil:
		return err
	case !s.deliveries:
		s.after.Change = math.MaxInt64 // send no changes
	case s.after.Change < 0: // only redeliveries from now on
		head, err := s.api.conf.Events.AuditHead(s.r.Context())
		if err != nil {
			return fmt.Errorf("find the newest change: %w", err)
		}
		s.after.Change = head.Seq
	}
	return nil
}

// continueAfter returns the position in the values of the header with the id of the last event.
func (s *eventStream) continueAfter(last []string) (position, error) {
	p, ok := parsePosition(s.scope, last[0])
	if !ok || len(last) > 1 {
		return p, invalidField(headerLastEventID, "must be the id of an event of a stream with the same filters")
	}
	h, err := s.api.history(s.r.Context(), s.filter.MerchantID)
	if err != nil {
		return p, err
	}
	return h.resume(s.scope, p)
}

// id returns the id of a message: the cursor of a position.
func (s *eventStream) id(p webhooks.Position) string {
	s.sent = p
	at := s.after
	if at.Position = p; !s.deliveries {
		at.Change = -1
	}
	return formatCursor(s.scope, at.key())
}

// listen records that redelivered events reach a client by this stream.
func (s *eventStream) listen(ctx context.Context) error {
	if s.listener.ID == "" {
		s.listener = webhooks.Listener{ID: rand.Text(), MerchantID: s.filter.MerchantID, Type: s.filter.Type, InvoiceID: s.filter.InvoiceID}
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	return s.api.conf.Events.Listen(ctx, &s.listener)
}

// leave records that the client has left. If the service restarts, it has not: it comes back.
func (s *eventStream) leave(ctx context.Context) {
	if s.api.conf.Stopping.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RequestTimeout)
	defer cancel()
	if err := s.api.conf.Events.DeleteListener(ctx, s.listener.ID); err != nil {
		s.api.conf.Logger.DebugContext(ctx, "end of a listener", "err", err)
	}
}

// run sends events until ctx ends, the key is not accepted any more, or the client does not read.
func (s *eventStream) run(ctx context.Context) error {
	header := s.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // proxies must not collect events
	s.w.WriteHeader(http.StatusOK)
	s.checked = time.Now()
	// With the id, a client that connects again before its first event misses no event.
	if err := s.send(fmt.Appendf(nil, "retry: %d\nid: %s\n\n", streamRetry.Milliseconds(), s.id(s.after.Position))); err != nil || s.r.Method == http.MethodHead {
		return err
	}
	for {
		events, err := s.next(ctx)
		if err != nil {
			return err
		}
		if time.Since(s.checked) >= keyCheckInterval {
			if err := s.check(ctx); err != nil {
				return err
			}
		}
		if err := s.sendEvents(events); err != nil {
			return err
		}
	}
}

// sendEvents sends events. Without events it sends a comment if the stream was silent for a while, or
// the position if that has advanced: a client with few events needs it when other events are removed.
func (s *eventStream) sendEvents(events []streamed) (err error) {
	var text []byte
	for _, e := range events {
		begun := len(text)
		if text, err = s.appendEvent(text, e); err != nil {
			return err
		}
		if len(text) > webhooks.MaxNext && begun > 0 {
			if err := s.send(text[:begun]); err != nil {
				return err
			}
			text = slices.Clone(text[begun:])
		}
	}
	if text == nil && time.Since(s.written) >= streamHeartbeat {
		text = []byte(":\n\n")
		if s.sent != s.after.Position {
			text = fmt.Appendf(nil, "id: %s\n\n", s.id(s.after.Position))
		}
	}
	if text == nil {
		return nil
	}
	return s.send(text)
}

// check checks the key, and renews the record that the client listens.
func (s *eventStream) check(ctx context.Context) error {
	s.checked = time.Now()
	if s.listener.ID != "" {
		if err := s.listen(ctx); err != nil && ctx.Err() == nil {
			s.api.conf.Logger.DebugContext(ctx, "renewal of a listener", "err", err)
		}
	}
	return s.api.checkKey(ctx, s.r)
}

// next returns the matching events behind the position, and advances it. It returns an empty list
// after keyCheckInterval.
func (s *eventStream) next(ctx context.Context) ([]streamed, error) {
	soon, cancel := context.WithTimeout(ctx, keyCheckInterval)
	defer cancel()
	news, err := s.api.conf.Feed.Next(soon, s.after.Position)
	if errors.Is(err, webhooks.ErrBehind) {
		news, err = s.readLogs(ctx, news.Through)
	} else if err != nil && ctx.Err() == nil && soon.Err() != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []streamed
	for _, e := range news.Events {
		if s.matches(e) {
			all = append(all, streamed{event: e, at: webhooks.Position{Event: e.Seq, Change: s.after.Change}})
		}
	}
	again, through, err := s.redelivered(ctx, news)
	if err != nil {
		return nil, err
	}
	news.Through.Change = through
	s.after.Position = news.Through
	return append(all, again...), nil
}

// readLogs reads a page of each log. They have everything up to through, and may have more.
func (s *eventStream) readLogs(ctx context.Context, through webhooks.Position) (news webhooks.News, err error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	news.Through = webhooks.Position{Event: max(s.after.Event, through.Event), Change: max(s.after.Change, through.Change)}
	if s.none {
		return news, nil
	}
	f := s.filter
	f.After, f.Limit = &s.after.Event, s.page
	if news.Events, err = s.api.conf.Events.Events(ctx, f); err != nil {
		return news, fmt.Errorf("list events: %w", err)
	}
	read := len(news.Events)
	n := webhooks.FirstUpTo(webhooks.MaxNext, news.Events, func(e webhooks.EventRow) int { return len(e.Body) })
	s.page = min(2*max(1, n), streamPage)
	clear(news.Events[n:]) // their bodies must not stay in memory until these events are sent
	more := n < read || n == f.Limit
	if news.Events = news.Events[:n]; more { // changes come later, so that no event is redelivered before it was sent
		news.Through = webhooks.Position{Event: news.Events[n-1].Seq, Change: s.after.Change}
	} else if n > 0 {
		news.Through.Event = max(news.Through.Event, news.Events[n-1].Seq)
	}
	h, err := s.api.history(ctx, s.filter.MerchantID)
	if err != nil {
		return news, err
	}
	if _, err := h.resume(s.scope, s.after); err != nil { // its client is answered 410 when it continues
		return news, err
	}
	if !s.deliveries || more {
		return news, nil
	}
	if news.Changes, err = s.api.conf.Events.Changes(ctx, s.after.Change, streamPage); err != nil {
		return news, err
	}
	if n := len(news.Changes); n > 0 {
		news.Through.Change = news.Changes[n-1].Seq
	}
	return news, nil
}

// redelivered returns the matching events that were redelivered, and the last change that it has read: with their bodies,
// the events of the following ones would be more than webhooks.MaxNext bytes.
func (s *eventStream) redelivered(ctx context.Context, news webhooks.News) (all []streamed, through int64, err error) {
	bytes := 0
	for i, c := range news.Changes {
		isOne := s.deliveries && c.Action == access.ActionEventRedeliver && c.Object != ""
		if !isOne || s.filter.MerchantID != "" && s.filter.MerchantID != c.MerchantID {
			continue
		}
		e, _, err := s.api.conf.Events.EventRecord(ctx, c.Object)
		switch {
		case errors.Is(err, db.ErrNotFound): // it was removed
		case err != nil:
			return nil, 0, fmt.Errorf("read a redelivered event: %w", err)
		case s.matches(e):
			if bytes += len(e.Body); bytes > webhooks.MaxNext && len(all) > 0 {
				return all, news.Changes[i-1].Seq, nil
			}
			all = append(all, streamed{event: e, at: webhooks.Position{Event: news.Through.Event, Change: c.Seq}, again: true})
		}
	}
	return all, news.Through.Change, nil
}

// matches reports whether an event matches the filter.
func (s *eventStream) matches(e webhooks.EventRow) bool {
	f := s.filter
	return !s.none && (f.MerchantID == "" || f.MerchantID == e.MerchantID) && (f.Type == "" || f.Type == e.Type) && (f.InvoiceID == "" || f.InvoiceID == e.InvoiceID)
}

// appendEvent appends an event to the text of a stream.
func (s *eventStream) appendEvent(text []byte, e streamed) ([]byte, error) {
	data := e.event.Body
	if s.deliveries {
		record := EventRecord(e.event)
		record.Redelivered = e.again
		var err error
		if data, err = apiconv.JSON(record); err != nil {
			return nil, fmt.Errorf("encode the event %s: %w", e.event.ID, err)
		}
	}
	text = fmt.Appendf(text, "id: %s\nevent: %s\n", s.id(e.at), e.event.Type)
	for line := range bytes.SplitSeq(data, []byte("\n")) { // JSON of this service has one line
		text = fmt.Appendf(text, "data: %s\n", line)
	}
	return append(text, '\n'), nil
}

// send writes a part of the stream.
func (s *eventStream) send(text []byte) error {
	s.written = time.Now()
	if err := webpage.ExtendDeadlines(s.w); err != nil {
		return err
	}
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	err := http.NewResponseController(s.w).Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
