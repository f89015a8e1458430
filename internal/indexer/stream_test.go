package indexer

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// longChain mines the given number of blocks. Some of them pay the merchant, including the last ones and the ones
// around the end of the first range. All hold other transfers.
func longChain(f *fixture, blocks int) (payments int) {
	for n := 1; n <= blocks; n++ {
		var txs []chaintest.Tx
		if n == 1 || n == chain.FirstRange || n == chain.FirstRange+1 || n%97 == 0 || n > blocks-70 {
			txs = append(txs, chaintest.NewTx(pays(alice, uint64(n))), chaintest.NewTx(pays(bob, 1), pays(bob, 1)))
			payments += 3
		}
		f.chain.Mine(append(txs, chaintest.NewTx(chaintest.Transfer(token, alice, bob, five)))...)
	}
	return payments
}

// TestFarBehind reads a long chain in ranges, as a gap and as a backlog behind the head, from nodes that refuse most
// ranges in different ways.
func TestFarBehind(t *testing.T) {
	const blocks = 1500
	for _, gap := range []bool{true, false} {
		for i, says := range append(chaintest.Wordings, chaintest.Wording{}) {
			f := newFixture(t, nil)
			proxies := f.nodes(t, 2, nil)
			if !gap {
				f.catchUp(t) // begins at block 0
			}
			want := longChain(f, blocks)
			switch {
			case says.Message == "": // this one is down
				proxies[1].SetFaults(chaintest.Refuse{Status: 503})
			case i%2 == 0:
				proxies[0].SetFaults(chaintest.LimitLogs{Blocks: 150, Wording: says})
				proxies[1].SetFaults(chaintest.LimitLogs{Logs: 60, Wording: says})
			default:
				proxies[0].SetFaults(chaintest.LimitLogs{Logs: 3, Wording: says}, chaintest.Sometimes{Percent: 20, Fault: chaintest.Disconnect{}})
			}
			for range 200 {
				if _, err := f.sync(t.Context()); err != nil && !transient(err) {
					t.Fatal(err)
				}
				if _, err := f.fill(t.Context()); err != nil && !transient(err) {
					t.Fatal(err)
				}
				if c := f.ledger.cursor; c.Gap == nil && c.Indexed.Number == blocks && c.Confirmed.Number == blocks-3 {
					break
				}
			}
			final := f.ledger.count(invoice.Confirmed)
			f.expect(t, blocks, blocks-3, 9, want-9, 0)
			if final+9 != want {
				t.Errorf("%q, gap %t: %d transfers are final, want %d", says.Message, gap, final, want-9)
			}
			if slices.ContainsFunc(f.ledger.unfinal, func(n uint64) bool { return n != 3 }) {
				t.Errorf("%q, gap %t: the numbers of blocks that are not final are %v, want 3", says.Message, gap, f.ledger.unfinal)
			}
			if n := len(f.ledger.headers); n > blocks/2 { // each random failure makes ranges smaller too
				t.Errorf("%q, gap %t: %d headers were recorded for %d blocks read mostly in ranges", says.Message, gap, n, blocks)
			}
		}
	}
}

// transient reports whether an error is a node's.
func transient(err error) bool {
	var failed *nodeError
	return errors.As(err, &failed)
}

// TestGapBesideHead fills a gap while blocks are mined above it, and expects progress reports. Blocks of the gap that
// are not final yet wait until they are.
func TestGapBesideHead(t *testing.T) {
	f := newFixture(t, nil)
	now := newClock()
	f.restart(t, func(c *Config) { c.Now = now.Now })
	want := longChain(f, 900)
	expect.Success(t)(f.sync(t.Context()))
	if f.Status().Backfill != nil {
		t.Errorf("progress is %+v before there is any", f.Status().Backfill)
	}
	f.chain.Mine(chaintest.NewTx(pays(alice, 7)))
	seen := []Progress{}
	f.ledger.fail = func(after bool) error {
		if after {
			now.Add(10e9)
			if p := f.Status().Backfill; p != nil {
				seen = append(seen, *p)
			}
		}
		return nil
	}
	for more := true; more; {
		var err error
		if more, err = f.fill(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	f.ledger.fail = nil
	if f.ledger.cursor.Gap != nil || f.Status().Backfill != nil {
		t.Errorf("the gap is left: %+v, %+v", f.ledger.cursor.Gap, f.Status().Backfill)
	}
	if len(seen) < 3 || seen[0].From != 1 || seen[0].To != 897 || seen[1].At != chain.FirstRange+1 || seen[1].BlocksPerSecond != chain.FirstRange/10. || seen[1].Left < 7e9 {
		t.Errorf("progress was %+v", seen)
	}
	f.catchUp(t)
	f.expect(t, 901, 898, 7, want-6, 0)

	// Read again from block 880 to the head, of which 898 is final.
	f.ledger.cursor.Gap = &ledger.Gap{Next: 880, Last: 901}
	f.catchUp(t)
	if gap := f.ledger.cursor.Gap; gap == nil || gap.Next != 899 {
		t.Errorf("the gap is %+v, want it to wait at block 899", gap)
	}
	f.chain.MineEmpty(3)
	f.catchUp(t)
	f.expect(t, 904, 901, 0, want+1, 0)
	if gap := f.ledger.cursor.Gap; gap != nil {
		t.Errorf("the gap is left: %+v", gap)
	}
}

// TestGapOfReplicas has two indexers fill one gap. One of them widens it and one dies in the middle.
func TestGapOfReplicas(t *testing.T) {
	a := newFixture(t, nil)
	want := longChain(a, 2000)
	b := &fixture{chain: a.chain, node: a.node, ledger: a.ledger}
	b.restart(t, nil)
	expect.Success(t)(a.sync(t.Context()))
	a.ledger.cursor.Gap.Next = 400
	fills := 0
	a.ledger.fail = func(after bool) error {
		switch fills++; {
		case fills == 3 && !after:
			return errors.New("database is gone")
		case fills == 4:
			a.ledger.cursor.Gap.Next = 1 // a rescan
		}
		return nil
	}
	if _, err := a.fill(t.Context()); err == nil {
		t.Error("a failing database went unnoticed")
	}
	for more := true; more; {
		moreB, err := b.fill(t.Context())
		expect.OK(t, err)
		moreA, err := a.fill(t.Context())
		expect.OK(t, err)
		more = moreA || moreB
	}
	a.ledger.fail = nil
	a.catchUp(t)
	a.expect(t, 2000, 1997, 9, want-9, 0)
}

// TestGivesWay has a back-fill and a catch-up record many transfers in steps. After each step creates go first.
func TestGivesWay(t *testing.T) {
	const blocks, each = 200, 5
	for _, gap := range []bool{true, false} {
		f := newFixture(t, nil)
		if !gap {
			f.catchUp(t) // begins at block 0
		}
		for range blocks {
			var txs []chaintest.Tx
			for range each {
				txs = append(txs, chaintest.NewTx(pays(alice, 1)))
			}
			f.chain.Mine(txs...)
		}
		f.ledger.lines, f.ledger.gaveWay = nil, 0
		f.catchUp(t)
		steps := f.ledger.fills
		if !gap {
			for _, line := range f.ledger.lines {
				steps = append(steps, line.Number)
			}
		}
		if steps[0] > leastRecorded/each {
			t.Errorf("gap %v: the first step of blocks with %d transfers ends at %d, want %d", gap, each, steps[0], leastRecorded/each)
		}
		if f.ledger.gaveWay < 2 || f.ledger.gaveWay > len(steps) {
			t.Errorf("gap %v: creates went first %d times in %d steps", gap, f.ledger.gaveWay, len(steps))
		}
	}
}

// TestRecordingIsProgress fills a gap in steps, and expects the watchdog to notice each of them.
func TestRecordingIsProgress(t *testing.T) {
	f := newFixture(t, nil)
	for range 300 {
		f.chain.Mine(chaintest.NewTx(pays(alice, 1)))
	}
	expect.Success(t)(f.sync(t.Context()))
	var recorded time.Time // time of the step before
	f.ledger.fail = func(after bool) error {
		if idle := f.loops[loopGap].task.Idle(); !after && !recorded.IsZero() && idle > time.Since(recorded) {
			t.Errorf("the watchdog saw no progress for %v, and a step was recorded %v ago", idle, time.Since(recorded))
		}
		if after {
			recorded = time.Now()
		}
		return nil
	}
	f.step(t.Context(), loopGap, func(ctx context.Context) {
		for more := true; more; {
			var err error
			if more, err = f.fill(ctx); err != nil {
				t.Fatal(err)
			}
		}
	})
	if len(f.ledger.fills) < 3 {
		t.Errorf("the gap was filled in %d steps, want several", len(f.ledger.fills))
	}
}

// TestStreamOrder reads a span with many parts in flight. Their answers arrive in any order, and each must be applied
// after the part below it.
func TestStreamOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := &fixture{chain: newChain(), ledger: newMemory(merchant)}
		f.node = f.chain.Serve(both{t, rt})
		blocks := rapid.IntRange(50, 150).Draw(rt, "blocks")
		size := rapid.Uint64Range(1, 10).Draw(rt, "size")
		f.restart(rt, func(c *Config) { c.Chain.Nodes = []chain.NodeSettings{{MaxRange: size}} })
		f.chain.MineEmpty(blocks)
		f.maxInFlight = rapid.IntRange(1, 6).Draw(rt, "in flight")
		span0 := blockRange{first: 1, last: uint64(blocks), rangedUpTo: rapid.Uint64Range(0, uint64(blocks)).Draw(rt, "ranged")}
		gate := make(chan struct{}, 1)
		f.node.Intercept(func(_ context.Context, method string) error {
			if method == "eth_getLogs" {
				gate <- struct{}{} // shuffles the parallel parts
				<-gate
			}
			return nil
		})
		next := uint64(1)
		for next <= uint64(blocks) {
			err := f.stream(context.Background(), blockRange{first: next, last: span0.last, rangedUpTo: span0.rangedUpTo}, invoice.Header{}, invoice.Header{}, func(_ context.Context, blocks []ledger.Block) error {
				if blocks[0].Number != next {
					rt.Fatalf("applied blocks from %d on, want %d", blocks[0].Number, next)
				}
				if !slices.IsSortedFunc(blocks, func(a, b ledger.Block) int { return int(a.Number) - int(b.Number) }) {
					rt.Fatalf("blocks are out of order")
				}
				next = blocks[len(blocks)-1].Number + 1
				return nil
			})
			expect.OK(rt, err)
		}
		if next != uint64(blocks)+1 {
			rt.Fatalf("read up to block %d, want %d", next-1, blocks)
		}
	})
}

// expectForeignRejected fails the test unless the node is quarantined and all recorded transfers are on the chain.
func (f *fixture) expectForeignRejected(t *testing.T, node int) {
	t.Helper()
	expect.Equal(t, f.state(node), chain.StateQuarantined, "the node is")
	for _, r := range f.ledger.records {
		if r.BlockHash != invoice.Hash(f.chain.Blocks()[r.BlockNumber].Hash) {
			t.Errorf("recorded %+v", r)
		}
	}
}

// TestForeignRange has one of two nodes answer ranges from another chain: none of its blocks is recorded.
func TestForeignRange(t *testing.T) {
	f := newFixture(t, nil)
	proxies := f.nodes(t, 3, nil)
	f.catchUp(t)
	want := longChain(f, 1200)
	proxies[1].SetFaults(chaintest.FalseChain{From: 300})
	f.catchUp(t)
	f.expect(t, 1200, 1197, 9, want-9, 0)
	f.expectForeignRejected(t, 1)
}

// TestRangesAreSpreadOverNodes reads a long gap from two nodes, each of which does part of the work.
func TestRangesAreSpreadOverNodes(t *testing.T) {
	f := newFixture(t, nil)
	second := f.chain.Serve(t)
	f.restart(t, nil, f.node.URL, second.URL)
	want := longChain(f, 3000)
	f.catchUp(t)
	f.expect(t, 3000, 2997, 9, want-9, 0)
	for i, n := range []*chaintest.Node{f.node, second} {
		if calls := n.Calls("eth_getTransactionReceipt"); calls < want/10 {
			t.Errorf("node %d was asked for %d receipts of %d", i, calls, want)
		}
	}
}

// TestForeignGap has the first node answer for a gap from another chain. The other nodes notice it at the end of the
// requested range.
func TestForeignGap(t *testing.T) {
	f := newFixture(t, nil)
	proxies := f.nodes(t, 3, nil)
	want := longChain(f, 400)
	expect.Success(t)(f.sync(t.Context()))
	proxies[0].SetFaults(chaintest.FalseChain{From: 90})
	expect.Success(t)(f.fill(t.Context()))
	proxies[0].SetFaults()
	f.catchUp(t)
	f.expect(t, 400, 397, 9, want-9, 0)
	f.expectForeignRejected(t, 0)
}

// TestManyPaymentsInBlocks reads blocks that consist mostly of payments, by all of their receipts, and expects the same
// result as when they are read one by one.
func TestManyPaymentsInBlocks(t *testing.T) {
	var ledgers []*memory
	c := newChain()
	for range 5 {
		var txs []chaintest.Tx
		for n := range uint64(40) {
			txs = append(txs, chaintest.NewTx(pays(alice, n+1), pays(bob, n+1)).WithInput(append(make([]byte, 68), id1[:]...)))
		}
		c.Mine(append(txs, chaintest.NewTx(chaintest.Transfer(token, alice, bob, five)))...)
		c.MineEmpty(30)
	}
	for _, without := range []bool{false, true} {
		f := &fixture{chain: c, node: c.Serve(t), ledger: newMemory(merchant)}
		f.restart(t, nil)
		f.node.Intercept(func(_ context.Context, method string) error {
			if without && method == "eth_getBlockReceipts" {
				return errors.New("the method eth_getBlockReceipts does not exist/is not available")
			}
			return nil
		})
		f.catchUp(t)
		f.expect(t, 155, 152, 0, 400, 0)
		if got := f.node.Calls("eth_getTransactionReceipt"); (got == 0) == without {
			t.Errorf("without the method %t: %d single receipts were read", without, got)
		}
		ledgers = append(ledgers, f.ledger)
	}
	for id, r := range ledgers[0].records {
		if named := r.Evidence.Calldata == id1; ledgers[1].records[id] != r || named != (r.From == alice) { // which depends on the sender
			t.Errorf("recorded %+v and %+v", r, ledgers[1].records[id])
		}
	}
}

// TestFewPaymentsInBlock reads a block with many payments among far more other
// logs: all of its receipts would be too many.
func TestFewPaymentsInBlock(t *testing.T) {
	f := newFixture(t, nil)
	payments := func() (txs []chaintest.Tx) {
		for range minWholeBlockTxs {
			txs = append(txs, chaintest.NewTx(pays(alice, 5)))
		}
		return txs
	}
	others := make([]chaintest.Log, minWholeBlockTxs+1)
	for i := range others {
		others[i] = chaintest.Transfer(token, alice, bob, five)
	}
	f.chain.Mine(append(payments(), chaintest.NewTx(others...))...)
	f.catchUp(t)
	f.expect(t, 1, 0, minWholeBlockTxs, 0, 0)
	expect.Equal(t, f.node.Calls("eth_getBlockReceipts"), 0, "times that all receipts were asked for:")
	f.chain.Mine(append(payments(), chaintest.NewTx(others[1:]...))...)
	f.catchUp(t)
	if n := f.node.Calls("eth_getBlockReceipts"); n != 1 {
		t.Errorf("all receipts of a block of which the payments are half were asked for %d times, want once", n)
	}
}

// TestGrow adapts the size of requests to the number of logs.
func TestGrow(t *testing.T) {
	f := newFixture(t, nil)
	limit := f.cfg.Pool.Nodes()[0].Limit(chain.KindRange)
	grow(limit, chain.FirstRange, 4*targetLogs)
	expect.Equal(t, limit.Next(), chain.FirstRange/4, "after four times the logs wanted, blocks are asked for:")
	grow(limit, chain.FirstRange/4, targetLogs)
	expect.Equal(t, limit.Next(), chain.FirstRange/4, "after as many logs as wanted, blocks are asked for:")
	grow(limit, chain.FirstRange/4, targetLogs*3/4)
	expect.Equal(t, limit.Next(), chain.FirstRange/2, "after fewer logs than wanted, blocks are asked for:")
}

// TestAddressCache queries the ledger once for each account, in bounded batches.
func TestAddressCache(t *testing.T) {
	f := newFixture(t, nil)
	asked := map[invoice.Address]int{}
	c := f.newAddressCache()
	ask := c.lookup
	c.lookup = func(ctx context.Context, accounts []invoice.Address) (map[invoice.Address]bool, error) {
		if len(accounts) > maxLookup {
			t.Errorf("asks about %d accounts at once", len(accounts))
		}
		for _, a := range accounts {
			asked[a]++
		}
		return ask(ctx, accounts)
	}
	accounts := []invoice.Address{merchant}
	for i := range maxLookup + 5 {
		accounts = append(accounts, invoice.Address{0xcc, byte(i), byte(i >> 8)})
	}
	for range 2 {
		got, err := c.watched(t.Context(), accounts)
		if err != nil || len(got) != 1 || !got[merchant] {
			t.Errorf("watched are %v, %v", got, err)
		}
	}
	for a, n := range asked {
		expect.Equal(t, n, 1, "times that %s was asked about:", a)
	}
	for i := range MaxCached/maxLookup + 1 {
		some := make([]invoice.Address, maxLookup)
		for j := range some {
			some[j] = invoice.Address{0xdd, byte(i), byte(i >> 8), byte(j), byte(j >> 8)}
		}
		expect.Success(t)(c.watched(t.Context(), some))
	}
	if len(c.known) > MaxCached {
		t.Errorf("%d answers are remembered", len(c.known))
	}
}
