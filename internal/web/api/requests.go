package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/quittance/quittance/internal/access"
)

// listRequests answers GET /api/requests.
func (a *API) listRequests(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	limit, scope := q.limit(), q.scope("requests", "merchantId", "keyId", "status")
	merchantID, possible := q.merchantID()
	filter := access.RequestFilter{MerchantID: merchantID, Before: q.cursor(scope), Status: q.requestStatus()}
	if keyID, ok := q.get("keyId"); ok {
		filter.KeyID = keyID
		if keyID == "" || len(keyID) > maxObjectID || !isVisibleASCII(keyID) {
			q.reject("keyId", "must be the id of a key")
		}
	}
	if q.err != nil {
		return q.err
	}
	return listing[access.LoggedRequest]{
		name: "requests", limit: limit,
		read: func(ctx context.Context, last *access.LoggedRequest, n int) ([]access.LoggedRequest, string, error) {
			if !possible {
				return nil, "", nil
			}
			if last != nil {
				filter.Before = last.ID
			}
			filter.Limit = n
			found, err := a.conf.Reader.Requests(ctx, filter)
			return found, "", err
		},
		elements: elementsOf(LoggedRequest),
		cursor:   descendingCursor(scope, func(e *access.LoggedRequest) string { return e.ID }),
	}.serve(a, w, r)
}

// requestStatus returns the parameter status of a list of requests, or "".
func (q *query) requestStatus() access.RequestStatus {
	text, ok := q.get("status")
	status := access.RequestStatus(text)
	if ok && !slices.Contains(access.RequestStatuses, status) {
		q.reject("status", "must be one of %s; it is %.40q", enumerate(access.RequestStatuses), text)
	}
	return status
}
