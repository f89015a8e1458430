package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
)

// requestFilters are the parameters of the list of requests that the REST interface takes.
var requestFilters = []string{"status", "keyId"}

// requestRow is a request of a program.
type requestRow struct{ apitypes.LoggedRequest }

// Outcome returns the class of the status, for its color. It is for templates.
func (r requestRow) Outcome() string {
	switch {
	case r.Status >= http.StatusInternalServerError:
		return "failed"
	case r.Status >= http.StatusBadRequest:
		return "warn"
	}
	return "ok"
}

// Listed reports whether the list of keys has the key of the request. It is for templates.
func (r requestRow) Listed() bool { return !access.IsConfigured(r.KeyID) }

// Unsafe reports whether the request created something without an Idempotency-Key. It is for templates.
func (r requestRow) Unsafe() bool {
	return r.IdempotencyKey != nil && !*r.IdempotencyKey && r.Status < http.StatusBadRequest
}

// requestTable is a table of requests.
type requestTable struct {
	*visit
	Rows []requestRow
}

// Unsafe reports whether one of the requests is unsafe. It is for templates.
func (t requestTable) Unsafe() bool {
	return slices.ContainsFunc(t.Rows, requestRow.Unsafe)
}

// requestList is the page of the last requests.
type requestList struct {
	Filter url.Values
	Table  requestTable
	Next   string
}

// Statuses returns the filters by status. It is for templates.
func (requestList) Statuses() []access.RequestStatus { return access.RequestStatuses }

// requests lists the last requests of programs.
func (d *Dashboard) requests(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	query := v.query()
	filter := filtered(r, query, requestFilters)
	table, next := d.readRequests(r, query)
	return d.render(w, r, http.StatusOK, "requests.html", "nav.requests", requestList{filter, table, nextPage(v, filter, next)})
}

// readRequests returns a page of requests, and the cursor of the next.
func (d *Dashboard) readRequests(r *http.Request, query url.Values) (table requestTable, next string) {
	list := get[apitypes.RequestList](d, r, "/api/requests", query)
	rows := db.Each(list.Requests, func(logged apitypes.LoggedRequest) requestRow { return requestRow{logged} })
	return requestTable{visitOf(r), rows}, list.NextCursor
}

// maxKeyRequests is how many requests the page of a key shows.
const maxKeyRequests = 10

// requestsOf returns the last requests with a key, if the person may read them.
func (d *Dashboard) requestsOf(r *http.Request, keyID string) (table requestTable) {
	if visitOf(r).Can(access.EventsRead) {
		table, _ = d.readRequests(r, url.Values{"keyId": {keyID}, "limit": {strconv.Itoa(maxKeyRequests)}})
	}
	return table
}
