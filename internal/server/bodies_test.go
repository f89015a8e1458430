package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/dashboard"
	"github.com/quittance/quittance/internal/web/webpage"
)

// bodyHandler answers with the bytes that it read of the body, and the error.
var bodyHandler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%d, %v", len(body), err)
})

// pending are requests with bodies that have not ended.
type pending struct {
	group   sync.WaitGroup
	writers []*io.PipeWriter
}

// add sends a request with a body that does not end, and returns when the handler's side
// reads it. It is false if the request is answered instead.
func (p *pending) add(h http.Handler, r *http.Request) (reading bool, answer *httptest.ResponseRecorder) {
	body, w := io.Pipe()
	r.Body = body
	answered := make(chan *httptest.ResponseRecorder, 1)
	p.group.Go(func() {
		answered <- serveTest(h, r)
		_ = body.Close() // so that no goroutine writes to a request that was refused
	})
	if _, err := io.WriteString(w, "x"); err != nil {
		return false, <-answered
	}
	p.writers = append(p.writers, w)
	return true, nil
}

// end ends all bodies, and returns when the requests were answered.
func (p *pending) end() {
	for _, w := range p.writers {
		_ = w.Close()
	}
	p.group.Wait()
}

// bodyRequest is a request of a client, or of an owner of keys, with a body of unknown length.
func bodyRequest(t *testing.T, client, keyID string) *http.Request {
	t.Helper()
	ctx := limits.NewContext(access.WithPrincipal(t.Context(), access.Principal{KeyID: keyID}), netip.MustParseAddr(client))
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, apiPath, strings.NewReader("x"))
	r.ContentLength = -1
	return r
}

// TestBodiesAreCountedBeforeTheyAreRead sends endless bodies from one client until it is refused. It
// then has half of the memory, and others are served.
func TestBodiesAreCountedBeforeTheyAreRead(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(i int) (client, keyID string){
		"a client address": func(int) (string, string) { return "198.51.100.1", "" },
		"an IPv6 network":  func(i int) (string, string) { return fmt.Sprintf("2001:db8::%x", i+1), "" },
		"an owner of keys": func(i int) (string, string) { return fmt.Sprintf("198.51.%d.%d", i/200, 1+i%200), "key_a" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLimited(Config{})
			h := l.capped(webpage.Route{Pattern: "POST /x", Door: webpage.PublicDoor, Handler: bodyHandler}, l.writeError)
			var p pending
			defer p.end()
			cost := int64(requestCost + api.MaxBody)
			want := maxBodyBytes[webpage.PublicDoor] / cost / 2
			for i := range int(want) + 2 {
				client, keyID := of(i)
				reading, answer := p.add(h, bodyRequest(t, client, keyID))
				if n := int64(i); reading != (n < want) {
					t.Fatalf("body %d of %d: read %t", i, want, reading)
				}
				if !reading {
					wantBare(t, answer, http.StatusTooManyRequests)
				}
			}
			if answer := serveTest(h, bodyRequest(t, "203.0.113.9", "")); answer.Code != http.StatusOK {
				t.Errorf("another client is answered %d", answer.Code)
			}
		})
	}
}

// TestBodiesOfAll sends endless bodies from many clients until the memory is used up. When the bodies
// end, it is free again.
func TestBodiesOfAll(t *testing.T) {
	t.Parallel()
	l := newLimited(Config{})
	h := l.capped(webpage.Route{Pattern: "POST /x", Door: webpage.OperatorDoor, Handler: bodyHandler}, l.writeError)
	var p pending
	want := maxBodyBytes[webpage.OperatorDoor] / (requestCost + api.MaxBody)
	for i := range int(want) {
		if reading, answer := p.add(h, bodyRequest(t, fmt.Sprintf("198.51.100.%d", i+1), "")); !reading {
			t.Fatalf("body %d of %d: %d", i, want, answer.Code)
		}
	}
	answer := serveTest(h, bodyRequest(t, "203.0.113.9", ""))
	wantBare(t, answer, http.StatusServiceUnavailable)
	p.end()
	if err := l.bodies[webpage.OperatorDoor].Take(maxBodyBytes[webpage.OperatorDoor]); err != nil {
		t.Errorf("after all requests the memory is not free: %v", err)
	}
}

// TestBodyLimits sends bodies at and beyond the limit of a route, of known and unknown length.
func TestBodyLimits(t *testing.T) {
	t.Parallel()
	const tooLarge = "http: request body too large"
	l := newLimited(Config{})
	routes := map[string]int{"POST /api/invoices": api.MaxBody, "PUT /api/merchants/{id}/logo": access.MaxLogoBytes, "POST /api/operator/mails/report": mailer.MaxReport, "POST /dashboard/settings/logo": dashboard.LogoFormBytes}
	for pattern, limit := range routes {
		route := routeAt(t, pattern)
		h := l.capped(route, l.writeError)
		send := func(length int, known bool) string {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/x", strings.NewReader(strings.Repeat("x", length)))
			if !known {
				r.ContentLength = -1
			}
			return serveTest(h, r).Body.String()
		}
		for _, known := range []bool{true, false} {
			if got := send(limit, known); got != fmt.Sprint(limit, ", <nil>") {
				t.Errorf("%s: a body at the limit: %s", pattern, got)
			}
		}
		declared := "0, "
		if route.MaxDrained > 0 { // a form is read to its end
			declared = fmt.Sprint(limit, ", ")
		}
		if got := send(limit+1, true); got != declared+tooLarge {
			t.Errorf("%s: a declared body beyond the limit: %s", pattern, got)
		}
		if got := send(limit+1, false); got != fmt.Sprint(limit, ", ", tooLarge) {
			t.Errorf("%s: a body beyond the limit: %s", pattern, got)
		}
	}
}

// routeAt returns a route of the table, with bodyHandler.
func routeAt(t *testing.T, pattern string) webpage.Route {
	t.Helper()
	table, _ := testTable(t)
	for _, r := range table {
		if r.Pattern == pattern {
			r.Handler = bodyHandler
			return r
		}
	}
	t.Fatalf("there is no route %s", pattern)
	return webpage.Route{}
}

// TestLargeFormsAreReadToTheEnd sends forms that are too large. They are read up to a size, so that
// the browser shows the answer, and bytes beyond the route's limit are dropped.
func TestLargeFormsAreReadToTheEnd(t *testing.T) {
	t.Parallel()
	l := newLimited(Config{})
	h := l.capped(routeAt(t, "POST /dashboard/settings/logo"), l.writeError)
	for length, unread := range map[int64]int64{dashboard.MaxLogoForm: 0, dashboard.MaxLogoForm + 5: 5} {
		for _, known := range []bool{true, false} {
			body := &io.LimitedReader{R: endless{}, N: length}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/x", body)
			want := fmt.Sprint(dashboard.LogoFormBytes, ", http: request body too large")
			if r.ContentLength = -1; known {
				r.ContentLength = length
				if unread > 0 { // the body is not read
					unread, want = length, "0, http: request body too large"
				}
			}
			if got := serveTest(h, r).Body.String(); got != want || body.N != unread {
				t.Errorf("%d bytes, declared %t: %s, and %d bytes are unread; want %s and %d", length, known, got, body.N, want, unread)
			}
			if unread > 0 {
				unread = 5
			}
		}
	}
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestSlowBodiesAreNotInFlight sends JSON, and large logo forms, slowly at a door with room for one request
// in flight. Until a body has arrived, others are served.
func TestSlowBodiesAreNotInFlight(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"POST /api/invoices", "POST /dashboard/settings/logo"} {
		l := newLimited(Config{})
		l.inFlight[webpage.APIDoor] = limits.NewShares[sharer]("in_flight", 1)
		h := l.capped(routeAt(t, pattern), l.writeError)
		var p pending
		for i := range 3 {
			if reading, answer := p.add(h, bodyRequest(t, "198.51.100.1", "key_a")); !reading {
				t.Fatalf("%s: body %d is answered %d", pattern, i, answer.Code)
			}
		}
		if answer := serveTest(h, bodyRequest(t, "203.0.113.9", "key_b")); answer.Code != http.StatusOK {
			t.Errorf("%s: a request beside slow ones is answered %d", pattern, answer.Code)
		}
		p.end()
	}
}

// TestUnreadBodies sends requests that are refused without their bodies, which do not arrive. The answers come all the
// same, also one that does not fit the buffer of net/http.
func TestUnreadBodies(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"a problem": 300, "a page": 64 << 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, strings.Repeat("x", size))
			})
			server := httptest.NewServer(newLimited(Config{}).entered(limits.NewShares[sharer]("requests", 1), refusing))
			t.Cleanup(server.Close)
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
			expect.OK(t, err)
			_, err = io.WriteString(conn, "POST "+apiPath+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
			expect.OK(t, errors.Join(err, conn.SetReadDeadline(time.Now().Add(5*bodyGrace))))
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err = errors.Join(err, conn.Close()); err != nil || !strings.Contains(line, " 404 ") {
				t.Errorf("answered %q, %v", line, err)
			}
		})
	}
}

// TestBodyTime checks the time of a body at the limits.
func TestBodyTime(t *testing.T) {
	t.Parallel()
	for read, want := range map[int64]time.Duration{
		0: bodyGrace, minBodyRate - 1: bodyGrace + time.Second - time.Second/minBodyRate, minBodyRate: bodyGrace + time.Second,
		8 * minBodyRate: bodyTimeout, 8*minBodyRate + 1: bodyTimeout, api.MaxBody: bodyTimeout,
	} {
		if got := bodyTime(read); got.Round(time.Millisecond) != want.Round(time.Millisecond) {
			t.Errorf("%d bytes: %s, want %s", read, got, want)
		}
	}
}

// deadlines is a ResponseWriter that records the read deadlines.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

// chunks is a body. Its reads return these numbers of bytes, and then an error.
type chunks struct {
	sizes []int
	err   error
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.sizes) == 0 {
		return 0, c.err
	}
	n := min(len(p), c.sizes[0])
	if c.sizes[0] -= n; c.sizes[0] == 0 {
		c.sizes = c.sizes[1:]
	}
	return n, nil
}

// TestBodyDeadlines reads bodies of one byte at a time, and fast ones. The deadline moves with the
// bytes that have arrived, and is gone at the end.
func TestBodyDeadlines(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]*chunks{
		"whole": {[]int{100}, io.EOF}, "slow": {[]int{1, 1, 1, 1}, os.ErrDeadlineExceeded}, "fast": {[]int{minBodyRate, minBodyRate, 20 * minBodyRate}, io.EOF},
	} {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		timed := &timedReader{body: body, control: http.NewResponseController(w), begun: time.Now()}
		failed := body.err
		_, err := io.Copy(io.Discard, timed) // in parts of 8 KiB
		if errors.Is(failed, io.EOF) != (err == nil) || err != nil && !errors.Is(err, failed) {
			t.Errorf("%s: %v", name, err)
		}
		var allowed []time.Duration
		for _, at := range w.set {
			if !at.IsZero() {
				allowed = append(allowed, at.Sub(timed.begun).Round(time.Second))
			}
		}
		want := map[string]string{"whole": "[2s]", "slow": "[2s]", "fast": "[2s 3s 4s 8s 10s]"}[name]
		if got := fmt.Sprint(allowed); got != want {
			t.Errorf("%s: deadlines %s, want %s", name, got, want)
		}
		if ended := w.set[len(w.set)-1].IsZero(); ended != (err == nil) {
			t.Errorf("%s: the last deadline is %v", name, w.set[len(w.set)-1])
		}
	}
}
