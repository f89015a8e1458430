package indexer

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// withoutLogs returns a node that has no logs, and no bloom filters that would reveal them. While replaced is on, it
// has another block 1. If receipts is set, its receipts lack the logs as well.
func withoutLogs(t *testing.T, f *fixture, receipts bool, replaces *atomic.Bool) string {
	t.Helper()
	return tamperingProxy(t, f.node, func(q question, ask func(question) any) any {
		if q.Method == "eth_getLogs" {
			return []any{}
		}
		return each(ask(q), func(o map[string]any) {
			if o["logsBloom"] != nil {
				o["logsBloom"] = "0x" + strings.Repeat("00", 256)
			}
			if replaces.Load() && o["number"] == "0x1" {
				flip(o, "hash")
			}
			if receipts && logsIn(o) != nil {
				o["logs"] = []any{}
			}
		})
	})
}

// TestReplacedAndTakenBack has a node replace a block that holds two payments and then restore it, so that the same
// block is read again without its payments. The error is found before the block is final, near the head and in ranges
// behind it, whichever node is asked.
func TestReplacedAndTakenBack(t *testing.T) {
	type outcome struct {
		confirmed   int
		quarantined bool // the byzantine node
	}
	for name, test := range map[string]struct {
		receipts bool // its receipts are wrong too
		stays    bool // it is still asked, before the others
		others   int
		want     outcome
	}{
		"it is gone":                 {receipts: true, others: 1, want: outcome{2, false}},
		"its receipts betray it":     {stays: true, others: 1, want: outcome{2, true}},
		"alone, its receipts do":     {stays: true, want: outcome{0, true}},
		"one denies it":              {receipts: true, stays: true, others: 1, want: outcome{0, false}},
		"two deny it":                {receipts: true, stays: true, others: 2, want: outcome{2, true}},
		"alone, nobody knows better": {receipts: true, stays: true, want: outcome{0, false}},
	} {
		for where, behind := range map[string]int{"near": 3, "behind": 3 * maxBlocks} {
			f := newFixture(t, nil)
			bloomless := func(c *Config) { c.Chain.FullBloom = false }
			f.restart(t, bloomless)
			f.catchUp(t)
			mineTwice(f, 0)
			f.catchUp(t)
			var replaces atomic.Bool
			replaces.Store(true)
			dishonest := withoutLogs(t, f, test.receipts, &replaces)
			f.restart(t, bloomless, dishonest)
			f.catchUp(t)
			replaces.Store(false)
			f.restart(t, bloomless, dishonest)
			f.catchUp(t)
			f.expect(t, 1, 0, 0, 0, 2)
			f.chain.MineEmpty(behind)
			urls := slices.Repeat([]string{f.node.URL}, test.others)
			if test.stays {
				urls = slices.Insert(urls, 0, dishonest)
			}
			f.restart(t, bloomless, urls...)
			for range 6 {
				_, _ = f.sync(t.Context()) // until every node has answered
			}
			got := outcome{f.ledger.count(invoice.Confirmed), test.stays && f.state(0) == chain.StateQuarantined}
			if got != test.want {
				t.Errorf("%s, %s: %+v, want %+v", name, where, got, test.want)
			}
			for _, b := range f.ledger.breaches {
				t.Errorf("%s, %s: %s", name, where, b)
			}
		}
	}
}

// TestLeftOutOfARange has another replica roll a block back. The block is final by the time that it is read again in a
// range, from a node that leaves out its contents.
func TestLeftOutOfARange(t *testing.T) {
	f := newFixture(t, nil)
	bloomless := func(c *Config) { c.Chain.FullBloom = false }
	f.restart(t, bloomless)
	f.catchUp(t)
	genesis := f.ledger.cursor.Indexed
	mineTwice(f, 0)
	f.catchUp(t)
	expect.OK(t, f.ledger.Rollback(t.Context(), "", genesis))
	f.chain.MineEmpty(3 * maxBlocks)
	f.restart(t, bloomless, withoutLogs(t, f, false, new(atomic.Bool)), f.node.URL)
	f.catchUp(t)
	f.expect(t, 3*maxBlocks+1, 3*maxBlocks-2, 0, 2, 0)
	if got := f.state(0); got != chain.StateQuarantined {
		t.Errorf("the node is %s, want it quarantined", got)
	}
}

// TestOrphansOfAReorg orphans payments by a reorg. Their receipts are not read before
// the blocks that replaced theirs are final.
func TestOrphansOfAReorg(t *testing.T) {
	f := newFixture(t, nil)
	f.catchUp(t)
	mineTwice(f, 0)
	f.catchUp(t)
	f.chain.Fork(1)
	f.chain.MineEmpty(2)
	f.catchUp(t)
	before := f.node.Calls("eth_getTransactionReceipt")
	f.chain.MineEmpty(3)
	f.catchUp(t)
	f.expect(t, 5, 2, 0, 0, 2)
	if n := f.node.Calls("eth_getTransactionReceipt") - before; n != 0 {
		t.Errorf("%d receipts were asked for", n)
	}
}
