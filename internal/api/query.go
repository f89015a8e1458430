package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
)

// ownCode maps parameters to their error codes, if not invalid_field.
var ownCode = map[string]apitypes.ErrorCode{
	"status":   apitypes.CodeInvalidStatus,
	"chainKey": apitypes.CodeInvalidChain,
}

// query parses the parameters of a request and keeps the first error.
type query struct {
	values url.Values
	err    error
}

// parseQuery parses the query. For a merchant's principal, the parameter merchantId is
// that merchant.
func parseQuery(r *http.Request) *query {
	values, err := url.ParseQuery(r.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.reject("query", "does not parse: %v", err)
	}
	named, _ := q.get("merchantId")
	own, err := ownMerchant(r.Context(), named)
	switch {
	case q.err == nil && err != nil:
		q.err = err
	case own != named:
		q.values["merchantId"] = []string{own}
	}
	return q
}

// reject records an error of a parameter, such as "must be a number", unless one is
// recorded already.
func (q *query) reject(name, what string, args ...any) {
	if q.err != nil {
		return
	}
	if code, ok := ownCode[name]; ok {
		q.err = problemf(code, name+" "+what+".", args...)
		return
	}
	q.err = invalidField(name, what, args...)
}

// get returns a parameter and whether it is present. It rejects a repeated parameter.
func (q *query) get(name string) (string, bool) {
	switch values := q.values[name]; len(values) {
	case 0:
		return "", false
	case 1:
		return values[0], true
	}
	q.reject(name, "must occur once")
	return "", false
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

// scope returns the list and its filters as a text, to which cursors are bound.
func (q *query) scope(list string, filters ...string) string {
	for _, name := range filters {
		list += fmt.Sprintf(" %s=%q", name, q.values[name])
	}
	return list
}

// cursor returns the sort key of the last element of the previous page, or "" for the
// first page.
func (q *query) cursor(scope string) string {
	s, ok := q.get("cursor")
	if !ok {
		return ""
	}
	key, ok := parseCursor(scope, s)
	if !ok {
		q.reject("cursor", "must be the nextCursor of an answer to a request with the same filters")
	}
	return key
}

// merchantID returns the merchant to list for, or "" for all. possible is false if the
// parameter is not a valid id, so that nothing matches; it is not looked up, because
// not every text is valid in a database.
func (q *query) merchantID() (id string, possible bool) {
	id, ok := q.get("merchantId")
	return id, !ok || invoice.ValidMerchantID(id)
}
