package indexer

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestOmittedLogIsReadAgain has a node leave out two payments of a block in which others satisfy the bloom filter.
// After evidence of one of them, the block is read again by its receipts or from another node: both are recorded, and
// the node is quarantined.
func TestOmittedLogIsReadAgain(t *testing.T) {
	noReceipts := chaintest.Only{Methods: []string{"eth_getBlockReceipts"}, Fault: chaintest.Fail{Code: -32601, Message: "no"}}
	for _, nodes := range []int{1, 2} {
		for _, receipts := range []bool{true, false} {
			for _, final := range []bool{true, false} {
				t.Run(fmt.Sprintf("%d nodes, receipts %t, final %t", nodes, receipts, final), func(t *testing.T) {
					f := newFixture(t, nil)
					proxies := f.nodes(t, nodes, nil)
					f.catchUp(t)
					omitted := []chaintest.Tx{chaintest.NewTx(pays(alice, 5)), chaintest.NewTx(pays(alice, 6))}
					faults := []chaintest.Fault{chaintest.DropLogs{Txs: []common.Hash{omitted[0].Hash, omitted[1].Hash}}}
					if !receipts {
						faults = append(faults, noReceipts)
					}
					proxies[0].SetFaults(faults...)
					b := f.chain.Mine(chaintest.NewTx(pays(bob, 1)), omitted[0], omitted[1])
					f.chain.MineEmpty(1)
					want := invoice.Pending
					if final {
						f.chain.MineEmpty(3)
						want = invoice.Confirmed
					}
					f.catchUp(t)
					if got := f.ledger.count(want); got != 1 {
						t.Fatalf("%d payments are %s before, want 1", got, want)
					}
					expect.OK(t, f.ledger.ReportUnread(t.Context(), "", invoice.Hash(omitted[0].Hash), b.Number, ledger.UnreadLookup))
					expect.OK(t, f.readUnread(t.Context()))
					found := 3
					if nodes == 1 && !receipts {
						found = 2 // the other one is in no answer
					}
					if got := f.ledger.count(want); got != found || len(f.ledger.unread) != 0 {
						t.Errorf("%d payments are %s, and %d are unread; want %d and 0", got, want, len(f.ledger.unread), found)
					}
					expect.Equal(t, f.state(0), chain.StateQuarantined, "the node that was wrong is")
					if nodes > 1 && f.state(1) != chain.StateOK {
						t.Errorf("the other node is %s", f.state(1))
					}
					f.chain.MineEmpty(4)
					f.catchUp(t)
					f.expect(t, f.chain.Head().Number, f.chain.Head().Number-3, 0, found, 0)
				})
			}
		}
	}
}

// TestReportWithoutTransfer reports a transaction without a transfer from or to our addresses.
func TestReportWithoutTransfer(t *testing.T) {
	f := newFixture(t, nil)
	tx := chaintest.NewTx(chaintest.Transfer(token, alice, bob, five))
	b := f.chain.Mine(tx)
	f.catchUp(t)
	expect.OK(t, f.ledger.ReportUnread(t.Context(), "", invoice.Hash(tx.Hash), b.Number, ledger.UnreadLookup))
	expect.OK(t, f.readUnread(t.Context()))
	if len(f.ledger.unread) != 0 || f.state(0) != chain.StateOK {
		t.Errorf("%d are unread, and the node is %s", len(f.ledger.unread), f.state(0))
	}
}

// TestReceiptShowsMore has a node leave all transfers except the first out of a transaction, in its logs and in its
// receipt. The fault is noticed when the receipt is read again before the block is final, and reported once. One of
// them may be a refund.
func TestReceiptShowsMore(t *testing.T) {
	for _, more := range [][]chaintest.Log{{pays(alice, 6), pays(alice, 7)}, {chaintest.Transfer(token, merchant, alice, five)}} {
		receiptShowsMore(t, chaintest.NewTx(append([]chaintest.Log{pays(alice, 5)}, more...)...))
	}
}

func receiptShowsMore(t *testing.T, tx chaintest.Tx) {
	t.Helper()
	f := newFixture(t, nil)
	honest := false
	f.restart(t, nil, tamperingProxy(t, f.node, func(q question, ask func(question) any) any {
		answer := ask(q)
		second := func(v any) bool { l, ok := v.(map[string]any); return ok && l["logIndex"] == "0x1" }
		cut := func(list []any) []any {
			for i, v := range list {
				if !honest && second(v) {
					return list[:i]
				}
			}
			return list
		}
		if list, ok := answer.([]any); ok {
			return cut(list)
		}
		return each(answer, func(o map[string]any) {
			if list, ok := o["logs"].([]any); ok {
				o["logs"] = cut(list)
			}
		})
	}))
	f.chain.Mine(tx)
	f.catchUp(t)
	f.expect(t, 1, 0, 1, 0, 0)
	honest = true
	f.chain.MineEmpty(3)
	f.catchUp(t)
	if u := f.ledger.unread[invoice.Hash(tx.Hash)]; u.Reason != ledger.UnreadReceipt || u.Block != 1 {
		t.Fatalf("unread are %+v", f.ledger.unread)
	}
	expect.Equal(t, f.ledger.reports, 1, "reports of the transaction")
	expect.OK(t, f.readUnread(t.Context()))
	f.expect(t, 4, 1, 0, len(tx.Logs), 0)
}

// clocked is a fixture with a clock that the test moves.
func clocked(t *testing.T, change func(*Config)) (*fixture, *time.Time) {
	t.Helper()
	now := time.Unix(chaintest.GenesisTime, 0)
	f := newFixture(t, nil)
	f.restart(t, func(c *Config) {
		c.Now = func() time.Time { return now }
		if change != nil {
			change(c)
		}
	})
	return f, &now
}

// TestUnreadableTransaction has no node return the receipt, or the calldata, of one payment among others, with null or
// with an error. The transaction is skipped once all nodes have failed for a while, and recorded when one returns it.
func TestUnreadableTransaction(t *testing.T) {
	for _, code := range []int{0, -32000} {
		for _, input := range []bool{false, true} {
			for where, blocks := range map[string]int{"near": 0, "behind": 3 * maxBlocks} {
				for _, nodes := range []int{1, 2} {
					t.Run(fmt.Sprintf("code %d, input %t, %s, %d nodes", code, input, where, nodes), func(t *testing.T) {
						unreadableTransaction(t, chaintest.DropTx{Input: input, Code: code}, blocks, nodes)
					})
				}
			}
		}
	}
}

func unreadableTransaction(t *testing.T, drop chaintest.DropTx, blocks, nodes int) {
	t.Helper()
	now := time.Unix(chaintest.GenesisTime, 0)
	f := newFixture(t, nil)
	proxies := f.nodes(t, nodes, func(c *Config) { c.Now = func() time.Time { return now } })
	f.catchUp(t)
	bad := chaintest.NewTx(pays(alice, 5))
	drop.Tx = bad.Hash
	for _, p := range proxies {
		p.SetFaults(drop)
	}
	f.chain.Mine(chaintest.NewTx(pays(bob, 1)), bad)
	f.chain.Mine(chaintest.NewTx(pays(bob, 2)))
	f.chain.MineEmpty(3 + blocks)
	for n := range minUnreadable {
		_, err := f.sync(t.Context())
		if err == nil || n == 0 && !errors.Is(err, chain.ErrNotFound) {
			t.Fatalf("sync of a block of which a payment is missing: %v", err)
		}
		now = now.Add(unreadableAfter/minUnreadable + time.Second)
	}
	f.catchUp(t)
	f.expect(t, uint64(5+blocks), uint64(2+blocks), 0, 2, 0)
	if u := f.ledger.unread[invoice.Hash(bad.Hash)]; u.Reason != ledger.UnreadUnreadable || u.Block != 1 || u.Detail == "" {
		t.Errorf("set aside is %+v", u)
	}
	if err := f.readUnread(t.Context()); err != nil || len(f.ledger.unread) != 1 || f.ledger.unread[invoice.Hash(bad.Hash)].Attempts != 2 {
		t.Errorf("read again: %v, %+v", err, f.ledger.unread)
	}
	expect.Equal(t, f.Status().Unread[ledger.UnreadUnreadable], 1, "the status shows")
	now = now.Add(5 * time.Minute) // until no node cools down
	proxies[nodes-1].SetFaults()
	if err := f.readUnread(t.Context()); err != nil || len(f.ledger.unread) != 0 {
		t.Errorf("read once a node returns it: %v, %+v", err, f.ledger.unread)
	}
	f.expect(t, uint64(5+blocks), uint64(2+blocks), 0, 3, 0)
}

// TestDroppedTransaction knows a transaction of a block that was replaced. It is forgotten once that height is final and no
// node has its receipt, unless a block named it.
func TestDroppedTransaction(t *testing.T) {
	for _, reason := range ledger.UnreadReasons {
		f := newFixture(t, nil)
		proxies := f.nodes(t, 2, nil)
		f.chain.MineEmpty(2)
		f.catchUp(t)
		dropped := invoice.Hash(chaintest.NewTx(pays(alice, 5)).Hash)
		expect.OK(t, f.ledger.ReportUnread(t.Context(), "", dropped, 2, reason))
		stays := func(when string, want bool) {
			t.Helper()
			expect.OK(t, f.readUnread(t.Context()))
			expect.Equal(t, len(f.ledger.unread) == 1, want, "%s: %s, it stays:", reason, when)
		}
		stays("before its block is final", true)
		f.chain.MineEmpty(3)
		f.catchUp(t)
		proxies[1].SetFaults(chaintest.Refuse{Status: http.StatusInternalServerError})
		for range 5 {
			stays("while one node does not answer", true)
		}
		expect.Equal(t, f.state(1), chain.StateBackoff, "%s: that node is", reason)
		proxies[1].SetFaults()
		stays("once all nodes answer", reason.IsOfBlock())
	}
}

// TestUnreadableTransactionsTogether has no node return a payment in each of two blocks that are read together: both are
// skipped as soon as one would be.
func TestUnreadableTransactionsTogether(t *testing.T) {
	now := time.Unix(chaintest.GenesisTime, 0)
	f := newFixture(t, nil)
	node := f.nodes(t, 1, func(c *Config) { c.Now = func() time.Time { return now } })[0]
	f.catchUp(t)
	bad := []chaintest.Tx{chaintest.NewTx(pays(alice, 5)), chaintest.NewTx(pays(alice, 6))}
	f.chain.Mine(bad[0])
	f.chain.Mine(bad[1])
	f.chain.MineEmpty(3 * maxBlocks)
	node.SetFaults(chaintest.DropTx{Tx: bad[0].Hash}, chaintest.DropTx{Tx: bad[1].Hash})
	for range minUnreadable {
		if _, err := f.sync(t.Context()); !errors.Is(err, chain.ErrNotFound) {
			t.Fatalf("sync of blocks of which payments are missing: %v", err)
		}
		now = now.Add(unreadableAfter/minUnreadable + time.Second)
	}
	f.catchUp(t)
	f.expect(t, 3*maxBlocks+2, 3*maxBlocks-1, 0, 0, 0)
	if len(f.ledger.unread) != 2 {
		t.Errorf("unread are %+v", f.ledger.unread)
	}
}

// TestOneNodeReturnsTheTransaction has one of two nodes return the transaction: no transaction is skipped.
func TestOneNodeReturnsTheTransaction(t *testing.T) {
	f := newFixture(t, nil)
	proxies := f.nodes(t, 2, nil)
	f.catchUp(t)
	tx := chaintest.NewTx(pays(alice, 5))
	proxies[0].SetFaults(chaintest.DropTx{Tx: tx.Hash})
	f.chain.Mine(tx)
	f.catchUp(t)
	f.expect(t, 1, 0, 1, 0, 0)
	if len(f.ledger.unread) != 0 {
		t.Errorf("unread are %+v", f.ledger.unread)
	}
}

// TestNodeThatRefusesAll has a node answer all requests for a payment's receipts and headers with errors: no
// transaction is skipped.
func TestNodeThatRefusesAll(t *testing.T) {
	f, now := clocked(t, nil)
	f.catchUp(t)
	b := f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
	receipts := 0
	f.node.Intercept(func(_ context.Context, method string) error {
		if method == "eth_getTransactionReceipt" {
			receipts++
		}
		if method == "eth_getTransactionReceipt" || receipts > 0 && method == "eth_getBlockByNumber" {
			return errors.New("no")
		}
		return nil
	})
	for range 2 * minUnreadable {
		receipts = 0
		if _, err := f.sync(t.Context()); err == nil || receipts == 0 {
			t.Fatalf("block %d is read: %v", b.Number, err)
		}
		*now = now.Add(unreadableAfter)
	}
	f.node.Intercept(nil)
	f.catchUp(t)
	f.expect(t, 1, 0, 1, 0, 0)
	if len(f.ledger.unread) != 0 {
		t.Errorf("unread are %+v", f.ledger.unread)
	}
}

// TestOversizedReceipt makes the receipts of two payments longer than an answer may be, and the block's logs, too. They
// delay the block by no pause, are not requested again with their block, and are recorded once the limit is raised. Until
// then, one of them is read in a minute.
func TestOversizedReceipt(t *testing.T) {
	const limit = 64 << 10
	for name, log := range map[string]chaintest.Log{
		"receipt":          chaintest.Transfer(other, alice, bob, five),
		"receipt and logs": chaintest.Transfer(token, alice, bob, five),
	} {
		f, now := clocked(t, func(c *Config) { c.Chain.MaxAnswer = limit })
		f.catchUp(t)
		f.ledger.noSkips = map[ledger.UnreadReason]error{ledger.UnreadUnreadable: ledger.ErrTooManyUnreadable}
		large := make([]chaintest.Tx, 2)
		for i := range large {
			logs := []chaintest.Log{pays(alice, 5+uint64(i))}
			for range 300 {
				logs = append(logs, log)
			}
			large[i] = chaintest.NewTx(logs...)
		}
		for i := range maxUnreadableKnown - 1 { // so that the second one makes the indexer forget some
			f.unreadable[common.BigToHash(big.NewInt(int64(i)))] = &unreadable{}
		}
		f.chain.Mine(chaintest.NewTx(pays(bob, 1)), large[0], large[1])
		f.chain.MineEmpty(3)
		f.catchUp(t)
		f.expect(t, 4, 1, 0, 1, 0)
		for _, tx := range large {
			if u := f.ledger.unread[invoice.Hash(tx.Hash)]; u.Reason != ledger.UnreadOversized {
				t.Errorf("%s: unread are %+v", name, f.ledger.unread)
			}
		}
		attempts := func() (n int) {
			for _, u := range f.ledger.unread {
				n += u.Attempts
			}
			return n
		}
		for range 3 {
			before := attempts()
			expect.OK(t, f.readUnread(t.Context()))
			expect.OK(t, f.readUnread(t.Context()))
			expect.Equal(t, attempts()-before, 1, "%s: attempts in a minute", name)
			*now = now.Add(oversizedPause)
		}
		f.ledger.noSkips[ledger.UnreadOversized] = ledger.ErrTooManyUnreadable
		asked := 0
		f.node.Intercept(func(_ context.Context, method string) error {
			if method == "eth_getTransactionReceipt" {
				asked++
			}
			return nil
		})
		f.chain.Mine(chaintest.NewTx(large[0].Logs...))
		expect.Error(t, ledger.ErrTooManyUnreadable, name+": one more than the bound")(f.sync(t.Context()))
		f.node.Intercept(nil)
		f.restart(t, nil)
		f.catchUp(t)
		expect.OK(t, f.readUnread(t.Context()))
		if len(f.ledger.unread) != 0 {
			t.Errorf("%s: with a larger limit, unread are %+v", name, f.ledger.unread)
		}
		f.expect(t, 5, 2, 1, 3, 0)
	}
}

// TestOversizedOnOneNode has one node answer with a receipt that is too long, and the other one lack it. The
// transaction is skipped once both answers are too long, or as one that no node returns after unreadableAfter.
func TestOversizedOnOneNode(t *testing.T) {
	for _, appears := range []bool{true, false} {
		now := time.Unix(chaintest.GenesisTime, 0)
		f := newFixture(t, nil)
		proxies := f.nodes(t, 2, func(c *Config) {
			c.Now = func() time.Time { return now }
			c.Chain.MaxAnswer = 64 << 10
		})
		f.catchUp(t)
		logs := []chaintest.Log{pays(alice, 5)}
		for range 300 {
			logs = append(logs, chaintest.Transfer(other, alice, bob, five))
		}
		large := chaintest.NewTx(logs...)
		proxies[1].SetFaults(chaintest.DropTx{Tx: large.Hash})
		f.chain.Mine(large)
		f.chain.MineEmpty(3)
		for range minUnreadable {
			if _, err := f.sync(t.Context()); err == nil || len(f.ledger.unread) != 0 {
				t.Fatalf("while one node lacks the receipt: %v, unread are %+v", err, f.ledger.unread)
			}
			now = now.Add(unreadableAfter/minUnreadable - time.Second)
		}
		want := ledger.UnreadOversized
		if appears {
			proxies[1].SetFaults()
		} else {
			want = ledger.UnreadUnreadable
			now = now.Add(unreadableAfter)
		}
		f.catchUp(t)
		expect.Equal(t, f.ledger.unread[invoice.Hash(large.Hash)].Reason, want, "appears %t: it is set aside as", appears)
	}
}

// TestLookupOfBlockReadTogether has a node leave out the only payment of a block that is read between others, so that
// its header is not kept. After evidence of the payment, it is recorded before the block is final. It is confirmed like
// others, and rolled back by a reorg.
func TestLookupOfBlockReadTogether(t *testing.T) {
	for _, reorg := range []bool{false, true} {
		f := newFixture(t, nil)
		proxy := f.nodes(t, 1, nil)[0]
		f.catchUp(t)
		omitted := chaintest.NewTx(pays(alice, 5))
		proxy.SetFaults(chaintest.DropLogs{Txs: []common.Hash{omitted.Hash}})
		f.together = true
		f.chain.MineEmpty(2)
		b := f.chain.Mine(omitted)
		f.chain.MineEmpty(2)
		f.catchUp(t)
		if kept, _ := f.ledger.Headers(t.Context(), "", b.Number, b.Number); len(kept) != 0 || f.ledger.count(invoice.Pending) != 0 {
			t.Fatalf("kept is %+v", kept)
		}
		expect.OK(t, f.ledger.ReportUnread(t.Context(), "", invoice.Hash(omitted.Hash), b.Number, ledger.UnreadLookup))
		expect.OK(t, f.readUnread(t.Context()))
		if u := f.ledger.unread; f.ledger.count(invoice.Pending) != 1 || len(u) != 0 {
			t.Fatalf("%d payments are pending, unread are %+v", f.ledger.count(invoice.Pending), u)
		}
		proxy.SetFaults()
		f.together = false
		if reorg {
			f.chain.Fork(4)
			f.chain.MineEmpty(6)
			f.catchUp(t)
			f.expect(t, f.chain.Head().Number, f.chain.Head().Number-3, 0, 0, 1)
			continue
		}
		f.chain.MineEmpty(4)
		f.catchUp(t)
		f.expect(t, f.chain.Head().Number, f.chain.Head().Number-3, 0, 1, 0)
	}
}
