package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"time"
)

// MaxAnswer bounds a response, in bytes.
const MaxAnswer = 64 << 20

// request is a call, which may take several attempts.
type request struct {
	method string
	url    *url.URL
	header http.Header // optional
	body   []byte      // optional
	// repeatable says that the service may get the request twice, with the effect of one.
	repeatable bool
	// wait is how long the service may wait before it answers.
	wait time.Duration
}

// path returns the URL of a path. The segments, such as identifiers, are escaped. A segment
// that results in another path, such as "..", is refused when a request is made.
func (c *Client) path(path string, segments ...string) *url.URL {
	u := c.base.JoinPath(path)
	for _, segment := range segments {
		u.Path, u.RawPath = u.Path+"/"+segment, u.EscapedPath()+"/"+url.PathEscape(segment)
	}
	return u
}

// get decodes the response to a GET into answer.
func (c *Client) get(ctx context.Context, u *url.URL, answer any) error {
	return c.call(ctx, request{method: http.MethodGet, url: u, repeatable: true}, answer)
}

// send sends a body as JSON, and decodes the response into answer.
func (c *Client) send(ctx context.Context, r request, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("client: encode the request: %w", err)
	}
	if r.header == nil {
		r.header = make(http.Header)
	}
	r.header.Set("Content-Type", "application/json")
	r.body = text
	return c.call(ctx, r, answer)
}

// call makes attempts until one succeeds or no other is to be made, and decodes the
// response into answer, unless that is nil.
func (c *Client) call(ctx context.Context, r request, answer any) error {
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout+r.wait)
		defer cancel()
	}
	return c.repeat(ctx, r, func() error { return c.attempt(ctx, r, answer) })
}

// repeat makes attempts at a request until one succeeds or no other is to be made.
func (c *Client) repeat(ctx context.Context, r request, attempt func() error) error {
	for n := 0; ; n++ {
		err := attempt()
		if err == nil {
			return nil
		}
		if n >= c.retries || ctx.Err() != nil || !retryable(r, err) {
			return attempted(err, n+1)
		}
		delay, ok := c.delay(n, err)
		if deadline, bounded := ctx.Deadline(); !ok || bounded && time.Until(deadline) <= delay {
			return attempted(err, n+1)
		}
		if sleepErr := c.clock.Sleep(ctx, delay); sleepErr != nil {
			return attempted(fmt.Errorf("%w; before: %w", sleepErr, err), n+1)
		}
	}
}

// attempted returns err with the number of attempts, if there were several.
func attempted(err error, n int) error {
	if n == 1 {
		return err
	}
	return fmt.Errorf("%w (%d attempts)", err, n)
}

// attempt makes one exchange.
func (c *Client) attempt(ctx context.Context, r request, answer any) (err error) {
	if c.attemptTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.attemptTimeout+r.wait)
		defer cancel()
	}
	response, err := c.exchange(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	text, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return &connectionError{err: fmt.Errorf("client: read the answer to %s %s: %w", r.method, r.url, err)}
	case len(text) > MaxAnswer:
		return fmt.Errorf("client: the answer to %s %s exceeds %d bytes", r.method, r.url, MaxAnswer)
	case response.StatusCode >= http.StatusMultipleChoices:
		return parseError(response, text, c.clock.Now())
	case answer == nil:
		return nil
	}
	if raw, ok := answer.(*[]byte); ok { // of an answer that is not JSON
		*raw = text
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("client: the answer to %s %s is not the service's: %w", r.method, r.url, err)
	}
	return nil
}

// open sends a request and returns the response, whose status is 200 and whose body the
// caller reads and closes.
func (c *Client) open(ctx context.Context, r request) (*http.Response, error) {
	response, err := c.exchange(ctx, r)
	if err != nil || response.StatusCode == http.StatusOK {
		return response, err
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswer))
	if err != nil {
		err = &connectionError{err: fmt.Errorf("client: read the answer to %s %s: %w", r.method, r.url, err)}
	} else {
		err = parseError(response, text, c.clock.Now())
	}
	return nil, errors.Join(err, response.Body.Close())
}

// exchange sends a request and returns the response, whose body the caller closes.
func (c *Client) exchange(ctx context.Context, r request) (*http.Response, error) {
	if path.Clean(r.url.Path) != r.url.Path {
		return nil, fmt.Errorf("client: %s has an id that is none", r.url.Path)
	}
	out, err := http.NewRequestWithContext(ctx, r.method, r.url.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	out.Header.Set("Accept", "application/json, application/problem+json")
	for name, values := range r.header {
		out.Header[name] = values
	}
	if c.key != "" {
		out.Header.Set("Authorization", "Bearer "+c.key)
	}
	if c.version != "" {
		out.Header.Set("Quittance-Version", c.version)
	}
	response, err := c.http.Do(out)
	if err != nil {
		return nil, &connectionError{err: fmt.Errorf("client: %w", err), unsent: unsent(err)}
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		// The context does not close this body, which is the connection.
		return nil, errors.Join(fmt.Errorf("client: %s %s was answered %s, which was not asked for", r.method, r.url, response.Status),
			response.Body.Close())
	}
	return response, nil
}

// answered returns err or, if that is nil, an error if the response has another id than
// requested.
func answered(err error, what, id, got string) error {
	if err == nil && got != id {
		return fmt.Errorf("client: asked for %s %q and was answered %q", what, id, got)
	}
	return err
}
