package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Event returns an event with its delivery and every attempt. When no event
// has the id, the error's code is [CodeNotFound].
func (c *Client) Event(ctx context.Context, id string) (EventRecord, error) {
	var answer EventRecord
	err := c.call(ctx, http.MethodGet, c.base.JoinPath("api/events", url.PathEscape(id)), nil, nil, &answer)
	return answer, answered(err, "event", id, answer.ID())
}

// RedeliverEvent has an event be sent again, under its old delivery id, and
// returns it then. The error's code is [CodeNotFound] when no event has the id,
// [CodeDeliveryPending] when it is being sent as it is, and [CodeNoDelivery]
// when its merchant wanted no events.
func (c *Client) RedeliverEvent(ctx context.Context, id string) (EventRecord, error) {
	var answer EventRecord
	err := c.call(ctx, http.MethodPost, c.base.JoinPath("api/events", url.PathEscape(id), "redeliver"), nil, nil, &answer)
	return answer, answered(err, "event", id, answer.ID())
}

// RedeliverEvents has many events be sent again and returns how many they
// were. It asks again until all is done; after an error, some may be.
func (c *Client) RedeliverEvents(ctx context.Context, r RedeliverEventsRequest) (n int64, err error) {
	for {
		var answer RedeliverEventsResponse
		if err := c.post(ctx, c.base.JoinPath("api/events/redeliver"), make(http.Header), r, &answer); err != nil {
			return n, err
		}
		n += answer.Redelivered
		switch answer.NextCursor {
		case "":
			return n, nil
		case r.Cursor:
			return n, errSamePage
		}
		r.Cursor = answer.NextCursor
	}
}

// ID returns the event's id, or nothing when it has none.
func (r EventRecord) ID() string { return r.Envelope().ID }

// Envelope returns the event without its data, which webhook.ParseEvent reads.
func (r EventRecord) Envelope() (e Envelope) {
	if err := json.Unmarshal(r.Event, &e); err != nil {
		return Envelope{}
	}
	return e
}

// Envelope is what all events have.
type Envelope struct {
	ID        string    `json:"id"`
	Type      EventType `json:"type"`
	CreatedAt int64     `json:"createdAt"` // Unix seconds
}
