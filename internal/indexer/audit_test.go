package indexer

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// audit runs the audit until no work is left, and returns how many calls it made.
func (f *fixture) audit(t *testing.T) (calls int) {
	t.Helper()
	for range 10_000 {
		n, more, err := f.auditStep(t.Context())
		if calls += n; !more && err == nil {
			return calls
		}
	}
	t.Fatal("the audit does not end")
	return 0
}

// TestOmittedLogInRanges has a node leave one log out of a block that is read in a range, in
// catch-up or in a back-fill. The audit finds it by receipts or by another node; with one
// node that serves no receipts, the blocks are counted as not verified.
func TestOmittedLogInRanges(t *testing.T) {
	for _, backfill := range []bool{false, true} {
		for _, nodes := range []int{1, 2} {
			for _, receipts := range []bool{true, false} {
				t.Run(fmt.Sprintf("back-fill %t, %d nodes, receipts %t", backfill, nodes, receipts), func(t *testing.T) {
					f := newFixture(t, nil)
					start := uint64(1)
					proxies := f.nodes(t, nodes, func(c *Config) { c.Chain.StartBlock = &start })
					if !backfill {
						f.catchUp(t)
					}
					omitted := chaintest.NewTx(pays(alice, 5))
					var faults []chaintest.Fault
					if !receipts {
						faults = append(faults, noReceipts)
					}
					omit(proxies, omitted, faults...)
					f.chain.MineEmpty(maxBlocks)
					f.chain.Mine(chaintest.NewTx(pays(bob, 1)), omitted)
					f.chain.MineEmpty(3 * maxBlocks)
					f.catchUp(t)
					before := f.ledger.count(invoice.Confirmed)
					f.audit(t)
					expect.OK(t, f.readUnread(t.Context()))
					want, counted := 2, f.Status().Audit.Counted
					if nodes == 1 && !receipts {
						want = 1
						if counted.Unverified == 0 {
							t.Errorf("counted are %+v, want some not verified", counted)
						}
					} else if counted.Unverified > 0 {
						t.Errorf("counted are %+v, want all verified", counted)
					}
					if got := f.ledger.count(invoice.Confirmed); got != want {
						t.Errorf("%d payments are confirmed, before the audit %d; want %d", got, before, want)
					}
					if a := f.Status().Audit; a.Behind != 0 || a.Older != 0 {
						t.Errorf("the audit shows %+v", a)
					}
					if want == 2 && before == 1 && f.state(0) != chain.StateQuarantined {
						t.Errorf("the node is %s, want it quarantined", f.state(0))
					}
				})
			}
		}
	}
}

// TestOmittedRefund has a node leave out a transfer from a settlement address, while no other node answers. The audit
// reports it if its receiver has paid that address, so that it may be a refund.
func TestOmittedRefund(t *testing.T) {
	for _, paid := range []bool{true, false} {
		for _, nodes := range []int{1, 2} {
			f := newFixture(t, nil)
			proxies := f.nodes(t, nodes, nil)
			f.catchUp(t)
			payer := bob
			if !paid {
				payer = alice
			}
			back := chaintest.NewTx(chaintest.Transfer(token, merchant, bob, five))
			omit(proxies, back)
			f.chain.Mine(chaintest.NewTx(pays(payer, 1)))
			f.chain.Mine(chaintest.NewTx(pays(alice, 2)), back)
			f.chain.MineEmpty(4)
			f.catchUp(t)
			f.audit(t)
			reports := map[bool]int{true: 1, false: 0}[paid]
			expect.Equal(t, f.ledger.reports, reports, "paid %t, %d nodes: reports", paid, nodes)
			expect.OK(t, f.readUnread(t.Context()))
			expect.Equal(t, f.ledger.count(invoice.Confirmed), 2+reports, "paid %t, %d nodes: transfers are confirmed:", paid, nodes)
			f.audit(t)
			expect.Equal(t, f.ledger.reports, reports, "paid %t, %d nodes: reports after another audit", paid, nodes)
		}
	}
}

// TestAuditOfComparedBlocks audits blocks that were compared when they were read. It needs no call, unless the service
// was restarted.
func TestAuditOfComparedBlocks(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		f := newFixture(t, nil)
		f.restart(t, comparing)
		f.catchUp(t)
		for range 10 {
			f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
			f.catchUp(t)
		}
		want := 0
		if restarted {
			f.restart(t, comparing)
			f.catchUp(t)
			want = 2 * 7
		}
		if got := f.audit(t); got > want {
			t.Errorf("restarted %t: the audit took %d calls, want at most %d", restarted, got, want)
		}
		if got := f.Status().Audit.Counted; got.Receipts != 7 {
			t.Errorf("restarted %t: counted are %+v, want 7 by receipts", restarted, got)
		}
	}
}

// TestAuditPassesOver lets an audit fall more than a day behind: older blocks are counted as not verified.
func TestAuditPassesOver(t *testing.T) {
	f := newFixture(t, nil)
	f.catchUp(t)
	const day = int(AuditHorizon / time.Second / chaintest.BlockSeconds)
	f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
	f.chain.MineAt(f.chain.Head().Time + 2*int64(AuditHorizon/time.Second))
	f.chain.Mine(chaintest.NewTx(pays(alice, 6)))
	f.chain.MineEmpty(3)
	f.catchUp(t)
	f.audit(t)
	got := f.Status().Audit.Counted
	if want := (ledger.AuditCounts{Unverified: 1, Receipts: 1, Header: 1}); got != want {
		t.Errorf("of 3 final blocks, the first older than %d blocks' time, counted are %+v, want %+v", day, got, want)
	}
}

// TestAuditOfFailingNode has the only node give no answer for a while: blocks are skipped only after several failures.
func TestAuditOfFailingNode(t *testing.T) {
	f := newFixture(t, nil)
	proxy := f.nodes(t, 1, nil)[0]
	f.catchUp(t)
	f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
	f.chain.MineEmpty(3)
	f.catchUp(t)
	proxy.SetFaults(chaintest.DropReceipts{})
	for range maxAuditFailures - 1 {
		if _, _, err := f.auditStep(t.Context()); err == nil {
			t.Fatal("incomplete receipts were no error")
		}
		delete(f.offers, f.cfg.Pool.Nodes()[0])
	}
	if _, more, err := f.auditStep(t.Context()); err != nil || !more {
		t.Errorf("the last failure: %t, %v", more, err)
	}
	f.audit(t)
	if got := f.Status().Audit.Counted; got.Unverified != 1 {
		t.Errorf("counted are %+v", got)
	}
}

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
			expect.Equal(t, got, test.want, "%s, %s:", name, where)
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
	expect.Equal(t, f.state(0), chain.StateQuarantined, "the node is")
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
	expect.Equal(t, f.node.Calls("eth_getTransactionReceipt")-before, 0, "receipts were asked for:")
}
