package chain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ErrSwitched is the error of a request that was answered 101 Switching Protocols. No request of the service asks for
// an upgrade, and neither the request's context nor the client's timeout closes the body of such a response.
var ErrSwitched = errors.New("answered 101 Switching Protocols, which was not asked for")

// Transport is an http.RoundTripper with exchanges that end with the request's context, whatever the peer does. It
// rejects 101 Switching Protocols, and closes a response body when the context ends, even during a read.
type Transport struct {
	Base http.RoundTripper
}

// RoundTrip implements http.RoundTripper. It returns ErrSwitched for a response with status 101.
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

// CloseIdleConnections closes the idle connections of Base.
func (t Transport) CloseIdleConnections() {
	if base, ok := t.Base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// body is a response body that is closed when the request's context ends.
type body struct {
	io.ReadCloser
	ctx  context.Context // of the request
	stop func() bool
}

// Read returns the context's error once the context has ended, except at the end of the body.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() != nil {
		err = b.ctx.Err()
	}
	return n, err
}

// Close closes the body.
func (b *body) Close() error {
	b.stop()
	return b.ReadCloser.Close()
}
