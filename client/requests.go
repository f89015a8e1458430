package client

import (
	"context"
	"iter"
	"net/url"

	"github.com/quittance/quittance/apitypes"
)

// RequestFilter selects requests of the log. The zero value selects all.
type RequestFilter struct {
	MerchantID string
	KeyID      string
	Status     string // 2xx, 4xx, 5xx, or failed
	PageSize   int    // requests per page, 1 to 200; 0 means the service's default
}

// Requests lists the last requests with keys, most recently ended first. It requests pages as needed, and ends after an
// error.
func (c *Client) Requests(ctx context.Context, f RequestFilter) iter.Seq2[apitypes.LoggedRequest, error] {
	query := make(url.Values)
	set(query, "merchantId", f.MerchantID)
	set(query, "keyId", f.KeyID)
	set(query, "status", f.Status)
	return list(ctx, c, c.path("api/requests"), query, f.PageSize, func(page apitypes.RequestList) ([]apitypes.LoggedRequest, string) {
		return page.Requests, page.NextCursor
	})
}
