package indexer

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestNoticeOfOmittedTransfer has a provider announce a transfer that the first node leaves
// out of its block. A while after the notice, another node's logs show it.
func TestNoticeOfOmittedTransfer(t *testing.T) {
	now := time.Unix(chaintest.GenesisTime, 0)
	f := newFixture(t, nil)
	proxies := f.nodes(t, 2, func(c *Config) { c.Now = func() time.Time { return now } })
	f.catchUp(t)
	omitted := chaintest.NewTx(pays(alice, 5))
	proxies[0].SetFaults(chaintest.DropLogs{Txs: []common.Hash{omitted.Hash}})
	f.chain.Mine(chaintest.NewTx(pays(bob, 1)), omitted)
	f.chain.MineEmpty(3)
	f.catchUp(t)
	f.ledger.notices = []time.Time{now}
	read := func() {
		t.Helper()
		for range 2 { // finds, and reads
			expect.OK(t, f.readUnread(t.Context()))
		}
	}
	read()
	if got := f.ledger.count(invoice.Confirmed); got != 1 {
		t.Fatalf("%d payments are confirmed before the notice is old enough, want 1", got)
	}
	now = now.Add(noticeGrace + time.Second)
	read()
	if got := f.ledger.count(invoice.Confirmed); got != 2 {
		t.Errorf("%d payments are confirmed, want 2", got)
	}
	if got := f.state(0); got != chain.StateQuarantined {
		t.Errorf("the node is %s, want it quarantined", got)
	}
	before := f.node.Calls("eth_getLogs")
	read()
	if got := f.node.Calls("eth_getLogs"); got != before {
		t.Errorf("a notice that was followed took %d calls more", got-before)
	}
}
