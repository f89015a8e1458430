package webhooks_test

import (
	"bufio"
	"context"
	"io"
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
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// scripted accepts connections, reads one request from each, and passes the connection to
// serve. It closes the connections when the test ends.
func scripted(t *testing.T, serve func(conn net.Conn)) (url string) {
	t.Helper()
	l := listen(t)
	served := make(chan struct{})
	go func() {
		defer close(served)
		var held []net.Conn
		for {
			conn, err := l.Accept()
			if err != nil {
				break // the listener is closed
			}
			held = append(held, conn)
			go func() {
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					serve(conn)
				}
			}()
		}
		for _, conn := range held {
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-served
	})
	return "http://" + l.Addr().String()
}

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: nothing\r\n\r\n"

// TestSwitchingProtocolsHoldsNoSlot checks that receivers that answer with 101 or endless
// 1xx responses do not block other deliveries or the stop of the worker.
func TestSwitchingProtocolsHoldsNoSlot(t *testing.T) {
	for name, answer := range map[string]func(net.Conn){
		"101": func(conn net.Conn) { _, _ = io.WriteString(conn, switching) },
		"103 without end": func(conn net.Conn) {
			for err := error(nil); err == nil; {
				_, err = io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			const sick = 20
			url := scripted(t, answer)
			r := newReceiver(t, status(http.StatusOK))
			s := dbtest.Open(t, dbtest.SQLite(t))
			for i := range sick {
				dbtest.Schedule(t, s, "sick"+string(rune('a'+i)), 0, 3, epoch.UnixMilli()-1000)
			}
			dbtest.Schedule(t, s, "well", 0, 5, epoch.UnixMilli()-100)
			w := newWorld(t, s, r.URL)
			w.Limits = webhooks.Limits{Healthy: 2, Suspect: 4, Timeout: patience}
			w.Endpoints = all(byPrefix("sick", url, r.URL))
			w.start(t)
			for well := 0; well < 5; {
				if o := w.outcome(t); strings.HasPrefix(o.DeliveryID, "dlv_well") {
					wantOutcome(t, o, webhooks.Delivered, http.StatusOK, "")
					well++
				} else if o.Status != webhooks.Pending {
					t.Errorf("a sick one's outcome: %+v", o)
				}
			}
			expect.NoError(t, w.stop())
		})
	}
}

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

// TestShortageEnds has a lookup fail after the first of two shortages. It counts against its endpoint and prolongs no
// shortage, so the others' events are delivered.
func TestShortageEnds(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	r := newReceiver(t, status(http.StatusOK))
	dbtest.Schedule(t, s, "dead", 0, 1, time.Now().UnixMilli()-1)
	events := dbtest.Schedule(t, s, "m", 0, 20, time.Now().UnixMilli()-20)
	w := newWorld(t, s, r.URL)
	w.Now = time.Now
	w.Endpoints = all(byPrefix("dead", "http://nowhere.invalid/", r.URL))
	transport := w.Client.Transport.(chain.Transport).Base.(*http.Transport)
	dial := transport.DialContext
	var dials atomic.Int32
	again := make(chan struct{})
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "nowhere.invalid") {
			<-again
			return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: "nowhere.invalid", IsNotFound: true}}
		}
		n := dials.Add(1)
		if n == 2 {
			close(again)
		}
		if n <= 2 {
			return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("socket", syscall.EMFILE)}
		}
		return dial(ctx, network, address)
	}
	w.start(t)
	for range len(events) + 1 {
		if o := w.outcome(t); o.Delivery.MerchantID == "dead" {
			wantOutcome(t, o, webhooks.Pending, 0, "no address of this host was found")
		} else {
			wantOutcome(t, o, webhooks.Delivered, http.StatusOK, "")
		}
	}
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

// slowLeases is a store that blocks lease requests for the merchant "slow" until release is closed.
type slowLeases struct {
	*recorder
	began, release chan struct{}
}

func (s slowLeases) LeaseDeliveries(ctx context.Context, r webhooks.LeaseRequest) (webhooks.Leased, error) {
	if r.Queues[0].MerchantID == "slow" {
		s.began <- struct{}{}
		<-s.release
	}
	return s.recorder.LeaseDeliveries(ctx, r)
}

// startWithSlowLeases runs a worker that has merchant m's endpoint in its cache as healthy. Its lease request for the
// merchant "slow" is blocked.
func startWithSlowLeases(t *testing.T, s *db.DB, url string) (f *fresh, release func()) {
	t.Helper()
	f = &fresh{world: newWorld(t, s, url)}
	slow := slowLeases{f.store, make(chan struct{}, 1), make(chan struct{})}
	release = sync.OnceFunc(func() { close(slow.release) })
	dbtest.Schedule(t, s, "m", 0, 2, epoch.UnixMilli()-1)
	f.WorkerConfig.Store = slow
	f.worker = webhooks.NewWorker(f.WorkerConfig)
	f.run(t, f.worker)
	t.Cleanup(release) // before the worker stops
	for range 2 {
		f.outcome(t)
	}
	dbtest.Schedule(t, s, "slow", 0, 1, epoch.UnixMilli())
	f.advance(epoch)
	receive(t, slow.began, "a request for the leases of slow")
	return f, release
}

// TestLeaseGivesWay checks that more urgent work goes first, for a short time, before a lease request.
func TestLeaseGivesWay(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli()-1)
		r := newReceiver(t, status(http.StatusOK))
		w := newWorld(t, s, r.URL)
		var gave atomic.Int64
		w.GiveWay = func(_ context.Context, most time.Duration) {
			if most <= 0 || most > 50*time.Millisecond || gave.Add(1) == 1 && len(r.requests()) > 0 {
				t.Errorf("it gives way for %v after %d posts", most, len(r.requests()))
			}
		}
		w.start(t)
		if o := w.outcome(t); o.Status != webhooks.Delivered || gave.Load() == 0 {
			t.Errorf("outcome %v after giving way %d times", o.Status, gave.Load())
		}
	})
}

// TestStopReleasesLateLeases checks that a stopping worker waits for its lease request, and releases the leases.
func TestStopReleasesLateLeases(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		r := newReceiver(t, status(http.StatusOK))
		f, release := startWithSlowLeases(t, s, r.URL)
		stopped := make(chan error, 1)
		go func() { stopped <- f.stop() }()
		release()
		expect.OK(t, receive(t, stopped, "the worker's end"))
		if len(r.requests()) == 2 { // unless the worker had the leases before it stopped
			if d := leaseOne(t, s, "next", epoch, epoch.Add(time.Second)); d.MerchantID != "slow" {
				t.Errorf("leased a delivery of %s, want slow's", d.MerchantID)
			}
		}
	})
}

// TestBackoffFromQueueInFlightElsewhere checks that a worker backs off from a queue after the merchant reached its
// limit in flight at another worker.
func TestBackoffFromQueueInFlightElsewhere(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		dbtest.Schedule(t, s, "m", 0, 2, epoch.UnixMilli()-2)
		leaseOne(t, s, "elsewhere", epoch, epoch.Add(time.Minute))
		w := newWorld(t, s, newReceiver(t, status(http.StatusOK)).URL)
		leases := new(atomic.Int64)
		w.Store = countingStore{w.store, leases}
		w.start(t)
		const others = 20
		now := epoch
		for i := range others {
			dbtest.Schedule(t, s, "other", i, 1, epoch.UnixMilli())
			w.advance(now)
			var o outcome
			select {
			case o = <-w.store.outcomes:
			case <-time.After(patience / 10): // an earlier request did not find "other", and the clock does not advance
				now = now.Add(time.Second)
				w.advance(now)
				o = w.outcome(t)
			}
			if o.Delivery.MerchantID != "other" {
				t.Fatalf("outcome of %s", o.Delivery.MerchantID)
			}
		}
		if n := leases.Load(); n > 2*others {
			t.Errorf("%d requests for leases while %d events were delivered", n, others)
		}
	})
}
