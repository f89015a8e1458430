// Package client calls the REST interface of Quittance, and receives its events.
//
//	c, err := client.New("https://pay.example.com", client.WithKey(key))
//	created, err := c.CreateInvoice(ctx, apitypes.CreateInvoiceRequest{…})
//
// Requests and responses have the types of package apitypes. An error of a call is a [*CallError] with the method, the
// path and the number of attempts. It wraps the cause: an [*Error] with the code that the service answered, a
// [*ConnectionError], or an [*InvalidResponseError] for a success that the service did not send.
//
// A call is bounded by [DefaultTimeout] and each of its attempts by [DefaultAttemptTimeout]. Attempts that fail for
// temporary reasons are repeated, unless the repetition could do something twice. [Client.With] changes this for one
// call:
//
//	invoice, err := c.With(client.WithTimeouts(5*time.Second, 0), client.WithRetries(0)).Invoice(ctx, id)
//
// Every write has an idempotency key. Lists are sequences; [Collect] makes a slice of one, and methods such as
// [Client.InvoicesPage] fetch one page. [Client.LastResponse] returns the request id and the status of the last
// success. [ParseAmount] and [FormatAmount] convert amounts. A [WebhookHandler] receives the events.
//
// A success must have the members that openapi.yaml requires, so the service must not be older than the client.
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
	"sync/atomic"
	"time"
)

// Client calls one service. It is safe for concurrent use.
type Client struct {
	base           *url.URL
	http           *http.Client
	key            string
	hasKey         bool // WithKey was given
	version        string
	header         http.Header // to add to each request
	idempotencyKey string      // for each write; empty for random ones
	timeout        time.Duration
	attemptTimeout time.Duration
	retries        int
	clock          Clock
	random         io.Reader
	positions      *positions
	onResponse     func(Response)
	last           *atomic.Pointer[Response]
	parent         *Client // the client on which With was called, or nil
	err            error   // error of an option
}

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
		base: base, http: http.DefaultClient, positions: new(positions), last: new(atomic.Pointer[Response]), timeout: DefaultTimeout, attemptTimeout: DefaultAttemptTimeout,
		retries: DefaultRetries, clock: systemClock{}, random: rand.Reader,
	}
	switch c.configure(options); {
	case c.err != nil:
		return nil, c.err
	case c.idempotencyKey != "":
		return nil, errSharedKey
	}
	return c, nil
}

var errSharedKey = errors.New("client: IdempotencyKey is an option of one call, because calls with the same key are taken for one; " +
	"give it to the call, such as c.CreateInvoice(ctx, r, client.IdempotencyKey(key))")

// ErrKey is the error of [New] for an invalid key. Its text does not contain the key.
var ErrKey = errors.New("client: the key is empty, or has blanks or other characters that no key has; is QUITTANCE_API_KEY set?")

// isKey reports whether a key can be sent in a header.
func isKey(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
}

// FromEnv returns a client of the service at QUITTANCE_URL with the key in QUITTANCE_API_KEY. Both environment
// variables must be set; the error names the missing one.
func FromEnv(options ...Option) (*Client, error) {
	for _, name := range []string{"QUITTANCE_URL", "QUITTANCE_API_KEY"} {
		if os.Getenv(name) == "" {
			return nil, missingVariable(name)
		}
	}
	return New(os.Getenv("QUITTANCE_URL"), append([]Option{WithKey(os.Getenv("QUITTANCE_API_KEY"))}, options...)...)
}

// MustEnv returns an environment variable, or panics with its name if it is missing or empty. It is for the start of a
// program.
func MustEnv(name string) string {
	value := os.Getenv(name)
	if value == "" {
		panic(missingVariable(name))
	}
	return value
}

func missingVariable(name string) error {
	return fmt.Errorf("client: the environment variable %s is not set", name)
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
