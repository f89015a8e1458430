package api

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/quittance/quittance/internal/invoice"
)

// query reads the parameters of a request and keeps the first error.
type query struct {
	values url.Values
	err    error
}

func parseQuery(r *http.Request) *query {
	values, err := url.ParseQuery(r.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.fail(wrong("query", "does not parse: %v", err))
	}
	return q
}

func (q *query) fail(err error) {
	if q.err == nil {
		q.err = err
	}
}

// get returns a parameter, and whether it is there. One that stands twice is
// an error: to choose among its values would be a guess.
func (q *query) get(name string) (string, bool) {
	switch values := q.values[name]; len(values) {
	case 0:
		return "", false
	case 1:
		return values[0], true
	}
	q.fail(wrong(name, "must stand once"))
	return "", false
}

// limit returns how many elements a page shall have.
func (q *query) limit() int {
	s, ok := q.get("limit")
	if !ok {
		return DefaultPage
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n < 1 || n > MaxPage {
		q.fail(wrong("limit", "must be an integer from 1 to %d", MaxPage))
	}
	return int(n)
}

// cursor returns the key of the element that the page comes after, or nothing
// for the first page.
func (q *query) cursor(list string) string {
	s, ok := q.get("cursor")
	if !ok {
		return ""
	}
	key, err := parseCursor(list, s)
	if err != nil {
		q.fail(wrong("cursor", "%v", err))
	}
	return key
}

// merchantID returns the merchant to list for, or nothing for all.
func (q *query) merchantID() string {
	id, ok := q.get("merchantId")
	if !ok {
		return ""
	}
	if err := invoice.CheckMerchantID(id); err != nil {
		q.fail(err)
	}
	return id
}
