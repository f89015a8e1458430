package indexer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/clocktest"
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
		expect.Equal(t, f.backoff(n), want, "wait after failure %d is", n)
		want = min(2*want, maxBackoff)
	}
	f.cfg.Jitter = func() float64 { return 0 }
	expect.Equal(t, f.backoff(1), firstBackoff*4/5, "shortest first wait is")
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

// TestMeter reads a thousand blocks in forty seconds, slower and slower.
func TestMeter(t *testing.T) {
	var log strings.Builder
	c := newClock()
	m := &meter{now: c.Now, logger: slog.New(slog.NewTextHandler(&log, nil))}
	lines := func() int { return strings.Count(log.String(), "\n") }
	m.end()
	m.reached(5)
	if m.snapshot() != nil || lines() != 0 {
		t.Errorf("before anything is read: %+v, %q", m.snapshot(), log.String())
	}
	m.begin(1001, 2000)
	if p := *m.snapshot(); p.Percent() != 0 || p.Left != 0 || p.BlocksPerSecond != 0 || lines() != 1 {
		t.Errorf("at the beginning: %+v, %q", p, log.String())
	}
	check := func(next uint64, percent, speed float64, left time.Duration, logged int) {
		t.Helper()
		m.reached(next)
		p := *m.snapshot()
		if p.At != next || p.Percent() != percent || p.BlocksPerSecond != speed || p.Left != left || lines() != logged {
			t.Errorf("%d lines, %+v, %.1f percent; want %d lines, %.1f percent, %.1f blocks/s, %s left", lines(), p, p.Percent(), logged, percent, speed, left)
		}
	}
	check(1001, 0, 0, 0, 1)
	c.Add(5 * time.Second)
	check(1401, 40, 80, 8*time.Second, 1) // 600 blocks left, rounded
	c.Add(5 * time.Second)
	check(1501, 50, 50, 10*time.Second, 2)
	m.begin(1501, 3000) // the end has moved
	c.Add(30 * time.Second)
	check(2001, 50, 500./30, time.Minute, 3) // samples older than the window do not count
	m.end()
	if m.snapshot() != nil || lines() != 4 || !strings.Contains(log.String(), "took=40s") {
		t.Errorf("at the end: %+v, %q", m.snapshot(), log.String())
	}
	m.begin(5, 6)
	if p := *m.snapshot(); p.From != 5 || p.At != 5 {
		t.Errorf("what is read next: %+v", p)
	}
}

// TestLostRacesBackOff makes every write lose to another replica, which finally counts as a failure.
func TestLostRacesBackOff(t *testing.T) {
	f := newFixture(t, nil)
	f.catchUp(t)
	f.chain.Mine()
	for range 2 {
		f.ledger.fail = func(bool) error { return ledger.ErrCursorMoved }
		for n := range maxLostRaces {
			if more, err := f.sync(t.Context()); !more || err != nil {
				t.Errorf("round %d lost: %t, %v; want another one at once", n+1, more, err)
			}
		}
		expect.Error(t, ledger.ErrCursorMoved, "one sync more")(f.sync(t.Context()))
		f.ledger.fail = nil
		f.catchUp(t)
		f.chain.Mine()
	}
	f.expect(t, 2, 0, 0, 0, 0)
}

// TestStartBlockIsCrossChecked has nodes return a wrong block where reading should begin. That block counts as final
// without having been read.
func TestStartBlockIsCrossChecked(t *testing.T) {
	wrong, down := chaintest.FalseChain{From: 2}, chaintest.Refuse{Status: 500}
	for name, test := range map[string]struct {
		quorum int
		faults []chaintest.Fault
		begins bool
	}{
		"one":                            {1, []chaintest.Fault{nil}, true},
		"one, two must agree":            {2, []chaintest.Fault{nil}, false},
		"the first of two lies":          {1, []chaintest.Fault{wrong, nil}, false},
		"the second of two lies":         {1, []chaintest.Fault{nil, wrong}, false},
		"the first of three lies":        {1, []chaintest.Fault{wrong, nil, nil}, true},
		"the second is down":             {1, []chaintest.Fault{nil, down}, true},
		"the second is down, must agree": {2, []chaintest.Fault{nil, down}, false},
		"the third agrees":               {2, []chaintest.Fault{nil, down, nil}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			for i, p := range f.nodes(t, len(test.faults), func(c *Config) { c.Chain.Quorum = test.quorum }) {
				if test.faults[i] != nil {
					p.SetFaults(test.faults[i])
				}
			}
			f.chain.MineEmpty(8)
			_, err := f.sync(t.Context())
			cursor, _ := f.ledger.Cursor(t.Context(), "")
			var noQuorum *NoQuorumError
			switch {
			case cursor.Started != test.begins:
				t.Errorf("reading began: %t, want %t; %v", cursor.Started, test.begins, err)
			case !test.begins && !errors.As(err, &noQuorum):
				t.Errorf("round: %v, want a *NoQuorumError", err)
			case test.begins && cursor.Confirmed.Hash != invoice.Hash(f.chain.Blocks()[5].Hash):
				t.Errorf("reading began at %+v, which is no block of the chain", cursor.Confirmed)
			}
		})
	}
}

// TestNodeRepeatsAFalseBlock has a node invent a transfer while the other one gives no receipts, so that only the first
// node reported the record. Its second answer must not confirm its first.
func TestNodeRepeatsAFalseBlock(t *testing.T) {
	f := newFixture(t, nil)
	proxies := f.nodes(t, 2, func(c *Config) { c.Chain.Quorum = 2 })
	f.chain.MineEmpty(5)
	f.catchUp(t)
	proxies[0].SetFaults(chaintest.Only{Methods: []string{"eth_getTransactionReceipt"}, Fault: chaintest.Null{}})
	proxies[1].SetFaults(chaintest.Forge{At: 7, Logs: []chaintest.Log{pays(bob, 1000)}})
	f.chain.MineEmpty(1)
	f.chain.Mine(chaintest.NewTx(pays(alice, 1)))
	for range 8 {
		if _, err := f.sync(t.Context()); err == nil {
			f.chain.Mine()
		}
	}
	expect.Equal(t, f.ledger.count(invoice.Confirmed), 0, "transfers are confirmed by one node's word:")
	if f.ledger.count(invoice.Pending) == 0 {
		t.Error("nothing was recorded by the node that invents")
	}
	if f.state(0) == chain.StateQuarantined {
		t.Error("the node that only gives no receipts is quarantined")
	}
}

// startSupervisor runs a supervisor of a chain with nodes at the URLs, and returns it once all blocks are indexed. Calls
// do not time out.
func startSupervisor(t *testing.T, f *fixture, change func(*Config), urls ...string) *Supervisor {
	t.Helper()
	c := testChain
	c.RPC = urls
	conf := Config{
		Chain: c, Ledger: f.ledger, Logger: slog.New(slog.DiscardHandler), Now: time.Now, Jitter: func() float64 { return 0.5 },
		PollInterval: time.Millisecond, Watchdog: clock.New(200 * time.Millisecond),
	}
	pool, err := chain.OpenPool(chain.PoolConfig{Chain: c, Now: time.Now, Sleep: noSleep, Logger: conf.Logger, Timeout: time.Hour})
	expect.OK(t, err)
	t.Cleanup(pool.Close)
	conf.Pool = pool
	if change != nil {
		change(&conf)
	}
	done := make(chan struct{}, 1)
	conf.OnSync = func(st Status) {
		if st.Indexed == st.Head && st.Error == "" {
			select {
			case done <- struct{}{}:
			default:
			}
		}
	}
	s := NewSupervisor(conf)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		expect.NoError(t, s.Run(ctx))
	}()
	t.Cleanup(func() { cancel(); <-ended })
	<-done
	return s
}

// newThreeBlocks returns a fixture of a chain of three blocks, and proxies of its node.
func newThreeBlocks(t *testing.T, proxies int) (f *fixture, at []*chaintest.Proxy) {
	t.Helper()
	f = newFixture(t, nil)
	f.catchUp(t)
	f.chain.MineEmpty(3)
	for i := range proxies {
		at = append(at, chaintest.NewProxy(t, f.node, uint64(i)))
	}
	return f, at
}

// TestStalledNodeIsReplaced makes the first node never complete a response. It is quarantined,
// and the second one is used.
func TestStalledNodeIsReplaced(t *testing.T) {
	f, nodes := newThreeBlocks(t, 2)
	nodes[0].SetFaults(chaintest.Stall{})
	s := startSupervisor(t, f, nil, nodes[0].URL, nodes[1].URL)
	if st := s.Status(); st.Restarts == 0 {
		t.Errorf("the status is %+v, want a restart", st)
	}
	if h := s.conf.Pool.Health(); h[0].State != chain.StateQuarantined || h[1].State != chain.StateOK {
		t.Errorf("the nodes are %s and %s, want the first one quarantined", h[0].State, h[1].State)
	}
}

// TestNodeThatSwitchesProtocols makes the first node answer 101. The second one is used immediately, without the
// watchdog.
func TestNodeThatSwitchesProtocols(t *testing.T) {
	f, nodes := newThreeBlocks(t, 2)
	nodes[0].SetFaults(chaintest.SwitchProtocols{})
	f.restart(t, nil, nodes[0].URL, nodes[1].URL)
	f.catchUp(t)
	f.expect(t, 3, 0, 0, 0, 0)
	if h := f.cfg.Pool.Health(); h[0].State != chain.StateBackoff || h[1].State != chain.StateOK {
		t.Errorf("the nodes are %s and %s, want the first one in backoff", h[0].State, h[1].State)
	}
}

// TestSlowNodeGoesLast makes the first node answer every call too slowly to make progress. The other one goes first.
func TestSlowNodeGoesLast(t *testing.T) {
	f, nodes := newThreeBlocks(t, 2)
	nodes[0].SetFaults(chaintest.Slow{Wait: 150 * time.Millisecond})
	s := startSupervisor(t, f, nil, nodes[0].URL, nodes[1].URL)
	if h := s.conf.Pool.Health(); h[0].State != chain.StateLagging || h[1].State != chain.StateOK {
		t.Errorf("the nodes are %s and %s, want the first one to lag", h[0].State, h[1].State)
	}
}

// TestSlowQuorum makes both nodes of a quorum so slow that reading takes longer than the watchdog waits. Both are still
// used, so that the payment becomes final.
func TestSlowQuorum(t *testing.T) {
	f, nodes := newThreeBlocks(t, 2)
	f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
	f.chain.MineEmpty(3)
	for _, n := range nodes {
		n.SetFaults(chaintest.Slow{Wait: 40 * time.Millisecond})
	}
	s := startSupervisor(t, f, func(c *Config) { c.Chain.Quorum = 2 }, nodes[0].URL, nodes[1].URL)
	f.expect(t, 7, 4, 0, 1, 0)
	for _, h := range s.conf.Pool.Health() {
		if h.State == chain.StateQuarantined {
			t.Errorf("%s is quarantined: %s", h.Node, h.Reason)
		}
	}
}

// stuckLedger blocks in the first Observe, and ignores its context.
type stuckLedger struct {
	Ledger
	first chan struct{} // holds one token
	free  chan struct{}
}

func (l *stuckLedger) Observe(ctx context.Context, key string, blocks []ledger.Block) error {
	select {
	case <-l.first:
		<-l.free
	default:
	}
	return l.Ledger.Observe(ctx, key, blocks)
}

// TestStuckGoroutineHoldsNothing makes a call ignore its context. Another indexer continues,
// and no node is quarantined.
func TestStuckGoroutineHoldsNothing(t *testing.T) {
	f, nodes := newThreeBlocks(t, 1)
	stuck := &stuckLedger{f.ledger, make(chan struct{}, 1), make(chan struct{})}
	stuck.first <- struct{}{}
	t.Cleanup(func() { close(stuck.free) })
	dog := clock.New(100 * time.Millisecond)
	s := startSupervisor(t, f, func(c *Config) { c.Ledger, c.Watchdog = stuck, dog }, nodes[0].URL)
	if st := s.Status(); st.Restarts == 0 {
		t.Errorf("the status is %+v, want a restart", st)
	}
	if h := s.conf.Pool.Health(); h[0].State != chain.StateOK {
		t.Errorf("the node is %s, want it ok", h[0].State)
	}
	for _, stall := range dog.Stalled() {
		if !stall.Replaced {
			t.Errorf("the watchdog still waits for %q", stall.Name)
		}
	}
}
