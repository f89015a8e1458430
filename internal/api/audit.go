package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/store"
)

// listAudit answers GET /api/audit.
func (a *API) listAudit(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	limit, scope := q.limit(), q.scope("audit", "merchantId", "action", "since")
	merchantID, possible := q.merchantID()
	filter := store.AuditFilter{MerchantID: merchantID, Before: q.seq("cursor", scope), Since: q.time("since")}
	if action, ok := q.get("action"); ok {
		filter.Action = access.Action(action)
		possible = possible && isVisibleASCII(action)
	}
	if q.err != nil {
		return q.err
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
			found, err := a.reader.AuditEntries(ctx, filter)
			if err != nil {
				return nil, "", fmt.Errorf("list audit entries: %w", err)
			}
			return found, "", nil
		},
		elements: elementsOf(apiconv.AuditEntry),
		cursor:   descendingCursor(scope, func(e *access.Entry) string { return strconv.FormatInt(e.Seq, 10) }),
	}.serve(a, w, r)
}
