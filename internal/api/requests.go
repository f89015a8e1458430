package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/requestlog"
	"github.com/quittance/quittance/internal/store"
)

// listRequests answers GET /api/requests.
func (a *API) listRequests(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	limit, scope := q.limit(), q.scope("requests", "merchantId", "keyId", "status")
	merchantID, possible := q.merchantID()
	filter := store.RequestFilter{MerchantID: merchantID, Before: q.cursor(scope), Status: q.requestStatus()}
	if keyID, ok := q.get("keyId"); ok {
		filter.KeyID = keyID
		if keyID == "" || len(keyID) > maxObjectID || !isVisibleASCII(keyID) {
			q.reject("keyId", "must be the id of a key")
		}
	}
	if q.err != nil {
		return q.err
	}
	return listing[requestlog.Entry]{
		name: "requests", limit: limit,
		read: func(ctx context.Context, last *requestlog.Entry, n int) ([]requestlog.Entry, string, error) {
			if !possible {
				return nil, "", nil
			}
			if last != nil {
				filter.Before = last.ID
			}
			filter.Limit = n
			found, err := a.reader.Requests(ctx, filter)
			return found, "", err
		},
		elements: elementsOf(apiconv.LoggedRequest),
		cursor:   descendingCursor(scope, func(e *requestlog.Entry) string { return e.ID }),
	}.serve(a, w, r)
}

// requestStatus returns the parameter status of a list of requests, or "".
func (q *query) requestStatus() store.RequestStatus {
	text, ok := q.get("status")
	status := store.RequestStatus(text)
	if ok && !slices.Contains(store.RequestStatuses, status) {
		q.reject("status", "must be one of %s; it is %.40q", enumerate(store.RequestStatuses), text)
	}
	return status
}
