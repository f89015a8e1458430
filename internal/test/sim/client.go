package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/clock"
)

// client calls the service for somebody, through a network with the faults of the plan.
type client struct {
	world *world
	name  string
	key   atomic.Pointer[apitypes.KeySecretResponse] // nil: it has none
	calm  bool                                       // it meets no faults
	http  *http.Client
	calls atomic.Int64 // which go to the replicas in turn
}

// newClient returns a client with a key of the API.
func newClient(w *world, name string, key *apitypes.KeySecretResponse) *client {
	c := &client{world: w, name: name}
	c.key.Store(key)
	return c
}

// errLost is the error of a request without an answer. It may have been carried out.
var errLost = errors.New("no answer")

// refusedError is an answer with an error status.
type refusedError struct {
	status int
	body   string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("answered %d %q", e.status, shorten(e.body, 300))
}

// clientTimeout is how long a client waits for an answer.
const clientTimeout = 20 * time.Second

// call makes a request and decodes its answer into out.
func (c *client) call(method, path string, in, out any, headers ...string) error {
	e := effect{}
	if !c.calm {
		e = c.world.plan.meet("clients", method+path)
	}
	if !clock.Sleep(c.world.ctx, latency+e.delay, nil) {
		return errLost
	}
	if e.request {
		c.world.log.say(c.name, "%s %s lost %s", method, path, hitsOf(e))
		return errLost
	}
	err := c.exchange(method, path, in, out, headers)
	if e.twice {
		err = c.exchange(method, path, in, out, headers)
	}
	if c.world.log != nil {
		body, _ := json.Marshal(in)
		c.world.log.say(c.name, "%s %s %s: %v %s", method, path, shorten(string(body), 200), err, hitsOf(e))
	}
	if e.answer {
		return errLost
	}
	return err
}

func (c *client) exchange(method, path string, in, out any, headers []string) error {
	ctx, cancel := context.WithTimeout(c.world.ctx, clientTimeout)
	defer cancel()
	r, err := c.request(ctx, method, path, in, headers)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return errLost
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return errLost
	case resp.StatusCode >= 500 && !strings.Contains(string(raw), `"code"`), resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusTooManyRequests:
		return errLost
	case resp.StatusCode >= 500:
		c.world.fail("%s %s was answered %d %s", method, path, resp.StatusCode, raw)
		return errLost
	case resp.StatusCode >= 300:
		return &refusedError{status: resp.StatusCode, body: string(raw)}
	}
	switch out := out.(type) {
	case nil:
	case *string: // a page
		*out = string(raw)
	default:
		if err := json.Unmarshal(raw, out); err != nil {
			c.world.fail("%s %s was answered %d with no JSON: %s", method, path, resp.StatusCode, raw)
			return errLost
		}
	}
	return nil
}

// request returns a request with a body in JSON, or with a form.
func (c *client) request(ctx context.Context, method, path string, in any, headers []string) (*http.Request, error) {
	var body bytes.Buffer
	switch in := in.(type) {
	case nil:
	case url.Values:
		headers = append(headers, "Content-Type", "application/x-www-form-urlencoded")
		body.WriteString(in.Encode())
	default:
		headers = append(headers, "Content-Type", "application/json")
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, c.world.address(c)+path, &body)
	if err != nil {
		return nil, err
	}
	if key := c.key.Load(); key != nil {
		r.Header.Set("Authorization", "Bearer "+key.Secret)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if c.http == nil {
		jar, _ := cookiejar.New(nil) // it never fails
		c.http = &http.Client{Jar: jar, Transport: &http.Transport{DialContext: c.world.net.host(c.name).dial, DisableKeepAlives: true}}
	}
	return r, nil
}

// maxUnanswered is how often a request may be repeated after the faults until it is answered.
const maxUnanswered = 1000

// insist repeats a request until it is answered, or the world ends.
func (c *client) insist(method, path string, in, out any) error {
	for unanswered := 0; ; {
		err := c.call(method, path, in, out)
		if !errors.Is(err, errLost) {
			return err
		}
		if c.world.plan.isOver() {
			if unanswered++; unanswered > maxUnanswered {
				c.world.fail("the service does not answer %s %s after the faults", method, path)
			}
		}
		if !c.world.pause(2 * time.Second) {
			return err
		}
	}
}

// address returns the URL of a replica: of each in turn.
func (w *world) address(c *client) string {
	return "http://" + w.services[c.calls.Add(1)%int64(len(w.services))].address
}
