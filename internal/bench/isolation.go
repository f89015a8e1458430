package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quittance/quittance/internal/outbound"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/webhook"
)

const (
	// isolationRate is how many events for healthy merchants are committed in a
	// second.
	isolationRate = 200
	// isolationRounds is how often healthy merchants are measured with and
	// without others.
	isolationRounds = 3
	// holeQueue is how many events wait for the one merchant that never answers.
	holeQueue = 10_000
	// drainPatience bounds the wait until all retries were sent.
	drainPatience = 10 * time.Minute
	// perMerchant is how many exchanges with one merchant there may be at once.
	perMerchant = 8
)

// receivers are the endpoints of merchants, some of which never answer.
type receivers struct {
	url  string // of those that do
	hole string // of those that never answer
	// switching is that of the others, which answer 101 Switching Protocols and
	// keep the connection.
	switching string
	stop      func() error

	mu       sync.Mutex
	answered map[string]time.Time // by delivery, of healthy merchants
	expected map[string]time.Time // when they were committed
	busy     map[string]int       // by merchant
	most     int                  // exchanges with one merchant at once
	total    atomic.Int64
}

func newReceivers(url string) *receivers {
	return &receivers{url: url, answered: make(map[string]time.Time), expected: make(map[string]time.Time), busy: make(map[string]int)}
}

// openReceivers starts the receivers of merchants.
func openReceivers(ctx context.Context) (*receivers, error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := newReceivers("http://" + l.Addr().String())
	hole, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	switching, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, l.Close(), hole.Close())
	}
	c.hole, c.switching = "http://"+hole.Addr().String(), "http://"+switching.Addr().String()
	go swallow(hole, "")
	go swallow(switching, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: nothing\r\n\r\n")
	mux := http.NewServeMux()
	mux.HandleFunc("/well/", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.busy[r.URL.Path]++
		c.most = max(c.most, c.busy[r.URL.Path])
		c.mu.Unlock()
		c.total.Add(1)
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
		c.mu.Lock()
		c.busy[r.URL.Path]--
		c.mu.Unlock()
	})
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: mux}
	go s.Serve(l) //nolint:errcheck // it ends with Close
	c.stop = func() error { return errors.Join(hole.Close(), switching.Close(), s.Close()) }
	return c, nil
}

// swallow accepts connections, answers the first bytes with a text and then nothing.
// It costs almost no CPU time, so that the receivers do not distort the measurement.
func swallow(l net.Listener, answer string) {
	var held []net.Conn
	for {
		conn, err := l.Accept()
		if err != nil {
			break // closed
		}
		held = append(held, conn)
		if answer != "" {
			go func() {
				if _, err := conn.Read(make([]byte, 4096)); err == nil {
					_, _ = io.WriteString(conn, answer)
				}
			}()
		}
	}
	for _, conn := range held {
		_ = conn.Close()
	}
}

// endpoint is where a merchant's events go.
func (c *receivers) endpoint(merchantID string) string {
	switch {
	case strings.HasPrefix(merchantID, "hole"):
		return c.hole
	case strings.HasPrefix(merchantID, "switch"):
		return c.switching
	}
	return c.url + "/well/" + merchantID
}

// timed is a transport that notes when deliveries were answered.
type timed struct {
	outbound.Transport
	receivers *receivers
}

// RoundTrip is http.RoundTripper's.
func (t timed) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.Transport.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusOK {
		t.receivers.mu.Lock()
		t.receivers.answered[r.Header.Get(webhook.HeaderDelivery)] = time.Now()
		t.receivers.mu.Unlock()
	}
	return resp, err
}

// client returns a webhook client. The receivers note the times of its responses.
func (c *receivers) client() *http.Client {
	client := newClient()
	client.Transport = timed{client.Transport.(outbound.Transport), c}
	return client
}

// trickle commits events for the merchants at a rate for some time, wakes the
// worker after each, and waits until all have arrived. It returns how long
// each took from its commit, and how many did not arrive.
func (c *receivers) trickle(ctx context.Context, s *store.Store, d *deliverer, merchants []string, rate int, during time.Duration) ([]time.Duration, int, error) {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	c.mu.Lock()
	clear(c.expected)
	clear(c.answered)
	c.mu.Unlock()
	for began, i := time.Now(), 0; time.Since(began) < during; i++ {
		events, err := scheduleFor(ctx, s, []string{merchants[i%len(merchants)]}, time.Now(), d.worker.LeaseEvents)
		if err != nil {
			return nil, 0, err
		}
		c.mu.Lock()
		c.expected[events[0].DeliveryID] = time.Now()
		c.mu.Unlock()
		d.worker.Committed(events)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
	var took []time.Duration
	for end := time.Now().Add(eventPatience); ; <-tick.C {
		took = took[:0]
		c.mu.Lock()
		for id, committed := range c.expected {
			if at, ok := c.answered[id]; ok {
				took = append(took, max(0, at.Sub(committed)))
			}
		}
		missing := len(c.expected) - len(took)
		c.mu.Unlock()
		if missing == 0 || time.Now().After(end) {
			return took, missing, nil
		}
	}
}

// failingEndpoints is a number of merchants with failing endpoints.
type failingEndpoints struct {
	prefix string // of their names
	what   string // they are
	count  int
	each   int // events
}

// isolation measures the latency of healthy merchants while the endpoints of others fail.
func (b *bench) isolation(ctx context.Context, kind, name string, healthy int, failing failingEndpoints) (took []time.Duration, missing int, err error) {
	c, err := openReceivers(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	s, _, err := b.openStore(ctx, kind, fmt.Sprintf("%s_%d", name, failing.count))
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	well := merchantNames("well", healthy)
	if err := schedule(ctx, s, merchantNames(failing.prefix, failing.count), failing.each, time.Now()); err != nil {
		return nil, 0, err
	}
	if err := addMerchants(ctx, s, well); err != nil {
		return nil, 0, err
	}
	d := newDeliverer(s, c.client(), c.endpoint)
	err = d.while(ctx, func(ctx context.Context) error {
		took, missing, err = c.trickle(ctx, s, d, well, isolationRate, b.trickle)
		return err
	})
	return took, missing, err
}

// measureHole measures what one merchant that never answers costs 99 others.
func (b *bench) measureHole(ctx context.Context, kind string) error {
	return b.compare(ctx, kind, "hole", 99, failingEndpoints{"hole", "dead", 1, holeQueue})
}

// measureDead measures what 900 endpoints that never answer cost 100 others.
func (b *bench) measureDead(ctx context.Context, kind string) error {
	return b.compare(ctx, kind, "dead", 100, failingEndpoints{"hole", "dead", 900, 5})
}

// measureSwitching measures what 300 endpoints that answer 101 Switching
// Protocols cost 100 others.
func (b *bench) measureSwitching(ctx context.Context, kind string) error {
	return b.compare(ctx, kind, "switching", 100, failingEndpoints{"switch", "switching", 300, 5})
}

// compare measures the healthy merchants with and without the failing ones, in turns, so
// that other load on the machine affects both equally.
func (b *bench) compare(ctx context.Context, kind, name string, healthy int, failing failingEndpoints) error {
	var without, with []time.Duration
	starved := 0
	for round := range isolationRounds {
		name := fmt.Sprintf("%s_%d", name, round)
		took, lost, err := b.isolation(ctx, kind, name, healthy, failingEndpoints{})
		if err != nil || lost != 0 {
			return errors.Join(err, missed(lost))
		}
		without = append(without, took...)
		if took, lost, err = b.isolation(ctx, kind, name, healthy, failing); err != nil {
			return err
		}
		with = append(with, took...)
		starved += lost
	}
	p99, ceiling := quantile(with, 0.99), quantile(without, 0.99)
	b.report.row(kind, fmt.Sprintf("commit to 2xx, p99 of %d healthy merchants beside %d %s ones", healthy, failing.count, failing.what), p99, ceiling,
		fmt.Sprintf("%.2f", float64(p99)/float64(ceiling)), fmt.Sprintf("ceiling: without them, in turns; medians %v and %v; starved: %d",
			quantile(with, 0.5), quantile(without, 0.5), starved))
	return nil
}

func missed(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d events did not arrive", n)
}

// measureRecovery measures the throughput of very many retries that are due at once, to
// endpoints that answer again, and the latency of new events meanwhile.
func (b *bench) measureRecovery(ctx context.Context, kind string) (err error) {
	c, err := openReceivers(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	s, database, err := b.openStore(ctx, kind, "recovery")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	const merchants = 300
	if err := schedule(ctx, s, merchantNames("well", merchants), b.retries/merchants, time.Now()); err != nil {
		return err
	}
	if err := execute(ctx, database, "UPDATE deliveries SET attempts = 1"); err != nil {
		return err
	}
	d := newDeliverer(s, c.client(), c.endpoint)
	var took []time.Duration
	var missing int
	var rate float64
	err = d.while(ctx, func(ctx context.Context) error {
		began := time.Now()
		if took, missing, err = c.trickle(ctx, s, d, merchantNames("well", merchants), isolationRate/4, b.trickle); err != nil {
			return err
		}
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for c.total.Load() < int64(b.retries/merchants*merchants+len(took)) && time.Since(began) < drainPatience {
			<-tick.C
		}
		rate = float64(c.total.Load()) / time.Since(began).Seconds()
		return nil
	})
	if err != nil {
		return err
	}
	b.report.row(kind, fmt.Sprintf("drain of %d retries, per second", b.retries), fmt.Sprintf("%.0f", rate), "", "",
		fmt.Sprintf("most at once with one merchant: %d of %d", c.most, perMerchant))
	b.report.row(kind, "commit to receipt of new events meanwhile, p99", quantile(took, 0.99), "", "",
		fmt.Sprintf("median %v; missing: %d", quantile(took, 0.5), missing))
	return nil
}
