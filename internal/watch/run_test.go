package watch

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// rounds makes a fixture's Run report each round.
func rounds(into chan<- Status) func(*Config) {
	return func(c *Config) {
		c.PollInterval = time.Hour // what happens is woken
		c.OnRound = func(s Status) { into <- s }
	}
}

// run starts the watcher and stops it when the test ends.
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

// TestPokeWakes waits an hour between polls, so only pokes explain a round.
func TestPokeWakes(t *testing.T) {
	seen := make(chan Status)
	f := newFixture(t, rounds(seen))
	f.run(t, seen)
	<-seen
	for i := range uint64(5) {
		f.chain.Mine()
		f.Poke()
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
	f.restart(t, func(c *Config) {
		rounds(seen)(c)
		c.Sources = []Source{dial(t, f.node.WSURL)}
	})
	f.run(t, seen)
	<-seen
	<-listening
	// The node says that it was asked before it is ready, so an announcement
	// can be missed: mine until one is not.
	for s := (Status{}); s.Indexed == 0; {
		f.chain.Mine()
		select {
		case s = <-seen:
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestFailover has the first of two nodes fail, lag and come back.
func TestFailover(t *testing.T) {
	seen := make(chan Status)
	f := newFixture(t, nil)
	second := f.chain.Serve(t)
	f.restart(t, func(c *Config) {
		rounds(seen)(c)
		c.Sources = append(c.Sources, dial(t, second.URL))
	})
	first := f.Sources[0].String()
	f.run(t, seen)
	if s := <-seen; s.Source != first || s.Error != "" {
		t.Fatalf("status is %+v", s)
	}
	f.node.Intercept(func(context.Context, string) error { return errors.New("rate limit reached") })
	f.chain.MineEmpty(4)
	f.Poke()
	if s := <-seen; s.Source != first || !strings.Contains(s.Error, "rate limit reached") {
		t.Fatalf("status is %+v, want the first node's error", s)
	}
	if s := <-seen; s.Source == first || s.Indexed != 4 || s.Error != "" {
		t.Fatalf("status is %+v, want the second node asked at once", s)
	}
	f.node.Intercept(nil)
	second.Lag(2)
	f.Poke()
	if s := <-seen; s.Indexed != 4 || s.Head != 2 || s.Error != "" {
		t.Fatalf("status is %+v, want a lagging node to change nothing", s)
	}
	f.chain.Mine()
	f.Poke()
	if s := <-seen; s.Source != first || s.Indexed != 5 {
		t.Fatalf("status is %+v, want the first node asked again", s)
	}
}

// TestMismatch has the node serve another chain than the configured one: it is
// not read, and is looked at again.
func TestMismatch(t *testing.T) {
	seen := make(chan Status)
	f := newFixture(t, func(c *Config) {
		rounds(seen)(c)
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

// TestBackoff doubles the wait from failure to failure, up to its limit.
func TestBackoff(t *testing.T) {
	f := newFixture(t, nil)
	want := firstBackoff
	for n := 1; n < 100; n++ {
		if got := f.backoff(n); got != want {
			t.Errorf("wait after failure %d is %s, want %s", n, got, want)
		}
		want = min(2*want, maxBackoff)
	}
	f.Jitter = func() float64 { return 0 }
	if got := f.backoff(1); got != firstBackoff*4/5 {
		t.Errorf("shortest first wait is %s", got)
	}
}
