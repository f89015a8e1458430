package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
)

// listAudit answers GET /api/audit.
func (a *API) listAudit(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	scope := q.scope("audit", "merchantId", "action", "since")
	filter := access.AuditFilter{MerchantID: q.merchantID(), Since: q.time("since")}
	before, ok := q.position("cursor", scope)
	if action, ok := q.get("action"); ok {
		filter.Action = access.Action(action)
		q.none = q.none || !isVisibleASCII(action)
	}
	if q.err != nil {
		return q.err
	}
	h, err := a.history(r.Context(), "")
	if err != nil {
		return err
	}
	if ok {
		if filter.Before, err = a.auditBefore(r.Context(), h, scope, before); err != nil {
			return err
		}
	}
	return listing[access.Entry]{
		name: "entries", query: q, elements: elementsOf(apiconv.AuditEntry),
		read: func(ctx context.Context, last *access.Entry, n int) ([]access.Entry, string, error) {
			if last != nil {
				filter.Before = last.Seq
			}
			filter.Limit = n
			found, err := a.conf.Reader.AuditEntries(ctx, filter)
			return all(found, db.During("list audit entries", err))
		},
		cursor: descendingCursor(scope, func(e *access.Entry) string { return h.at(e.Seq, -1, 0).key() }),
	}.serve(a, w, r)
}

// auditBefore returns the number before which a list of the audit log continues.
func (a *API) auditBefore(ctx context.Context, h history, scope string, p position) (int64, error) {
	_, shared, reason := h.branch(p)
	head, err := a.conf.Events.AuditHead(ctx)
	if err != nil {
		return 0, fmt.Errorf("find the newest entry of the audit log: %w", err)
	}
	return h.resumeBefore(scope, p, shared, head.Seq, reason)
}

// listRequests answers GET /api/requests.
func (a *API) listRequests(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	filter := access.RequestFilter{MerchantID: q.merchantID(), Status: access.RequestStatus(one(q, "status", access.RequestStatuses)), KeyID: q.id("keyId", "", "a key")}
	if filter.KeyID == "" && q.values.Has("keyId") {
		q.reject("keyId", "must be the id of a key")
	}
	return listing[access.LoggedRequest]{
		name: "requests", query: q, scope: q.scope("requests", "merchantId", "keyId", "status"), elements: elementsOf(LoggedRequest),
		key: func(e *access.LoggedRequest) string { return e.ID },
		find: func(ctx context.Context, before string, n int) ([]access.LoggedRequest, string, error) {
			filter.Before, filter.Limit = before, n
			return all(a.conf.Reader.Requests(ctx, filter))
		},
	}.serve(a, w, r)
}

// LoggedRequest converts a request of the log.
func LoggedRequest(e access.LoggedRequest) apitypes.LoggedRequest {
	return apitypes.LoggedRequest{
		ID: e.ID, At: e.At.Unix(), MerchantID: e.MerchantID, KeyID: e.KeyID, Method: e.Method, Route: e.Route, Path: e.Path, Status: e.Status,
		Code: e.Code, Detail: e.Detail, DurationMs: e.Duration.Milliseconds(), Client: e.Client, RequestID: e.RequestID, IdempotencyKey: e.Idempotent,
	}
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
