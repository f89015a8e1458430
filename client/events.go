package client

import (
	"context"
	"net/http"

	"github.com/quittance/quittance/apitypes"
)

// Event returns an event with its delivery and all attempts. The error's code is
// [apitypes.CodeNotFound] if the id is unknown.
func (c *Client) Event(ctx context.Context, id string) (apitypes.EventRecord, error) {
	var answer apitypes.EventRecord
	err := c.get(ctx, c.path("api/events", id), &answer, isEvent(id, &answer))
	return answer, err
}

// RedeliverEvent reschedules an event's delivery, with the same delivery id, and returns
// the event. The error's code is [apitypes.CodeNotFound] if the id is unknown,
// [apitypes.CodeDeliveryPending] if the delivery is still pending, and
// [apitypes.CodeNoDelivery] if the merchant had no endpoint. The last two are returned only
// while no stream of deliveries gets the event.
func (c *Client) RedeliverEvent(ctx context.Context, id string) (apitypes.EventRecord, error) {
	var answer apitypes.EventRecord
	err := c.call(ctx, request{method: http.MethodPost, url: c.path("api/events", id, "redeliver")}, &answer, isEvent(id, &answer))
	return answer, err
}

// RedeliverEvents reschedules the deliveries of the selected events, and returns their number. After an error, some may
// have been rescheduled.
func (c *Client) RedeliverEvents(ctx context.Context, r apitypes.RedeliverEventsRequest) (n int64, err error) {
	for moved := moves(0); ; {
		var answer apitypes.RedeliverEventsResponse
		if err := c.send(ctx, request{method: http.MethodPost, url: c.path("api/events/redeliver")}, r, &answer); err != nil {
			if r.Cursor, err = moved.from(err); err == nil {
				continue
			}
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
