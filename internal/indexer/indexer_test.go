package indexer

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// geth keeps one pool of signature checkers for the whole process.
		goleak.IgnoreTopFunction("github.com/ethereum/go-ethereum/core.(*txSenderCacher).cache"),
		// A closed LevelDB waits for its last buffer for up to a second.
		goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"),
	)
}

// fixture is an indexer of a scripted chain with one node.
type fixture struct {
	*Indexer
	chain  *chaintest.Chain
	node   *chaintest.Node
	ledger *memory
}

// testingT is what the tests of both testing.T and rapid.T need.
type testingT interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newChain() *chaintest.Chain {
	c := chaintest.New(testChain.ID)
	c.Token(token, 6)
	c.Contract(registry)
	return c
}

func newFixture(t testing.TB, change func(*Config)) *fixture {
	t.Helper()
	f := &fixture{chain: newChain(), ledger: newMemory(merchant)}
	f.node = f.chain.Serve(t)
	f.restart(t, change)
	return f
}

// noSleep replaces the wait for a node's pace; it takes no time.
func noSleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// restart replaces the indexer by a new one with the same ledger, which uses the fixture's node or the nodes at these
// URLs.
func (f *fixture) restart(t testingT, change func(*Config), urls ...string) {
	t.Helper()
	f.restartAt(t, noSleep, change, urls...)
}

// restartAt is restart with a way to wait for a node's pace.
func (f *fixture) restartAt(
	t testingT, sleep func(context.Context, time.Duration) error, change func(*Config), urls ...string,
) {
	t.Helper()
	conf := Config{
		Chain: testChain, Ledger: f.ledger,
		Logger: slog.New(slog.DiscardHandler), Now: time.Now, Jitter: func() float64 { return 0.5 },
	}
	if change != nil {
		change(&conf)
	}
	if conf.Chain.RPC = urls; len(urls) == 0 {
		conf.Chain.RPC = []string{f.node.URL}
	}
	pool, err := chain.OpenPool(chain.PoolConfig{Chain: conf.Chain, Now: conf.Now, Sleep: sleep, Logger: conf.Logger})
	expect.OK(t, err)
	t.Cleanup(pool.Close)
	conf.Pool = pool
	f.Indexer = New(conf)
}

// state returns the pool's state of a node, by its position in the configuration.
func (f *fixture) state(node int) chain.State { return f.cfg.Pool.Health()[node].State }

// catchUp runs syncs, and fills the gap, until no work is left.
func (f *fixture) catchUp(t testingT) {
	t.Helper()
	for range 1000 {
		more, err := f.sync(context.Background())
		expect.OK(t, err)
		older, err := f.fill(context.Background())
		expect.OK(t, err)
		if !more && !older {
			return
		}
	}
	t.Fatal("the indexer finds more to do for ever")
}

// expect compares the ledger's cursor and counts of transfers.
func (f *fixture) expect(t *testing.T, indexed, confirmed uint64, pending, final, orphaned int) {
	t.Helper()
	c, _ := f.ledger.Cursor(context.Background(), "")
	got := []int{int(c.Indexed.Number), int(c.Confirmed.Number), f.ledger.count(invoice.Pending), f.ledger.count(invoice.Confirmed), f.ledger.count(invoice.Orphaned)}
	want := []int{int(indexed), int(confirmed), pending, final, orphaned}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("indexed, confirmed; pending, confirmed, orphaned transfers are %v, want %v", got, want)
			break
		}
	}
	for _, b := range f.ledger.breaches {
		t.Error(b)
	}
	f.ledger.breaches = nil
}

// TestLifeOfAPayment expects a transfer to be pending, and to become final when three blocks are on top of it, and not
// earlier.
func TestLifeOfAPayment(t *testing.T) {
	f := newFixture(t, nil)
	f.catchUp(t)
	f.expect(t, 0, 0, 0, 0, 0)
	f.chain.Mine(chaintest.NewTx(pays(alice, 5)), chaintest.NewTx(chaintest.Transfer(token, alice, bob, five)))
	f.catchUp(t)
	f.expect(t, 1, 0, 1, 0, 0)
	f.chain.MineEmpty(2)
	f.catchUp(t)
	f.expect(t, 3, 0, 1, 0, 0)
	f.chain.Mine()
	f.catchUp(t)
	f.expect(t, 4, 1, 0, 1, 0)
	for _, r := range f.ledger.records {
		if r.From != alice || r.Amount != five || r.BlockTime.Unix() != chaintest.GenesisTime+chaintest.BlockSeconds {
			t.Errorf("recorded %+v", r)
		}
	}
	before := f.node.Calls("eth_getBlockByNumber")
	f.catchUp(t)
	expect.Equal(t, f.node.Calls("eth_getBlockByNumber")-before, 1, "a sync without a new block asks for blocks:")
	if s := f.Status(); s.Head != 4 || s.ChainKey != "test" || !strings.HasPrefix(s.Source, "http://127.0.0.1") {
		t.Errorf("status is %+v", s)
	}
}

// TestExpiryLetsBlocksBeRead mines a block after each part of very many expiring invoices, and no block after the last
// parts.
func TestExpiryLetsBlocksBeRead(t *testing.T) {
	f := newFixture(t, nil)
	f.catchUp(t)
	f.ledger.due = 4
	f.chain.MineEmpty(4)
	for range 2 {
		if more, err := f.sync(t.Context()); err != nil || !more {
			t.Fatalf("sync returned %t, %v; want more to do", more, err)
		}
		f.chain.Mine()
	}
	f.catchUp(t)
	if want := []uint64{5, 6, 6, 6}; !slices.Equal(f.ledger.expired, want) {
		t.Errorf("invoices expired when the newest blocks were %v, want %v", f.ledger.expired, want)
	}
}

// TestReorg moves one transfer to another block, drops one and adds a new one.
func TestReorg(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.MineEmpty(4)
	f.catchUp(t)
	moved, dropped := chaintest.NewTx(pays(alice, 1)), chaintest.NewTx(pays(alice, 2))
	f.chain.Mine(moved, dropped, chaintest.NewTx(chaintest.Opened(registry, id1)))
	f.chain.Mine()
	f.catchUp(t)
	f.expect(t, 6, 3, 2, 0, 0)
	if f.ledger.events[ledger.RegistryEvent{Registry: registry, Kind: ledger.RegistryOpened, CommitmentID: id1}] != 1 {
		t.Errorf("registry events are %v", f.ledger.events)
	}

	f.chain.Fork(3)
	f.chain.MineEmpty(2)
	f.catchUp(t)
	f.expect(t, 6, 3, 2, 0, 0) // the node's chain is shorter than the indexed one: wait
	b := f.chain.Mine(chaintest.NewTx(pays(bob, 9)), moved)
	f.catchUp(t)
	f.expect(t, 6, 3, 2, 0, 1)
	f.chain.MineEmpty(3)
	f.catchUp(t)
	f.expect(t, 9, 6, 0, 2, 1)
	r := f.ledger.records[invoice.TransferID(invoice.PrefixPayment, "test", invoice.Hash(moved.Hash), 0)]
	if r.BlockHash != invoice.Hash(b.Hash) || r.LogIndex != 1 || r.Status != invoice.Confirmed {
		t.Errorf("the transfer that moved is recorded as %+v", r)
	}
}

// TestHalt replaces a final block. The indexer stops and changes nothing, neither then nor after a restart.
func TestHalt(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.MineEmpty(2)
	f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
	f.chain.MineEmpty(3)
	f.catchUp(t)
	f.expect(t, 6, 3, 0, 1, 0)
	f.chain.Fork(4)
	f.chain.MineEmpty(6)
	for range 2 {
		_, err := f.sync(t.Context())
		f.report(err)
		var halted *HaltedError
		if !errors.As(err, &halted) || !strings.Contains(halted.Reason, "block 3 was final") {
			t.Fatalf("round: %v; want a HaltedError about block 3", err)
		}
		f.expect(t, 6, 3, 0, 1, 0)
		if s := f.Status(); s.Halted == "" || s.Error == "" {
			t.Errorf("status is %+v", s)
		}
		if more, err := f.fill(t.Context()); more || err != nil {
			t.Errorf("fill: %t, %v; want nothing done", more, err)
		}
		f.restart(t, nil)
	}
}

// TestTags uses a tag for finality, a tag and a depth, and a tag that the node has lost or that moves backwards.
func TestTags(t *testing.T) {
	withTag := func(depth uint64) func(*Config) {
		return func(c *Config) { c.Chain.Finality = chain.Finality{Tag: chain.TagSafe, Depth: depth} }
	}
	f := newFixture(t, nil)
	f.catchUp(t)
	f.restart(t, withTag(0))
	f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
	f.catchUp(t)
	f.expect(t, 1, 0, 1, 0, 0)
	f.chain.MineEmpty(9)
	f.chain.Tag("safe", 6)
	f.catchUp(t)
	f.expect(t, 10, 6, 0, 1, 0)
	f.chain.Tag("safe", 2)
	f.chain.Mine()
	f.catchUp(t)
	f.expect(t, 11, 6, 0, 1, 0)

	// Far behind the head, but not behind the finalized height: one by one.
	f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
	f.chain.MineEmpty(3*maxBlocks - 12)
	f.catchUp(t)
	f.expect(t, 3*maxBlocks, 6, 1, 1, 0)
	if len(f.ledger.headers) != 3*maxBlocks+1 {
		t.Errorf("%d headers were recorded of %d blocks that are not final", len(f.ledger.headers), 3*maxBlocks)
	}

	f.restart(t, withTag(4))
	f.chain.Tag("safe", 3*maxBlocks)
	f.chain.Mine()
	f.catchUp(t)
	f.expect(t, 3*maxBlocks+1, 3*maxBlocks-3, 0, 2, 0)
}

// TestForkBeforeConfirm replaces the block that is about to become final,
// after the round has read it.
func TestForkBeforeConfirm(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.MineEmpty(6)
	f.catchUp(t)
	f.expect(t, 6, 3, 0, 0, 0)
	f.chain.MineEmpty(maxBlocks + 6) // more than a sync reads
	f.ledger.fail = func(after bool) error {
		if after {
			f.ledger.fail = nil
			f.chain.Fork(10)
			f.chain.MineEmpty(10)
		}
		return nil
	}
	f.catchUp(t)
	f.expect(t, maxBlocks+12, maxBlocks+9, 0, 0, 0)
	final := f.ledger.cursor.Confirmed
	if want := invoice.Hash(f.chain.Blocks()[final.Number].Hash); final.Hash != want {
		t.Errorf("block %s is final, want the canonical block %s", final.Hash, want)
	}
}

// TestForkWhileReading forks the chain at each call during the reading of ten blocks.
func TestForkWhileReading(t *testing.T) {
	for call := 1; ; call++ {
		f := newFixture(t, nil)
		f.chain.MineEmpty(2)
		f.catchUp(t)
		for n := range uint64(10) {
			f.chain.Mine(chaintest.NewTx(pays(alice, n+1)))
		}
		left := call
		f.node.Intercept(func(context.Context, string) error {
			if left--; left == 0 {
				f.chain.Fork(3)
				for n := range uint64(5) {
					f.chain.Mine(chaintest.NewTx(pays(bob, n+1)))
				}
			}
			return nil
		})
		if _, err := f.sync(t.Context()); err != nil && left > 0 {
			t.Fatal(err)
		}
		f.catchUp(t)
		if left > 0 {
			if call < 20 {
				t.Errorf("the blocks were read with %d calls", call-1)
			}
			return
		}
		for _, b := range f.ledger.breaches {
			t.Errorf("fork at call %d: %s", call, b)
		}
		checkLedger(t, f.chain, f.ledger, testChain.Finality.Depth)
	}
}

// TestFirstStart begins at the finalized height, and reads the blocks from the
// configured start block to that height as a gap.
func TestFirstStart(t *testing.T) {
	at := func(n uint64) *uint64 { return new(n) }
	for name, test := range map[string]struct {
		start *uint64
		mined int
		gap   uint64 // first block of the gap; 0 without a gap
	}{
		"none": {nil, 20, 0}, "young": {nil, 2, 0}, "0": {at(0), 20, 1}, "1": {at(1), 20, 1}, "5": {at(5), 20, 5},
		"line": {at(17), 20, 17}, "after the line": {at(18), 20, 0}, "above": {at(19), 20, 0}, "future": {at(100), 20, 0},
	} {
		f := newFixture(t, func(c *Config) { c.Chain.StartBlock = test.start })
		for n := range test.mined {
			f.chain.Mine(chaintest.NewTx(pays(alice, uint64(n+1))))
		}
		expect.Success(t)(f.sync(t.Context()))
		line := max(0, test.mined-3)
		var want *ledger.Gap
		if test.gap > 0 {
			want = &ledger.Gap{Next: test.gap, Last: uint64(line), LastTime: invoice.Unix(chaintest.GenesisTime + int64(line)*chaintest.BlockSeconds)}
		}
		expect.NoDiff(t, cmp.Diff(want, f.ledger.cursor.Gap), "%s: gap", name)
		f.catchUp(t)
		older := 0
		if test.gap > 0 {
			older = line - int(test.gap) + 1
		}
		f.expect(t, uint64(test.mined), uint64(line), test.mined-line, older, 0)
		if f.ledger.cursor.Gap != nil {
			t.Errorf("%s: the gap is left: %+v", name, f.ledger.cursor.Gap)
		}
	}
}

// TestFirstStartWithoutTag waits until the node knows a final block, even with a
// configured start block.
func TestFirstStartWithoutTag(t *testing.T) {
	for _, start := range []*uint64{nil, new(uint64(5))} {
		f := newFixture(t, func(c *Config) {
			c.Chain.StartBlock = start
			c.Chain.Finality = chain.Finality{Tag: chain.TagFinalized}
		})
		f.chain.MineEmpty(20)
		if _, err := f.sync(t.Context()); !errors.Is(err, chain.ErrNotFound) || !strings.Contains(err.Error(), "no finalized block yet") {
			t.Errorf("round: %v; want an error that names the tag", err)
		}
		if f.ledger.cursor.Started {
			t.Errorf("reading begins after block %d", f.ledger.cursor.Indexed.Number)
		}
		f.chain.Tag(chain.TagFinalized, 12)
		f.catchUp(t)
		f.expect(t, 20, 12, 0, 0, 0)
	}
}

// TestFirstStartAfterInvoices expects the gap to begin with the first block that could hold a payment of an invoice
// created while no node answered, also if the clock of the service is wrong or was moved.
func TestFirstStartAfterInvoices(t *testing.T) {
	for name, test := range map[string]struct {
		since               int64         // seconds from block 10 to the creation
		atCreation, atStart time.Duration // how far the clock is ahead
		want                uint64        // first block of the gap; 0 without a gap
	}{
		"as old as a block":      {want: 10},
		"a second younger":       {since: 1, want: 11},
		"between":                {since: chaintest.BlockSeconds - 1, want: 11},
		"older than the chain":   {since: -1_000_000, want: 1},
		"younger than the line":  {since: 1_000_000},
		"clock ahead by a month": {atCreation: 720 * time.Hour, atStart: 720 * time.Hour, want: 10},
		"clock moved back":       {atStart: -48 * time.Hour, want: 10},
		"clock moved forward":    {atCreation: -chaintest.BlockSeconds * time.Second, want: 9},
	} {
		var now time.Time
		f := newFixture(t, func(c *Config) { c.Chain.StartBlock, c.Now = nil, func() time.Time { return now } })
		f.chain.MineEmpty(9)
		tenth := f.chain.Mine(chaintest.NewTx(pays(alice, 1)))
		f.chain.MineEmpty(10)
		// The margin is subtracted as well.
		f.ledger.first = time.Unix(tenth.Time+test.since, 0).Add(startMargin + test.atCreation)
		now = time.Unix(f.chain.Head().Time, 0).Add(test.atStart)
		expect.Success(t)(f.sync(t.Context()))
		if gap := f.ledger.cursor.Gap; gap == nil && test.want != 0 || gap != nil && gap.Next != test.want {
			t.Errorf("%s: the gap is %+v, want it to begin with block %d", name, gap, test.want)
		}
		f.catchUp(t)
		if found := f.ledger.count(invoice.Confirmed) == 1; found != (test.want != 0 && test.want <= 10) {
			t.Errorf("%s: the payment in block 10 is found: %v", name, found)
		}
	}
}
