package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/webhook"
)

const (
	// streamIdle is the longest silence of a stream. The service sends a comment every 15 s. The caller's time for a
	// message does not count.
	streamIdle = 45 * time.Second
	// maxStreamLine bounds a line of a stream, and the data of a message with its line breaks, in bytes.
	maxStreamLine = 2 << 20
)

// StreamedEvent is an event of a stream.
type StreamedEvent struct {
	// Position is the position after the event: StreamEvents and EventsAfter continue there, with the same filter.
	Position string
	Event    webhook.Event
}

// StreamEvents yields the events after a position as soon as they are recorded, in the order of EventsAfter. after is
// AfterStart, AfterEnd or a position. A broken stream is continued where it broke, so that each event is yielded once.
// The sequence ends with ctx, or after a permanent error. f.Delivery and f.PageSize must not be set.
//
// If the service's database was restored from a backup, the sequence continues from there. It leaves out events with
// the ids of the last [MaxRecentEvents] that it yielded, or that the sequence or page which ended at after yielded. If
// events after the position are no longer stored, it ends with an [*EventsLostError].
func (c *Client) StreamEvents(ctx context.Context, f EventFilter, after string) iter.Seq2[StreamedEvent, error] {
	return func(yield func(StreamedEvent, error) bool) {
		got, given := c.positions.take(after), after // given is the position that the caller has
		defer func() { c.positions.put(given, got) }()
		deliver := func(e StreamedEvent, err error) bool {
			if err == nil && got.repeats(e.Event.ID) {
				return true
			}
			given = e.Position
			return yield(e, err)
		}
		moved := moves(0)
		for failures := 0; ; {
			next, more, err := c.stream(ctx, f, after, failures+1, deliver)
			if next != after {
				after, failures, moved = next, 0, 0
			}
			if !more {
				return
			}
			if next, err = moved.follow(err, got, &given); err == nil {
				after = next
				continue
			}
			if err := c.awaitRetry(ctx, failures, err); err != nil {
				yield(StreamedEvent{}, err)
				return
			}
			failures++
		}
	}
}

// awaitRetry waits until a failed stream should be continued. It returns the error if it should not.
func (c *Client) awaitRetry(ctx context.Context, failures int, err error) error {
	delay, ok := c.delay(failures, err)
	foreign := (*InvalidResponseError)(nil)
	if errors.As(err, &foreign) && failures >= c.retries {
		return err
	}
	if !ok || !retryable(request{repeatable: true}, err) {
		return err
	}
	return c.clock.Sleep(ctx, delay)
}

// stream reads one stream of events, the nth consecutive one, to its end. It returns the position after the last
// message, and why the stream ended. It should be continued only if more is true.
func (c *Client) stream(ctx context.Context, f EventFilter, after string, n int, yield func(StreamedEvent, error) bool) (next string, more bool, err error) {
	next, more = after, true
	err = c.readStream(ctx, f.query(), after, n, func(position string, data []byte) bool {
		if next = position; data == nil {
			return true
		}
		e, err := webhook.ParseEvent(data)
		more = yield(StreamedEvent{Position: position, Event: e}, err) && err == nil
		return more
	})
	return next, more, err
}

// StreamedDelivery is an event of a stream with its delivery.
type StreamedDelivery struct {
	// Position is the position after the event: StreamDeliveries, StreamEvents and EventsAfter continue there, with the
	// same filter.
	Position string
	// Record is nil in messages with only a position: the first one, and one every 15
	// seconds while there are no events.
	Record *apitypes.EventRecord
}

// StreamDeliveries yields the events after a position as StreamEvents does, each with its delivery, and again when it
// is redelivered. The first message arrives immediately. A broken stream is not continued: the sequence ends with an
// error. After a restore of the service's database, and if events are lost, it behaves like StreamEvents. If the
// service is too old for such streams, the error is an [*Error] with the code [apitypes.CodeNotFound] or
// [apitypes.CodeInvalidField] for the field include.
func (c *Client) StreamDeliveries(ctx context.Context, f EventFilter, after string) iter.Seq2[StreamedDelivery, error] {
	return func(yield func(StreamedDelivery, error) bool) {
		query := f.query()
		query.Set("include", "deliveries")
		got, given := c.positions.take(after), after
		defer func() { c.positions.put(given, got) }()
		more := true
		read := func(position string, data []byte) bool {
			message, err := parseDelivery(position, data)
			if err == nil && data != nil && !message.Record.Redelivered && got.repeats(message.Record.ID()) {
				message.Record = nil
			}
			given = position
			more = yield(message, err) && err == nil
			return more
		}
		for moved := moves(0); ; {
			err := c.readStream(ctx, query, after, 1, read)
			if !more {
				return
			}
			if after, err = moved.follow(err, got, &given); err != nil {
				yield(StreamedDelivery{}, err)
				return
			}
		}
	}
}

// parseDelivery parses a message of a stream of deliveries.
func parseDelivery(position string, data []byte) (message StreamedDelivery, err error) {
	if message.Position = position; data == nil {
		return message, nil
	}
	message.Record = new(apitypes.EventRecord)
	if err = json.Unmarshal(data, message.Record); err != nil || len(message.Record.Event) == 0 {
		err = fmt.Errorf("client: the stream of deliveries has another message (%.100q): %w", data, cmp.Or(err, errors.ErrUnsupported))
	}
	return message, err
}

// readStream calls each with the messages of one stream, the nth consecutive one, until it returns false or the stream
// ends, and returns why the stream ended. position is the position after the message. The message's data is nil if it
// is empty.
func (c *Client) readStream(ctx context.Context, query url.Values, after string, n int, each func(position string, data []byte) bool) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(streamIdle, cancel)
	defer idle.Stop()
	u := c.path("api/events/stream")
	query.Set("after", after)
	u.RawQuery = query.Encode()
	r := request{method: http.MethodGet, url: u, header: http.Header{"Accept": {"text/event-stream, application/problem+json"}}}
	response, err := c.open(ctx, r, n)
	if err != nil {
		return failed(r, n, err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxStreamLine)
	var data []byte // each line with a line break
	for lines.Scan() && len(data) <= maxStreamLine {
		idle.Reset(streamIdle)
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			after = value
		case "data":
			data = append(append(data, value...), '\n')
		case "": // a blank line ends a message; a comment begins with a colon
			if lines.Text() != "" {
				continue
			}
			idle.Stop()
			if !each(after, bytes.TrimSuffix(data, []byte("\n"))) {
				return nil
			}
			idle.Reset(streamIdle)
			data = nil
		}
	}
	if len(data) > maxStreamLine || errors.Is(lines.Err(), bufio.ErrTooLong) {
		long := invalid(response, fmt.Sprintf("a message of the stream exceeds %d bytes", maxStreamLine))
		long.final = true
		return failed(r, n, long)
	}
	return failed(r, n, &ConnectionError{Err: fmt.Errorf("the stream of events ended: %w", errors.Join(lines.Err(), io.ErrUnexpectedEOF))})
}
