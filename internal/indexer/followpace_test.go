package indexer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/clocktest"
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
	expect.Equal(t, s.cfg.Pool.Health()[0].Calls.Total()-before, 0, "calls of the standby:")
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
			expect.Equal(t, f.ledger.count(invoice.Pending), 1, "payments are pending:")
		})
	}
}

// fastChain is a chain with a block every quarter of a second, on a paced fixture. One block in twenty has a payment.
type fastChain struct {
	*paced
	mu           sync.Mutex
	passed, owed time.Duration
	stopped      bool
}

// pass advances the time, without the fixture's clock.
func (c *fastChain) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const every = 250 * time.Millisecond
	for c.owed += d; c.owed >= every && !c.stopped; c.owed -= every {
		c.passed += every
		var txs []chaintest.Tx
		if n := c.chain.Head().Number; n%20 == 0 {
			txs = append(txs, chaintest.NewTx(pays(alice, n+1)))
		}
		c.chain.MineAt(chaintest.GenesisTime+1+int64(c.passed/time.Second), txs...)
	}
}

// sleep waits for a node's pace while the chain continues. It fails once the test takes far longer than it should.
func (c *fastChain) sleep(ctx context.Context, d time.Duration) error {
	c.clock.Add(d)
	c.pass(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.passed > 15*time.Minute {
		return errors.New("the node's pace is too slow to follow the chain")
	}
	return ctx.Err()
}

// TestFollowsFastChainAtNodesWithLimits follows a chain with four blocks a second while an invoice is open, at nodes
// that refuse longer ranges in randomly chosen ways. The indexer does not take a refused range for a rate limit, so the
// newest indexed block stays close to the head.
func TestFollowsFastChainAtNodesWithLimits(t *testing.T) {
	const seconds, mostBehind, mostCalls = 180, 16, 14 // in blocks, and calls a second
	seed := uint64(0)
	for _, blocks := range []int{1, 3, 10} {
		for _, batch := range []int{0, 1} {
			seed++
			t.Run(fmt.Sprintf("range %d, batch %d", blocks, batch), func(t *testing.T) {
				c := &fastChain{paced: newPaced(t, nil)}
				c.awaited.Any = true
				limited := chaintest.NewLimited(t, c.node, chaintest.Allowance{Range: blocks, Batch: batch}, c.clock.Now, seed)
				c.restartAt(t, c.sleep, c.configure, limited.URL)
				behind, began := uint64(0), c.clock.Now()
				calls := c.follow(t, seconds, func(int) {
					behind = max(behind, c.chain.Head().Number-c.tracker.Tip().Number)
					c.pass(time.Second)
				})
				took := c.clock.Now().Sub(began)
				if limits := c.cfg.Pool.Health()[0]; behind > mostBehind || calls > mostCalls*seconds || limits.Pace != 0 {
					t.Errorf("up to %d blocks behind, want %d; %d calls in %s; pace %g", behind, mostBehind, calls, took, limits.Pace)
				}
				if limited.BySize == 0 || c.cfg.Pool.Health()[0].Limits == nil {
					t.Error("no range was refused")
				}
				t.Logf("up to %d blocks behind; %d calls in %s; %d refused; limits %+v", behind, calls, took, limited.BySize, c.cfg.Pool.Health()[0].Limits)
				c.stopped = true
				c.check(t)
			})
		}
	}
}

// TestTriesLongerRangesAgain has a node refuse every range for a while. Some time later the indexer reads blocks
// together again.
func TestTriesLongerRangesAgain(t *testing.T) {
	for _, refused := range []uint64{1, 2} {
		c := &fastChain{paced: newPaced(t, nil)}
		c.awaited.Any = true
		c.follow(t, 20, func(int) { c.pass(time.Second) })
		limit := c.cfg.Pool.Usable()[0].Limit(chain.KindRange)
		for n := uint64(64); n >= refused; n /= 2 {
			limit.Refused(n)
		}
		c.follow(t, 300, func(int) { c.pass(time.Second) })
		if got := limit.Size(); got < 4 {
			t.Errorf("ranges of up to %d were refused: those of %d blocks are read next", refused, got)
		}
	}
}

// TestRecordPace checks that recording steps take about as long as creates may wait, and that at most about three
// quarters of the time go into the fixed cost of transactions, whatever a transaction or a transfer costs.
func TestRecordPace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		fixed := time.Duration(rapid.IntRange(0, int(3*time.Second)).Draw(t, "a transaction"))
		if rapid.Bool().Draw(t, "near") {
			fixed /= 1000
		}
		each := time.Duration(rapid.IntRange(int(time.Microsecond), int(time.Millisecond)).Draw(t, "a transfer"))
		p := newRecordPace()
		cost := func() time.Duration { return fixed + time.Duration(p.size)*each }
		for _, waited := range []bool{true, false, true} {
			turn := recordIdleTurn
			if waited {
				turn = recordTurn
			}
			for range 30 {
				before := p.size
				p.recorded(p.size, cost(), waited)
				if p.size < leastRecorded || p.size > mostRecorded || p.size > 2*before {
					t.Fatalf("steps of %d follow those of %d", p.size, before)
				}
			}
			took := cost()
			if wasted := fixed.Seconds() / took.Seconds(); wasted > 0.76 && p.size < mostRecorded {
				t.Fatalf("of steps of %d, which take %v, %.0f%% is the transaction", p.size, took, 100*wasted)
			}
			if p.size > p.least && took > turn*3/2 {
				t.Fatalf("steps of %d take %v, want about %v", p.size, took, turn)
			}
			if p.size < mostRecorded && took < turn/3 {
				t.Fatalf("steps of %d take only %v, want about %v", p.size, took, turn)
			}
			if least := time.Duration(p.least) * each; p.least > leastRecorded && least > 4*fixed {
				t.Fatalf("steps have %d at least, where a transaction takes %v by itself", p.least, fixed)
			}
		}
	})
}

// TestRecordPaceOfFew checks that the last blocks of a range, which hold few transfers, do not slow down the next.
func TestRecordPaceOfFew(t *testing.T) {
	t.Parallel()
	p := &recordPace{size: 1000, least: 100, warm: true, learned: true}
	p.recorded(10, recordIdleTurn/2, false)
	expect.Equal(t, p.size, 1000, "after a step of 10, the next one is of")
	p.recorded(10, 2*recordIdleTurn, false)
	expect.Equal(t, p.size, 100, "after a step of 10 that took too long, the next one is of")
}

// TestRecordPaceSplit checks that steps have all blocks in their order, begin with the child of the block before, and
// have no more transfers and events than allowed if that is possible.
func TestRecordPaceSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &recordPace{size: rapid.IntRange(1, 20).Draw(t, "size")}
		var blocks []ledger.Block
		number := uint64(1)
		for _, distance := range rapid.SliceOfN(rapid.Uint64Range(1, 2), 1, 30).Draw(t, "distances") {
			number += distance
			blocks = append(blocks, ledger.Block{
				Header:    invoice.Header{Number: number},
				Transfers: make([]invoice.Transfer, rapid.IntRange(0, 12).Draw(t, "transfers")),
				Registry:  make([]ledger.RegistryEvent, rapid.IntRange(0, 2).Draw(t, "events")),
			})
		}
		at := 0
		for next, rest := p.split(blocks); len(next) > 0; next, rest = p.split(rest) {
			dividable := false
			for i, b := range next {
				if b.Number != blocks[at].Number {
					t.Fatalf("block %d instead of %d", b.Number, blocks[at].Number)
				}
				at++
				dividable = dividable || i > 0 && b.Number == next[i-1].Number+1 && sizeOf(next[:i+1]...) > p.size
			}
			if dividable {
				t.Fatalf("a step of %d could have been divided", sizeOf(next...))
			}
			if len(rest) > 0 && rest[0].Number != next[len(next)-1].Number+1 {
				t.Fatalf("block %d begins a step after block %d", rest[0].Number, next[len(next)-1].Number)
			}
		}
		if at != len(blocks) {
			t.Fatalf("%d of %d blocks", at, len(blocks))
		}
	})
}
