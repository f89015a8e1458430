package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/quittance/quittance/internal/eventfeed"
	"github.com/quittance/quittance/internal/store"
)

const (
	// streamHeartbeat is how often a comment is sent while there are no events.
	streamHeartbeat = 15 * time.Second
	// streamRetry is how long a client should wait before it connects again.
	streamRetry = 2 * time.Second
	// streamPage bounds the events that a stream reads from the log at once.
	streamPage = 64
)

// headerLastEventID is the header with the id of the last event that a client has.
const headerLastEventID = "Last-Event-ID"

// Feed hands out new events. *eventfeed.Feed implements it.
type Feed interface {
	// Head returns a position: every event that commits after the call is behind it.
	Head(ctx context.Context) (int64, error)
	// Next waits for events behind a position. The error is eventfeed.ErrBehind if the
	// log has to be read up to through.
	Next(ctx context.Context, after int64) (events []store.EventRow, through int64, err error)
}

// eventStream is an answer to GET /api/events/stream.
type eventStream struct {
	api     *API
	w       http.ResponseWriter
	r       *http.Request
	filter  store.EventFilter
	scope   string // of the ids
	none    bool   // no event can match
	after   int64  // all matching events up to this number were sent
	checked time.Time
	written time.Time
}

// streamEvents answers GET /api/events/stream.
func (a *API) streamEvents(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	filter, possible := q.eventFilter()
	s := &eventStream{api: a, w: w, r: r, filter: filter, scope: q.catchUpScope(), none: !possible}
	if err := s.begin(q); err != nil {
		return err
	}
	leave, err := a.waiting.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := a.longContext(r)
	defer cancel()
	if err := s.run(ctx); err != nil && ctx.Err() == nil {
		a.logger.DebugContext(ctx, "event stream ended", "err", err)
	}
	return nil
}

// begin finds the position at which the stream begins.
func (s *eventStream) begin(q *query) error {
	from, given := q.get("after")
	if last := s.r.Header.Values(headerLastEventID); len(last) > 0 && last[0] != "" {
		var ok bool
		if s.after, ok = parseSeq(s.scope, last[0]); !ok || len(last) > 1 {
			q.reject(headerLastEventID, "must be the id of an event of a stream with the same filters")
		}
		return q.err
	}
	switch {
	case q.err != nil:
		return q.err
	case !given || from == afterEnd:
		var err error
		if s.after, err = s.api.events.LastSeq(s.r.Context()); err != nil {
			return fmt.Errorf("find the newest event: %w", err)
		}
	case from != afterStart:
		s.after = q.seq("after", s.scope)
	}
	return q.err
}

// run sends events until ctx ends, the key is not accepted any more, or the client does
// not read.
func (s *eventStream) run(ctx context.Context) error {
	header := s.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // proxies must not collect events
	s.w.WriteHeader(http.StatusOK)
	s.checked = time.Now()
	// The id lets a client that connects again before its first event miss none.
	if err := s.send(fmt.Appendf(nil, "retry: %d\nid: %s\n\n", streamRetry.Milliseconds(), s.id(s.after))); err != nil || s.r.Method == http.MethodHead {
		return err
	}
	for {
		events, err := s.next(ctx)
		if err != nil {
			return err
		}
		if time.Since(s.checked) >= keyCheckInterval {
			s.checked = time.Now()
			if err := s.api.checkKey(ctx, s.r); err != nil {
				return err
			}
		}
		var text []byte
		for _, e := range events {
			text = s.appendEvent(text, e)
		}
		if text == nil && time.Since(s.written) >= streamHeartbeat {
			text = []byte(":\n\n")
		}
		if text != nil {
			if err := s.send(text); err != nil {
				return err
			}
		}
	}
}

// next returns the matching events behind the position, and advances it. It returns none
// after keyCheckInterval.
func (s *eventStream) next(ctx context.Context) ([]store.EventRow, error) {
	soon, cancel := context.WithTimeout(ctx, keyCheckInterval)
	defer cancel()
	events, through, err := s.api.feed.Next(soon, s.after)
	switch {
	case err == nil:
		s.after = through
		return s.matching(events), nil
	case errors.Is(err, eventfeed.ErrBehind):
		return s.readLog(ctx, through)
	case ctx.Err() == nil && soon.Err() != nil:
		return nil, nil
	}
	return nil, err
}

// readLog reads a page from the log, which has all events up to through and may have later
// ones.
func (s *eventStream) readLog(ctx context.Context, through int64) ([]store.EventRow, error) {
	if s.none {
		s.after = max(s.after, through)
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	f := s.filter
	f.After, f.Limit = &s.after, streamPage
	events, err := s.api.events.Events(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	if len(events) < streamPage {
		s.after = max(s.after, through)
	}
	if n := len(events); n > 0 {
		s.after = max(s.after, events[n-1].Seq)
	}
	return events, nil
}

// matching returns the events that match the filter.
func (s *eventStream) matching(events []store.EventRow) (all []store.EventRow) {
	f := s.filter
	for _, e := range events {
		if (f.MerchantID == "" || f.MerchantID == e.MerchantID) && (f.Type == "" || f.Type == e.Type) && (f.InvoiceID == "" || f.InvoiceID == e.InvoiceID) {
			all = append(all, e)
		}
	}
	return all
}

// id returns the id of the event with a number.
func (s *eventStream) id(seq int64) string {
	return formatCursor(s.scope, strconv.FormatInt(seq, 10))
}

// appendEvent appends an event to the text of a stream.
func (s *eventStream) appendEvent(text []byte, e store.EventRow) []byte {
	text = fmt.Appendf(text, "id: %s\nevent: %s\n", s.id(e.Seq), e.Type)
	for line := range bytes.SplitSeq(e.Body, []byte("\n")) { // JSON of this service has one line
		text = fmt.Appendf(text, "data: %s\n", line)
	}
	return append(text, '\n')
}

// send writes a part of the stream.
func (s *eventStream) send(text []byte) error {
	s.written = time.Now()
	if err := extendDeadlines(s.w); err != nil {
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
