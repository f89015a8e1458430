package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
)

// listAudit answers GET /api/audit.
func (a *API) listAudit(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	limit, scope := q.limit(), q.scope("audit", "merchantId", "action", "since")
	merchantID, possible := q.merchantID()
	filter := access.AuditFilter{MerchantID: merchantID, Since: q.time("since")}
	before, ok := q.position("cursor", scope)
	if action, ok := q.get("action"); ok {
		filter.Action = access.Action(action)
		possible = possible && isVisibleASCII(action)
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
		name: "entries", limit: limit,
		read: func(ctx context.Context, last *access.Entry, n int) ([]access.Entry, string, error) {
			if !possible {
				return nil, "", nil
			}
			if last != nil {
				filter.Before = last.Seq
			}
			filter.Limit = n
			found, err := a.conf.Reader.AuditEntries(ctx, filter)
			if err != nil {
				return nil, "", fmt.Errorf("list audit entries: %w", err)
			}
			return found, "", nil
		},
		elements: elementsOf(apiconv.AuditEntry),
		cursor:   descendingCursor(scope, func(e *access.Entry) string { return h.at(e.Seq, -1, 0).key() }),
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
