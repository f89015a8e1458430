// Package outbound sends HTTP requests to peers that cannot be trusted to
// behave: the nodes of chains, and the endpoints of merchants.
package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ErrSwitched is the error of a request that was answered 101 Switching
// Protocols. No request of the service asks for another protocol, and
// net/http's body of such an answer is the bare connection, which neither the
// request's context nor the client's timeout ends.
var ErrSwitched = errors.New("answered 101 Switching Protocols, which was not asked for")

// Transport is an http.RoundTripper whose exchanges end when the context of
// the request ends, whatever the peer does: it refuses 101 Switching Protocols,
// and closes the body of an answer when the context ends, also while it is
// being read.
type Transport struct {
	Base http.RoundTripper
}

// RoundTrip is http.RoundTripper's. It returns ErrSwitched for an answer of
// 101.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.Base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		if err := resp.Body.Close(); err != nil {
			return nil, fmt.Errorf("%w (and closing the connection: %w)", ErrSwitched, err)
		}
		return nil, ErrSwitched
	}
	b := &body{ReadCloser: resp.Body, ctx: r.Context()}
	b.stop = context.AfterFunc(b.ctx, func() {
		_ = b.ReadCloser.Close() // the reader gets the error of the context
	})
	resp.Body = b
	return resp, nil
}

// CloseIdleConnections closes those of Base, if it has any.
func (t Transport) CloseIdleConnections() {
	if base, ok := t.Base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// body is an answer's body that ends with the request's context.
type body struct {
	io.ReadCloser
	ctx  context.Context // of the request that the body belongs to
	stop func() bool
}

// Read returns the context's error once the context has ended, except at the
// end of the body.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() != nil {
		err = b.ctx.Err()
	}
	return n, err
}

// Close closes the body. The end of the context closes it no more.
func (b *body) Close() error {
	b.stop()
	return b.ReadCloser.Close()
}
