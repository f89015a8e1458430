package client

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// Option configures a Client or, by [Client.With], one call.
type Option func(*Client)

// WithHTTPClient makes the client use h. Unless h has a CheckRedirect, redirects are
// errors, because they could send the key elsewhere.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithKey sends a key of the service with each request. The key belongs to the operator or to one merchant. New returns
// an error for an empty key, which usually comes from a variable that is not set. Leave the option out for a service
// that needs no key.
func WithKey(key string) Option { return func(c *Client) { c.key, c.hasKey = key, true } }

// WithVersion sends the header Quittance-Version with each request, such as 2026-11-22, so that responses have that
// version of the interface, whatever version the key is pinned to.
func WithVersion(version string) Option { return func(c *Client) { c.version = version } }

// WithHeader adds a header to each request. It replaces a header that the client sends.
func WithHeader(name, value string) Option { return func(c *Client) { c.header.Set(name, value) } }

// WithTimeouts replaces [DefaultTimeout], which bounds a call with its retries, and [DefaultAttemptTimeout]. 0 means
// that only the context bounds it. For an export they bound the wait for its first byte.
func WithTimeouts(call, attempt time.Duration) Option {
	return func(c *Client) { c.timeout, c.attemptTimeout = call, attempt }
}

// WithRetries replaces [DefaultRetries], the number of attempts after the first.
func WithRetries(n int) Option { return func(c *Client) { c.retries = n } }

// WithOnResponse calls f with each successful response, for example to log its request id. f must be safe for
// concurrent use if the client is used concurrently.
func WithOnResponse(f func(Response)) Option { return func(c *Client) { c.onResponse = f } }

// WithClock replaces the clock by which the client waits.
func WithClock(clock Clock) Option { return func(c *Client) { c.clock = clock } }

// WithRandom replaces [rand.Reader] as the source of idempotency keys and of jitter.
func WithRandom(r io.Reader) Option { return func(c *Client) { c.random = r } }

// IdempotencyKey replaces the key that the client generates for each write. It is for one call: New refuses it. For 24
// hours the same create with the same key returns the same invoice, refund or link, in its present state, so a key that
// is derived from an order makes a create safe to repeat from another process. Do not derive the key of
// [Client.SubmitRefund] or [Client.EraseCustomer]: use a random one, and use it again only for retries. It is 1 to 255
// visible ASCII characters. The service ignores it if an operation does not use one.
func IdempotencyKey(key string) Option { return func(c *Client) { c.idempotencyKey = key } }

// With returns a client for one or more calls with other options, such as
//
//	refund, err := c.With(client.WithTimeouts(5*time.Second, 0), client.WithRetries(0)).Refund(ctx, id, false)
//
// It has its own [Client.LastResponse]. Its calls return the error of an invalid option, such as ErrKey.
func (c *Client) With(options ...Option) *Client {
	with := *c
	with.parent, with.last = c, new(atomic.Pointer[Response])
	with.configure(options)
	return &with
}

// configure applies options to a client that no call uses yet.
func (c *Client) configure(options []Option) {
	if c.header = c.header.Clone(); c.header == nil {
		c.header = make(http.Header)
	}
	for _, option := range options {
		option(c)
	}
	if c.hasKey && !isKey(c.key) {
		c.err = ErrKey
	}
	if c.http.CheckRedirect == nil {
		h := *c.http
		h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		c.http = &h
	}
}

// Response is a successful response without its body.
type Response struct {
	Method    string
	Path      string // of the URL, without its query
	Status    int
	RequestID string // to give to the operator of the service
	// Replayed is set if an earlier request with the same idempotency key did the work.
	Replayed bool
	Attempts int
	Header   http.Header
}

// LastResponse returns the last successful response of the client, and of clients that With made from it, or the zero
// value before the first. For concurrent calls, give each its own [Client.With], or use [WithOnResponse].
func (c *Client) LastResponse() Response {
	if last := c.last.Load(); last != nil {
		return *last
	}
	return Response{}
}

// succeeded records the response of attempt n.
func (c *Client) succeeded(r request, response *http.Response, n int) {
	info := Response{
		Method: r.method, Path: r.path(), Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id"),
		Replayed: response.Header.Get("Idempotency-Replayed") == "true", Attempts: n, Header: response.Header,
	}
	for to := c; to != nil; to = to.parent {
		to.last.Store(&info)
	}
	if c.onResponse != nil {
		c.onResponse(info)
	}
}
