package watch

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
)

// TestNothingMissedFalseOrDoubled plays random histories: transfers of every
// kind, reorgs above finality at any moment (between two calls to the node as
// well), lagging and failing nodes, a database that refuses or loses its
// answer, restarts, long silences. When all is quiet again, the ledger must
// hold the canonical chain.
func TestNothingMissedFalseOrDoubled(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory(t, rt)
		rt.Repeat(map[string]func(*rapid.T){
			"mine":    func(t *rapid.T) { h.mine(t) },
			"silence": func(t *rapid.T) { h.chain.MineEmpty(rapid.IntRange(1, 2*maxBlocks).Draw(t, "blocks")) },
			"fork":    func(t *rapid.T) { h.planFork(t)() },
			"restart": func(t *rapid.T) { h.restart(t, nil) },
			"read":    func(t *rapid.T) { h.calm(); h.readSome(t) },
			"read while the chain forks": func(t *rapid.T) {
				h.calm()
				at := rapid.IntRange(1, 8).Draw(t, "call")
				fork := h.planFork(t)
				h.node.Intercept(func(context.Context, string) error {
					if at--; at == 0 {
						fork()
					}
					return nil
				})
				h.readSome(t)
			},
			"read with a failing node": func(t *rapid.T) {
				h.calm()
				at := rapid.IntRange(1, 8).Draw(t, "call")
				h.node.Intercept(func(context.Context, string) error {
					if at--; at == 0 {
						return errors.New("node fails")
					}
					return nil
				})
				h.readSome(t)
			},
			"read with a failing database": func(t *rapid.T) {
				h.calm()
				after := rapid.Bool().Draw(t, "after")
				at := rapid.IntRange(1, 3).Draw(t, "change")
				h.ledger.fail = func(now bool) error {
					if now == after {
						at--
					}
					if at == 0 {
						return errors.New("database fails")
					}
					return nil
				}
				h.readSome(t)
			},
			"read from a lagging node": func(t *rapid.T) {
				h.calm()
				h.node.Lag(rapid.Uint64Range(1, 5).Draw(t, "blocks"))
				h.readSome(t)
			},
			"": func(t *rapid.T) {
				for _, b := range h.ledger.breaches {
					t.Fatal(b)
				}
			},
		})
		h.calm()
		// A shorter chain is waited for; this one outgrows all that was seen.
		h.chain.MineEmpty(int(h.highest-h.chain.Head().Number) + 1)
		h.restart(rt, nil)
		h.catchUp(rt)
		checkLedger(rt, h.chain, h.ledger, testChain.Finality.Depth)
	})
}

// history is a fixture with what is needed to fork within the rules.
type history struct {
	*fixture
	highest uint64 // block that a node can have served
}

func newHistory(t *testing.T, rt *rapid.T) *history {
	f := &fixture{chain: newChain(), ledger: newMemory(merchant)}
	f.node = f.chain.Serve(both{t, rt})
	f.restart(rt, nil)
	return &history{fixture: f}
}

// both cleans up when the rapid test ends, and is a testing.TB else.
type both struct {
	testing.TB
	rt *rapid.T
}

func (b both) Cleanup(f func()) { b.rt.Cleanup(f) }

// calm takes all faults away.
func (h *history) calm() {
	h.node.Intercept(nil)
	h.node.Lag(0)
	h.ledger.fail = nil
	h.highest = max(h.highest, h.chain.Head().Number)
}

// readSome does a few rounds, whatever comes of them, as Run would.
func (h *history) readSome(t *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(t, "rounds") {
		if _, err := h.round(context.Background()); err != nil {
			if halted := new(HaltedError); errors.As(err, &halted) {
				t.Fatal(err)
			}
		}
	}
}

// mine adds a block of transfers among the merchant and others.
func (h *history) mine(t *rapid.T) {
	var txs []chaintest.Tx
	for range rapid.IntRange(0, 3).Draw(t, "transactions") {
		var logs []chaintest.Log
		for range rapid.IntRange(1, 3).Draw(t, "logs") {
			of := rapid.SampledFrom([]invoice.Address{token, token, token, other}).Draw(t, "token")
			who := rapid.SampledFrom([]invoice.Address{alice, bob, merchant})
			amount := invoice.NewAmount(rapid.Uint64Range(0, 3).Draw(t, "amount"))
			logs = append(logs, chaintest.Transfer(of, who.Draw(t, "from"), who.Draw(t, "to"), amount))
		}
		txs = append(txs, chaintest.NewTx(logs...))
	}
	h.chain.Mine(txs...)
}

// planFork returns a function that replaces blocks which are not final to
// anyone who saw the highest block, and puts some of the transactions of
// replaced blocks into the new ones.
func (h *history) planFork(t *rapid.T) func() {
	blocks := h.chain.Blocks()
	head := uint64(len(blocks) - 1)
	h.highest = max(h.highest, head)
	depth := rapid.Uint64Range(0, head-min(head, h.highest-min(h.highest, testChain.Finality.Depth))).Draw(t, "depth")
	var dropped []chaintest.Tx
	for _, b := range blocks[head-depth+1:] {
		dropped = append(dropped, b.Txs...)
	}
	var again [][]chaintest.Tx
	for range rapid.Uint64Range(0, depth+1).Draw(t, "blocks") {
		n := rapid.IntRange(0, len(dropped)).Draw(t, "moved")
		again = append(again, dropped[:n])
		dropped = dropped[n:]
	}
	return func() {
		h.chain.Fork(int(depth))
		for _, txs := range again {
			h.chain.Mine(txs...)
		}
	}
}

// checkLedger compares a ledger that read all with the canonical chain.
func checkLedger(t testingT, c *chaintest.Chain, m *memory, depth uint64) {
	t.Helper()
	blocks := c.Blocks()
	head := uint64(len(blocks) - 1)
	if m.cursor.Indexed.Number != head || m.cursor.Confirmed.Number != head-min(head, depth) {
		t.Fatalf("read up to %d and final up to %d, want %d and %d blocks less", m.cursor.Indexed.Number, m.cursor.Confirmed.Number, head, depth)
	}
	expected := map[string]bool{}
	for _, b := range blocks {
		index := 0
		for _, tx := range b.Txs {
			for ordinal, l := range tx.Logs {
				at := index
				index++
				from, to := invoice.Address(l.Topics[1][12:]), invoice.Address(l.Topics[2][12:])
				amount := invoice.AmountFromBytes([32]byte(l.Data))
				if invoice.Address(l.Address) != token || (from != merchant && to != merchant) || amount.IsZero() {
					continue
				}
				id := invoice.TransferID(invoice.PrefixPayment, testChain.Key, invoice.Hash(tx.Hash), ordinal)
				expected[id] = true
				status := invoice.Pending
				if b.Number+depth <= head {
					status = invoice.Confirmed
				}
				want := record{Status: status, Transfer: invoice.Transfer{
					Position: invoice.Position{BlockNumber: b.Number, BlockHash: invoice.Hash(b.Hash), BlockTime: b.Time, LogIndex: at},
					ChainKey: testChain.Key, TxHash: invoice.Hash(tx.Hash), Ordinal: ordinal, Token: token, Currency: "USDC",
					From: from, To: to, Amount: amount,
				}}
				if got, ok := m.records[id]; !ok {
					t.Fatalf("missed: transfer %d of transaction %s in block %d", ordinal, tx.Hash, b.Number)
				} else if got != want {
					t.Fatalf("recorded %+v\nwant %+v", got, want)
				}
			}
		}
	}
	for id, r := range m.records {
		if !expected[id] && r.Status != invoice.Orphaned {
			t.Fatalf("false: %+v is not on the chain", r)
		}
	}
}
