package indexer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// nodes makes the fixture use the given number of proxies of its node, the first
// one preferred.
func (f *fixture) nodes(t *testing.T, count int, change func(*Config)) []*chaintest.Proxy {
	t.Helper()
	proxies := make([]*chaintest.Proxy, count)
	urls := make([]string, count)
	for i := range proxies {
		proxies[i] = chaintest.NewProxy(t, f.node, uint64(i+1))
		urls[i] = proxies[i].URL
	}
	f.restart(t, change, urls...)
	return proxies
}

// TestLeftOutLogs has a node deny the logs of a block with a bloom filter that matches them.
func TestLeftOutLogs(t *testing.T) {
	drop := chaintest.DropLogs{}
	noReceipts := func(code int) chaintest.Fault {
		return chaintest.Only{Methods: []string{"eth_getBlockReceipts"}, Fault: chaintest.Fail{Code: code, Message: "the method does not exist"}}
	}
	for name, test := range map[string]struct {
		faults [][]chaintest.Fault // of each node
		first  chain.State         // state of the first node afterwards
		found  int
	}{
		"another has them":            {[][]chaintest.Fault{{drop}, nil}, chain.StateQuarantined, 1},
		"another is down":             {[][]chaintest.Fault{{drop}, {chaintest.Refuse{Status: 500}}}, chain.StateOK, 1},
		"alone, receipts tell":        {[][]chaintest.Fault{{drop}}, chain.StateOK, 1},
		"alone, no block receipts":    {[][]chaintest.Fault{{drop, noReceipts(-32601)}}, chain.StateOK, 1},
		"alone, not supported":        {[][]chaintest.Fault{{drop, noReceipts(-32004)}}, chain.StateOK, 1},
		"alone, another error":        {[][]chaintest.Fault{{drop, noReceipts(-32099)}}, chain.StateOK, 1},
		"another denies them as well": {[][]chaintest.Fault{{drop}, {drop}}, chain.StateOK, 0},
	} {
		f := newFixture(t, nil)
		proxies := f.nodes(t, len(test.faults), nil)
		f.chain.Mine()
		f.catchUp(t)
		for i, p := range proxies {
			p.SetFaults(test.faults[i]...)
		}
		f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
		f.catchUp(t)
		f.expect(t, 2, 0, test.found, 0, 0)
		expect.Equal(t, f.state(0), test.first, "%s: the first node is", name)
	}
}

// TestLogsLeftOutOfLargeBlock has the only node deny the logs of a block. The node does not offer the receipts of a
// block, and the receipts are read one by one if the block has few transactions.
func TestLogsLeftOutOfLargeBlock(t *testing.T) {
	for txs, found := range map[int]int{maxSingleReceipts: 1, maxSingleReceipts + 1: 0} {
		f := newFixture(t, nil)
		proxies := f.nodes(t, 1, nil)
		f.catchUp(t)
		proxies[0].SetFaults(chaintest.DropLogs{}, chaintest.Only{Methods: []string{"eth_getBlockReceipts"}, Fault: chaintest.Fail{Code: -32601}})
		block := []chaintest.Tx{chaintest.NewTx(pays(alice, 5))}
		for len(block) < txs {
			block = append(block, chaintest.NewTx(chaintest.Transfer(other, alice, bob, five)))
		}
		f.chain.Mine(block...)
		f.catchUp(t)
		f.expect(t, 1, 0, found, 0, 0)
	}
}

// TestLogsLeftOutOfRange has a node leave out the logs of a range, either all logs or the logs of its newest blocks,
// like a node that lost or lacks them.
func TestLogsLeftOutOfRange(t *testing.T) {
	for name, fault := range map[string]chaintest.Fault{
		"all":      chaintest.DropLogs{},
		"the last": chaintest.DropLogs{From: chain.FirstRange - 8},
	} {
		f := newFixture(t, nil)
		proxies := f.nodes(t, 2, nil)
		f.chain.MineEmpty(5)
		f.catchUp(t)
		proxies[0].SetFaults(fault)
		for range 4 * maxBlocks {
			f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
		}
		f.catchUp(t)
		f.expect(t, 4*maxBlocks+5, 4*maxBlocks+2, 3, 4*maxBlocks-3, 0)
		expect.Equal(t, f.state(0), chain.StateQuarantined, "%s: the node is", name)
	}
}

// TestBloomFalsePositive has a block with another log of the token and a transfer of another token. Its bloom filter
// cannot distinguish these from a transfer of the token. Indexing continues, and no node is quarantined.
func TestBloomFalsePositive(t *testing.T) {
	f := newFixture(t, nil)
	f.nodes(t, 2, nil)
	f.chain.Mine(chaintest.NewTx(chaintest.AuthorizationUsed(token, alice, id1), chaintest.Transfer(other, alice, merchant, five)))
	f.catchUp(t)
	f.expect(t, 1, 0, 0, 0, 0)
	for i := range 2 {
		expect.Equal(t, f.state(i), chain.StateOK, "node %d is", i)
	}
	expect.Equal(t, f.node.Calls("eth_getLogs"), 3, "times that logs were asked for:")
}

// TestFalseFinalBlock has nodes report another block at the height that
// is about to become final.
func TestFalseFinalBlock(t *testing.T) {
	whole, split := chaintest.FalseChain{From: 6}, chaintest.WrongHash{At: 6}
	for name, test := range map[string]struct {
		faults      []chaintest.Fault // of each node; nil without faults
		quarantined []bool
		noQuorum    bool
	}{
		"the second is torn":           {[]chaintest.Fault{nil, split}, []bool{false, true}, false},
		"the first is torn":            {[]chaintest.Fault{split, nil}, []bool{true, false}, false},
		"the first is outvoted":        {[]chaintest.Fault{whole, nil, nil}, []bool{true, false, false}, false},
		"the second is outvoted":       {[]chaintest.Fault{nil, whole, nil}, []bool{false, true, false}, false},
		"the fourth is outvoted":       {[]chaintest.Fault{nil, nil, whole, nil}, []bool{false, false, true, false}, false},
		"two need all the others":      {[]chaintest.Fault{nil, whole, whole, nil, nil}, []bool{false, true, true, false, false}, false},
		"one against one":              {[]chaintest.Fault{whole, nil}, []bool{false, false}, true},
		"one against one, one is down": {[]chaintest.Fault{whole, nil, chaintest.Refuse{Status: 503}}, []bool{false, false, false}, true},
		"all differ":                   {[]chaintest.Fault{whole, nil, whole}, []bool{false, false, false}, true},
		"the other goes around":        {[]chaintest.Fault{nil, chaintest.FalseChain{From: 2}}, []bool{false, true}, false},
		"the other is down":            {[]chaintest.Fault{nil, chaintest.Refuse{Status: 500}}, []bool{false, false}, false},
		"the other is cut":             {[]chaintest.Fault{nil, chaintest.Truncate{}}, []bool{false, false}, false},
		"the other lags":               {[]chaintest.Fault{nil, chaintest.Stale{At: 5}}, []bool{false, false}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			proxies := f.nodes(t, len(test.faults), nil)
			f.chain.MineEmpty(5)
			f.catchUp(t)
			for i, fault := range test.faults {
				if fault != nil {
					proxies[i].SetFaults(fault)
				}
			}
			f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
			f.chain.MineEmpty(3)
			var err error
			for range 4 {
				if _, err = f.sync(t.Context()); err != nil {
					break
				}
			}
			var noQuorum *NoQuorumError
			if errors.As(err, &noQuorum) != test.noQuorum || (err != nil) != test.noQuorum {
				t.Errorf("round: %v; want no quorum: %t", err, test.noQuorum)
			}
			for i, want := range test.quarantined {
				if got := f.state(i) == chain.StateQuarantined; got != want {
					t.Errorf("node %d is %s, want it quarantined: %t", i, f.state(i), want)
				}
			}
			if test.noQuorum {
				f.expect(t, 9, 2, 1, 0, 0)
				if !strings.Contains(err.Error(), "disagree on block 6") {
					t.Errorf("the error is %q", err)
				}
				return
			}
			f.expect(t, 9, 6, 0, 1, 0)
			if got, want := f.ledger.cursor.Confirmed.Hash, f.chain.Blocks()[6].Hash; got != invoice.Hash(want) {
				t.Errorf("block %s is final, want %s", got, want)
			}
		})
	}
}

// TestWrongTime has nodes return blocks with a time that does not belong to them. No block becomes final with such a time,
// and no payment in one.
func TestWrongTime(t *testing.T) {
	const year = 365 * 24 * 3600
	one, late, past, all := chaintest.WrongTime{From: 6, To: 6, By: year}, chaintest.WrongTime{From: 7, To: 7, By: 1}, chaintest.WrongTime{From: 6, By: -20}, chaintest.WrongTime{From: 6, By: year}
	for name, test := range map[string]struct {
		faults      []chaintest.Fault // of each node; nil without faults
		quarantined int               // the node that is quarantined, or -1
		dies        bool              // the first node, once it was read
		noQuorum    bool
		single      bool // the fault shows only with a quorum
	}{
		"the first, in one":            {faults: []chaintest.Fault{one, nil, nil}},
		"the first, in a payment's":    {faults: []chaintest.Fault{late, nil, nil}, single: true},
		"the first, in all":            {faults: []chaintest.Fault{all, nil, nil}},
		"the second, in one":           {faults: []chaintest.Fault{nil, one, nil}, quarantined: 1, single: true},
		"the second, in all":           {faults: []chaintest.Fault{nil, all, nil}, quarantined: 1},
		"the second, in the past":      {faults: []chaintest.Fault{nil, past, nil}, quarantined: 1},
		"the first dies":               {faults: []chaintest.Fault{all, nil, nil}, quarantined: -1, dies: true},
		"the first of two":             {faults: []chaintest.Fault{all, nil}, quarantined: -1, noQuorum: true},
		"the second of two":            {faults: []chaintest.Fault{nil, all}, quarantined: -1, noQuorum: true},
		"the first dies, one is wrong": {faults: []chaintest.Fault{one, nil, nil}, dies: true},
	} {
		for where, behind := range map[string]int{"near": 0, "behind": 3 * maxBlocks} {
			for quorum := 1; quorum <= 2; quorum++ {
				if test.single && quorum < 2 || test.dies && behind > 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s, %s, quorum %d", name, where, quorum), func(t *testing.T) {
					f := newFixture(t, nil)
					proxies := f.nodes(t, len(test.faults), func(c *Config) { c.Chain.Quorum = quorum })
					f.chain.MineEmpty(5)
					f.catchUp(t)
					for i, fault := range test.faults {
						if fault != nil {
							proxies[i].SetFaults(fault)
						}
					}
					f.chain.Mine(chaintest.NewTx(paid(id1, bob, 9)))
					f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
					if test.dies {
						f.catchUp(t)
						proxies[0].SetFaults(chaintest.Refuse{Status: 500})
					}
					f.chain.MineEmpty(6 + behind)
					var err error
					for more := true; more && err == nil; {
						more, err = f.sync(t.Context())
					}
					if got := errors.As(err, new(*NoQuorumError)); got != test.noQuorum || (err != nil) != test.noQuorum {
						t.Errorf("round: %v; want no quorum: %t", err, test.noQuorum)
					}
					for i := range proxies {
						if got := f.state(i) == chain.StateQuarantined; got != (i == test.quarantined) {
							t.Errorf("node %d is %s", i, f.state(i))
						}
					}
					if !test.noQuorum {
						f.expect(t, uint64(13+behind), uint64(10+behind), 0, 1, 0)
					}
					for _, h := range f.ledger.headers {
						if want := f.chain.Blocks()[h.Number].Time; h.Number <= f.ledger.cursor.Confirmed.Number && h.Time.Unix() != want {
							t.Errorf("block %d is final with the time %d, want %d", h.Number, h.Time.Unix(), want)
						}
					}
					for _, r := range f.ledger.records {
						if want := f.chain.Blocks()[r.BlockNumber].Time; r.Status == invoice.Confirmed && r.BlockTime.Unix() != want {
							t.Errorf("the payment in block %d is final with the time %d, want %d", r.BlockNumber, r.BlockTime.Unix(), want)
						}
					}
				})
			}
		}
	}
}

// TestTwoTimes has a node return a block with a wrong time when it is read, and with the right one when it is asked
// again. The node is quarantined, or it could stop the chain. So is one that returns a later time than the next block
// has, also if another node returns the next block.
func TestTwoTimes(t *testing.T) {
	const year = 365 * 24 * 3600
	once, always := chaintest.WrongTime{From: 6, To: 6, By: 1, Once: true}, chaintest.WrongTime{From: 6, To: 6, By: year}
	for name, test := range map[string]struct {
		fault    chaintest.WrongTime
		dies     bool // after block 6
		quorum   int
		together bool
	}{
		"once": {once, false, 1, false}, "once, quorum 2": {once, false, 2, false},
		"always": {always, false, 1, false}, "always, quorum 2": {always, false, 2, false},
		"another reads on": {always, true, 1, false}, "in a range": {always, false, 1, true},
	} {
		f := newFixture(t, nil)
		proxies := f.nodes(t, 3, func(c *Config) { c.Chain.Quorum = test.quorum })
		f.chain.MineEmpty(5)
		f.catchUp(t)
		proxies[0].SetFaults(test.fault)
		for range 7 {
			f.chain.Mine()
			if f.together = test.together; test.together {
				f.chain.Mine()
			}
			f.catchUp(t)
			if test.dies {
				proxies[0].SetFaults(chaintest.Refuse{Status: 500})
			}
		}
		f.expect(t, f.chain.Head().Number, f.chain.Head().Number-3, 0, 0, 0)
		if !test.dies {
			expect.Equal(t, f.state(0), chain.StateQuarantined, "%s: the node is", name)
		}
		for _, h := range f.ledger.headers {
			expect.Equal(t, h.Time.Unix(), f.chain.Blocks()[h.Number].Time, "%s: the time of block %d is", name, h.Number)
		}
	}
}

// TestReceiptsBehind has a node that lost a payment, and one that has its log and no receipt yet. The payment stays.
func TestReceiptsBehind(t *testing.T) {
	f := newFixture(t, nil)
	proxies := f.nodes(t, 3, nil)
	f.chain.MineEmpty(5)
	f.catchUp(t)
	paid := chaintest.NewTx(pays(alice, 5))
	f.chain.Mine(paid)
	f.catchUp(t)
	f.expect(t, 6, 3, 1, 0, 0)
	noReceipt := chaintest.DropTx{Tx: paid.Hash}
	proxies[0].SetFaults(noReceipt, chaintest.DropLogs{Txs: []common.Hash{paid.Hash}})
	proxies[1].SetFaults(noReceipt)
	f.chain.MineEmpty(3)
	for range 3 {
		_, err := f.sync(t.Context())
		expect.OK(t, err)
		for _, r := range f.ledger.records {
			if r.Status == invoice.Orphaned {
				t.Errorf("the payment is %s", r.Status)
			}
		}
	}
	f.expect(t, 9, 6, 0, 1, 0)
	expect.Equal(t, f.state(0), chain.StateQuarantined, "the node that lost the payment is")
	expect.Equal(t, f.state(1) == chain.StateQuarantined, false, "the node without a receipt is quarantined:")
}

// TestInventedTransaction has a node invent a payment in a block that exists, and the others read the block afterwards.
// They have no receipt of the payment: it is dropped, and the chain goes on, also while the first node repeats it. A node
// that only lacks the receipt is believed about nothing.
func TestInventedTransaction(t *testing.T) {
	forge := chaintest.Forge{At: 6, Logs: []chaintest.Log{pays(bob, 1000)}}
	for name, order := range map[string][]int{"it is removed": {1}, "it is outvoted": {1, 2, 0}} {
		f := newFixture(t, nil)
		proxies := f.nodes(t, 3, nil)
		f.chain.MineEmpty(5)
		f.catchUp(t)
		proxies[0].SetFaults(forge)
		paid := chaintest.NewTx(pays(alice, 5))
		f.chain.Mine(paid)
		f.catchUp(t)
		f.expect(t, 6, 3, 2, 0, 0)
		urls := make([]string, len(order))
		for i, p := range order {
			urls[i] = proxies[p].URL
		}
		f.restart(t, nil, urls...)
		proxies[1].SetFaults(chaintest.DropTx{Tx: paid.Hash})
		f.chain.MineEmpty(3)
		if len(order) == 1 {
			for range 3 {
				if _, err := f.sync(t.Context()); !errors.Is(err, chain.ErrNotFound) {
					t.Errorf("%s: without the receipt of a payment, the round ended with %v", name, err)
				}
			}
			f.expect(t, 9, 3, 2, 0, 0)
		}
		proxies[1].SetFaults()
		f.catchUp(t)
		f.expect(t, 9, 6, 0, 1, 1)
		if got := f.state(0); got != chain.StateOK {
			t.Errorf("%s: the honest node is %s", name, got)
		}
	}
}

// TestViolationOfOne has nodes report a chain without a final block.
func TestViolationOfOne(t *testing.T) {
	around := chaintest.FalseChain{From: 2}
	down := chaintest.Refuse{Status: 500}
	for name, test := range map[string]struct {
		faults           []chaintest.Fault
		quarantined      bool // the first node afterwards
		noQuorum, halted bool
	}{
		"the others have it":          {[]chaintest.Fault{around, nil, nil}, true, false, false},
		"the other has it":            {[]chaintest.Fault{around, nil}, true, false, false},
		"one of two has it":           {[]chaintest.Fault{around, around, nil}, false, true, false},
		"the other does not answer":   {[]chaintest.Fault{around, down}, false, true, false},
		"the other lost it as well":   {[]chaintest.Fault{around, around}, false, false, true},
		"there is no other":           {[]chaintest.Fault{around}, false, false, true},
		"one lost it, one is unknown": {[]chaintest.Fault{around, around, down}, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			proxies := f.nodes(t, len(test.faults), nil)
			f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
			f.chain.MineEmpty(4)
			f.catchUp(t)
			f.expect(t, 5, 2, 0, 1, 0)
			for i, fault := range test.faults {
				if fault != nil {
					proxies[i].SetFaults(fault)
				}
			}
			f.chain.Mine()
			_, err := f.sync(t.Context())
			var noQuorum *NoQuorumError
			var halted *HaltedError
			if errors.As(err, &noQuorum) != test.noQuorum || errors.As(err, &halted) != test.halted {
				t.Errorf("round: %v; want no quorum %t, halted %t", err, test.noQuorum, test.halted)
			}
			if got := f.state(0) == chain.StateQuarantined; got != test.quarantined {
				t.Errorf("the first node is %s, want it quarantined: %t", f.state(0), test.quarantined)
			}
			if test.noQuorum || test.halted {
				f.expect(t, 5, 2, 0, 1, 0)
				return
			}
			f.expect(t, 6, 3, 0, 1, 0)
		})
	}
}

// TestViolationByAnOldState has the only node report a branch without a final block, but call none of its blocks at that
// height final. The chain is halted once it does.
func TestViolationByAnOldState(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Chain.Finality = chain.Finality{Tag: chain.TagSafe} })
	f.chain.Tag(chain.TagSafe, 2)
	f.chain.MineEmpty(5)
	f.catchUp(t)
	f.chain.Tag(chain.TagSafe, 4)
	f.chain.Mine()
	f.catchUp(t)
	f.expect(t, 6, 4, 0, 0, 0)
	f.chain.Fork(3)
	f.chain.Tag(chain.TagSafe, 3)
	f.chain.MineEmpty(4)
	f.catchUp(t)
	f.expect(t, 6, 4, 0, 0, 0)
	f.chain.Tag(chain.TagSafe, 4)
	_, err := f.sync(t.Context())
	var halted *HaltedError
	if !errors.As(err, &halted) {
		t.Errorf("round: %v; want the chain halted", err)
	}
}

// TestViolationOnce has the only node answer once from a branch without a final block.
func TestViolationOnce(t *testing.T) {
	f := newFixture(t, nil)
	proxy := f.nodes(t, 1, nil)[0]
	f.chain.MineEmpty(5)
	f.catchUp(t)
	f.chain.Mine()
	proxy.SetFaults(chaintest.FalseChain{From: 2})
	asked := 0
	f.node.Intercept(func(_ context.Context, _ string) error {
		if asked++; asked == 4 { // its heads, two blocks below them, and its heads again
			proxy.SetFaults()
		}
		return nil
	})
	if _, err := f.sync(t.Context()); err == nil || !strings.Contains(err.Error(), "has it again") {
		t.Errorf("round: %v; want an error about the block that is there again", err)
	}
	f.catchUp(t)
	f.expect(t, 6, 3, 0, 0, 0)
}

// TestViolationOfAll makes all nodes lose a final block, one earlier than the other.
// The first one is quarantined, although it is right.
func TestViolationOfAll(t *testing.T) {
	f := newFixture(t, nil)
	proxies := f.nodes(t, 2, nil)
	f.chain.MineEmpty(5)
	f.catchUp(t)
	proxies[1].SetFaults(chaintest.FalseChain{From: 2})
	f.chain.Mine()
	f.catchUp(t)
	f.expect(t, 6, 3, 0, 0, 0)
	if got := f.state(1); got != chain.StateQuarantined {
		t.Fatalf("the second node is %s, want it quarantined", got)
	}
	proxies[0].SetFaults(chaintest.FalseChain{From: 2})
	f.chain.Mine()
	_, err := f.sync(t.Context())
	var halted *HaltedError
	if !errors.As(err, &halted) {
		t.Errorf("round: %v; want the chain halted", err)
	}
	f.expect(t, 6, 3, 0, 0, 0)
}

// TestHeadRegression makes a node report a head far below its earlier one. The node is quarantined, no block is rolled
// back, and the other node is read.
func TestHeadRegression(t *testing.T) {
	f := newFixture(t, nil)
	proxies := f.nodes(t, 2, nil)
	f.chain.MineEmpty(chain.MaxRegress + 40)
	f.catchUp(t)
	proxies[0].SetFaults(chaintest.Stale{At: 20})
	f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
	f.catchUp(t)
	f.expect(t, chain.MaxRegress+41, chain.MaxRegress+38, 1, 0, 0)
	expect.Equal(t, f.state(0), chain.StateQuarantined, "the node is")
}

// TestSlowVote has the second node not answer: blocks that become final wait for it once, and not again while it is
// paused.
func TestSlowVote(t *testing.T) {
	f := newFixture(t, nil)
	now := newClock()
	proxies := f.nodes(t, 2, func(c *Config) { c.Now = now.Now })
	f.chain.MineEmpty(4)
	f.catchUp(t)
	proxies[1].SetFaults(chaintest.Stall{})
	for range 3 {
		f.chain.Mine()
		f.catchUp(t)
	}
	f.expect(t, 7, 4, 0, 0, 0)
	expect.Equal(t, f.state(1), chain.StateBackoff, "the slow node is")
}

// TestAllBehind makes the only node lack indexed blocks, like a node that syncs again. It is an error only if it lasts.
func TestAllBehind(t *testing.T) {
	f := newFixture(t, nil)
	now := newClock()
	proxy := f.nodes(t, 1, func(c *Config) { c.Now = now.Now })[0]
	f.chain.MineEmpty(9)
	f.catchUp(t)
	proxy.SetFaults(chaintest.Stale{Behind: 5})
	f.catchUp(t)
	now.Add(maxBehind)
	if more, err := f.sync(t.Context()); more || !errors.Is(err, errNodeBehind) {
		t.Errorf("round: %t, %v; want that it is behind", more, err)
	}
	proxy.SetFaults()
	f.chain.Mine()
	f.catchUp(t)
	proxy.SetFaults(chaintest.Stale{Behind: 5})
	f.catchUp(t)
	f.expect(t, 10, 7, 0, 0, 0)
}

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
				expect.Equal(t, f.ledger.count(invoice.Confirmed), want, "transfers are confirmed:")
				for _, b := range f.ledger.breaches {
					t.Error(b)
				}
			})
		}
	}
}

// TestQuorumOnOmittedRefund has a node leave out a transfer from a settlement address when its block is read, and not
// when the block becomes final: the transfer, which may be a refund, is recorded. One that is no refund is not, and its
// block becomes final, too, also after a restart.
func TestQuorumOnOmittedRefund(t *testing.T) {
	for _, refund := range []bool{true, false} {
		for _, omitted := range []bool{true, false} {
			f := newFixture(t, nil)
			quorum := func(c *Config) { c.Chain.Quorum = 2 }
			proxies := f.nodes(t, 2, quorum)
			f.ledger.lost = map[invoice.Address]bool{merchant: !refund}
			f.chain.Mine()
			f.catchUp(t)
			back := chaintest.NewTx(chaintest.Transfer(token, merchant, bob, five))
			if omitted {
				proxies[0].SetFaults(chaintest.DropLogs{Txs: []common.Hash{back.Hash}})
			}
			f.chain.Mine(chaintest.NewTx(pays(alice, 1)), back)
			f.catchUp(t)
			proxies[0].SetFaults()
			if !omitted {
				f.restart(t, quorum, proxies[0].URL, proxies[1].URL)
			}
			f.chain.MineEmpty(3)
			f.catchUp(t)
			f.expect(t, 5, 2, 0, map[bool]int{true: 2, false: 1}[refund], 0)
			for i := range 2 {
				expect.Equal(t, f.state(i), chain.StateOK, "refund %t, omitted %t: node %d is", refund, omitted, i)
			}
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
		expect.Equal(t, f.state(i), chain.StateOK, "node %d is", i)
	}
}

// TestSweepOfLostDeposit sweeps the deposit address of a lost invoice, which is not recorded: the block becomes final, and
// its transaction is not taken for one that was left out, also if it holds a payment.
func TestSweepOfLostDeposit(t *testing.T) {
	for quorum := range 3 {
		f := newFixture(t, nil)
		f.nodes(t, 2, func(c *Config) { c.Chain.Quorum = quorum })
		f.ledger.settlement[bob], f.ledger.lost = true, map[invoice.Address]bool{bob: true}
		f.catchUp(t)
		sweep := chaintest.Transfer(token, bob, merchant, five)
		f.chain.Mine(chaintest.NewTx(sweep), chaintest.NewTx(pays(alice, 1), sweep))
		f.chain.MineEmpty(3)
		f.catchUp(t)
		f.expect(t, 4, 1, 0, 1, 0)
		logs, err := f.cfg.Pool.Nodes()[0].LogsInRange(t.Context(), 1, 4, f.decoder.filter())
		expect.OK(t, err)
		expect.OK(t, f.requireRecorded(t.Context(), logs))
		if len(f.ledger.unread) != 0 {
			t.Errorf("quorum %d: unread are %+v", quorum, f.ledger.unread)
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

// TestQuorumRereadsRanges reads a chain far behind its head with a quorum. The newest range that was read is not final
// as a whole yet. Once it is, both nodes are asked for it by range again, and not for each of its blocks.
func TestQuorumRereadsRanges(t *testing.T) {
	const blocks = 3000
	f := newFixture(t, nil)
	f.nodes(t, 2, func(c *Config) { c.Chain.Quorum = 2 })
	f.maxInFlight = 1 // so that the newest range has 1013 blocks
	f.catchUp(t)
	for n := range blocks {
		if n%500 == 0 {
			f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
		} else {
			f.chain.MineEmpty(1)
		}
	}
	before := f.node.Calls("eth_getBlockByNumber")
	f.catchUp(t)
	f.expect(t, blocks, blocks-3, 0, blocks/500, 0)
	if calls := f.node.Calls("eth_getBlockByNumber") - before; calls > 500 {
		t.Errorf("%d blocks took %d calls for headers", blocks, calls)
	}
}

// TestQuorumOfUnequalRanges has one node return the logs of few blocks at a time. Each recorded range is short
// enough for that node, whichever node reads it first.
func TestQuorumOfUnequalRanges(t *testing.T) {
	const blocks, limit = 3000, 10
	f := newFixture(t, nil)
	proxies := f.nodes(t, 2, func(c *Config) { c.Chain.Quorum = 2 })
	proxies[1].SetFaults(chaintest.LimitLogs{Blocks: limit, Wording: chaintest.Wordings[0]})
	f.catchUp(t)
	f.chain.MineEmpty(blocks)
	f.catchUp(t)
	f.expect(t, blocks, blocks-3, 0, 0, 0)
	for i, h := range f.ledger.headers[1:] {
		if below := f.ledger.headers[i].Number; h.Number-below > chain.FirstRange {
			t.Errorf("blocks %d to %d were recorded in one step", below+1, h.Number)
		}
	}
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
