package indexer

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// startSupervisor runs a supervisor of a chain of three blocks with nodes at the URLs, and returns it once all blocks
// are indexed. Calls do not time out.
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
		if st.Indexed == 3 && st.Error == "" {
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

// TestSlowNodeIsReplaced makes the first node answer every call too slowly to make progress.
func TestSlowNodeIsReplaced(t *testing.T) {
	f, nodes := newThreeBlocks(t, 2)
	nodes[0].SetFaults(chaintest.Slow{Wait: 150 * time.Millisecond})
	s := startSupervisor(t, f, nil, nodes[0].URL, nodes[1].URL)
	if h := s.conf.Pool.Health(); h[0].State != chain.StateQuarantined || h[1].State != chain.StateOK {
		t.Errorf("the nodes are %s and %s, want the first one quarantined", h[0].State, h[1].State)
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
