package server

import (
	"bytes"
	"io"
	"net/http"

	"github.com/quittance/quittance/internal/api"
	"github.com/quittance/quittance/internal/ratelimit"
	"github.com/quittance/quittance/internal/store"
)

// maxInFlight bounds the requests of a door that are served at a time.
var maxInFlight = map[Door]int64{PublicDoor: 512, APIDoor: 1024, OperatorDoor: 32}

// capped returns a handler that answers 503 while a door has its number of requests in
// flight. A request counts once its body was read, so that slow clients keep nobody out.
// Long requests do not count: the API bounds them.
func (l *limits) capped(r route, writeError errorWriter) http.Handler {
	inFlight, most, next := l.inFlight[r.door], maxInFlight[r.door], r.handler
	isLong := r.isLong
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		readAhead(r)
		if isLong != nil && isLong(r) {
			next.ServeHTTP(w, r)
			return
		}
		defer inFlight.Add(-1)
		if inFlight.Add(1) > most {
			l.metrics.refused.WithLabelValues("in_flight").Inc()
			writeError(w, r, ratelimit.ErrBusy)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// inShare returns a handler whose requests share the connections to the database. Those of the
// operator's door ask for the service's health.
func inShare(door Door, next http.Handler) http.Handler {
	reads := map[Door]store.ConnShare{PublicDoor: store.PayerReads, APIDoor: store.MerchantReads}[door]
	if reads == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		share := store.Writes
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			share = reads
		}
		next.ServeHTTP(w, r.WithContext(store.WithShare(r.Context(), share)))
	})
}

// readAhead reads the body of a request, up to api.MaxBody and one byte more. A read of
// Body returns the same bytes and error.
func readAhead(r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength > api.MaxBody {
		return
	}
	read, err := io.ReadAll(io.LimitReader(r.Body, api.MaxBody+1))
	rest := io.Reader(r.Body)
	if err != nil {
		rest = failedReader{err}
	}
	r.Body = readCloser{io.MultiReader(bytes.NewReader(read), rest), r.Body}
}

type readCloser struct {
	io.Reader
	io.Closer
}

// failedReader returns an error.
type failedReader struct{ err error }

func (f failedReader) Read([]byte) (int, error) { return 0, f.err }
