package api

import (
	"cmp"
	"context"
	"net/http"

	"github.com/quittance/quittance/internal/access"
)

// listRequests answers GET /api/requests.
func (a *API) listRequests(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	limit, scope := q.limit(), q.scope("requests", "merchantId", "keyId", "status")
	merchantID, possible := q.merchantID()
	filter := access.RequestFilter{MerchantID: merchantID, Before: q.cursor(scope), Status: access.RequestStatus(one(q, "status", access.RequestStatuses))}
	if keyID, ok := q.get("keyId"); ok {
		filter.KeyID = keyID
		if keyID == "" || len(keyID) > maxObjectID || !isVisibleASCII(keyID) {
			q.reject("keyId", "must be the id of a key")
		}
	}
	if q.err != nil {
		return q.err
	}
	page := listing[access.LoggedRequest]{name: "requests", limit: limit, elements: elementsOf(LoggedRequest)}
	return page.before(scope, possible, func(e *access.LoggedRequest) string { return e.ID }, func(ctx context.Context, before string, n int) ([]access.LoggedRequest, error) {
		filter.Before, filter.Limit = cmp.Or(before, filter.Before), n
		return a.conf.Reader.Requests(ctx, filter)
	}).serve(a, w, r)
}
