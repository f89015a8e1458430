package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/quittance/quittance/webhook"
)

const (
	// streamIdle is the longest silence of a stream. The service sends a comment every
	// 15 s.
	streamIdle = 45 * time.Second
	// maxStreamLine bounds a line of a stream, in bytes.
	maxStreamLine = 2 << 20
)

// StreamedEvent is an event of a stream.
type StreamedEvent struct {
	// Position is behind the event: StreamEvents and EventsAfter continue there, with the
	// same filter.
	Position string
	Event    webhook.Event
}

// StreamEvents yields the events after a position as soon as they are recorded, in the order
// of EventsAfter. after is AfterStart, AfterEnd or a position. A broken stream is continued
// where it broke, so that each event is yielded once. The sequence ends with ctx, or after an
// error that would not change. f.Delivery and f.PageSize must not be set.
func (c *Client) StreamEvents(ctx context.Context, f EventFilter, after string) iter.Seq2[StreamedEvent, error] {
	return func(yield func(StreamedEvent, error) bool) {
		for failures := 0; ; {
			next, more, err := c.stream(ctx, f, after, yield)
			if next != after {
				after, failures = next, 0
			}
			if !more {
				return
			}
			delay, ok := c.delay(failures, err)
			if !ok || !retryable(request{repeatable: true}, err) {
				yield(StreamedEvent{}, err)
				return
			}
			failures++
			if err := c.clock.Sleep(ctx, delay); err != nil {
				yield(StreamedEvent{}, err)
				return
			}
		}
	}
}

// stream reads one stream to its end. It returns the position behind the last message, and
// why the stream ended. It is not to be continued unless more is true.
func (c *Client) stream(ctx context.Context, f EventFilter, after string, yield func(StreamedEvent, error) bool) (next string, more bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(streamIdle, cancel)
	defer idle.Stop()
	u := c.path("api/events/stream")
	query := f.query()
	query.Set("after", after)
	u.RawQuery = query.Encode()
	response, err := c.exchange(ctx, request{method: http.MethodGet, url: u, header: http.Header{"Accept": {"text/event-stream, application/problem+json"}}})
	if err != nil {
		return after, true, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswer))
		if err != nil {
			return after, true, &connectionError{err: fmt.Errorf("client: read the answer to GET %s: %w", u, err)}
		}
		return after, true, parseError(response, text, c.clock.Now())
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxStreamLine)
	var data []string
	position := after
	for lines.Scan() {
		idle.Reset(streamIdle)
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			position = value
		case "data":
			data = append(data, value)
		case "": // a blank line ends a message; a comment begins with a colon
			if lines.Text() != "" {
				continue
			}
			if after = position; len(data) == 0 {
				continue
			}
			e, err := webhook.ParseEvent([]byte(strings.Join(data, "\n")))
			if data = nil; !yield(StreamedEvent{Position: position, Event: e}, err) || err != nil {
				return after, false, err
			}
		}
	}
	return after, true, &connectionError{err: fmt.Errorf("client: the stream of events ended: %w", errors.Join(lines.Err(), io.ErrUnexpectedEOF))}
}
