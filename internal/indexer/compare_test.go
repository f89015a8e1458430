package indexer

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// comparing turns on the comparison of logs.
func comparing(c *Config) { c.Chain.CompareLogs = true }

// noReceipts has a node refuse the receipts of a block.
var noReceipts = chaintest.Only{Methods: []string{"eth_getBlockReceipts"}, Fault: chaintest.Fail{Code: -32099, Message: "no"}}

// omit gives all nodes the faults, and has the first one also leave out the logs of a transaction.
func omit(proxies []*chaintest.Proxy, tx chaintest.Tx, faults ...chaintest.Fault) {
	for _, p := range proxies {
		p.SetFaults(faults...)
	}
	proxies[0].SetFaults(append(faults, chaintest.DropLogs{Txs: []common.Hash{tx.Hash}})...)
}

// TestOmittedLogAtTheHead has a node leave one log out of a block in which another log satisfies the bloom filter. The
// log is found when the block is read, by the block's receipts or by another node. With one node that serves no
// receipts it is not found, and the status shows this.
func TestOmittedLogAtTheHead(t *testing.T) {
	for name, message := range map[string]string{"known words": "the method does not exist", "other words": "computer says no"} {
		noReceipts := chaintest.Only{Methods: []string{"eth_getBlockReceipts"}, Fault: chaintest.Fail{Code: -32099, Message: message}}
		for _, nodes := range []int{1, 2} {
			for _, receipts := range []bool{true, false} {
				f := newFixture(t, nil)
				proxies := f.nodes(t, nodes, comparing)
				f.catchUp(t)
				omitted := chaintest.NewTx(pays(alice, 5))
				var faults []chaintest.Fault
				if !receipts {
					faults = append(faults, noReceipts)
				}
				omit(proxies, omitted, faults...)
				f.chain.Mine(chaintest.NewTx(pays(bob, 1)))
				f.catchUp(t)
				f.chain.Mine(chaintest.NewTx(pays(bob, 1)), omitted)
				f.catchUp(t)
				want, state, by := 3, chain.StateQuarantined, ComparedReceipts
				switch {
				case nodes == 1 && receipts:
					state = chain.StateOK
				case nodes == 1:
					want, state, by = 2, chain.StateOK, ComparedNone
				case !receipts:
					by = ComparedNone // with a node that is quarantined
				}
				if got := f.ledger.count(invoice.Pending); got != want {
					t.Errorf("%s, %d nodes, receipts %t: %d payments are pending, want %d", name, nodes, receipts, got, want)
				}
				expect.Equal(t, f.state(0), state, "%s, %d nodes, receipts %t: the node is", name, nodes, receipts)
				if got := f.Status().Comparison; got != by {
					t.Errorf("%s, %d nodes, receipts %t: blocks are compared by %s, want %s", name, nodes, receipts, got, by)
				}
			}
		}
	}
}

// TestFarHead has a node invent a head, so that the only other lags, but not two others, and leave out a log. The
// others are compared and audited all the same, and the other lags no longer after its next head.
func TestFarHead(t *testing.T) {
	for nodes, besides := range map[int]chain.State{2: chain.StateLagging, 3: chain.StateOK} {
		now := time.Unix(chaintest.GenesisTime, 0)
		f := newFixture(t, nil)
		proxies := f.nodes(t, nodes, func(c *Config) { c.Chain.CompareLogs, c.Now = true, func() time.Time { return now } })
		refresh := func(want chain.State) {
			t.Helper()
			now = now.Add(chain.HeadMaxAge)
			f.cfg.Pool.RefreshHeads(t.Context())
			for node := 1; node < nodes; node++ {
				expect.Equal(t, f.state(node), want, "node %d of %d is", node, nodes)
			}
		}
		f.chain.MineEmpty(40)
		f.catchUp(t)
		refresh(chain.StateOK)
		proxies[0].SetFaults(chaintest.FarHead{})
		_, err := f.sync(t.Context()) // with another node
		expect.OK(t, err)
		refresh(besides)
		f.audit(t)
		omitted := chaintest.NewTx(pays(alice, 5))
		omit(proxies, omitted, noReceipts)
		f.chain.Mine(chaintest.NewTx(pays(bob, 1)), omitted)
		f.catchUp(t)
		if got := f.ledger.count(invoice.Pending); got != 2 {
			t.Errorf("%d nodes: %d payments are pending, want 2; compared are %v", nodes, got, f.Status().Compared)
		}
		refresh(chain.StateOK)
	}
}

// TestOmittedLogOfBlocksReadTogether has a node leave one log out of a block that is read together with others near the
// head. Another node shows it immediately, and so do the receipts if the block has a payment as well. Otherwise the
// audit finds it later, or counts the block as not verified.
func TestOmittedLogOfBlocksReadTogether(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		for _, receipts := range []bool{true, false} {
			for _, besides := range []bool{true, false} {
				t.Run(fmt.Sprintf("%d nodes, receipts %t, another payment %t", nodes, receipts, besides), func(t *testing.T) {
					f := newFixture(t, nil)
					proxies := f.nodes(t, nodes, comparing)
					f.catchUp(t)
					omitted := chaintest.NewTx(pays(alice, 5))
					var faults []chaintest.Fault
					if !receipts {
						faults = append(faults, noReceipts)
					}
					omit(proxies, omitted, faults...)
					f.together = true
					other, want := chaintest.NewTx(chaintest.Transfer(token, alice, bob, five)), 0
					if besides {
						other, want = chaintest.NewTx(pays(bob, 1)), 1
					}
					f.chain.MineEmpty(2)
					f.chain.Mine(other, omitted)
					f.chain.MineEmpty(2)
					f.catchUp(t)
					all, found := want+1, want
					if nodes == 2 || besides && receipts {
						found = all
					}
					expect.Equal(t, f.ledger.count(invoice.Pending), found, "payments are pending:")
					if got := f.state(0); (got == chain.StateQuarantined) != (nodes == 2) {
						t.Errorf("the node is %s", got)
					}
					if got := f.Status().Compared[ComparedNone]; nodes == 1 && got < 4 {
						t.Errorf("%d blocks are compared with nothing", got)
					}
					f.together = false
					f.chain.MineEmpty(5)
					f.catchUp(t)
					f.audit(t)
					expect.OK(t, f.readUnread(t.Context()))
					verified := nodes == 2 || receipts
					if verified {
						found = all
					}
					expect.Equal(t, f.ledger.count(invoice.Confirmed), found, "after the audit payments are confirmed:")
					if got := f.Status().Audit.Counted.Unverified; nodes == 1 && (got == 0) != verified {
						t.Errorf("the audit counts %d blocks that are not verified", got)
					}
				})
			}
		}
	}
}

// TestQuarantinedNodeReadsNoRange has the only node leave out the logs of a block that could be read together with others.
// It has contradicted itself before, so its blocks are read one by one, which shows the log.
func TestQuarantinedNodeReadsNoRange(t *testing.T) {
	f := newFixture(t, nil)
	proxies := f.nodes(t, 1, comparing)
	f.catchUp(t)
	f.cfg.Pool.Nodes()[0].Quarantine("it left out logs")
	omitted := chaintest.NewTx(pays(alice, 5))
	omit(proxies, omitted)
	f.together = true
	f.chain.MineEmpty(2)
	f.chain.Mine(omitted)
	f.chain.MineEmpty(2)
	f.catchUp(t)
	expect.Equal(t, f.ledger.count(invoice.Pending), 1, "payments are pending:")
}

// TestCostOfComparing bounds the calls for blocks: one more for each block with a bloom filter that
// mentions a log of interest, and no more for the others.
func TestCostOfComparing(t *testing.T) {
	for _, compare := range []bool{false, true} {
		f := newFixture(t, nil)
		f.restart(t, func(c *Config) { c.Chain.CompareLogs = compare })
		f.chain.Mine(chaintest.NewTx(chaintest.Transfer(token, alice, bob, five)))
		f.catchUp(t)
		calls := func() (n int) {
			for _, method := range []string{
				"eth_chainId", "eth_getBlockByNumber", "eth_getLogs", "eth_getTransactionReceipt", "eth_getTransactionByHash", "eth_getBlockReceipts",
			} {
				n += f.node.Calls(method)
			}
			return n
		}
		before := calls()
		const blocks = 10
		for range blocks {
			f.chain.Mine(chaintest.NewTx(chaintest.Transfer(token, alice, bob, five)))
			f.catchUp(t)
		}
		want := 2 * blocks
		if compare {
			want += blocks
		}
		if got := calls() - before; got > want {
			t.Errorf("compare %t: %d blocks with other transfers took %d calls, want at most %d", compare, blocks, got, want)
		}
		before = calls()
		for range blocks {
			f.chain.Mine()
			f.catchUp(t)
		}
		if got := calls() - before; got > blocks {
			t.Errorf("compare %t: %d empty blocks took %d calls, want at most %d", compare, blocks, got, blocks)
		}
	}
}

// TestForgedLogAtTheHead has a node return a log that the block's receipts do not hold.
func TestForgedLogAtTheHead(t *testing.T) {
	f := newFixture(t, nil)
	proxies := f.nodes(t, 2, comparing)
	f.catchUp(t)
	forge := chaintest.Forge{At: 1, Logs: []chaintest.Log{chaintest.Transfer(token, bob, merchant, five)}}
	proxies[0].SetFaults(chaintest.Only{Methods: []string{"eth_getLogs"}, Fault: forge})
	f.chain.Mine(chaintest.NewTx(chaintest.Transfer(token, bob, merchant, five)))
	f.catchUp(t)
	f.expect(t, 1, 0, 1, 0, 0)
	expect.Equal(t, f.state(0), chain.StateQuarantined, "the node is")
}

// TestOmittedLogThatOnlyTheOtherNodeReturns has the first node leave out a log and return no receipt of its
// transaction, while it returns another payment. The transaction is unread if the second node returns its receipt.
// Otherwise the audit finds it, because the block does not count as compared.
func TestOmittedLogThatOnlyTheOtherNodeReturns(t *testing.T) {
	for _, together := range []bool{false, true} {
		for _, proven := range []bool{true, false} {
			t.Run(fmt.Sprintf("together %t, proven %t", together, proven), func(t *testing.T) {
				f := newFixture(t, nil)
				proxies := f.nodes(t, 2, comparing)
				f.catchUp(t)
				omitted := chaintest.NewTx(pays(alice, 5))
				drop := chaintest.DropTx{Tx: omitted.Hash}
				proxies[0].SetFaults(noReceipts, chaintest.DropLogs{Txs: []common.Hash{omitted.Hash}}, drop)
				proxies[1].SetFaults(noReceipts)
				if !proven {
					proxies[1].SetFaults(noReceipts, drop)
				}
				f.together = together
				f.chain.MineEmpty(1)
				b := f.chain.Mine(chaintest.NewTx(pays(bob, 1)), omitted)
				f.chain.MineEmpty(1)
				f.catchUp(t)
				if got := f.ledger.count(invoice.Pending); got != 1 {
					t.Fatalf("%d payments are pending before, want 1", got)
				}
				if got := f.Status().Compared; got[ComparedNone] != 1 {
					t.Errorf("compared are %v, want one block with nothing", got)
				}
				u, unread := f.ledger.unread[invoice.Hash(omitted.Hash)]
				if unread != proven || unread && (u.Reason != ledger.UnreadNode || u.Block != b.Number) {
					t.Errorf("unread is %t: %+v", unread, u)
				}
				if proven {
					expect.OK(t, f.readUnread(t.Context()))
					if got := f.ledger.count(invoice.Pending); got != 2 || f.state(0) != chain.StateQuarantined {
						t.Errorf("%d payments are pending, and the node is %s", got, f.state(0))
					}
					return
				}
				proxies[1].SetFaults(noReceipts)
				f.chain.MineEmpty(4)
				f.catchUp(t)
				f.audit(t)
				expect.OK(t, f.readUnread(t.Context()))
				expect.Equal(t, f.ledger.count(invoice.Confirmed), 2, "after the audit payments are confirmed:")
			})
		}
	}
}

// TestComparesWithoutNodeThatLags has the second node answer a range without the blocks that it does not have yet. They
// do not count as compared with it. The omitted log is found in the receipts, or by the audit once the second node has
// the blocks.
func TestComparesWithoutNodeThatLags(t *testing.T) {
	for _, receipts := range []bool{true, false} {
		now := time.Unix(chaintest.GenesisTime, 0)
		f := newFixture(t, nil)
		proxies := f.nodes(t, 2, func(c *Config) { c.Chain.CompareLogs, c.Now = true, func() time.Time { return now } })
		f.catchUp(t)
		omitted := chaintest.NewTx(pays(alice, 5))
		faults := []chaintest.Fault{chaintest.DropLogs{Txs: []common.Hash{omitted.Hash}}}
		lags := []chaintest.Fault{chaintest.Stale{At: f.chain.Head().Number + 1}}
		if !receipts {
			faults, lags = append(faults, noReceipts), append(lags, noReceipts)
		}
		proxies[0].SetFaults(faults...)
		proxies[1].SetFaults(lags...)
		f.together = true
		f.chain.MineEmpty(2)
		f.chain.Mine(chaintest.NewTx(pays(bob, 1)), omitted)
		f.chain.MineEmpty(2)
		if _, err := f.sync(t.Context()); err != nil && !receipts {
			t.Fatal(err)
		}
		if got := f.Status().Compared; got[ComparedNode] != 0 {
			t.Errorf("receipts %t: %d blocks are compared with a node that lacks them", receipts, got[ComparedNode])
		}
		if got := f.state(0); (got == chain.StateQuarantined) != receipts {
			t.Errorf("receipts %t: the first node is %s", receipts, got)
		}
		proxies[1].SetFaults(lags[1:]...)
		f.together = false
		f.chain.MineEmpty(5)
		f.catchUp(t)
		if !receipts {
			if _, more, err := f.auditStep(t.Context()); !errors.Is(err, errNoSecondNode) || !more {
				t.Errorf("an audit while the second node backs off: %t, %v", more, err)
			}
		}
		now = now.Add(5 * time.Minute) // until no node backs off
		f.audit(t)
		expect.OK(t, f.readUnread(t.Context()))
		expect.Equal(t, f.ledger.count(invoice.Confirmed), 2, "receipts %t: payments are confirmed:", receipts)
	}
}

// TestComparesWithoutNodeThatLacksLogs has the second node leave out other logs than the first.
func TestComparesWithoutNodeThatLacksLogs(t *testing.T) {
	for _, together := range []bool{false, true} {
		f := newFixture(t, nil)
		proxies := f.nodes(t, 2, comparing)
		f.catchUp(t)
		lost := chaintest.NewTx(pays(alice, 5))
		proxies[0].SetFaults(noReceipts)
		proxies[1].SetFaults(noReceipts, chaintest.DropLogs{Txs: []common.Hash{lost.Hash}})
		f.together = together
		f.chain.MineEmpty(1)
		f.chain.Mine(chaintest.NewTx(pays(bob, 1)), lost)
		f.chain.MineEmpty(1)
		f.catchUp(t)
		f.expect(t, 3, 0, 2, 0, 0)
		if got := f.Status().Compared; got[ComparedNone] == 0 {
			t.Errorf("together %t: compared are %v", together, got)
		}
	}
}

// TestComparisonWithNodeThatIsDown has the second node fail: blocks are not compared, and the status reports this until
// the node answers again.
func TestComparisonWithNodeThatIsDown(t *testing.T) {
	now := time.Unix(chaintest.GenesisTime, 0)
	f := newFixture(t, nil)
	proxies := f.nodes(t, 2, func(c *Config) { c.Chain.CompareLogs, c.Now = true, func() time.Time { return now } })
	proxies[0].SetFaults(noReceipts)
	proxies[1].SetFaults(noReceipts, chaintest.Refuse{Status: 500})
	block := func() {
		f.chain.Mine(chaintest.NewTx(pays(bob, 1)))
		f.catchUp(t)
	}
	block()
	if got := f.Status(); got.Comparison != ComparedNone || got.Compared[ComparedNone] != 1 {
		t.Errorf("while the second node is down, blocks are compared by %s: %v", got.Comparison, got.Compared)
	}
	proxies[1].SetFaults(noReceipts)
	now = now.Add(5 * time.Minute) // until it is called again
	f.cfg.Pool.RefreshHeads(t.Context())
	block()
	if got := f.Status(); got.Comparison != ComparedNode || got.Compared[ComparedNode] != 1 {
		t.Errorf("once it answers, blocks are compared by %s: %v", got.Comparison, got.Compared)
	}
}
