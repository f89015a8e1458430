package indexer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestContradictions makes the only node return inconsistent answers, for single blocks and for ranges. No block is
// recorded, and the node is quarantined.
func TestContradictions(t *testing.T) {
	misnaming := func(q question, ask func(question) any) any {
		return each(ask(q), func(o map[string]any) {
			if o["topics"] != nil && o["blockNumber"] == "0x1" {
				flip(o, "blockHash")
			}
		})
	}
	overlong := func(q question, ask func(question) any) any {
		if q.Method == "eth_getLogs" && strings.Contains(string(q.Params[0]), "fromBlock") {
			return each(ask(q), func(o map[string]any) { o["blockNumber"] = "0xfff" })
		}
		return ask(q)
	}
	unlinked := func(number string) func(q question, ask func(question) any) any {
		return func(q question, ask func(question) any) any {
			return each(ask(q), func(o map[string]any) {
				if o["number"] == number {
					flip(o, "parentHash")
				}
			})
		}
	}
	split := func(q question, ask func(question) any) any {
		if f := fmt.Sprintf("%s", q.Params); strings.Contains(f, `"fromBlock":"0x1"`) && !strings.Contains(f, `"toBlock":"0x8"`) {
			return errors.New("query returned too much, try with this block range [0x1, 0x8]")
		}
		return unlinked("0x9")(q, ask)
	}
	for name, test := range map[string]struct {
		answer func(question, func(question) any) any
		empty  int
	}{
		"misnaming, near":     {misnaming, 2},
		"misnaming, in range": {misnaming, 3 * maxBlocks},
		"overlong":            {overlong, 3 * maxBlocks},
		"unlinked":            {unlinked("0x2"), maxBlocks},
		"unlinked parts":      {unlinked(hexutil.EncodeUint64(chain.FirstRange + 1)), chain.FirstRange + 3*maxBlocks},
		"unlinked in a part":  {split, 3 * maxBlocks},
	} {
		f := newFixture(t, nil)
		f.chain.Mine(chaintest.NewTx(chaintest.Opened(registry, id1)))
		f.chain.MineEmpty(test.empty)
		f.chain.Mine(chaintest.NewTx(chaintest.Opened(registry, id2)))
		f.restart(t, nil, tamperingProxy(t, f.node, test.answer))
		if _, err := f.sync(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := f.fill(t.Context()); err == nil {
			t.Errorf("%s: reading went well", name)
		}
		if gap := f.ledger.cursor.Gap; gap == nil || gap.Next != 1 && gap.Next != chain.FirstRange+1 {
			t.Errorf("%s: read up to the gap %+v", name, gap)
		}
		expect.Equal(t, f.state(0), chain.StateQuarantined, "%s: the node is", name)
	}
}

// TestUnprovenTransfer has a recorded transfer differ from its receipt when it
// is to become final: it is read again instead.
func TestUnprovenTransfer(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.MineEmpty(4)
	f.catchUp(t)
	f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
	f.catchUp(t)
	for id, r := range f.ledger.records {
		r.Amount = invoice.NewAmount(5_000_000)
		f.ledger.records[id] = r
	}
	f.chain.MineEmpty(3)
	f.catchUp(t)
	f.expect(t, 8, 5, 0, 1, 0)
	for _, r := range f.ledger.records {
		expect.Equal(t, r.Amount, five, "the confirmed transfer is of")
	}
}

// TestUnreadableHead has a head that cannot be read, above a tip that the node still
// reports as canonical. The indexer waits before it syncs again, and does not treat
// that head as indexed.
func TestUnreadableHead(t *testing.T) {
	f := newFixture(t, nil)
	parentless := false
	url := tamperingProxy(t, f.node, func(q question, ask func(question) any) any {
		return each(ask(q), func(o map[string]any) {
			if parentless && len(q.Params) > 0 && string(q.Params[0]) == `"latest"` {
				flip(o, "hash")
				flip(o, "parentHash")
			}
		})
	})
	f.restart(t, nil, url)
	f.chain.MineEmpty(5)
	f.catchUp(t)
	parentless = true
	f.chain.Mine()
	f.catchUp(t) // block 3 becomes final once block 6 is read
	for range 2 {
		before := f.node.Calls("eth_getBlockByNumber")
		if more, err := f.sync(t.Context()); more || err != nil {
			t.Errorf("round: %t, %v; want a wait", more, err)
		}
		if n := f.node.Calls("eth_getBlockByNumber") - before; n < 2 {
			t.Errorf("the node was asked for %d blocks: the head was taken for done", n)
		}
	}
	f.expect(t, 5, 2, 0, 0, 0)
	parentless = false
	f.catchUp(t)
	f.expect(t, 6, 3, 0, 0, 0)
}

// TestNodeWithSmallLimits reads block by block from a node with small limits, and reads more at a time when the limits
// grow.
func TestNodeWithSmallLimits(t *testing.T) {
	f := newFixture(t, nil)
	f.catchUp(t)
	most, asked := 3, 0
	f.node.Intercept(func(_ context.Context, method string) error {
		if method != "eth_getLogs" {
			asked = 0
		} else if asked++; asked > most {
			return errors.New("response is too big, ask for less")
		}
		return nil
	})
	for n := range uint64(maxBlocks) {
		f.chain.Mine(chaintest.NewTx(pays(alice, n+1)))
	}
	f.catchUp(t)
	f.expect(t, maxBlocks, maxBlocks-3, 3, maxBlocks-3, 0)
	most = maxBlocks
	for range 3 * maxBlocks {
		f.chain.Mine()
		f.catchUp(t)
	}
	f.chain.MineEmpty(maxBlocks)
	if more, err := f.sync(t.Context()); err != nil {
		t.Errorf("round: %t, %v", more, err)
	}
	f.catchUp(t)
	most = 0
	f.chain.Mine(chaintest.NewTx(pays(alice, 1)))
	before := f.ledger.count(invoice.Pending)
	f.catchUp(t) // from the receipts, since no smaller request is left
	if got := f.ledger.count(invoice.Pending); got != before+1 {
		t.Errorf("%d payments are pending, want one more than %d", got, before)
	}
}

// TestClippedRange has payments in the newest final blocks of a chain of depth 1, and a backend that returns empty logs
// for the newest two blocks.
func TestClippedRange(t *testing.T) {
	f := newFixture(t, nil)
	clipping := tamperingProxy(t, f.node, func(q question, ask func(question) any) any {
		var filter map[string]any
		if q.Method == "eth_getLogs" && json.Unmarshal(q.Params[0], &filter) == nil && filter["toBlock"] != nil {
			var kept []any
			logs, _ := ask(q).([]any)
			for _, l := range logs {
				of, _ := l.(map[string]any)
				if number, _ := of["blockNumber"].(string); parse(t, number)+2 <= f.chain.Head().Number {
					kept = append(kept, l)
				}
			}
			return append([]any{}, kept...)
		}
		return ask(q)
	})
	depth1 := func(c *Config) { c.Chain.Finality = chain.Finality{Depth: 1} }
	f.restart(t, depth1, clipping)
	f.catchUp(t)
	f.chain.Mine(chaintest.NewTx(pays(alice, 1)))
	f.chain.MineEmpty(3 * maxBlocks)
	for n := range uint64(3) {
		f.chain.Mine(chaintest.NewTx(pays(alice, n+2)))
	}
	f.catchUp(t)
	f.expect(t, 3*maxBlocks+4, 3*maxBlocks+3, 1, 3, 0)
	if n := len(f.ledger.headers); n > maxBlocks+10 {
		t.Errorf("%d headers were recorded, want the old blocks read in a range", n)
	}

	// The same blocks as a gap.
	g := &fixture{chain: f.chain, node: f.node, ledger: newMemory(merchant)}
	g.restart(t, depth1, clipping)
	g.catchUp(t)
	g.expect(t, 3*maxBlocks+4, 3*maxBlocks+3, 1, 3, 0)
}

// TestGenesisIsRemembered restarts a chain's indexer with a node of another chain with the same chain id. No block of
// that chain is recorded, even if the newest final block is on neither chain.
func TestGenesisIsRemembered(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.MineEmpty(9)
	f.catchUp(t)
	if f.ledger.genesis == nil || f.ledger.genesis.Number != 0 || f.ledger.genesis.Hash != invoice.Hash(f.chain.Blocks()[0].Hash) {
		t.Fatalf("the genesis %+v is remembered, want block 0", f.ledger.genesis)
	}
	before := f.ledger.cursor
	other := newFixture(t, nil)
	other.ledger = f.ledger
	f.ledger.genesis = &invoice.Header{Hash: invoice.Hash{1}}
	other.restart(t, nil)
	_, err := other.sync(t.Context())
	if !errors.Is(err, chain.ErrMismatch) || !strings.Contains(err.Error(), "another chain with the same chain id") {
		t.Errorf("got %v, want an ErrMismatch that says so", err)
	}
	expect.Equal(t, other.state(0), chain.StateMisconfigured, "the node is")
	expect.Equal(t, f.ledger.cursor, before, "the cursor moved to")
}

// TestGenesisOfReadChain starts on a chain that an earlier version read. The node's oldest block is stored only if the
// node has the newest final block.
func TestGenesisOfReadChain(t *testing.T) {
	for has, want := range map[bool]bool{true: true, false: false} {
		f := newFixture(t, nil)
		f.chain.MineEmpty(9)
		f.catchUp(t)
		f.ledger.genesis = nil
		if !has {
			f.ledger.cursor.Confirmed.Hash = invoice.Hash{1}
		}
		f.restart(t, nil)
		f.chain.Mine()
		_, _ = f.sync(t.Context()) // it fails on another chain
		expect.Equal(t, f.ledger.genesis != nil, want, "the node has the final block: %t; its genesis is remembered:", has)
	}
}

// TestPrunedGenesis reads a chain from a node that has deleted its first blocks and answers requests for them with an
// unusual error.
func TestPrunedGenesis(t *testing.T) {
	f := newFixture(t, nil)
	url := tamperingProxy(t, f.node, func(q question, ask func(question) any) any {
		if q.Method == "eth_getBlockByNumber" && slices.Contains([]string{`"0x0"`, `"0x1"`}, string(q.Params[0])) {
			return errors.New("pruned history unavailable")
		}
		return ask(q)
	})
	f.chain.MineEmpty(9)
	first := uint64(2)
	for _, start := range []*uint64{nil, &first} {
		f.ledger = newMemory(merchant)
		f.restart(t, func(c *Config) { c.Ledger, c.Chain.StartBlock = f.ledger, start }, url)
		f.catchUp(t)
		expect.Equal(t, f.ledger.cursor.Indexed.Number, 9, "start block %v: read up to block", start)
		if got := f.ledger.genesis; (got == nil) != (start == nil) || got != nil && got.Number != first {
			t.Errorf("start block %v: the genesis %+v is remembered", start, got)
		}
	}
}
