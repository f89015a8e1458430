package indexer

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

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
	if got := other.state(0); got != chain.StateMisconfigured {
		t.Errorf("the node is %s, want misconfigured", got)
	}
	if f.ledger.cursor != before {
		t.Errorf("the cursor moved to %+v", f.ledger.cursor)
	}
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
		if got := f.ledger.genesis != nil; got != want {
			t.Errorf("the node has the final block: %t; its genesis is remembered: %t", has, got)
		}
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
		if got := f.ledger.cursor.Indexed.Number; got != 9 {
			t.Errorf("start block %v: read up to block %d, want 9", start, got)
		}
		if got := f.ledger.genesis; (got == nil) != (start == nil) || got != nil && got.Number != first {
			t.Errorf("start block %v: the genesis %+v is remembered", start, got)
		}
	}
}
