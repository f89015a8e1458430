package api

import (
	"context"
	"net/http"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
)

// Statuses returns the status of each code.
func Statuses() map[apitypes.ErrorCode]int {
	all := make(map[apitypes.ErrorCode]int)
	for code, answer := range answers {
		all[code] = answer.status
	}
	return all
}

// ParseDraft parses the body of the operator's create, for its fuzz test.
func ParseDraft(body []byte) (invoice.Draft, error) {
	o, err := parseObject(body)
	if err != nil {
		return invoice.Draft{}, invalidJSON(err)
	}
	return parseDraft(o, "")
}

// FormatCursor is formatCursor, for cursors that the API does not return.
func FormatCursor(scope, key string) string { return formatCursor(scope, key) }

// OccupyPages takes slots of pages for an owner of keys until it gets no more. It returns their number
// and a function that frees them.
func (a *API) OccupyPages(owner string) (n int, leave func()) {
	ctx := access.WithPrincipal(context.Background(), access.Principal{MerchantID: owner})
	var all []func()
	for {
		left, err := a.pages.enter(ctx)
		if err != nil {
			return len(all), func() {
				for _, left := range all {
					left()
				}
			}
		}
		all = append(all, left)
	}
}

// Handler returns the API's routes as one handler, which acts for the principal of the
// request's context or, without one, for the operator.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range a.Routes() {
		mux.Handle(r.Pattern, openToOperator(r.Handler))
	}
	return mux
}

// openToOperator returns a handler that acts for the operator unless the context has a principal.
func openToOperator(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if access.FromContext(r.Context()) == (access.Principal{}) {
			r = r.WithContext(access.WithPrincipal(r.Context(), access.Open()))
		}
		next.ServeHTTP(w, r)
	})
}

// Harmless is harmless in a file with commas, for its test.
func Harmless(cell string) string { return csvFormat{}.harmless(cell) }

// PositionKey returns the key that the position in a cursor has, and the cursor of that key. ok is
// false if the cursor has no position.
func PositionKey(scope, cursor string) (key, same string, ok bool) {
	p, ok := parsePosition(scope, cursor)
	return p.key(), formatCursor(scope, p.key()), ok
}
