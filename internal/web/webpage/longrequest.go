package webpage

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// ChunkTimeout is how long a client may take to read a written part of the response to a long request.
const ChunkTimeout = 30 * time.Second

type connectionKey struct{}

// WithConnection returns a context for a request's handler that carries the context which
// ends with the client's connection. Long requests end with it.
func WithConnection(ctx, connection context.Context) context.Context {
	return context.WithValue(ctx, connectionKey{}, connection)
}

// RequestContext returns the context of a long request. It ends with the connection, and when
// stopping ends. It has no other deadline.
func RequestContext(stopping context.Context, r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	ends := []context.Context{stopping}
	if connection, ok := r.Context().Value(connectionKey{}).(context.Context); ok {
		ends = append(ends, connection)
	}
	stops := make([]func() bool, len(ends))
	for i, end := range ends {
		stops[i] = context.AfterFunc(end, cancel)
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}

// ClearDeadlines lets a long request wait beyond the server's timeouts. Over HTTP/2 a write deadline
// ends a request even if no write is in progress. The caller calls ExtendDeadlines before it writes.
func ClearDeadlines(w http.ResponseWriter) error { return setDeadlines(w, time.Time{}) }

// ExtendDeadlines lets a long request outlast the server's timeouts: it has no deadline
// to read, and ChunkTimeout from now to write.
func ExtendDeadlines(w http.ResponseWriter) error {
	return setDeadlines(w, time.Now().Add(ChunkTimeout))
}

// setDeadlines sets a write deadline, and removes the read deadline.
func setDeadlines(w http.ResponseWriter, write time.Time) error {
	control := http.NewResponseController(w)
	err := errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(write))
	if errors.Is(err, http.ErrNotSupported) { // a recorder in tests
		return nil
	}
	return err
}
