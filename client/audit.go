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

// ApprovalFilter selects requests for approval. The zero value selects all.
type ApprovalFilter struct {
	MerchantID string
	State      apitypes.ApprovalState
	PageSize   int // requests per page, 1 to 200; 0 means the service's default
}

// Approvals lists requests for approval, newest first. It requests pages as needed, and ends after an error.
func (c *Client) Approvals(ctx context.Context, f ApprovalFilter) iter.Seq2[apitypes.Approval, error] {
	query := make(url.Values)
	set(query, "merchantId", f.MerchantID)
	set(query, "state", string(f.State))
	return list(ctx, c, c.path("api/approvals"), query, f.PageSize, func(page apitypes.ApprovalList) ([]apitypes.Approval, string) {
		return page.Approvals, page.NextCursor
	})
}

// Approval returns a request for approval, which the Problem of an error with [apitypes.CodeApprovalRequired] names, with
// its votes. The error's code is [apitypes.CodeNotFound] if the id is unknown.
func (c *Client) Approval(ctx context.Context, id string) (apitypes.ApprovalResponse, error) {
	var answer apitypes.ApprovalResponse
	err := c.get(ctx, c.path("api/approvals", id), &answer, is("approval", id, &answer.Approval.ID))
	return answer, err
}
