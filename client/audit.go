package client

import (
	"context"
	"iter"
	"net/url"
	"time"

	"github.com/quittance/quittance/apitypes"
)

// AuditFilter selects entries of the audit log. The zero value selects all.
type AuditFilter struct {
	MerchantID string
	Action     string    // such as endpoint.update
	Since      time.Time // in whole seconds; zero for no bound
	PageSize   int       // entries per request, 1 to 200; 0 means the service's default
}

// AuditEntries lists entries of the audit log, newest first. It requests pages as needed,
// and ends after an error.
func (c *Client) AuditEntries(ctx context.Context, f AuditFilter) iter.Seq2[apitypes.AuditEntry, error] {
	query := make(url.Values)
	set(query, "merchantId", f.MerchantID)
	set(query, "action", f.Action)
	setTime(query, "since", f.Since)
	return list(ctx, c, c.path("api/audit"), query, f.PageSize, func(page apitypes.AuditList) ([]apitypes.AuditEntry, string) {
		return page.Entries, page.NextCursor
	})
}
