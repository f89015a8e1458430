package indexer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/clock/clocktest"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// syncs makes a fixture's Run report each sync.
func syncs(into chan<- Status) func(*Config) {
	return func(c *Config) {
		c.PollInterval = time.Hour // wake-ups cause all syncs
		c.OnSync = func(s Status) { into <- s }
	}
}

// run starts the indexer and stops it when the test ends.
func (f *fixture) run(t *testing.T, seen <-chan Status) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		for {
			select {
			case <-seen:
			case err := <-ended:
				if err != nil {
					t.Errorf("Run: %v", err)
				}
				return
			}
		}
	})
}

// TestWakeInterruptsWait waits an hour between polls, so only wake-ups explain a sync.
func TestWakeInterruptsWait(t *testing.T) {
	seen := make(chan Status)
	f := newFixture(t, syncs(seen))
	f.run(t, seen)
	<-seen
	for i := range uint64(5) {
		f.chain.Mine()
		f.Wake()
		if s := <-seen; s.Indexed != i+1 || s.Error != "" || s.Succeeded.IsZero() {
			t.Errorf("after block %d the status is %+v", i+1, s)
		}
	}
}

// TestSubscriptionWakes has the node announce its blocks over WebSocket.
func TestSubscriptionWakes(t *testing.T) {
	seen := make(chan Status)
	f := newFixture(t, nil)
	listening := make(chan struct{})
	var once sync.Once
	f.node.Intercept(func(_ context.Context, method string) error {
		if method == "eth_subscribe" {
			once.Do(func() { close(listening) })
		}
		return nil
	})
	f.restart(t, syncs(seen), f.node.WSURL)
	f.run(t, seen)
	<-seen
	<-listening
	// The node reports that it was asked before it is ready, so it can miss an announcement: mine until it does not.
	for s := (Status{}); s.Indexed == 0; {
		f.chain.Mine()
		select {
		case s = <-seen:
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestSilentSubscription has a subscription that is never answered: polling finds every block all the same.
func TestSilentSubscription(t *testing.T) {
	seen := make(chan Status)
	f := newFixture(t, nil)
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	f.node.Intercept(func(_ context.Context, method string) error {
		if method == "eth_subscribe" {
			<-ended
		}
		return nil
	})
	f.restart(t, func(c *Config) {
		syncs(seen)(c)
		c.PollInterval = time.Millisecond
	}, f.node.WSURL, f.node.URL)
	f.run(t, seen)
	f.chain.MineEmpty(3)
	for s := range seen {
		if s.Error != "" {
			t.Errorf("status is %+v", s)
		}
		if s.Indexed == 3 {
			return
		}
	}
}

// TestFailover makes the first of two nodes fail, recover and lag.
func TestFailover(t *testing.T) {
	seen := make(chan Status)
	f := newFixture(t, nil)
	second := f.chain.Serve(t)
	now := newClock()
	f.restart(t, func(c *Config) {
		syncs(seen)(c)
		c.Now = now.Now
	}, f.node.URL, second.URL)
	first := f.node.URL
	f.run(t, seen)
	if s := <-seen; s.Source != first || s.Error != "" {
		t.Fatalf("status is %+v", s)
	}
	f.node.Intercept(func(context.Context, string) error { return errors.New("rate limit reached") })
	f.chain.MineEmpty(4)
	f.Wake()
	if s := <-seen; s.Source != second.URL || s.Indexed != 4 || s.Error != "" {
		t.Fatalf("status is %+v, want the second node asked at once", s)
	}
	f.node.Intercept(nil)
	f.chain.Mine()
	f.Wake()
	if s := <-seen; s.Source != second.URL || s.Indexed != 5 {
		t.Fatalf("status is %+v, want the first node backed off from", s)
	}
	now.Add(2 * time.Second)
	f.chain.Mine()
	f.Wake()
	if s := <-seen; s.Source != first || s.Indexed != 6 || s.Error != "" {
		t.Fatalf("status is %+v, want the first node asked again", s)
	}
	f.node.Lag(2)
	f.chain.Mine()
	f.Wake()
	if s := <-seen; s.Source != second.URL || s.Indexed != 7 || s.Error != "" {
		t.Fatalf("status is %+v, want the one asked that is not behind", s)
	}
	second.Lag(3)
	f.chain.MineEmpty(1)
	f.Wake()
	if s := <-seen; s.Indexed != 7 || s.Error != "" {
		t.Fatalf("status is %+v, want lagging nodes to change nothing", s)
	}
}

// newClock returns a clock that is set to the chain's beginning.
func newClock() *clocktest.Clock { return clocktest.New(time.Unix(chaintest.GenesisTime, 0)) }

// TestResume halts a chain, and expects indexing to continue when it is resumed.
func TestResume(t *testing.T) {
	seen := make(chan Status)
	f := newFixture(t, syncs(seen))
	expect.OK(t, f.ledger.Start(t.Context(), "", invoice.Header{Hash: invoice.Hash(f.chain.Head().Hash)}, 1))
	expect.OK(t, f.ledger.Halt(t.Context(), "", "somebody must look"))
	f.chain.Mine()
	f.run(t, seen)
	for range 2 {
		if s := <-seen; s.Halted != "somebody must look" || s.Error == "" || !s.Succeeded.IsZero() {
			t.Fatalf("status is %+v, want it halted", s)
		}
		f.Wake()
	}
	for s := range seen {
		if s.Halted == "" {
			if s.Indexed != 1 || s.Error != "" || s.Succeeded.IsZero() {
				t.Errorf("status is %+v, want it to go on", s)
			}
			return
		}
		expect.OK(t, f.ledger.Halt(t.Context(), "", ""))
		f.Wake()
	}
}

// TestMismatch has the node serve another chain than the configured one: it is not read, and is checked again.
func TestMismatch(t *testing.T) {
	seen := make(chan Status)
	f := newFixture(t, func(c *Config) {
		syncs(seen)(c)
		c.Chain.ID = 77
	})
	f.run(t, seen)
	for range 2 {
		if s := <-seen; !strings.Contains(s.Error, "chain id 77") {
			t.Fatalf("status is %+v, want an error about the chain id", s)
		}
	}
	if f.ledger.cursor.Started {
		t.Error("a chain was started that is not the configured one")
	}
}

// TestBackoff expects the wait to double at each failure, up to its limit.
func TestBackoff(t *testing.T) {
	f := newFixture(t, nil)
	want := firstBackoff
	for n := 1; n < 100; n++ {
		if got := f.backoff(n); got != want {
			t.Errorf("wait after failure %d is %s, want %s", n, got, want)
		}
		want = min(2*want, maxBackoff)
	}
	f.cfg.Jitter = func() float64 { return 0 }
	if got := f.backoff(1); got != firstBackoff*4/5 {
		t.Errorf("shortest first wait is %s", got)
	}
}

// TestNoQuorumIsLoggedOnce has the block at the finalized height differ from round to round for the same reason: one
// line of the log reports the failure, and one its end.
func TestNoQuorumIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	f := newFixture(t, nil)
	proxies := f.nodes(t, 2, func(c *Config) {
		c.Chain.Quorum = 2
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	f.chain.MineEmpty(5)
	f.catchUp(t)
	proxies[1].SetFaults(chaintest.Refuse{Status: 500})
	for range 4 {
		f.chain.MineEmpty(1)
		_, err := f.sync(t.Context())
		if noQuorum := new(NoQuorumError); !errors.As(err, &noQuorum) {
			t.Fatalf("round with one of two nodes: %v", err)
		}
		f.report(err)
	}
	proxies[1].SetFaults()
	f.report(nil)
	for _, line := range []string{"no quorum, nothing is confirmed", "sync succeeded again"} {
		if n := strings.Count(log.String(), line); n != 1 {
			t.Errorf("%q was logged %d times:\n%s", line, n, log.String())
		}
	}
}
