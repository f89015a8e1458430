package indexer

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// sleepingClock is a clock that advances while something sleeps.
type sleepingClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *sleepingClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *sleepingClock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	return ctx.Err()
}

// TestNodeWithLimits starts a chain at nodes with tight limits, which refuse larger requests in randomly chosen ways.
// The indexer becomes ready, finds every payment of the past, and catches up with the blocks that were mined in its
// absence.
func TestNodeWithLimits(t *testing.T) {
	seed := uint64(0)
	for _, batch := range []int{1, 5, 15} {
		for _, blocks := range []int{1, 10, 500} {
			inFlight := []int{1, maxInFlight}[seed%2]
			seed++
			t.Run(fmt.Sprintf("batch %d, range %d, %d at once", batch, blocks, inFlight), func(t *testing.T) {
				startAndCatchUp(t, chaintest.Allowance{Batch: batch, Range: blocks, PerSecond: 5}, inFlight, seed)
			})
		}
	}
}

// startAndCatchUp reads a chain for the first time, and again after an absence.
func startAndCatchUp(t *testing.T, allows chaintest.Allowance, inFlight int, seed uint64) {
	t.Helper()
	f := &fixture{chain: newChain(), ledger: newMemory(merchant)}
	f.node = f.chain.Serve(t)
	clock := &sleepingClock{at: time.Unix(1_790_000_000, 0)}
	limited := chaintest.NewLimited(t, f.node, allows, clock.now, seed)
	open := func() {
		f.restartAt(t, clock.sleep, func(c *Config) { c.Now = clock.now }, limited.URL)
		f.maxInFlight = inFlight
	}
	open()
	want := payEvery(f, 280, 7)
	attempts := f.persist(t, clock)
	firstRead := clock.now()
	if got := f.ledger.count(invoice.Confirmed) + f.ledger.count(invoice.Pending); got != want || f.Status().Succeeded.IsZero() || f.Status().Backfill != nil {
		t.Errorf("the first start found %d payments of %d; status %+v", got, want, f.Status())
	}
	open() // a new process does not know the node's limits
	want += payEvery(f, 280, 11)
	attempts += f.persist(t, clock)
	if got := f.ledger.count(invoice.Confirmed) + f.ledger.count(invoice.Pending); got != want {
		t.Errorf("after the catch-up there are %d payments of %d", got, want)
	}
	if indexed := f.ledger.cursor.Indexed.Number; indexed != f.chain.Head().Number {
		t.Errorf("read up to block %d of %d", indexed, f.chain.Head().Number)
	}
	t.Logf("first start %s, catch-up %s; %d attempts; refused %d for size, %d for rate; limits %+v",
		firstRead.Sub(time.Unix(1_790_000_000, 0)), clock.now().Sub(firstRead), attempts, limited.BySize, limited.ByRate, f.cfg.Pool.Health()[0].Limits)
}

// payEvery mines a number of blocks, and in each nth one two payments.
func payEvery(f *fixture, blocks, nth int) (payments int) {
	for n := range blocks {
		var txs []chaintest.Tx
		if n%nth == 0 {
			txs = append(txs, chaintest.NewTx(pays(alice, f.chain.Head().Number+1)), chaintest.NewTx(pays(bob, 1)))
			payments += 2
		}
		f.chain.Mine(txs...)
	}
	return payments
}

// persist syncs, and fills the gap, until no work is left. After a failure a second passes, as in
// Run.
func (f *fixture) persist(t *testing.T, clock *sleepingClock) (attempts int) {
	t.Helper()
	var failure error
	for attempts = range 400 {
		more, err := f.sync(t.Context())
		f.report(err)
		older, fillErr := false, error(nil)
		if err == nil {
			older, fillErr = f.fill(t.Context())
		}
		if failure = err; failure == nil {
			failure = fillErr
		}
		if failure != nil {
			expect.OK(t, clock.sleep(t.Context(), time.Second))
			continue
		}
		if !more && !older {
			return attempts
		}
	}
	t.Fatalf("it is not ready after %d attempts; the last error is %v, status %+v, limits %+v, pace %f", attempts+1, failure, f.Status(),
		f.cfg.Pool.Health()[0].Limits, f.cfg.Pool.Health()[0].Pace)
	return attempts
}

// TestLimitsAreShown expects the status to name what a node could not do. The size of the next request may be a step
// above the allowance, which the node has not refused yet.
func TestLimitsAreShown(t *testing.T) {
	f := newFixture(t, nil)
	payEvery(f, 300, 7)
	limited := chaintest.NewLimited(t, f.node, chaintest.Allowance{Batch: 5, Range: 10}, time.Now, 1)
	f.restart(t, nil, limited.URL)
	f.catchUp(t)
	shown := map[chain.Kind]chain.LimitStatus{}
	for _, l := range f.cfg.Pool.Health()[0].Limits {
		shown[l.Kind] = l
	}
	for kind, allowed := range map[chain.Kind]uint64{chain.KindHeaders: 5, chain.KindRange: 10, chain.KindReceipts: 5} {
		if l, ok := shown[kind]; !ok || l.Size > allowed+allowed/4+1 || l.Refused <= allowed || l.At.IsZero() {
			t.Errorf("%s is shown as %+v, where %d are allowed", kind, l, allowed)
		}
	}
}

// TestComparesWithNodeWithLimits compares blocks that are read together, and final ones, with a node
// that allows only short ranges.
func TestComparesWithNodeWithLimits(t *testing.T) {
	for _, together := range []bool{true, false} {
		f := newFixture(t, nil)
		omitting := chaintest.NewProxy(t, f.node, 1)
		limited := chaintest.NewLimited(t, f.node, chaintest.Allowance{Batch: 1, Range: 10}, time.Now, 2)
		f.restart(t, comparing, omitting.URL, limited.URL)
		f.catchUp(t)
		omitted := chaintest.NewTx(pays(alice, 5))
		omitting.SetFaults(chaintest.DropLogs{Txs: []common.Hash{omitted.Hash}})
		f.together = together
		f.chain.MineEmpty(12)
		f.chain.Mine(chaintest.NewTx(pays(bob, 1)), omitted)
		f.chain.MineEmpty(12)
		if !together {
			f.chain.MineEmpty(maxBlocks)
		}
		f.catchUp(t)
		f.audit(t)
		expect.OK(t, f.readUnread(t.Context()))
		if got := f.ledger.count(invoice.Confirmed) + f.ledger.count(invoice.Pending); got != 2 {
			t.Errorf("together %t: %d payments are recorded, want 2", together, got)
		}
		expect.Equal(t, f.state(0), chain.StateQuarantined, "together %t: the node is", together)
		if s := f.Status(); together && (s.Compared[ComparedNode] == 0 && s.Compared[ComparedReceipts] == 0 || s.Audit.Counted.Unverified > 0) {
			t.Errorf("compared are %v, audited %+v", s.Compared, s.Audit.Counted)
		}
	}
}

// TestReadsTogetherAtNodeWithLimits reads the blocks near the head together, from a node that allows
// only short ranges and batches.
func TestReadsTogetherAtNodeWithLimits(t *testing.T) {
	for seed := range uint64(6) {
		f := newFixture(t, nil)
		allows := chaintest.Allowance{Batch: []int{1, 2}[seed%2], Range: []int{1, 5, 10}[seed%3]}
		limited := chaintest.NewLimited(t, f.node, allows, time.Now, seed)
		f.restart(t, comparing, limited.URL)
		f.catchUp(t)
		f.together = true
		want := 0
		for range 5 {
			want += payEvery(f, 24, 7)
			f.catchUp(t)
		}
		if got := f.ledger.count(invoice.Confirmed) + f.ledger.count(invoice.Pending); got != want {
			t.Errorf("%+v are allowed: %d payments of %d", allows, got, want)
		}
	}
}
