package indexer

import (
	"context"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/clock/clocktest"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// idleInterval is config.DefaultIdleInterval, and auditCalls is the audit's default share of a day's calls.
const (
	idleInterval = 2 * time.Minute
	auditCalls   = 4 * 60 * 24
)

// paced is a fixture in which time passes only while its indexer rests.
type paced struct {
	*fixture
	clock   *clocktest.Clock
	awaited Awaited
	seconds int
}

func newPaced(t *testing.T, change func(*Config)) *paced {
	t.Helper()
	p := &paced{clock: newClock()}
	p.fixture = newFixture(t, func(c *Config) {
		p.configure(c)
		if change != nil {
			change(c)
		}
	})
	return p
}

func (p *paced) configure(c *Config) {
	c.Now = p.clock.Now
	c.IdleInterval = idleInterval
	c.Awaited = func(context.Context) (Awaited, error) { return p.awaited, nil }
}

// follow has the indexer follow the chain for some seconds, and returns how many calls it made. each is called at the
// beginning of each second.
func (p *paced) follow(t *testing.T, seconds int, each func(second int)) uint64 {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	before := p.cfg.Pool.Health()[0].Calls.Total()
	passed := 0
	p.sleep = func(_ context.Context, d time.Duration, _ <-chan struct{}) bool {
		each(p.seconds)
		p.clock.Add(d)
		p.seconds++
		if passed++; passed == seconds {
			stop()
		}
		return false
	}
	for ctx.Err() == nil {
		more, err := p.sync(ctx)
		expect.OK(t, err)
		p.report(nil)
		if !more {
			p.rest(ctx)
		}
	}
	return p.cfg.Pool.Health()[0].Calls.Total() - before
}

// check compares the ledger with the chain, after a few blocks that were read one by one. Of the blocks that were read
// together, the last one becomes final once it is old enough.
func (p *paced) check(t *testing.T) {
	t.Helper()
	p.together = false
	for range testChain.Finality.Depth + 1 {
		p.chain.Mine()
		p.catchUp(t)
	}
	checkLedger(t, p.chain, p.ledger, testChain.Finality.Depth)
}

// mineFour mines four blocks in the second.
func (p *paced) mineFour(second int) {
	for range 4 {
		p.chain.MineAt(chaintest.GenesisTime + 1 + int64(second))
	}
}

// TestFollowsFastChainCheaply follows a chain with four blocks a second while an invoice is
// open, each with a transfer that is not ours. A payment is recorded at the end of the second of
// its block, and takes one call more if logs are compared.
func TestFollowsFastChainCheaply(t *testing.T) {
	calls := map[bool]uint64{}
	for _, compare := range []bool{false, true} {
		p := newPaced(t, func(c *Config) { c.Chain.CompareLogs = compare })
		p.awaited.Any = true
		mine := func(second int) {
			for range 4 {
				p.chain.MineAt(chaintest.GenesisTime+1+int64(second), chaintest.NewTx(chaintest.Transfer(token, alice, bob, five)))
			}
		}
		p.follow(t, 10, mine)
		const seconds = 120
		if calls := p.follow(t, seconds, mine); calls > 2*seconds {
			t.Errorf("compare %t: %d calls in %d s, want at most 2 a second", compare, calls, seconds)
		}
		paidAt := p.seconds + 33
		calls[compare] = p.follow(t, 60, func(second int) {
			if second == paidAt {
				p.chain.MineAt(chaintest.GenesisTime+1+int64(second), chaintest.NewTx(pays(alice, 5)))
			}
			if n := p.ledger.count(invoice.Pending) + p.ledger.count(invoice.Confirmed); second == paidAt+1 && n != 1 {
				t.Errorf("compare %t: a second after its block, %d payments are recorded", compare, n)
			}
			mine(second)
		})
		p.check(t)
	}
	if calls[true] > calls[false]+1 {
		t.Errorf("with a payment %d calls, and %d without comparing; want at most one more", calls[true], calls[false])
	}
}

// TestFollowsIdleChainCheaply follows chains without an awaited event for an hour, and then until an invoice is
// created.
func TestFollowsIdleChainCheaply(t *testing.T) {
	for name, mine := range map[string]func(p *paced, second int){
		"four blocks a second": (*paced).mineFour,
		"a block in twelve seconds": func(p *paced, second int) {
			if second%12 == 0 {
				p.chain.MineAt(chaintest.GenesisTime + 1 + int64(second))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPaced(t, nil)
			each := func(second int) { mine(p, second) }
			p.follow(t, 300, each)
			if calls := p.follow(t, 3600, each); 24*calls+auditCalls > 10_000 {
				t.Errorf("%d calls in an hour, want at most 10,000 a day with those of the audit", calls)
			}
			if s := p.Status(); p.clock.Now().Sub(s.Succeeded) > 2*time.Second {
				t.Errorf("the last success was at %s, and it is %s", s.Succeeded, p.clock.Now())
			}
			created, indexed := p.seconds+7, uint64(0)
			p.follow(t, 20, func(second int) {
				p.awaited.Any = second >= created
				if c, _ := p.ledger.Cursor(t.Context(), ""); second == created+1 {
					indexed = c.Indexed.Number
				}
				if second == created+1 && indexed != p.chain.Head().Number {
					t.Errorf("a second after an invoice was created block %d of %d is read", indexed, p.chain.Head().Number)
				}
				mine(p, second)
			})
			p.check(t)
		})
	}
}

// TestReadsTogetherThroughReorgs replaces blocks that were read with one call, including blocks with payments, while
// the node's servers lag.
func TestReadsTogetherThroughReorgs(t *testing.T) {
	p := newPaced(t, nil)
	p.awaited.Any = true
	p.follow(t, 10, p.mineFour)
	p.follow(t, 240, func(second int) {
		at := chaintest.GenesisTime + 1 + int64(second)
		switch second % 8 {
		case 1, 5:
			p.chain.MineAt(at, chaintest.NewTx(pays(alice, uint64(second))))
		case 2:
			p.chain.Fork(2)
			p.chain.MineAt(at, chaintest.NewTx(pays(alice, uint64(second))))
		case 3:
			p.chain.Fork(1)
		case 6:
			p.node.Lag(2)
		case 7:
			p.node.Lag(0)
		}
		p.mineFour(second)
	})
	p.node.Lag(0)
	p.check(t)
}

// TestStandbyLeavesNodesAlone has a replica follow another one for an hour, which reads an idle chain. It calls no node
// while the other replica makes progress.
func TestStandbyLeavesNodesAlone(t *testing.T) {
	p := newPaced(t, nil)
	p.follow(t, 120, p.mineFour)
	s := &paced{clock: p.clock}
	standby, _ := newStandby(t, p.fixture, func(c *Config) {
		c.Now, c.IdleInterval = p.clock.Now, idleInterval
		c.Awaited = func(context.Context) (Awaited, error) { return p.awaited, nil }
	})
	s.fixture = standby
	s.standBySync(t)
	before := s.cfg.Pool.Health()[0].Calls.Total()
	done := make(chan struct{})
	turn, turned := make(chan int), make(chan struct{})
	go func() {
		defer close(done)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s.sleep = func(context.Context, time.Duration, <-chan struct{}) bool {
			turned <- struct{}{}
			if _, ok := <-turn; !ok {
				stop()
			}
			return false
		}
		for ctx.Err() == nil {
			s.rest(ctx)
			if ctx.Err() == nil {
				t.Error("the standby asks a node for the head")
				return
			}
		}
	}()
	p.follow(t, 3600, func(second int) {
		p.mineFour(second)
		<-turned
		turn <- second
	})
	<-turned
	close(turn)
	<-done
	if calls := s.cfg.Pool.Health()[0].Calls.Total() - before; calls != 0 {
		t.Errorf("the standby made %d calls", calls)
	}
	if got, want := s.Status().Indexed, p.Status().Indexed; got+300 < want {
		t.Errorf("the standby has block %d, and the other replica %d", got, want)
	}
}

// TestReadsTogetherByOneRequest has a node answer the logs of a range and its headers only in separate requests, by its
// settings or because it refuses batches. The server that returns the logs lags: no block is recorded without its
// payment.
func TestReadsTogetherByOneRequest(t *testing.T) {
	for name, test := range map[string]struct {
		settings chain.NodeSettings
		takes    int // the most calls in a batch
	}{
		"maxBatch 1": {settings: chain.NodeSettings{MaxBatch: 1}},
		"maxBatch 2": {settings: chain.NodeSettings{MaxBatch: 2}},
		"takes 1":    {takes: 1},
		"takes 2":    {takes: 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			proxy := chaintest.NewProxy(t, f.node, 1)
			limited := chaintest.NewLimited(t, proxy, chaintest.Allowance{Batch: test.takes}, time.Now, 1)
			f.restart(t, func(c *Config) { c.Chain.Nodes = []chain.NodeSettings{test.settings} }, limited.URL)
			f.catchUp(t)
			f.together = true
			f.chain.MineEmpty(2)
			f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
			f.chain.MineEmpty(1)
			proxy.SetFaults(chaintest.Only{Methods: []string{"eth_getLogs"}, Fault: chaintest.Stale{Behind: 2}})
			for range 3 {
				if _, err := f.sync(t.Context()); err != nil {
					break // the server does not have the block's logs yet
				}
			}
			proxy.SetFaults()
			f.catchUp(t)
			if got := f.ledger.count(invoice.Pending); got != 1 {
				t.Errorf("%d payments are pending, want 1", got)
			}
		})
	}
}
