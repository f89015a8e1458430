package api_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/webpage"
	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/internal/x402"
)

// outside is an endpoint and a chain that do not answer until the test releases them.
type outside struct {
	fakeEndpoints
	facilitatorOf
	entered chan struct{}
	leave   chan struct{}
}

func (o *outside) await() {
	o.entered <- struct{}{}
	<-o.leave
}

func (o *outside) PingMerchant(context.Context, string) (webhooks.Attempt, error) {
	o.await()
	return webhooks.Attempt{Number: 1, StatusCode: http.StatusOK}, nil
}

func (o *outside) Promote(_ context.Context, id string) (webhooks.View, error) {
	o.await()
	return webhooks.View{MerchantID: id, Breaker: webhooks.NewBreaker}, nil
}

func (o *outside) Settle(context.Context, string, x402.Request) (apitypes.X402SettleResponse, error) {
	o.await()
	return apitypes.X402SettleResponse{Success: true}, nil
}

// slowRedelivery is a log of events that does not answer until the test releases it.
type slowRedelivery struct {
	*backend
	*outside
}

func (s slowRedelivery) RedeliverMany(context.Context, webhooks.RedeliverFilter, time.Time, int) (int64, int64, error) {
	s.await()
	return 1, 0, nil
}

// x402Request is a request to a facilitator.
const x402Request = `{"x402Version":2,
	"paymentPayload":{"x402Version":2,"accepted":{"scheme":"exact","network":"eip155:8453","amount":"5","asset":"0x00000000000000000000000000000000000000a1","payTo":"0x00000000000000000000000000000000000000b2","maxTimeoutSeconds":60},
	"payload":{"signature":"0x01","authorization":{"from":"0x00000000000000000000000000000000000000c3","to":"0x00000000000000000000000000000000000000b2","value":"5",
		"validAfter":"0","validBefore":"1700000600","nonce":"0x9b2e4fc5bd1a5b1c8d3a6b7e0f4c2d1e9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d"}}},
	"paymentRequirements":{"scheme":"exact","network":"eip155:8453","amount":"5","asset":"0x00000000000000000000000000000000000000a1","payTo":"0x00000000000000000000000000000000000000b2","maxTimeoutSeconds":60,
		"extra":{"name":"USD Coin","version":"2"}}}`

// TestRequestsThatWaitOutside sends as many requests of a merchant that wait for an external party as
// permitted. One more is refused without any work, and another merchant's is not.
func TestRequestsThatWaitOutside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, also string // paths that share slots
		body       string
		most       int
	}{
		"pings":        {"/api/merchants/acme/webhook/ping", "/api/merchants/acme/webhook/secret/promote", "", api.MaxOwnPings},
		"settling":     {"/x402/settle", "/x402/settle", x402Request, api.MaxOwnSettling},
		"redelivering": {"/api/events/redeliver", "/api/events/redeliver", `{"failedOnly":true}`, api.MaxOwnRedelivering},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &outside{fakeEndpoints: fakeEndpoints{new(backend)}, entered: make(chan struct{}), leave: make(chan struct{})}
			var refused []string
			h := api.New(api.Config{
				Reader: o.backend, Endpoints: o, Facilitator: o, Events: slowRedelivery{newEventBackend(0), o}, Now: testClock, Logger: slog.New(slog.DiscardHandler), Refused: func(limit string) { refused = append(refused, limit) },
			}).Handler()
			ask := func(path, owner string) *httptest.ResponseRecorder {
				r := newRequest("POST", strings.ReplaceAll(path, "acme", owner), c.body)
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r.WithContext(access.WithPrincipal(r.Context(), access.Principal{KeyID: "key_" + owner, MerchantID: owner, Scopes: access.Admin})))
				return w
			}
			var group sync.WaitGroup
			hold := func(path, owner string) {
				group.Go(func() {
					if w := ask(path, owner); w.Code != http.StatusOK {
						t.Errorf("%s of %s is answered %d %s", path, owner, w.Code, w.Body)
					}
				})
				<-o.entered
			}
			for i := range c.most {
				hold([]string{c.path, c.also}[i%2], "acme")
			}
			for _, path := range []string{c.path, c.also} {
				w := ask(path, "acme")
				wantProblem(t, w, http.StatusTooManyRequests, "rate_limited", "")
				if w.Header().Get("Retry-After") != "5" {
					t.Errorf("headers %v", w.Header())
				}
			}
			hold(c.path, "acme2")
			close(o.leave)
			group.Wait()
			if len(refused) != 2 || refused[0] != name || refused[1] != name {
				t.Errorf("refused: %q", refused)
			}
		})
	}
}

// TestRefusedQuotas refuses merchants that have used up their quotas. Each refusal counts under the
// name of its quota. Refusals by other limits do not count here.
func TestRefusedQuotas(t *testing.T) {
	t.Parallel()
	b := newListBackend(1)
	refused := make(map[string]int)
	h := api.New(api.Config{
		Ledger: b, Reader: b, Events: b, Now: testClock, Logger: slog.New(slog.DiscardHandler),
		Refused: func(limit string) { refused[limit]++ },
	}).Handler()
	for _, limit := range append(access.Quotas, "another") {
		b.err = fmt.Errorf("wrapped: %w", &limits.ExceededError{Limit: limit, RetryAfter: "3600"})
		w := do(h, "GET", "/api/invoices/"+invoiceID(0), "")
		wantProblem(t, w, http.StatusTooManyRequests, "rate_limited", "")
		if got := w.Header().Get("Retry-After"); got != "3600" {
			t.Errorf("%s: Retry-After %q", limit, got)
		}
	}
	expect.NoDiff(t, cmp.Diff(map[string]int{"audit_storage": 1, "invoice_storage": 1}, refused), "refused")
}

// slowConn is a connection with a client that does not read.
type slowConn struct {
	*net.TCPConn
	blocked  chan struct{}      // closed when a long write began
	deadline chan time.Duration // of each write, from the time when it was set
	began    bool
}

func (c *slowConn) Write(p []byte) (int, error) {
	if len(p) > 16<<10 && !c.began {
		c.began = true
		close(c.blocked)
	}
	return c.TCPConn.Write(p)
}

func (c *slowConn) SetWriteDeadline(at time.Time) error {
	select {
	case c.deadline <- time.Until(at):
	default: // only the first ones are examined
	}
	return c.TCPConn.SetWriteDeadline(at)
}

// slowListener accepts slowConns with small buffers.
type slowListener struct {
	net.Listener
	accepted chan *slowConn
}

func (l slowListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &slowConn{TCPConn: conn.(*net.TCPConn), blocked: make(chan struct{}), deadline: make(chan time.Duration, 1)}
	l.accepted <- c
	return c, c.SetWriteBuffer(4 << 10)
}

// TestClientsThatDoNotRead opens streams on sockets that are not read, while the feed is full. A
// stream holds a part of the events in memory, and ends when a write reaches its deadline.
func TestClientsThatDoNotRead(t *testing.T) {
	const clients, size = 20, 16 << 10
	b := &lockedBackend{backend: newEventBackend(0)}
	feed := webhooks.NewFeed(webhooks.FeedConfig{Log: b, Watchdog: clock.New(0), Logger: slog.New(slog.DiscardHandler)})
	a := api.New(api.Config{Reader: b, Events: b, Feed: feed, Authenticator: b, Now: testClock, Logger: slog.New(slog.DiscardHandler)})
	ended := make(chan struct{}, clients)
	h := a.Handler()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	slow := slowListener{server.Listener, make(chan *slowConn, clients)}
	server.Listener = slow
	server.Start()
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		feed.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-stopped })

	expect.Success(t)(feed.Head(t.Context()))
	body := append(append([]byte(`{"note":"`), bytes.Repeat([]byte("x"), size)...), `"}`...)
	const events = webhooks.MaxBytes / (size + 20)
	b.change(func(b *backend) {
		for range events {
			b.addEvent()
			b.events[len(b.events)-1].Body = body
		}
	})
	feed.Wake()
	expect.Success(t)(feed.Next(t.Context(), webhooks.Position{Event: events - 1}))
	before := heap()
	var conns []*slowConn
	for range clients {
		client, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		expect.OK(t, err)
		t.Cleanup(func() { _ = client.Close() }) // the server has closed it
		expect.OK(t, client.(*net.TCPConn).SetReadBuffer(4<<10))
		expect.Success(t)(fmt.Fprint(client, "GET /api/events/stream?after=start HTTP/1.1\r\nHost: service.example\r\n\r\n"))
		c := <-slow.accepted
		conns = append(conns, c)
	}
	for _, c := range conns {
		<-c.blocked
	}
	if each := (heap() - before) / clients; each > 1<<20 {
		t.Errorf("a stream that is not read holds %d KiB", each>>10)
	}
	for _, c := range conns {
		if d := <-c.deadline; d > webpage.ChunkTimeout || d < webpage.ChunkTimeout-10*time.Second {
			t.Errorf("a write has %v, want %v", d, webpage.ChunkTimeout)
		}
		if err := c.TCPConn.SetWriteDeadline(time.Now()); err != nil { // as if the time had passed
			t.Fatal(err)
		}
	}
	for range conns {
		<-ended
	}
}

// heap returns the bytes of the objects in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
