// Package guard runs HTTP handlers that return errors, as the API's and the
// checkout's do.
package guard

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"
)

// Handler answers a request, or returns the error that says why not. It has
// written nothing when it returns one.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Run runs the handler until the deadline, and turns a panic of it into an
// error. The deadline is the only end of the request's context: net/http
// cancels it already when the caller closes its own half of the connection,
// and may still read.
func Run(h Handler, w http.ResponseWriter, r *http.Request, deadline time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), deadline)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares the panic's value too
				panic(p)
			}
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return h(w, r.WithContext(ctx))
}
