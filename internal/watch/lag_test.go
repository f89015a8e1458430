package watch

import (
	"context"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
)

// clipping is a node with a backend that is two blocks behind what the others
// say, and answers for logs as if there was nothing in these two.
type clipping struct {
	Source
	chain *chaintest.Chain
}

func (c clipping) LogsInRange(ctx context.Context, first, last uint64, f chain.LogFilter) ([]types.Log, error) {
	return c.Source.LogsInRange(ctx, first, min(last, c.chain.Head().Number-2), f)
}

// TestClippedRange has payments in the newest final blocks of a chain of depth
// 1, and a backend that does not have these yet.
func TestClippedRange(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Chain.Finality = chain.Finality{Depth: 1} })
	f.Sources[0] = clipping{f.Sources[0], f.chain}
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
}

// forgetful is a node that answers the first so many requests for blocks' logs
// as if there were none.
type forgetful struct {
	Source
	times *int
	asked *int
}

func (f forgetful) LogsOfBlocks(ctx context.Context, blocks []invoice.Hash, filter chain.LogFilter) ([][]types.Log, error) {
	*f.asked++
	if *f.asked <= *f.times {
		return make([][]types.Log, len(blocks)), nil
	}
	return f.Source.LogsOfBlocks(ctx, blocks, filter)
}

// TestEmptyAnswer has a node deny the logs that a block's bloom filter
// mentions: another one is asked, or the same one again.
func TestEmptyAnswer(t *testing.T) {
	always := 1000
	for name, test := range map[string]struct {
		times  int
		second bool
		asked  int // the first node
	}{
		"once, alone":          {1, false, 2},
		"always, with another": {always, true, 1},
	} {
		f := newFixture(t, nil)
		asked := 0
		f.Sources[0] = forgetful{f.Sources[0], &test.times, &asked}
		if test.second {
			f.Sources = append(f.Sources, dial(t, f.chain.Serve(t).URL))
			f.checked = make([]bool, 2)
		}
		f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
		if _, err := f.round(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f.expect(t, 1, 0, 1, 0, 0)
		if asked != test.asked {
			t.Errorf("%s: the node was asked %d times, want %d", name, asked, test.asked)
		}
	}
}

// TestMisleadingBloom has a block with another log of the token and a transfer
// of another token, which its bloom filter cannot tell from a transfer of the
// token: reading goes on, also while the second node is wrong or unreachable.
func TestMisleadingBloom(t *testing.T) {
	f := newFixture(t, nil)
	second := f.chain.Serve(t)
	f.Sources = append(f.Sources, dial(t, second.URL), dial(t, "http://127.0.0.1:1"))
	f.checked = make([]bool, 3)
	misleading := func() {
		f.chain.Mine(chaintest.NewTx(chaintest.AuthorizationUsed(token, alice, id1), chaintest.Transfer(other, alice, merchant, five)))
	}
	misleading()
	f.catchUp(t)
	f.expect(t, 1, 0, 0, 0, 0)
	if n := second.Calls("eth_getLogs"); n != 1 {
		t.Errorf("the second node was asked %d times, want once", n)
	}
	f.Sources[1] = f.Sources[2]
	misleading()
	f.catchUp(t)
	f.expect(t, 2, 0, 0, 0, 0)
	if n := f.node.Calls("eth_getLogs"); n != 3 {
		t.Errorf("the only node that answers was asked %d times, want twice for the second block", n)
	}
}

// TestFrozenNode has the first of two nodes stay at one head: after a while
// the other one is asked, and kept if it knows more.
func TestFrozenNode(t *testing.T) {
	now := time.Unix(chaintest.GenesisTime, 0)
	f := newFixture(t, func(c *Config) { c.Now = func() time.Time { return now } })
	second := f.chain.Serve(t)
	f.Sources = append(f.Sources, dial(t, second.URL))
	f.checked = make([]bool, 2)
	asked := func(want Source) {
		t.Helper()
		if got := f.Status().Source; got != want.String() {
			t.Errorf("%s was asked, want %s", got, want)
		}
	}
	f.chain.MineEmpty(5)
	f.catchUp(t)
	f.node.Lag(2)
	f.chain.MineEmpty(2)
	second.Lag(2)

	now = now.Add(frozenAfter - 1)
	f.catchUp(t)
	f.catchUp(t)
	asked(f.Sources[0])
	now = now.Add(1)
	f.catchUp(t) // notices
	f.catchUp(t)
	asked(f.Sources[1])
	f.catchUp(t)
	asked(f.Sources[1]) // the chain is silent: no reason to change at once
	now = now.Add(frozenAfter)
	f.catchUp(t)
	f.catchUp(t)
	asked(f.Sources[0])
	f.expect(t, 5, 2, 0, 0, 0)

	second.Lag(0)
	now = now.Add(frozenAfter)
	f.catchUp(t)
	f.catchUp(t)
	asked(f.Sources[1])
	f.expect(t, 7, 4, 0, 0, 0)
	f.chain.Mine()
	f.catchUp(t)
	asked(f.Sources[1])
	f.expect(t, 8, 5, 0, 0, 0)
}
