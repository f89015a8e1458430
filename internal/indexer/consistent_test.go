package indexer

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
)

// spoil changes an object of an answer.
type spoil func(method string, o map[string]any)

// logsIn returns the logs of the receipt in an answer, or nil if it is not a receipt.
func logsIn(o map[string]any) []any {
	logs, _ := o["logs"].([]any)
	return logs
}

// contradictions are ways for a node to give two answers that contradict each other. Block 1 holds two payments of one
// transaction.
var contradictions = map[string]spoil{
	"the receipt lacks the logs": func(_ string, o map[string]any) {
		if logsIn(o) != nil {
			o["logs"] = []any{}
		}
	},
	"the receipt lacks one log": func(_ string, o map[string]any) {
		if logs := logsIn(o); len(logs) > 1 {
			o["logs"] = logs[:1]
		}
	},
	"the receipt has another amount": func(_ string, o map[string]any) {
		if logs := logsIn(o); len(logs) > 1 {
			logs[0].(map[string]any)["data"] = "0x" + common.Bytes2Hex(common.LeftPadBytes([]byte{9}, 32))
		}
	},
	"the receipt says that it failed": func(_ string, o map[string]any) {
		if logsIn(o) != nil {
			o["status"] = "0x0"
		}
	},
	"the receipt names another block": func(_ string, o map[string]any) {
		if logsIn(o) != nil {
			flip(o, "blockHash")
		}
	},
	"the receipt gives its block another number": func(_ string, o map[string]any) {
		if logsIn(o) != nil {
			o["blockNumber"] = "0x77"
		}
	},
	"the receipt holds another's log": func(_ string, o map[string]any) {
		if logs := logsIn(o); len(logs) > 1 {
			flip(logs[0].(map[string]any), "transactionHash")
		}
	},
	"the logs lack one of the receipt": nil, // done by contradicting, because the answer is a list
	"the transaction is another's": func(method string, o map[string]any) {
		if method == "eth_getTransactionByHash" {
			o["from"] = common.Address{9}
		}
	},
	"the transaction is another one": func(method string, o map[string]any) {
		if method == "eth_getTransactionByHash" {
			flip(o, "hash")
		}
	},
	"the block is another one": func(method string, o map[string]any) {
		if method == "eth_getBlockByNumber" && o["number"] == "0x1" {
			o["number"] = "0x2"
		}
	},
}

// contradicting returns a node that gives such answers while it is on.
func contradicting(t *testing.T, f *fixture, change spoil, on *atomic.Bool) string {
	t.Helper()
	return tamperingProxy(t, f.node, func(q question, ask func(question) any) any {
		a := ask(q)
		if !on.Load() {
			return a
		}
		if logs, ok := a.([]any); ok && change == nil && q.Method == "eth_getLogs" && len(logs) > 1 {
			return logs[:len(logs)-1]
		} else if change == nil {
			return a
		}
		return each(a, func(o map[string]any) { change(q.Method, o) })
	})
}

// mineTwice mines a block with two payments of one transaction, and others on
// top of it.
func mineTwice(f *fixture, others int) {
	f.chain.Mine(chaintest.NewTx(pays(alice, 5), pays(alice, 6)))
	f.chain.MineEmpty(others)
}

// TestContradictionIsQuarantined has the first of two nodes contradict itself,
// near the head and far behind it. Its answers are rejected, it is quarantined, and
// all payments come from the other node.
func TestContradictionIsQuarantined(t *testing.T) {
	for name, change := range contradictions {
		for where, blocks := range map[string]int{"near": 3, "in range": 3 * maxBlocks} {
			f := newFixture(t, nil)
			f.catchUp(t)
			mineTwice(f, blocks)
			var on atomic.Bool
			on.Store(true)
			f.restart(t, nil, contradicting(t, f, change, &on), f.node.URL)
			f.catchUp(t)
			if got := f.ledger.count(invoice.Confirmed); got != 2 || f.ledger.count(invoice.Orphaned) != 0 {
				t.Errorf("%s, %s: %d payments are confirmed, want 2", name, where, got)
			}
			if got := f.state(0); got != chain.StateQuarantined {
				t.Errorf("%s, %s: the node is %s, want it quarantined", name, where, got)
			}
		}
	}
}

// TestContradictionOfTheOnlyNode has the only node contradict itself for a while. The block is not recorded until the
// answers agree.
func TestContradictionOfTheOnlyNode(t *testing.T) {
	for name, change := range contradictions {
		f := newFixture(t, nil)
		var on atomic.Bool
		f.restart(t, nil, contradicting(t, f, change, &on))
		f.catchUp(t)
		mineTwice(f, 3)
		on.Store(true)
		for range 3 {
			if _, err := f.sync(t.Context()); err == nil {
				t.Errorf("%s: the round went well", name)
			}
		}
		f.expect(t, 0, 0, 0, 0, 0)
		on.Store(false)
		f.catchUp(t)
		f.expect(t, 4, 1, 0, 2, 0)
	}
}

// TestContradictionAtTheEnd removes recorded payments from a receipt before they become final: that node can neither
// drop nor confirm the payments.
func TestContradictionAtTheEnd(t *testing.T) {
	for _, name := range []string{"the receipt lacks the logs", "the receipt lacks one log", "the receipt has another amount", "the receipt says that it failed"} {
		f := newFixture(t, nil)
		var on atomic.Bool
		url := contradicting(t, f, contradictions[name], &on)
		f.restart(t, nil, url)
		f.catchUp(t)
		mineTwice(f, 0)
		f.catchUp(t)
		f.chain.MineEmpty(3)
		on.Store(true)
		if _, err := f.sync(t.Context()); err == nil {
			t.Errorf("%s: the round went well", name)
		}
		f.expect(t, 4, 0, 2, 0, 0)
		if got := f.state(0); got != chain.StateQuarantined {
			t.Errorf("%s: the node is %s, want it quarantined", name, got)
		}
		f.restart(t, nil, url, f.node.URL)
		f.catchUp(t)
		f.expect(t, 4, 1, 0, 2, 0)
	}
}

// TestReceiptsContradictReceipts has a node leave a payment out of both its logs and its receipts after it was
// recorded.
func TestReceiptsContradictReceipts(t *testing.T) {
	for others, want := range map[int]struct {
		confirmed int
		state     chain.State
	}{
		0: {0, chain.StateOK},          // there is no other node; it is read again
		1: {0, chain.StateOK},          // one against one
		2: {2, chain.StateQuarantined}, // outvoted
	} {
		f := newFixture(t, nil)
		f.restart(t, func(c *Config) { c.Chain.FullBloom = false })
		f.catchUp(t)
		mineTwice(f, 0)
		f.catchUp(t)
		f.chain.MineEmpty(3)
		silent := tamperingProxy(t, f.node, func(q question, ask func(question) any) any {
			if a := ask(q); q.Method != "eth_getLogs" {
				return each(a, func(o map[string]any) { contradictions["the receipt lacks the logs"](q.Method, o) })
			}
			return []any{}
		})
		urls := append([]string{silent}, slices.Repeat([]string{f.node.URL}, others)...)
		f.restart(t, func(c *Config) { c.Chain.FullBloom = false }, urls...)
		for range 3 {
			if _, err := f.sync(t.Context()); others == 1 != (err != nil) {
				t.Errorf("%d others: %v", others, err)
			}
		}
		if got := f.ledger.count(invoice.Confirmed); got != want.confirmed {
			t.Errorf("%d others: %d payments are confirmed, want %d", others, got, want.confirmed)
		}
		if orphaned := f.ledger.count(invoice.Orphaned); orphaned > 0 != (others == 0) {
			t.Errorf("%d others: %d payments are orphaned", others, orphaned)
		}
		if got := f.state(0); got != want.state {
			t.Errorf("%d others: the node is %s, want %s", others, got, want.state)
		}
	}
}
