package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
)

// ApprovalReader reads requests for approval. access.Reader documents the methods.
type ApprovalReader interface {
	Approval(ctx context.Context, id string, at time.Time) (access.Approval, error)
	Approvals(ctx context.Context, f access.ApprovalFilter) ([]access.Approval, error)
	ApprovalVotes(ctx context.Context, id string) ([]access.ApprovalVote, error)
	Approvers(ctx context.Context, merchantID string, at time.Time) ([]access.Record, error)
}

// listApprovals answers GET /api/approvals.
func (a *API) listApprovals(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	filter := access.ApprovalFilter{MerchantID: q.merchantID(), At: a.conf.Now(), State: access.ApprovalState(one(q, "state", access.ApprovalStates))}
	return listing[access.Approval]{
		name: "approvals", query: q, scope: q.scope("approvals", "merchantId", "state"), elements: elementsOf(apiconv.Approval),
		key: func(a *access.Approval) string { return a.ID },
		find: func(ctx context.Context, before string, n int) ([]access.Approval, string, error) {
			filter.Before, filter.Limit = before, n
			return all(a.conf.Reader.Approvals(ctx, filter))
		},
	}.serve(a, w, r)
}

// getApproval answers GET /api/approvals/{id}.
func (a *API) getApproval(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	now := a.conf.Now()
	found, err := a.conf.Reader.Approval(r.Context(), id, now)
	if err == nil && !access.FromContext(r.Context()).Sees(found.MerchantID) {
		err = db.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("read request for approval: %w", err)
	}
	people, err := a.conf.Reader.Approvers(r.Context(), found.MerchantID, now)
	if err != nil {
		return fmt.Errorf("read people who may approve: %w", err)
	}
	votes, err := a.conf.Reader.ApprovalVotes(r.Context(), id)
	return a.writeJSON(w, r, http.StatusOK, apiconv.ApprovalResponse(found, votes, people), db.During("read votes", err))
}
