package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
)

// query reads the parameters of a request and keeps the first error.
type query struct {
	values url.Values
	err    error
}

// parseQuery returns the query, which checkParameters has accepted. For a merchant's
// principal, the parameter merchantId is that merchant.
func parseQuery(r *http.Request) *query {
	q := &query{values: r.URL.Query()}
	named := q.values.Get("merchantId")
	own, err := ownMerchant(r.Context(), named)
	switch {
	case err != nil:
		q.err = err
	case own != named:
		q.values.Set("merchantId", own)
	}
	return q
}

// parsePublicQuery returns the query of a request without a principal.
func parsePublicQuery(r *http.Request) *query { return &query{values: r.URL.Query()} }

// reject records an error of a parameter, such as "must be a number", unless one is
// recorded already.
func (q *query) reject(name, what string, args ...any) {
	if q.err == nil {
		q.err = parameterError(name, what, args...)
	}
}

// get returns a parameter and whether it is present.
func (q *query) get(name string) (string, bool) {
	return q.values.Get(name), q.values.Has(name)
}

// set returns the values of a parameter that is a set of known values, separated by
// commas or in repeated parameters. It normalizes the parameter in q, so that equal
// sets have equal scopes.
func (q *query) set(name string, known ...string) []string {
	given, ok := q.values[name]
	if !ok {
		return nil
	}
	values := strings.Split(strings.Join(given, ","), ",")
	for _, value := range values {
		if !slices.Contains(known, value) {
			q.reject(name, "must be of %s, with commas between; it has %.40q", strings.Join(known, ", "), value)
		}
	}
	slices.Sort(values)
	q.values[name] = slices.Compact(values)
	return q.values[name]
}

// flag returns the value of a parameter that is true or false, and whether it is present.
func (q *query) flag(name string) (value, ok bool) {
	text, ok := q.get(name)
	if ok && text != "true" && text != "false" {
		q.reject(name, "must be true or false; it is %.40q", text)
	}
	return text == "true", ok
}

// limit returns the maximum number of elements of the page.
func (q *query) limit() int {
	s, ok := q.get("limit")
	if !ok {
		return DefaultPage
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > MaxPage || s != strconv.Itoa(n) {
		q.reject("limit", "must be an integer from 1 to %d, without sign or leading zero", MaxPage)
	}
	return n
}

// scope returns the list and its filters as a text, to which cursors are bound. It names
// the given filters even if they are absent, and the others if they are present.
func (q *query) scope(list string, filters ...string) string {
	for _, name := range filters {
		list += fmt.Sprintf(" %s=%q", name, q.values[name])
	}
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		if !slices.Contains(filters, name) && !slices.Contains(notFilters, name) {
			list += fmt.Sprintf(" %s=%q", name, q.values[name])
		}
	}
	return list
}

// notFilters are the parameters of lists that may differ from page to page.
var notFilters = []string{"limit", "cursor", "after", "candidates"}

const wrongCursor = "must be the nextCursor of an answer to a request with the same filters"

// cursor returns the sort key of the last element of the previous page, or "" for the
// first page.
func (q *query) cursor(scope string) string {
	s, ok := q.get("cursor")
	if !ok {
		return ""
	}
	key, ok := parseCursor(scope, s)
	if !ok {
		q.reject("cursor", wrongCursor)
	}
	return key
}

// merchantID returns the merchant to list for, or "" for all. possible is false if the parameter is
// not a valid id, so that the list is empty. Then it is not looked up, because not every text is valid
// in a database.
func (q *query) merchantID() (id string, possible bool) {
	id, ok := q.get("merchantId")
	return id, !ok || invoice.ValidMerchantID(id)
}
