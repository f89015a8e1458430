package indexer

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// Flags that select the histories.
var (
	historySeed  = flag.Uint64("history.seed", 1, "seed of the first history")
	historyCount = flag.Int("history.count", 120, "how many histories to play; a tenth with -short")
)

const (
	// historiesPerFile is how many histories share a SQLite database.
	historiesPerFile = 250
	// postgresEvery is n if one in n histories runs on PostgreSQL, except with -short.
	postgresEvery = 25
	// maxFindings is the number of histories with findings after which the run ends.
	maxFindings = 20
)

// onceFailed are seeds of histories that found defects. They are played first.
var onceFailed = []uint64{
	77220, // an invoice expired although its payment was not readable yet when a gap was closed
	77420, // a refund was missed, since its payment was read later
	81187, // the indexer got stuck on a block that one node had invented
}

// TestHistories plays seeded histories of a chain against the real ledger on a real database, and compares the stored
// result with the chain. A history is a function of its seed. It has invoices; transactions that pay them in every way,
// and some that only resemble payments; reorgs above the finalized block, between two syncs and during one; nodes that
// fail and falsify answers; a database that refuses a transaction or loses the response of a commit; crashes, replicas,
// a first start long after the first payment, and rescans.
//
// One node in a history may falsify answers; the others only fail, lag and stop
// answering. The function falseAnswers describes the assumptions about false answers.
// At the end all nodes answer, except that one of several may keep its faults.
//
// Amounts, payers and blocks are drawn from few values, so that they collide. The expected outcome of a transfer is
// known from its purpose, and is never computed by the rules under test. If two outcomes depend on the order of
// observation, both are right.
func TestHistories(t *testing.T) {
	count := *historyCount
	if testing.Short() {
		count = (count + 9) / 10
	}
	run := historyRun{T: t, found: map[string]int{}, tally: map[string]int{}}
	var next atomic.Uint64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			dbs := &historyDBs{run: &run}
			defer dbs.close()
			for {
				n := next.Add(1) - 1
				if n >= uint64(count+len(onceFailed)) || run.failed() >= maxFindings {
					return
				}
				seed := *historySeed + n - uint64(len(onceFailed))
				if n < uint64(len(onceFailed)) {
					seed = onceFailed[n]
				}
				run.add(seed, playHistory(t, seed, dbs.of(seed)))
			}
		})
	}
	workers.Wait()
	for _, what := range slices.Sorted(maps.Keys(run.tally)) {
		t.Logf("%8d %s", run.tally[what], what)
	}
	t.Logf("missed %d, false %d, doubled %d, wrong attribution %d, others %v",
		run.found[missed], run.found[extraPayments], run.found[doubled], run.found[misattributed], run.found)
}

// historyRun collects the results of the histories. It is safe for concurrent use.
type historyRun struct {
	*testing.T

	mu    sync.Mutex
	bad   int            // histories with findings
	found map[string]int // by kind
	tally map[string]int // of the actions that were played

	postgres *historyDB
}

func (r *historyRun) failed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bad
}

// add adds the result of a history.
func (r *historyRun) add(seed uint64, outcome historyOutcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally["histories"]++
	for what, n := range outcome.tally {
		r.tally[what] += n
	}
	if len(outcome.discrepancies) == 0 {
		return
	}
	r.bad++
	var text strings.Builder
	for _, f := range outcome.discrepancies {
		r.found[f.kind]++
		fmt.Fprintf(&text, "\n  %s: %s", f.kind, f.text)
	}
	r.Errorf("history %d (%s):%s\nagain: go test ./internal/indexer -run TestHistories -history.seed=%d -history.count=1",
		seed, outcome.plan, text.String(), seed)
}

// historyDB is a database that histories share. Each history has its own chain and
// merchants.
type historyDB struct {
	store *db.DB
	sql   *dbtest.DB
}

func openHistoryDB(tb testing.TB, url string) *historyDB {
	return &historyDB{store: dbtest.Open(tb, url), sql: dbtest.SQL(tb, url)}
}

// historyDBs are the databases of one goroutine.
type historyDBs struct {
	run  *historyRun
	file *historyDB
	open *stage // of the open database
	used int
}

// of returns the database that the history of a seed is played on.
func (d *historyDBs) of(seed uint64) *historyDB {
	if seed%postgresEvery == 0 && !testing.Short() {
		d.run.mu.Lock()
		defer d.run.mu.Unlock()
		if d.run.postgres == nil {
			d.run.postgres = openHistoryDB(d.run.T, dbtest.MigratedPostgres(d.run.T))
		}
		return d.run.postgres
	}
	if d.file == nil || d.used == historiesPerFile {
		d.close()
		d.open = &stage{TB: d.run.T}
		d.file, d.used = openHistoryDB(d.open, dbtest.SQLite(d.open)), 0
	}
	d.used++
	return d.file
}

func (d *historyDBs) close() {
	if d.open != nil {
		d.open.end()
	}
}

// stage is a testing.TB that runs its cleanup at its end, before the test's. It may fail on any goroutine.
type stage struct {
	testing.TB
	cleanups []func()
}

func (s *stage) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

// end runs the cleanup.
func (s *stage) end() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
	s.cleanups = nil
}

// broken is the panic value of a stage with a history that cannot continue.
type broken string

func (s *stage) Fatal(args ...any)                 { panic(broken(fmt.Sprint(args...))) }
func (s *stage) Fatalf(format string, args ...any) { panic(broken(fmt.Sprintf(format, args...))) }

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

// errInjected is the error of a failing ledger.
var errInjected = errors.New("the database is gone")

// faultyLedger is the real ledger on a database that can fail before a transaction, or lose
// the response of a commit. It checks every block that an indexer reports as final.
type faultyLedger struct {
	Ledger
	judge   func(final invoice.Header)
	gap     func() // called when indexing starts above a gap
	skipped func() // called when blocks are read without some of their transactions

	mu    sync.Mutex
	fails int  // the nth change from now on fails; 0 to fail no change
	after bool // the failing change is committed
}

// failAtRandom makes the nth change from now on fail.
func (l *faultyLedger) failAtRandom(nth int, after bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails, l.after = nth, after
}

// change makes a change of the ledger, which may fail.
func (l *faultyLedger) change(do func() error) error {
	l.mu.Lock()
	fails := l.fails == 1
	l.fails = max(0, l.fails-1)
	after := l.after
	l.mu.Unlock()
	if fails && !after {
		return errInjected
	}
	if err := do(); err != nil || !fails {
		return err
	}
	return errInjected
}

func (l *faultyLedger) lookForUnread(blocks []ledger.Block) {
	if slices.ContainsFunc(blocks, func(b ledger.Block) bool { return len(b.Unread) > 0 }) {
		l.skipped()
	}
}

func (l *faultyLedger) Start(ctx context.Context, key string, at invoice.Header, from uint64) error {
	l.judge(at)
	if from <= at.Number {
		l.gap()
	}
	return l.change(func() error { return l.Ledger.Start(ctx, key, at, from) })
}

func (l *faultyLedger) Observe(ctx context.Context, key string, blocks []ledger.Block) error {
	l.lookForUnread(blocks)
	return l.change(func() error { return l.Ledger.Observe(ctx, key, blocks) })
}

func (l *faultyLedger) Rollback(ctx context.Context, key string, to invoice.Header) error {
	return l.change(func() error { return l.Ledger.Rollback(ctx, key, to) })
}

func (l *faultyLedger) Confirm(ctx context.Context, key string, line invoice.Header, revision int64, unfinal uint64) (more bool, err error) {
	err = l.change(func() error {
		more, err = l.Ledger.Confirm(ctx, key, line, revision, unfinal)
		if err == nil {
			l.judge(line)
		}
		return err
	})
	return more, err
}

func (l *faultyLedger) Fill(ctx context.Context, key string, next uint64, blocks []ledger.Block, through invoice.Header) error {
	l.lookForUnread(blocks)
	return l.change(func() error {
		err := l.Ledger.Fill(ctx, key, next, blocks, through)
		if err == nil {
			l.judge(through)
		}
		return err
	})
}

func (l *faultyLedger) Halt(ctx context.Context, key, reason string) error {
	return l.change(func() error { return l.Ledger.Halt(ctx, key, reason) })
}

// compareReturned checks how much of the order's timely payments was sent back while the invoice was open, according to
// the ledger. Refunds in blocks that were read before the invoice was paid or expired count; refunds that were made
// afterwards do not. Whether the ones in between count depends on when the blocks were read. A refund that a reorg
// dropped may count.
func (v *oracle) compareReturned(o *order, got invoice.Invoice) {
	ended := v.endOf(o, got)
	for _, m := range v.paid[o] {
		if b, _ := v.blockOf(m.of); b.Time > o.ExpiresAt.Unix() {
			continue // it does not count
		}
		var least, most uint64
		for _, r := range v.refundsOf(m) {
			b, _, must := v.mayRefund(r)
			if len(r.of.at) > 0 && !r.afterEnd {
				most += r.amount
			}
			if must && b.Number <= ended && !v.wasPaidBelow(o, m, b) {
				least += r.amount
			}
		}
		if sum := v.returned(m); sum < least || sum > most {
			v.report(misread, "of payment %s of %d of invoice %s, which is %s, %d was sent back, want %d to %d",
				v.id(invoice.PrefixPayment, m), m.amount, o.ID, got.Status, sum, least, most)
		}
	}
}

// wasPaidBelow reports whether the order was paid below a block, by the order of the chain, although transactions were
// read in another order. Then a refund of a payment in that block is one of a paid invoice.
func (v *oracle) wasPaidBelow(o *order, paid *move, block *chaintest.Block) bool {
	var sum uint64
	for _, m := range v.paid[o] {
		if b, _ := v.blockOf(m.of); b.Number < block.Number && b.Time <= o.ExpiresAt.Unix() {
			if sum += m.amount; m != paid {
				sum -= v.returned(m)
			}
		}
	}
	return v.skipped && sum >= o.enough
}

// endOf returns a block that was read before the invoice was paid or expired. It is the block of the
// payment that completed it, or the first one after its expiresAt.
func (v *oracle) endOf(o *order, got invoice.Invoice) uint64 {
	switch got.Status {
	case invoice.Paid:
		for _, m := range v.paid[o] {
			if got.SettledTx == invoice.Hash(m.of.tx.Hash) {
				b, _ := v.blockOf(m.of)
				return b.Number
			}
		}
		return 0
	case invoice.Expired:
		i := slices.IndexFunc(v.blocks, func(b *chaintest.Block) bool { return b.Time > o.ExpiresAt.Unix() })
		return v.blocks[max(i, 0)].Number
	default:
		return math.MaxUint64
	}
}

// refundsOf returns the transfers that refund a payment, on the chain or not.
func (v *oracle) refundsOf(paid *move) (refunds []*move) {
	for _, d := range v.actions {
		for _, m := range d.moves {
			if m.back == paid {
				refunds = append(refunds, m)
			}
		}
	}
	return refunds
}

// returned returns how much of a payment the ledger does not count because it was sent back.
func (v *oracle) returned(m *move) uint64 {
	return small(v.payments[v.id(invoice.PrefixPayment, m)].Returned)
}

// wasDropped reports whether a reorg has dropped a refund of a payment of the order. The refund's amount did not count,
// and may count now.
func (v *oracle) wasDropped(o *order) bool {
	return slices.ContainsFunc(v.paid[o], func(m *move) bool {
		return slices.ContainsFunc(v.refundsOf(m), func(r *move) bool {
			return slices.ContainsFunc(r.of.at, func(b *chaintest.Block) bool { return v.blocks[min(b.Number, uint64(len(v.blocks)-1))] != b })
		})
	})
}

// mayRefund returns the block of a refund, or nil, and whether the refund may and must be recognized. A refund that is
// mined before its payment is recognized if both are read together, or read again. Once recognized it stays, even if a
// reorg drops its payment.
func (v *oracle) mayRefund(m *move) (b *chaintest.Block, may, must bool) {
	b, _ = v.blockOf(m.of)
	paid := v.payments[v.id(invoice.PrefixPayment, m.back)]
	final := paid.Status == invoice.Confirmed
	may = b != nil && (final || paid.Status == invoice.Orphaned && v.wereTogether(m, m.back))
	must = may && final && !v.gapped && !v.partial &&
		(paid.BlockNumber < b.Number || paid.BlockNumber == b.Number && v.isBefore(m.back, m, b))
	return b, may, must
}
