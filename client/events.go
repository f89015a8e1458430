package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/quittance/quittance/apitypes"
)

// Event returns an event with its delivery and every attempt. When no event
// has the id, the error's code is [apitypes.CodeNotFound].
func (c *Client) Event(ctx context.Context, id string) (apitypes.EventRecord, error) {
	var answer apitypes.EventRecord
	err := c.call(ctx, http.MethodGet, c.base.JoinPath("api/events", url.PathEscape(id)), nil, nil, &answer)
	return answer, answered(err, "event", id, answer.ID())
}

// RedeliverEvent has an event be sent again, under its old delivery id, and
// returns it then. The error's code is [apitypes.CodeNotFound] when no event has the id,
// [apitypes.CodeDeliveryPending] when it is being sent as it is, and [apitypes.CodeNoDelivery]
// when its merchant wanted no events.
func (c *Client) RedeliverEvent(ctx context.Context, id string) (apitypes.EventRecord, error) {
	var answer apitypes.EventRecord
	err := c.call(ctx, http.MethodPost, c.base.JoinPath("api/events", url.PathEscape(id), "redeliver"), nil, nil, &answer)
	return answer, answered(err, "event", id, answer.ID())
}

// RedeliverEvents has many events be sent again and returns how many they
// were. It asks again until all is done; after an error, some may be.
func (c *Client) RedeliverEvents(ctx context.Context, r apitypes.RedeliverEventsRequest) (n int64, err error) {
	for {
		var answer apitypes.RedeliverEventsResponse
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
