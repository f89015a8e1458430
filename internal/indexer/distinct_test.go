package indexer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/ledger"
)

// ledgers is the ledger of a service with two chains.
type ledgers struct {
	*memory         // of this chain
	other   *memory // of the other
	key     string  // of the other
}

func (l ledgers) Cursor(ctx context.Context, key string) (ledger.Progress, error) {
	if key == l.key {
		return l.other.Cursor(ctx, key)
	}
	return l.memory.Cursor(ctx, key)
}

// twin is a fixture of a chain with another key and chain id. Its node reports that id and serves the blocks of f's
// chain.
func twin(t *testing.T, f *fixture) (g *fixture, url string) {
	t.Helper()
	url = tamperingProxy(t, f.node, func(q question, ask func(question) any) any {
		if q.Method == "eth_chainId" {
			return "0x63"
		}
		return ask(q)
	})
	g = &fixture{chain: f.chain, node: f.node, ledger: newMemory(merchant)}
	return g, url
}

func twinOf(f *fixture, key string, senior bool) func(*Config) {
	return func(c *Config) {
		c.Chain.ID, c.Chain.Key = 99, "twin"
		c.Ledger = ledgers{c.Ledger.(*memory), f.ledger, key}
		c.Others = []string{key}
		if senior {
			c.Senior = c.Others
		}
	}
}

// TestOneChainUnderTwoKeys makes a node report its own chain id and serve the blocks
// of another chain of the service. No block is recorded.
func TestOneChainUnderTwoKeys(t *testing.T) {
	f := newFixture(t, nil)
	f.chain.MineEmpty(9)
	f.catchUp(t)
	for _, begun := range []bool{false, true} {
		g, url := twin(t, f)
		if begun { // before the chain was known to be the other one
			g.restart(t, func(c *Config) { twinOf(f, "test", true)(c); c.Others = nil }, url)
			g.catchUp(t)
			f.chain.Mine()
		}
		before := g.ledger.cursor
		g.restart(t, twinOf(f, "test", begun), url)
		_, err := g.sync(t.Context())
		if !errors.Is(err, chain.ErrMismatch) || !strings.Contains(err.Error(), "chain test under the key twin") {
			t.Errorf("begun %t: got %v, want an ErrMismatch that names both keys", begun, err)
		}
		if g.ledger.cursor != before {
			t.Errorf("begun %t: the cursor moved to %+v", begun, g.ledger.cursor)
		}
		if got := g.state(0); got != chain.StateMisconfigured {
			t.Errorf("begun %t: the node is %s, want misconfigured", begun, got)
		}
		// The earlier chain continues.
		f.restart(t, func(c *Config) { c.Ledger, c.Others = ledgers{f.ledger, g.ledger, "twin"}, []string{"twin"} })
		f.chain.Mine()
		f.catchUp(t)
		if got := f.ledger.cursor.Indexed.Number; got != f.chain.Head().Number {
			t.Errorf("begun %t: the other chain is read up to %d", begun, got)
		}
	}
}

// TestOtherChainsAreOther has two chains with different blocks.
func TestOtherChainsAreOther(t *testing.T) {
	f, g := newFixture(t, nil), newFixture(t, nil)
	f.chain.MineEmpty(9)
	f.catchUp(t)
	now := time.Now()
	g.chain.Mine()
	g.chain.Fork(1)      // the chains differ from here on
	g.chain.MineEmpty(3) // fewer blocks than the other chain has final ones
	g.restart(t, func(c *Config) {
		twinOf(f, "test", true)(c)
		c.Chain.ID, c.Now = testChain.ID, func() time.Time { return now }
	})
	for range 3 {
		g.catchUp(t)
		g.chain.MineEmpty(3)
		now = now.Add(distinctEvery)
	}
	g.catchUp(t)
	if got := g.ledger.cursor.Indexed.Number; got != 12 {
		t.Errorf("read up to block %d, want 12", got)
	}
}
