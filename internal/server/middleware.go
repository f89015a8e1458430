package server

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/webpage"
)

// withDeadline returns a handler that gives each request api.RequestTimeout. The deadline is the only thing that
// cancels the request's context: net/http also cancels it when the client closes its half of the connection, although
// the client may still read. Long requests replace the context: see webpage.RequestContext.
func withDeadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), api.RequestTimeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(webpage.WithConnection(ctx, r.Context())))
	})
}

// errorWriter answers with an error.
type errorWriter func(w http.ResponseWriter, r *http.Request, err error)

// withRecover returns a handler that answers a panic of next with an internal
// error, which writeError writes. It passes http.ErrAbortHandler on to net/http.
func withRecover(writeError errorWriter, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares the panic's value too
				panic(p)
			}
			if p != nil {
				writeError(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		next.ServeHTTP(w, r)
	})
}
