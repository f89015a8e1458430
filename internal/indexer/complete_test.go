package indexer

import (
	"context"
	"errors"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestReceiptsMustBeComplete has the only node leave out all logs of a block, also from the block's receipts: such
// receipts are rejected. The payments come from each transaction's receipt or, if the node lost these as well, once it
// has them again.
func TestReceiptsMustBeComplete(t *testing.T) {
	lost := chaintest.Only{Methods: []string{"eth_getTransactionReceipt"}, Fault: chaintest.Null{}}
	for name, receipts := range map[string]chaintest.Fault{
		"none":           chaintest.DropReceipts{},
		"some":           chaintest.DropReceipts{Keep: 1},
		"all but one":    chaintest.DropReceipts{Keep: 2},
		"without logs":   chaintest.DropReceipts{LogsOnly: true},
		"some with logs": chaintest.DropReceipts{Keep: 1, LogsOnly: true},
	} {
		for _, full := range []bool{true, false} {
			for _, single := range []bool{true, false} {
				f := newFixture(t, nil)
				proxy := f.nodes(t, 1, func(c *Config) { c.Chain.FullBloom = full })[0]
				f.chain.Mine(chaintest.NewTx(chaintest.Transfer(token, alice, bob, five))) // shows that the filters hold logs
				f.catchUp(t)
				faults := []chaintest.Fault{chaintest.DropLogs{}, receipts}
				if !single {
					faults = append(faults, lost)
				}
				proxy.SetFaults(faults...)
				f.chain.Mine(chaintest.NewTx(chaintest.Transfer(other, alice, bob, five)), chaintest.NewTx(pays(alice, 5)), chaintest.NewTx(pays(bob, 6)))
				if single {
					f.catchUp(t)
					f.expect(t, 2, 0, 2, 0, 0)
					continue
				}
				if _, err := f.sync(t.Context()); err == nil {
					t.Errorf("%s, full %t: the block was read", name, full)
				}
				f.expect(t, 1, 0, 0, 0, 0)
				proxy.SetFaults()
				f.catchUp(t)
				f.expect(t, 2, 0, 2, 0, 0)
			}
		}
	}
}

// TestIncompleteReceiptsAreAFailure sees a node cool down after receipts that do not match the
// header. The node does not cool down if the filter lacks logs on a chain with filters that are not
// known to have every log.
func TestIncompleteReceiptsAreAFailure(t *testing.T) {
	f := newFixture(t, nil)
	p := f.cfg.Pool.Nodes()[0]
	b := f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
	f.catchUp(t)
	headers, err := p.Headers(t.Context(), []uint64{b.Number})
	expect.OK(t, err)
	h := headers[0]
	if h.Txs != 1 {
		t.Errorf("the block has %d transactions, want 1", h.Txs)
	}
	h.Bloom[0] = 0 // the filter of another block
	h.Bloom[1] = 1
	_, err = f.blockReceipts(t.Context(), node{p}, h)
	var failed *nodeError
	if !errors.Is(err, errIncomplete) || !errors.As(err, &failed) {
		t.Fatalf("receipts of another block: %v", err)
	}
	failed.report()
	if got := f.state(0); got != chain.StateBackoff {
		t.Errorf("the node is %s, want it to cool down", got)
	}
	f.cfg.Chain.FullBloom = false
	h.Bloom = headers[0].Bloom
	for i := range h.Bloom {
		if h.Bloom[i] != 0 {
			h.Bloom[i] &= h.Bloom[i] - 1 // one bit less than the logs have
			break
		}
	}
	if _, err := f.blockReceipts(context.Background(), node{p}, h); err != nil {
		t.Errorf("a log that the filter lacks: %v", err)
	}
	h.Txs = chain.UnknownTxs
	if _, err := f.blockReceipts(context.Background(), node{p}, h); err != nil {
		t.Errorf("a header without transactions: %v", err)
	}
}
