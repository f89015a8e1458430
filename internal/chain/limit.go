package chain

import (
	"io"
	"net/http"
)

// limitedTransport fails the reading of a response that is longer than max
// bytes, so that no node can fill the memory.
type limitedTransport struct {
	http.RoundTripper
	max int64
}

func (t limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = &limitedBody{ReadCloser: resp.Body, left: t.max}
	}
	return resp, err
}

// limitedBody differs from an io.LimitedReader in that its end is an error:
// a cut answer must not be taken for a short one.
type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrResponseTooLarge
	}
	// One byte more than allowed tells an answer of just that length from a
	// longer one.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, ErrResponseTooLarge
	}
	return n, err
}
