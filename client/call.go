package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

const (
	// MaxAnswer bounds a successful response, in bytes.
	MaxAnswer = 64 << 20
	// maxProblem bounds how much of an error response is read, in bytes.
	maxProblem = 1 << 20
	// acceptJSON is the Accept header of a call that does not set another one.
	acceptJSON = "application/json, application/problem+json"
)

// errNoID is the error of a call with an id that would change the path.
var errNoID = errors.New("an id is empty, or a part of a path")

// request is a call, which may take several attempts.
type request struct {
	method string
	url    *url.URL
	header http.Header // optional
	body   []byte      // optional
	// repeatable is set if the service may receive the request twice with the effect of one.
	repeatable bool
	// wait is how long the service may wait before it answers.
	wait time.Duration
}

// path returns the path of a request's URL.
func (r request) path() string { return "/" + strings.TrimPrefix(r.url.EscapedPath(), "/") }

// path returns the URL of a path. The segments, such as identifiers, are escaped. A segment that would change the path,
// such as "..", is refused when a request is made.
func (c *Client) path(path string, segments ...string) *url.URL {
	u := c.base.JoinPath(path)
	for _, segment := range segments {
		u.Path, u.RawPath = u.Path+"/"+segment, u.EscapedPath()+"/"+url.PathEscape(segment)
	}
	return u
}

// get decodes the response to a GET into answer.
func (c *Client) get(ctx context.Context, u *url.URL, answer any, checks ...check) error {
	return c.call(ctx, request{method: http.MethodGet, url: u, repeatable: true}, answer, checks...)
}

// send sends a body as JSON, and decodes the response into answer.
func (c *Client) send(ctx context.Context, r request, body, answer any, checks ...check) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("client: encode the request: %w", err)
	}
	if r.header == nil {
		r.header = make(http.Header)
	}
	r.header.Set("Content-Type", "application/json")
	r.body = text
	return c.call(ctx, r, answer, checks...)
}

// call makes attempts until one succeeds or no other may be made, and decodes the response into answer, unless that is
// nil. A write has one idempotency key for all attempts.
func (c *Client) call(ctx context.Context, r request, answer any, checks ...check) error {
	if r.method != http.MethodGet {
		key := c.idempotencyKey
		if key == "" {
			var err error
			if key, err = c.newIdempotencyKey(); err != nil {
				return err
			}
		}
		if r.header == nil {
			r.header = make(http.Header)
		}
		r.header.Set("Idempotency-Key", key)
	}
	ctx, cancel := bounded(ctx, c.timeout, r.wait)
	defer cancel()
	return c.repeat(ctx, r, func(n int) error { return c.attempt(ctx, r, n, answer, checks) })
}

// bounded returns a context that ends with ctx, or after a timeout and a wait. With a timeout of 0 it ends with ctx.
func bounded(ctx context.Context, timeout, wait time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout+wait)
}

// repeat makes attempts at a request, counted from 1, until one succeeds or no other may be made.
func (c *Client) repeat(ctx context.Context, r request, attempt func(n int) error) error {
	for n := 1; ; n++ {
		err := attempt(n)
		if err == nil {
			return nil
		}
		if n > c.retries || ctx.Err() != nil || !retryable(r, err) {
			return failed(r, n, err)
		}
		delay, ok := c.delay(n-1, err)
		if deadline, bounded := ctx.Deadline(); !ok || bounded && time.Until(deadline) <= delay {
			return failed(r, n, err)
		}
		if sleepErr := c.clock.Sleep(ctx, delay); sleepErr != nil {
			return failed(r, n, fmt.Errorf("%w; before: %w", sleepErr, err))
		}
	}
}

// attempt makes one exchange, the nth of its call.
func (c *Client) attempt(ctx context.Context, r request, n int, answer any, checks []check) (err error) {
	ctx, cancel := bounded(ctx, c.attemptTimeout, r.wait)
	defer cancel()
	response, err := c.exchange(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode >= http.StatusMultipleChoices {
		return c.refusal(response)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	if err != nil {
		return broken(err)
	}
	if reason := decode(r, response, text, answer, checks); reason != "" {
		wrong := invalid(response, reason)
		wrong.final = len(text) > MaxAnswer
		return wrong
	}
	c.succeeded(r, response, n)
	return nil
}

// refusal returns the error for a response that is not a success.
func (c *Client) refusal(response *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxProblem))
	if err != nil {
		return broken(err)
	}
	return parseError(response, text, c.clock.Now())
}

// open makes one attempt, the nth of its call. It returns the response with status 200 and with a body of the type that
// r accepts, which the caller must close.
func (c *Client) open(ctx context.Context, r request, n int) (*http.Response, error) {
	response, err := c.exchange(ctx, r)
	if err != nil {
		return nil, err
	}
	switch reason := wrongType(r, response); {
	case response.StatusCode >= http.StatusMultipleChoices:
		err = c.refusal(response)
	case response.StatusCode != http.StatusOK:
		err = invalid(response, "it should be 200")
	case reason != "":
		err = invalid(response, reason)
	}
	if err != nil {
		return nil, errors.Join(err, response.Body.Close())
	}
	c.succeeded(r, response, n)
	return response, nil
}

// exchange sends a request and returns the response with a body that the caller must close.
func (c *Client) exchange(ctx context.Context, r request) (*http.Response, error) {
	if c.err != nil {
		return nil, c.err
	}
	if path.Clean(r.url.Path) != r.url.Path {
		return nil, errNoID
	}
	out, err := http.NewRequestWithContext(ctx, r.method, r.url.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if !r.repeatable && r.method != http.MethodGet {
		// When a kept connection breaks, http.Transport repeats a request with an idempotency key. It does not if
		// GetBody is nil and Body is not nil.
		out.Body, out.GetBody = io.NopCloser(bytes.NewReader(r.body)), nil
	}
	out.Header.Set("Accept", acceptJSON)
	maps.Copy(out.Header, r.header)
	if c.key != "" {
		out.Header.Set("Authorization", "Bearer "+c.key)
	}
	if c.version != "" {
		out.Header.Set("Quittance-Version", c.version)
	}
	maps.Copy(out.Header, c.header)
	response, err := c.http.Do(out)
	if err != nil {
		return nil, broken(err)
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		// The context does not close this body, because it is the connection.
		wrong := invalid(response, "it changes the protocol, which was not asked for")
		wrong.final = true
		return nil, errors.Join(wrong, response.Body.Close())
	}
	return response, nil
}
