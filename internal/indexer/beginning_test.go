package indexer

import (
	"errors"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
)

// TestStartBlockIsCrossChecked has nodes return a wrong block where reading should begin. That block counts as final
// without having been read.
func TestStartBlockIsCrossChecked(t *testing.T) {
	wrong, down := chaintest.FalseChain{From: 2}, chaintest.Refuse{Status: 500}
	for name, test := range map[string]struct {
		quorum int
		faults []chaintest.Fault
		begins bool
	}{
		"one":                            {1, []chaintest.Fault{nil}, true},
		"one, two must agree":            {2, []chaintest.Fault{nil}, false},
		"the first of two lies":          {1, []chaintest.Fault{wrong, nil}, false},
		"the second of two lies":         {1, []chaintest.Fault{nil, wrong}, false},
		"the first of three lies":        {1, []chaintest.Fault{wrong, nil, nil}, true},
		"the second is down":             {1, []chaintest.Fault{nil, down}, true},
		"the second is down, must agree": {2, []chaintest.Fault{nil, down}, false},
		"the third agrees":               {2, []chaintest.Fault{nil, down, nil}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			for i, p := range f.nodes(t, len(test.faults), func(c *Config) { c.Chain.Quorum = test.quorum }) {
				if test.faults[i] != nil {
					p.SetFaults(test.faults[i])
				}
			}
			f.chain.MineEmpty(8)
			_, err := f.sync(t.Context())
			cursor, _ := f.ledger.Cursor(t.Context(), "")
			var noQuorum *NoQuorumError
			switch {
			case cursor.Started != test.begins:
				t.Errorf("reading began: %t, want %t; %v", cursor.Started, test.begins, err)
			case !test.begins && !errors.As(err, &noQuorum):
				t.Errorf("round: %v, want a *NoQuorumError", err)
			case test.begins && cursor.Confirmed.Hash != invoice.Hash(f.chain.Blocks()[5].Hash):
				t.Errorf("reading began at %+v, which is no block of the chain", cursor.Confirmed)
			}
		})
	}
}

// TestNodeRepeatsAFalseBlock has a node invent a transfer while the other one gives no receipts, so that only the first
// node reported the record. Its second answer must not confirm its first.
func TestNodeRepeatsAFalseBlock(t *testing.T) {
	f := newFixture(t, nil)
	proxies := f.nodes(t, 2, func(c *Config) { c.Chain.Quorum = 2 })
	f.chain.MineEmpty(5)
	f.catchUp(t)
	proxies[0].SetFaults(chaintest.Only{Methods: []string{"eth_getTransactionReceipt"}, Fault: chaintest.Null{}})
	proxies[1].SetFaults(chaintest.Forge{At: 7, Logs: []chaintest.Log{pays(bob, 1000)}})
	f.chain.MineEmpty(1)
	f.chain.Mine(chaintest.NewTx(pays(alice, 1)))
	for range 8 {
		if _, err := f.sync(t.Context()); err == nil {
			f.chain.Mine()
		}
	}
	if n := f.ledger.count(invoice.Confirmed); n != 0 {
		t.Errorf("%d transfers are confirmed by one node's word", n)
	}
	if f.ledger.count(invoice.Pending) == 0 {
		t.Error("nothing was recorded by the node that invents")
	}
	if f.state(0) == chain.StateQuarantined {
		t.Error("the node that only gives no receipts is quarantined")
	}
}
