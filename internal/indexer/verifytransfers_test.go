package indexer

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
)

// TestQuorum expects payments to become final only when two nodes report them, near the head and in ranges behind it.
func TestQuorum(t *testing.T) {
	const alone, disagree = "the quorum is two nodes", "report different transfers"
	down := chaintest.Refuse{Status: 500}
	drop := chaintest.DropLogs{Percent: 50}
	forge := chaintest.Forge{At: 7, Logs: []chaintest.Log{pays(bob, 1000)}}
	deny := chaintest.Only{Methods: []string{"eth_getTransactionReceipt"}, Fault: chaintest.Null{}}
	for name, test := range map[string]struct {
		faults      []chaintest.Fault // of each node; nil without faults
		quarantined []bool
		noQuorum    string
	}{
		"both":                     {[]chaintest.Fault{nil, nil}, []bool{false, false}, ""},
		"one alone":                {[]chaintest.Fault{nil}, []bool{false}, alone},
		"the second is down":       {[]chaintest.Fault{nil, down}, []bool{false, false}, alone},
		"the first is down":        {[]chaintest.Fault{down, nil}, []bool{false, false}, alone},
		"one of three is down":     {[]chaintest.Fault{nil, down, nil}, []bool{false, false, false}, ""},
		"the first leaves out":     {[]chaintest.Fault{drop, nil, nil}, []bool{true, false, false}, ""},
		"the second leaves out":    {[]chaintest.Fault{nil, drop, nil}, []bool{false, true, false}, ""},
		"the first of two":         {[]chaintest.Fault{drop, nil}, []bool{true, false}, alone},
		"the second of two":        {[]chaintest.Fault{nil, drop}, []bool{false, true}, alone},
		"the first invents":        {[]chaintest.Fault{forge, nil, nil}, []bool{true, false, false}, ""},
		"the second invents":       {[]chaintest.Fault{nil, forge, nil}, []bool{false, true, false}, ""},
		"one invents, of two":      {[]chaintest.Fault{forge, nil}, []bool{false, false}, disagree},
		"the other invents":        {[]chaintest.Fault{nil, forge}, []bool{false, false}, disagree},
		"the second denies":        {[]chaintest.Fault{nil, deny, nil}, []bool{false, false, false}, ""},
		"the second of two denies": {[]chaintest.Fault{nil, deny}, []bool{false, false}, alone},
	} {
		for where, behind := range map[string]int{"near": 0, "behind": 3 * maxBlocks} {
			t.Run(name+", "+where, func(t *testing.T) {
				f := newFixture(t, nil)
				proxies := f.nodes(t, len(test.faults), func(c *Config) { c.Chain.Quorum = 2 })
				f.chain.MineEmpty(5)
				if len(test.faults) > 1 {
					f.catchUp(t)
				}
				for i, fault := range test.faults {
					if fault != nil {
						proxies[i].SetFaults(fault)
					}
				}
				f.chain.Mine(chaintest.NewTx(pays(alice, 1), paid(id1, alice, 1), pays(alice, 2)), chaintest.NewTx(pays(bob, 3)))
				f.chain.Mine(chaintest.NewTx(chaintest.Transfer(token, merchant, bob, five)), chaintest.NewTx(pays(alice, 4), pays(alice, 5)))
				f.chain.MineEmpty(3 + behind)
				var err error
				for more := true; more && err == nil; {
					if more, err = f.sync(t.Context()); err == nil && !more {
						more, err = f.fill(t.Context())
					}
				}
				var noQuorum *NoQuorumError
				switch {
				case test.noQuorum == "" && err != nil:
					t.Errorf("reading failed: %v", err)
				case test.noQuorum != "" && (!errors.As(err, &noQuorum) || !strings.Contains(noQuorum.Reason, test.noQuorum)):
					t.Errorf("reading ended with %v, want that %q", err, test.noQuorum)
				}
				for i, want := range test.quarantined {
					if got := f.state(i) == chain.StateQuarantined; got != want {
						t.Errorf("node %d is %s, want it quarantined: %t", i, f.state(i), want)
					}
				}
				want := 6
				if test.noQuorum != "" {
					want = 0
				}
				if got := f.ledger.count(invoice.Confirmed); got != want {
					t.Errorf("%d transfers are confirmed, want %d", got, want)
				}
				for _, b := range f.ledger.breaches {
					t.Error(b)
				}
			})
		}
	}
}

// TestQuorumOnLateAddress has an address become a settlement address after a block with a transfer to it was read: the
// transfer is recorded before the block is final, and no node is blamed.
func TestQuorumOnLateAddress(t *testing.T) {
	f := newFixture(t, nil)
	f.nodes(t, 2, func(c *Config) { c.Chain.Quorum = 2 })
	f.chain.Mine(chaintest.NewTx(chaintest.Transfer(token, alice, bob, five)))
	f.catchUp(t)
	f.expect(t, 1, 0, 0, 0, 0)
	f.ledger.settlement[bob] = true
	f.chain.MineEmpty(3)
	f.catchUp(t)
	f.expect(t, 4, 1, 0, 1, 0)
	for i := range 2 {
		if got := f.state(i); got != chain.StateOK {
			t.Errorf("node %d is %s", i, got)
		}
	}
}

// TestQuorumAfterLongOutage has only one node answer for a long time: when the second is back, the backlog is requested
// in parts.
func TestQuorumAfterLongOutage(t *testing.T) {
	f := newFixture(t, nil)
	var later time.Duration
	second := f.nodes(t, 2, func(c *Config) {
		c.Chain.Quorum, c.Now = 2, func() time.Time { return time.Now().Add(later) }
	})[1]
	f.chain.MineEmpty(5)
	f.catchUp(t)
	second.SetFaults(chaintest.Refuse{Status: 500})
	const waiting = 2*maxQuorumBlocks + maxBlocks
	for range waiting / maxBlocks {
		f.chain.MineEmpty(maxBlocks - 1)
		f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
		if _, err := f.sync(t.Context()); !errors.As(err, new(*NoQuorumError)) {
			t.Fatalf("alone, the round ended with %v", err)
		}
	}
	second.SetFaults()
	later = chain.MaxRetryAfter // its pause is over
	for _, want := range []uint64{maxQuorumBlocks, 2 * maxQuorumBlocks, waiting} {
		more, err := f.sync(t.Context())
		if got := f.ledger.cursor.Confirmed.Number; err != nil || got != 2+want || more != (want < waiting) {
			t.Errorf("it is final up to block %d (more: %t), %v; want %d", got, more, err, 2+want)
		}
	}
	f.expect(t, waiting+5, waiting+2, 1, waiting/maxBlocks-1, 0)
}

// TestQuorumOnFinalizedHeight has one node call its head final. With a quorum of two, no block is final that the other
// node does not call final, too.
func TestQuorumOnFinalizedHeight(t *testing.T) {
	hasty := func(f *fixture) string {
		return tamperingProxy(t, f.node, func(q question, ask func(question) any) any {
			if q.Method == "eth_getBlockByNumber" && string(q.Params[0]) == `"safe"` {
				q.Params[0] = json.RawMessage(`"latest"`)
			}
			return ask(q)
		})
	}
	f := newFixture(t, nil)
	f.restart(t, func(c *Config) {
		c.Chain.Quorum = 2
		c.Chain.Finality = chain.Finality{Tag: chain.TagSafe}
	}, hasty(f), f.node.URL)
	f.chain.MineEmpty(10)
	_, err := f.sync(t.Context())
	if noQuorum := new(NoQuorumError); !errors.As(err, &noQuorum) {
		t.Fatalf("began on one node's word: %v", err)
	}
	f.chain.Tag(chain.TagSafe, 4)
	f.catchUp(t)
	f.chain.Mine(chaintest.NewTx(pays(alice, 1)))
	f.catchUp(t)
	f.expect(t, 11, 4, 1, 0, 0)
	// It notices that the other node caught up without a new head.
	f.chain.Tag(chain.TagSafe, 11)
	f.catchUp(t)
	f.expect(t, 11, 11, 0, 1, 0)
}
