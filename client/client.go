// Package client calls the REST interface of Quittance, and receives its events.
//
//	c, err := client.New("https://pay.example.com", client.WithKey(key))
//	created, err := c.CreateInvoice(ctx, apitypes.CreateInvoiceRequest{…})
//
// Requests and responses have the types of package apitypes. An error that the
// service returns is an [*Error] with a code.
//
// A call is bounded by [DefaultTimeout] and each of its attempts by
// [DefaultAttemptTimeout]. Attempts that fail for reasons that may pass are repeated,
// unless the repetition could do something twice. A [WebhookHandler] receives the events.
package client

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Client calls one service. It is safe for concurrent use.
type Client struct {
	base           *url.URL
	http           *http.Client
	key            string
	hasKey         bool // WithKey was given
	version        string
	timeout        time.Duration
	attemptTimeout time.Duration
	retries        int
	clock          Clock
	random         io.Reader
	positions      positions
}

// Option configures a Client.
type Option func(*Client)

// WithHTTPClient makes the client use h. Unless h has a CheckRedirect, redirects are
// errors, because they could send the key elsewhere.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithKey sends a key of the service with each request. The key belongs to the operator
// or to one merchant. New returns an error for an empty one, which is a variable that is not
// set: leave the option out for a service that asks for no key.
func WithKey(key string) Option { return func(c *Client) { c.key, c.hasKey = key, true } }

// WithVersion sends the header Quittance-Version with each request, such as 2026-11-22, so
// that responses are of that version of the interface whichever one the key is pinned to.
func WithVersion(version string) Option { return func(c *Client) { c.version = version } }

// WithTimeouts replaces [DefaultTimeout], which bounds a call with its retries, and
// [DefaultAttemptTimeout]. 0 means no bound but that of the context.
func WithTimeouts(call, attempt time.Duration) Option {
	return func(c *Client) { c.timeout, c.attemptTimeout = call, attempt }
}

// WithRetries replaces [DefaultRetries], the number of attempts after the first.
func WithRetries(n int) Option { return func(c *Client) { c.retries = n } }

// WithClock replaces the clock by which the client waits.
func WithClock(clock Clock) Option { return func(c *Client) { c.clock = clock } }

// WithRandom replaces [rand.Reader] as the source of idempotency keys and of jitter.
func WithRandom(r io.Reader) Option { return func(c *Client) { c.random = r } }

// New returns a client of the service at baseURL, such as https://pay.example.com.
func New(baseURL string, options ...Option) (*Client, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		return nil, fmt.Errorf("client: base URL: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("client: base URL %q must be of the form https://host or https://host/path", baseURL)
	}
	c := &Client{
		base: base, http: http.DefaultClient, timeout: DefaultTimeout, attemptTimeout: DefaultAttemptTimeout,
		retries: DefaultRetries, clock: systemClock{}, random: rand.Reader,
	}
	for _, option := range options {
		option(c)
	}
	if c.hasKey && !isKey(c.key) {
		return nil, ErrKey
	}
	if c.http.CheckRedirect == nil {
		h := *c.http
		h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		c.http = &h
	}
	return c, nil
}

// ErrKey is the error of [New] for a key that cannot be one. Its text does not contain the key.
var ErrKey = errors.New("client: the key is empty, or has blanks or other characters that no key has; is QUITTANCE_API_KEY set?")

// isKey reports whether a key can be sent in a header.
func isKey(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
}

// FromEnv returns a client of the service at QUITTANCE_URL with the key in
// QUITTANCE_API_KEY, two environment variables that must be set.
func FromEnv(options ...Option) (*Client, error) {
	return New(os.Getenv("QUITTANCE_URL"), append([]Option{WithKey(os.Getenv("QUITTANCE_API_KEY"))}, options...)...)
}

// Must returns c, or panics if err is not nil. It is for the start of a program:
//
//	var quittance = client.Must(client.FromEnv())
func Must(c *Client, err error) *Client {
	if err != nil {
		panic(err)
	}
	return c
}

// URL returns the absolute URL of a path of the service, such as a CheckoutURL.
func (c *Client) URL(path string) string { return c.base.JoinPath(path).String() }
