package indexer

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/chaintest"
)

// checkLedger compares a ledger that read the whole chain with the canonical chain.
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
					Position: invoice.Position{BlockNumber: b.Number, BlockHash: invoice.Hash(b.Hash), BlockTime: invoice.Unix(b.Time), LogIndex: at},
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

// both is a testing.TB that cleans up when the rapid test ends.
type both struct {
	testing.TB
	rt *rapid.T
}

func (b both) Cleanup(f func()) { b.rt.Cleanup(f) }
