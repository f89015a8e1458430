package webhooks_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// wantFirstAttempts fails the test unless the deliveries succeeded at the first attempt and
// the breakers of their endpoints recorded no failure.
func wantFirstAttempts(t *testing.T, s *db.DB, events []webhooks.Event) {
	t.Helper()
	ids := map[string]bool{}
	for _, e := range events {
		ids[e.MerchantID] = true
		if r := recordOf(t, s, e.ID); r.Status != webhooks.Delivered || len(r.Attempts) != 1 || r.Attempts[0].Error != "" {
			t.Errorf("%s: %+v; want it delivered by its first attempt", e.ID, r)
		}
	}
	for id := range ids {
		b, err := webhooks.NewReader(s).Breakers(t.Context(), []string{id})
		if err != nil || b[id].State != webhooks.BreakerClosed || b[id].Failures != 0 || !b[id].Until.IsZero() || !b[id].Healthy {
			t.Errorf("the breaker of %s: %+v, %v", id, b[id], err)
		}
	}
}

// TestShortageIsNoEndpointFailure checks that a lack of file descriptors does not count as an endpoint's failure, and
// that deliveries continue when it ends.
func TestShortageIsNoEndpointFailure(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		r := newReceiver(t, status(http.StatusOK))
		var events []webhooks.Event
		for _, m := range []string{"a", "b", "c", "d"} {
			events = append(events, dbtest.Schedule(t, s, m, 0, 3, time.Now().UnixMilli()-3)...)
		}
		w := newWorld(t, s, r.URL)
		w.Now = time.Now
		var log logtest.Buffer
		w.Logger = slog.New(slog.NewTextHandler(&log, nil))
		transport := w.Client.Transport.(chain.Transport).Base.(*http.Transport)
		dial := transport.DialContext
		var short atomic.Int32
		short.Store(6)
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if short.Add(-1) >= 0 {
				return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("socket", syscall.EMFILE)}
			}
			return dial(ctx, network, address)
		}
		w.start(t)
		for range events {
			if o := w.outcome(t); o.Status != webhooks.Delivered {
				t.Errorf("outcome %+v", o)
			}
		}
		wantFirstAttempts(t, s, events)
		if short.Load() >= 0 {
			t.Error("there was no shortage")
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "ran out of a resource") {
			t.Errorf("it logged\n%s", log.String())
		}
	})
}

// TestConnectionsAreBounded checks the limit of open connections, and that idle ones are closed to make room.
func TestConnectionsAreBounded(t *testing.T) {
	const most, idle = 5, 4
	s := dbtest.Open(t, dbtest.SQLite(t))
	urls := map[string]string{}
	var events []webhooks.Event
	for _, m := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		events = append(events, dbtest.Schedule(t, s, m, 0, 4, time.Now().UnixMilli()-4)...)
		urls[m] = newReceiver(t, status(http.StatusOK)).URL
	}
	w := newWorld(t, s, "")
	w.Now = time.Now
	w.Client = webhooks.NewClient(webhooks.ClientConfig{Guard: loopback, Connections: most, Idle: idle})
	highest := countConnections(w.Client)
	w.Limits = webhooks.LimitsFor(most - idle)
	w.Limits.Timeout = patience
	t.Cleanup(w.Client.CloseIdleConnections)
	w.Endpoints = all(func(id string) (webhooks.Endpoint, bool) {
		return webhooks.Endpoint{URL: urls[id], Secret: secret}, true
	})
	w.start(t)
	for range events {
		w.outcome(t)
	}
	wantFirstAttempts(t, s, events)
	if n := highest.Load(); n == 0 || n > most {
		t.Errorf("%d connections were open at once, want %d at most", n, most)
	}
}

// countConnections returns the largest number of connections that a client had open at the same time. Counting at the
// receivers would be too late, because they learn late that a connection was closed.
func countConnections(client *http.Client) (highest *atomic.Int64) {
	var open atomic.Int64
	highest = new(atomic.Int64)
	transport := client.Transport.(chain.Transport).Base.(*http.Transport)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		for n := open.Add(1); ; {
			if was := highest.Load(); n <= was || highest.CompareAndSwap(was, n) {
				return &countedConn{Conn: conn, open: &open}, nil
			}
		}
	}
	return highest
}

// countedConn is counted until it is closed for the first time.
type countedConn struct {
	net.Conn
	open   *atomic.Int64
	closed sync.Once
}

func (c *countedConn) Close() error {
	c.closed.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
