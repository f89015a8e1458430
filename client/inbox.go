package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/quittance/quittance/apitypes"
)

// Inbox lists items that need a decision, newest first; merchantID and kind are "" for all. It requests pages as
// needed, and ends after an error.
func (c *Client) Inbox(ctx context.Context, merchantID string, kind apitypes.InboxKind) iter.Seq2[apitypes.InboxItem, error] {
	query := make(url.Values)
	set(query, "merchantId", merchantID)
	set(query, "kind", string(kind))
	return list(ctx, c, c.path("api/inbox"), query, 0, func(page apitypes.InboxList) ([]apitypes.InboxItem, string) {
		return page.Items, page.NextCursor
	})
}

// InboxCounts counts items that need a decision; merchantID is "" for all merchants.
func (c *Client) InboxCounts(ctx context.Context, merchantID string) ([]apitypes.InboxCount, error) {
	query := make(url.Values)
	set(query, "merchantId", merchantID)
	at := c.path("api/inbox/counts")
	at.RawQuery = query.Encode()
	var answer apitypes.InboxCounts
	err := c.get(ctx, at, &answer)
	return answer.Counts, err
}

// Decisions lists past decisions, newest first; merchantID and objectID are "" for all. It requests pages as needed,
// and ends after an error.
func (c *Client) Decisions(ctx context.Context, merchantID, objectID string) iter.Seq2[apitypes.Decision, error] {
	query := make(url.Values)
	set(query, "merchantId", merchantID)
	set(query, "objectId", objectID)
	return list(ctx, c, c.path("api/inbox/decisions"), query, 0, func(page apitypes.DecisionList) ([]apitypes.Decision, string) {
		return page.Decisions, page.NextCursor
	})
}

// Decide records a decision about an item of the inbox. The error's code is [apitypes.CodeAlreadyDecided] if somebody
// decided earlier, and [apitypes.CodeItemChanged] if the item has changed since it was read. It is not repeated,
// because the repetition would get the error that the decision was made already.
func (c *Client) Decide(ctx context.Context, r apitypes.DecideRequest) (apitypes.Decision, error) {
	var answer apitypes.DecisionResponse
	err := c.send(ctx, request{method: http.MethodPost, url: c.path("api/inbox/decisions")}, r, &answer)
	return answer.Decision, err
}

// UndoDecision undoes a decision. It is idempotent. The error's code is [apitypes.CodeAlreadyAttributed] if the decision
// attributed a payment and has taken effect.
func (c *Client) UndoDecision(ctx context.Context, id string) (apitypes.Decision, error) {
	var answer apitypes.DecisionResponse
	err := c.call(ctx, request{method: http.MethodPost, url: c.path("api/inbox/decisions", id, "undo"), repeatable: true}, &answer)
	return answer.Decision, err
}
