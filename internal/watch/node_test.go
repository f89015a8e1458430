package watch

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
)

// misnaming is a node whose logs name another block than the one asked for.
type misnaming struct{ Source }

func (m misnaming) LogsInRange(ctx context.Context, first, last uint64, f chain.LogFilter) ([]types.Log, error) {
	logs, err := m.Source.LogsInRange(ctx, first, last, f)
	for i := range logs {
		logs[i].BlockHash[0]++
	}
	return logs, err
}

func (m misnaming) LogsOfBlocks(ctx context.Context, blocks []invoice.Hash, f chain.LogFilter) ([][]types.Log, error) {
	logs, err := m.Source.LogsOfBlocks(ctx, blocks, f)
	for _, ofBlock := range logs {
		for i := range ofBlock {
			ofBlock[i].BlockHash[0]++
		}
	}
	return logs, err
}

// overlong is a node that answers more blocks' logs than it is asked for.
type overlong struct{ Source }

func (o overlong) LogsInRange(ctx context.Context, first, last uint64, f chain.LogFilter) ([]types.Log, error) {
	return o.Source.LogsInRange(ctx, first, last+maxBlocks+3, f)
}

// TestContradictions has nodes answer what does not fit together, in blocks
// read one by one and in ranges: nothing is recorded of it.
func TestContradictions(t *testing.T) {
	for name, test := range map[string]struct {
		wrap  func(Source) Source
		empty int
	}{
		"misnaming, near":     {func(s Source) Source { return misnaming{s} }, 2},
		"misnaming, in range": {func(s Source) Source { return misnaming{s} }, 3 * maxBlocks},
		"overlong":            {func(s Source) Source { return overlong{s} }, 3 * maxBlocks},
	} {
		f := newFixture(t, func(c *Config) { c.Sources[0] = test.wrap(c.Sources[0]) })
		f.chain.Mine(chaintest.NewTx(chaintest.Opened(registry, id1)))
		f.chain.MineEmpty(test.empty)
		f.chain.Mine(chaintest.NewTx(chaintest.Opened(registry, id2)))
		if _, err := f.round(t.Context()); err == nil {
			t.Errorf("%s: the round went well", name)
		}
		f.expect(t, 0, 0, 0, 0, 0)
	}
}

// TestUnprovenTransfer has a recorded transfer differ from its receipt when it
// is to become final: it is read again instead.
func TestUnprovenTransfer(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.MineEmpty(4)
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
		if r.Amount != five {
			t.Errorf("a transfer of %s was confirmed, want 5", r.Amount)
		}
	}
}

// TestPartialBloom reads a chain whose headers leave logs out of their bloom
// filter.
func TestPartialBloom(t *testing.T) {
	f := newFixture(t, func(c *Config) {
		c.Chain.FullBloom = false
		c.Sources = []Source{bloomless{c.Sources[0]}}
	})
	f.catchUp(t)
	f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
	f.catchUp(t)
	f.expect(t, 1, 0, 1, 0, 0)
}

// bloomless is a node that leaves the bloom filter empty.
type bloomless struct{ Source }

func (b bloomless) Head(ctx context.Context) (chain.Header, error) {
	h, err := b.Source.Head(ctx)
	h.Bloom = [256]byte{}
	return h, err
}

// parentless is a node whose head is not on top of the block below it.
type parentless struct{ Source }

func (p parentless) Head(ctx context.Context) (chain.Header, error) {
	h, err := p.Source.Head(ctx)
	h.Hash[0]++
	h.Parent[0]++
	return h, err
}

// TestStandstill has a head that cannot be read, over a tip that the node
// still calls canonical: the watcher waits before it looks again, and does not
// take that head for done.
func TestStandstill(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.MineEmpty(5)
	f.catchUp(t)
	good := f.Sources[0]
	f.Sources[0] = parentless{good}
	f.chain.Mine()
	f.catchUp(t) // block 3 becomes final
	for range 2 {
		before := f.node.Calls("eth_getBlockByNumber")
		if more, err := f.round(t.Context()); more || err != nil {
			t.Errorf("round: %t, %v; want a wait", more, err)
		}
		if n := f.node.Calls("eth_getBlockByNumber") - before; n < 2 {
			t.Errorf("the node was asked for %d blocks: the head was taken for done", n)
		}
	}
	f.expect(t, 5, 3, 0, 0, 0)
	f.Sources[0] = good
	f.catchUp(t)
	f.expect(t, 6, 3, 0, 0, 0)
}

// stingy is a node that refuses requests for the logs of more than so many
// blocks.
type stingy struct {
	Source
	most    *int
	refusal error
}

func (s stingy) LogsOfBlocks(ctx context.Context, blocks []invoice.Hash, f chain.LogFilter) ([][]types.Log, error) {
	if len(blocks) > *s.most {
		return nil, fmt.Errorf("node: eth_getLogs: %w", s.refusal)
	}
	return s.Source.LogsOfBlocks(ctx, blocks, f)
}

// refusal is a node's error answer.
type refusal struct{}

func (refusal) Error() string  { return "batch too large" }
func (refusal) ErrorCode() int { return -32600 }

// TestStingyNode reads block by block from a node that gives little at a time,
// and more again when it gives more.
func TestStingyNode(t *testing.T) {
	for _, err := range []error{chain.ErrResponseTooLarge, refusal{}} {
		f := newFixture(t, nil)
		most := 3
		f.Sources[0] = stingy{f.Sources[0], &most, err}
		for n := range uint64(maxBlocks) {
			f.chain.Mine(chaintest.NewTx(pays(alice, n+1)))
		}
		f.catchUp(t)
		f.expect(t, maxBlocks, maxBlocks-3, 3, maxBlocks-3, 0)
		most = maxBlocks
		for range maxBlocks {
			f.chain.Mine()
			f.catchUp(t)
		}
		f.chain.MineEmpty(maxBlocks)
		if more, err := f.round(t.Context()); more || err != nil {
			t.Errorf("round: %t, %v; want all blocks in one", more, err)
		}
		most = 0
		f.chain.Mine(chaintest.NewTx(pays(alice, 1)))
		if _, got := f.round(t.Context()); !errors.Is(got, err) {
			t.Errorf("round: %v, want %v", got, err)
		}
	}
}
