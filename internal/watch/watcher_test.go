package watch

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// geth keeps one pool of signature checkers for the whole process.
		goleak.IgnoreTopFunction("github.com/ethereum/go-ethereum/core.(*txSenderCacher).cache"),
		// A closed LevelDB waits for its last buffer for up to a second.
		goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"),
	)
}

// fixture is a watcher of a scripted chain with one node.
type fixture struct {
	*Watcher
	chain  *chaintest.Chain
	node   *chaintest.Node
	ledger *memory
}

// testingT is what the tests of both testing.T and rapid.T need.
type testingT interface {
	Helper()
	Cleanup(func())
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

// restart replaces the watcher by one that knows nothing but the ledger.
func (f *fixture) restart(t testingT, change func(*Config)) {
	t.Helper()
	conf := Config{
		Chain: testChain, Sources: []Source{dial(t, f.node.URL)}, Ledger: f.ledger,
		Logger: slog.New(slog.DiscardHandler), Now: time.Now, Jitter: func() float64 { return 0.5 },
	}
	if change != nil {
		change(&conf)
	}
	f.Watcher = New(conf)
}

func dial(t testingT, url string) *chain.Endpoint {
	t.Helper()
	e, err := chain.NewEndpoint(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// catchUp runs rounds until nothing is left to do.
func (f *fixture) catchUp(t testingT) {
	t.Helper()
	for range 1000 {
		more, err := f.round(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return
		}
	}
	t.Fatal("the watcher finds more to do for ever")
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

// TestLifeOfAPayment sees a transfer pending, then final when three blocks
// stand on top of it, and no sooner.
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
		if r.From != alice || r.Amount != five || r.BlockTime != chaintest.GenesisTime+chaintest.BlockSeconds {
			t.Errorf("recorded %+v", r)
		}
	}
	before := f.node.Calls("eth_getBlockByNumber")
	f.catchUp(t)
	if asked := f.node.Calls("eth_getBlockByNumber") - before; asked != 1 {
		t.Errorf("a round without a new block asks for %d blocks, want the head alone", asked)
	}
	if s := f.Status(); s.Head != 4 || s.ChainKey != "test" || !strings.HasPrefix(s.Source, "http://127.0.0.1") {
		t.Errorf("status is %+v", s)
	}
}

// TestReorg moves one transfer to another block, drops one and brings a new
// one.
func TestReorg(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.MineEmpty(4)
	f.catchUp(t)
	moved, dropped := chaintest.NewTx(pays(alice, 1)), chaintest.NewTx(pays(alice, 2))
	f.chain.Mine(moved, dropped, chaintest.NewTx(chaintest.Opened(registry, id1)))
	f.chain.Mine()
	f.catchUp(t)
	f.expect(t, 6, 3, 2, 0, 0)
	if f.ledger.events[settle.RegistryEvent{Kind: settle.RegistryOpened, CommitmentID: id1}] != 1 {
		t.Errorf("registry events are %v", f.ledger.events)
	}

	f.chain.Fork(3)
	f.chain.MineEmpty(2)
	f.catchUp(t)
	f.expect(t, 6, 3, 2, 0, 0) // the node's chain is shorter than what was read: wait
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

// TestHalt replaces a final block, and sees the watcher stop and touch
// nothing, then and after a restart.
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
		err := f.Run(t.Context())
		var halted *HaltedError
		if !errors.As(err, &halted) || !strings.Contains(halted.Reason, "block 3 was final") {
			t.Fatalf("Run: %v; want a HaltedError about block 3", err)
		}
		f.expect(t, 6, 3, 0, 1, 0)
		if s := f.Status(); s.Halted == "" || s.Error == "" {
			t.Errorf("status is %+v", s)
		}
		f.restart(t, nil)
	}
}

// TestForkAtFinality replaces every block that is not final: just allowed.
func TestForkAtFinality(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.MineEmpty(6)
	f.catchUp(t)
	f.chain.Fork(3)
	f.chain.MineEmpty(3)
	f.catchUp(t)
	f.expect(t, 6, 3, 0, 0, 0)
}

// TestTags has finality follow a tag, a tag and a depth, and a tag that the
// node has lost or that goes backwards.
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

	// Far behind the head, but not behind the finality line: one by one.
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
// after the round has seen it canonical.
func TestForkBeforeConfirm(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.MineEmpty(6)
	f.catchUp(t)
	f.expect(t, 6, 3, 0, 0, 0)
	f.chain.Mine()
	f.ledger.fail = func(after bool) error {
		if after {
			f.ledger.fail = nil
			f.chain.Fork(4)
			f.chain.MineEmpty(4)
		}
		return nil
	}
	f.catchUp(t)
	f.expect(t, 7, 4, 0, 0, 0)
	if got, want := f.ledger.cursor.Confirmed.Hash, invoice.Hash(f.chain.Blocks()[4].Hash); got != want {
		t.Errorf("block %s is final, want the canonical block %s", got, want)
	}
}

// TestForkWhileReading forks the chain at each call of the reading of ten
// blocks.
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
		if _, err := f.round(t.Context()); err != nil && left > 0 {
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

// TestFirstStart begins where it is told to, but never above the finality
// line.
func TestFirstStart(t *testing.T) {
	at := func(n uint64) *uint64 { return new(n) }
	for name, test := range map[string]struct {
		start *uint64
		mined int
		want  uint64
	}{
		"none": {nil, 20, 17}, "young": {nil, 2, 0}, "0": {at(0), 20, 0}, "1": {at(1), 20, 0}, "5": {at(5), 20, 4},
		"line": {at(18), 20, 17}, "above": {at(19), 20, 17}, "future": {at(100), 20, 17},
	} {
		f := newFixture(t, func(c *Config) { c.Chain.StartBlock = test.start })
		f.chain.MineEmpty(test.mined)
		f.catchUp(t)
		if got := f.ledger.headers[0].Number; got != test.want {
			t.Errorf("%s: reading begins after block %d, want %d", name, got, test.want)
		}
		f.expect(t, uint64(test.mined), max(test.want, uint64(max(0, test.mined-3))), 0, 0, 0)
	}
}

// TestFirstStartWithoutTag waits for the node to know a final block, whatever
// the configuration says about the begin.
func TestFirstStartWithoutTag(t *testing.T) {
	for _, start := range []*uint64{nil, new(uint64(5))} {
		f := newFixture(t, func(c *Config) {
			c.Chain.StartBlock = start
			c.Chain.Finality = chain.Finality{Tag: chain.TagFinalized}
		})
		f.chain.MineEmpty(20)
		if _, err := f.round(t.Context()); !errors.Is(err, chain.ErrNotFound) || !strings.Contains(err.Error(), "no finalized block yet") {
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

// TestFirstStartAfterInvoices begins below the first block that could hold a
// payment of an invoice that was created while no node answered.
func TestFirstStartAfterInvoices(t *testing.T) {
	for name, test := range map[string]struct {
		since int64 // seconds after block 10
		want  uint64
	}{
		"as old as a block": {0, 9}, "a second younger": {1, 10}, "between": {chaintest.BlockSeconds - 1, 10},
		"older than the chain": {-1_000_000, 0}, "younger than the line": {1_000_000, 17},
	} {
		f := newFixture(t, func(c *Config) { c.Chain.StartBlock = nil })
		f.chain.MineEmpty(9)
		tenth := f.chain.Mine(chaintest.NewTx(pays(alice, 1)))
		f.chain.MineEmpty(10)
		f.ledger.since = tenth.Time + test.since
		f.catchUp(t)
		if got := f.ledger.headers[0].Number; got != test.want {
			t.Errorf("%s: reading begins after block %d, want %d", name, got, test.want)
		}
		if _, found := f.ledger.records[invoice.TransferID(invoice.PrefixPayment, "test", invoice.Hash(tenth.Txs[0].Hash), 0)]; found != (test.want < 10) {
			t.Errorf("%s: the payment in block 10 is found: %v", name, found)
		}
	}
}

// TestFarBehind reads a long chain in ranges, though the node refuses most of
// them, and finds what is at their edges.
func TestFarBehind(t *testing.T) {
	const blocks = 1500
	f := newFixture(t, nil)
	want := 0
	for n := 1; n <= blocks; n++ {
		var txs []chaintest.Tx
		if n == 1 || n == firstSpan || n == firstSpan+1 || n%97 == 0 || n > blocks-70 {
			txs = append(txs, chaintest.NewTx(pays(alice, uint64(n))), chaintest.NewTx(pays(bob, 1), pays(bob, 1)))
			want += 3
		}
		f.chain.Mine(append(txs, chaintest.NewTx(chaintest.Transfer(token, alice, bob, five)))...)
	}
	refused := 0
	f.node.Intercept(func(_ context.Context, method string) error {
		if method == "eth_getLogs" && f.span > 200 {
			refused++
			return errors.New("query exceeds max block range 200")
		}
		return nil
	})
	f.catchUp(t)
	final := 0
	for _, r := range f.ledger.records {
		if r.BlockNumber <= blocks-3 {
			final++
		}
	}
	f.expect(t, blocks, blocks-3, want-final, final, 0)
	if n := len(f.ledger.headers); n > 250 {
		t.Errorf("%d headers were recorded for %d blocks read mostly in ranges", n, blocks)
	}
	if refused == 0 || f.node.Calls("eth_getLogs") > 150 {
		t.Errorf("%d calls for logs, %d of them refused", f.node.Calls("eth_getLogs"), refused)
	}
}
