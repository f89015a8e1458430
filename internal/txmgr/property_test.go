package txmgr

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/types"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// TestWriterProperties injects faults into calls of the node and of the database, kills writers, drops and reorders
// mined transactions, lets another program use the key, has other accounts sweep deposits, and makes one of two nodes
// lag. No transaction is broadcast before it is saved, no two transactions with one nonce differ in content, and in the
// end every intent is satisfied and every deposit is at its merchant.
func TestWriterProperties(t *testing.T) {
	dev := newChain(t)
	cases := 0
	rapid.Check(t, func(rt *rapid.T) {
		cases++
		s, err := db.Open(t.Context(), dbtest.Migrated(t))
		must(rt, err)
		defer func() { must(rt, s.Close()) }()
		dev.DropPending()
		must(rt, dev.Seal(t.Context())) // so that blocks of the previous case cannot be orphaned
		m := &machine{world: newWorld(rt, dev, s), budget: -1, due: make(map[string]uint64)}
		m.world.deposits.merchants = map[string]common.Address{"m": {0: 1, 19: byte(cases), 18: byte(cases >> 8)}, "n": {0: 2, 19: byte(cases), 18: byte(cases >> 8)}}
		m.net.Client = laggingClient{m.net.Client, func() uint64 { return m.head() - m.lag }, func(batched bool, _ string) bool { return m.behind[batched] }}
		m.writer = m.faulty()
		rt.Repeat(map[string]func(*rapid.T){
			"":                func(*rapid.T) { m.wantSameContents() },
			"enqueue":         m.enqueueSome,
			"deposit":         m.depositSome,
			"stranger":        m.sweepByStranger,
			"turn":            m.tickWithFaults,
			"die":             m.die,
			"seal":            func(*rapid.T) { m.seal(1) },
			"seal without":    func(*rapid.T) { m.sealEmpty(bumpBlocks) },
			"fork":            m.fork,
			"drop":            func(*rapid.T) { dev.DropPending() },
			"index":           func(*rapid.T) { m.index() },
			"lag":             m.fallBehind,
			"wait":            m.wait,
			"another program": m.sendByAnother,
		})
		m.converge(rt)
	})
}

type machine struct {
	*world
	writer *Writer
	opened []invoice.Hash
	closed []invoice.Hash
	due    map[string]uint64 // payments to each merchant's deposits
	budget int               // how many calls succeed before one fails; negative for all
	late   bool              // the failing call is carried out, and only its answer lost

	lag    uint64        // how many blocks one of two nodes is behind
	behind map[bool]bool // what that node answers: batches (true), single calls (false)
}

var errInjected = errors.New("spoiled by the test")

// faulty returns a writer with injected faults. It takes over from another replica, so that another program's
// transactions are not evidence of a restore.
func (m *machine) faulty() *Writer {
	writer := m.world.writer(m.sweeping(atOnce), func(c *Config) { c.Store, c.Leases = db.Intercepted(c.Store, m.around), c.Store })
	writer.allowed = AnyNonces
	return writer
}

// sendByAnother lets another program send a transaction. It is refused if one of ours has its nonce, which the pool may
// not have counted yet.
func (m *machine) sendByAnother(rt *rapid.T) {
	_, err := m.dev.Send(m.ctx, m.dev.Keys.Operator, m.registry, pack(invoice.IntentOpen, nil, 0))
	if !errors.Is(err, txpool.ErrReplaceUnderpriced) {
		must(rt, err)
	}
}

// strike reports whether the current call must fail.
func (m *machine) strike(late bool) error {
	if m.late != late || m.budget < 0 {
		return nil
	}
	if m.budget--; m.budget < 0 {
		return errInjected
	}
	return nil
}

func (m *machine) enqueueSome(t *rapid.T) {
	some := commitments(rapid.IntRange(1, 4).Draw(t, "invoices"))
	if rapid.Bool().Draw(t, "open") {
		m.enqueueIntents(invoice.IntentOpen, some...)
		m.opened = append(m.opened, some...)
	}
	if rapid.Bool().Draw(t, "close") {
		m.enqueueIntents(invoice.IntentClose, some...)
		m.closed = append(m.closed, some...)
	}
}

// depositSome pays deposits of a merchant, in blocks that become final.
func (m *machine) depositSome(t *rapid.T) {
	merchant := rapid.SampledFrom([]string{"m", "n"}).Draw(t, "merchant")
	amounts := rapid.SliceOfN(rapid.Uint64Range(1, 9), 1, 3).Draw(t, "amounts")
	m.deposit(merchant, amounts...)
	for _, n := range amounts {
		m.due[merchant] += n
	}
	m.seal(finality)
	m.index()
}

// sweepByStranger sends another account's transaction, which sweeps some of the queued deposits.
func (m *machine) sweepByStranger(t *rapid.T) {
	queued, err := ledger.QueuedSweeps(m.ctx, m.store, chain.Local, "", rapid.IntRange(1, 4).Draw(t, "deposits"))
	must(t, err)
	if len(queued) > 0 {
		_, err := m.dev.SendWithGas(m.ctx, m.dev.Keys.Merchant, m.dev.DepositFactory, chain.PackSweeps(calls(queued)), 1_000_000)
		must(t, err)
	}
}

// allSwept reports whether the queue of sweeps is empty.
func (m *machine) allSwept() bool {
	queued, err := ledger.QueuedSweeps(m.ctx, m.store, chain.Local, "", 1)
	must(m, err)
	return len(queued) == 0
}

func (m *machine) tickWithFaults(t *rapid.T) {
	m.late = rapid.Bool().Draw(t, "late")
	m.budget = rapid.IntRange(-1, 12).Draw(t, "calls until one fails")
	m.net.before = func(string, []any) error { return m.strike(false) }
	m.net.after = func(string) error { return m.strike(true) }
	err := m.writer.tick(m.ctx)
	m.net.before, m.net.after, m.budget = nil, nil, -1
	if err != nil && !errors.Is(err, errInjected) && !tolerable(err) {
		t.Fatal(err)
	}
}

// tolerable reports whether a round may end with this error: another writer has the lease, or the pool holds another
// program's transaction.
func tolerable(err error) bool {
	return errors.Is(err, db.ErrConflict) || errors.Is(err, errForeignTx) || errors.Is(err, errNonceUncertain) || isAnswer(err)
}

func (m *machine) die(t *rapid.T) {
	if rapid.Bool().Draw(t, "in order") {
		must(t, m.writer.release(m.ctx))
	}
	m.writer = m.faulty()
}

func (m *machine) fork(t *rapid.T) {
	cursor, err := ledger.NewReader(m.store).Cursor(m.ctx, "local")
	must(t, err)
	head := m.head()
	most := min(head-m.start, head-min(head, cursor.Confirmed.Number))
	depth := rapid.Uint64Range(0, most).Draw(t, "depth")
	var blocks [][]*types.Transaction
	if rapid.Bool().Draw(t, "longer") {
		blocks = make([][]*types.Transaction, depth+1)
	}
	must(t, m.dev.Fork(m.ctx, depth, blocks...))
}

func (m *machine) fallBehind(t *rapid.T) {
	m.lag = rapid.Uint64Range(0, min(3, m.head()-m.start)).Draw(t, "blocks")
	m.behind = map[bool]bool{true: rapid.Bool().Draw(t, "in batches"), false: rapid.Bool().Draw(t, "in calls")}
}

func (m *machine) wait(t *rapid.T) {
	m.clock.Add(rapid.SampledFrom([]time.Duration{time.Second, rebroadcastAfter, bumpAfter, skipFor}).Draw(t, "time"))
}

// converge advances time and blocks without faults.
func (m *machine) converge(t *rapid.T) {
	m.lag = 0
	for range 60 {
		m.clock.Add(lostAfter)
		if err := m.writer.tick(m.ctx); err != nil && !tolerable(err) {
			t.Fatal(err)
		}
		m.seal(1)
		m.index()
		if m.allDone() && m.allSwept() {
			break
		}
		if m.allDone() {
			m.clock.Add(sweepRetry) // deposits that a stranger had swept in a replaced block wait
		}
	}
	m.wantAllDone()
	m.wantQueue(0, 0, 0)
	for merchant, due := range m.due {
		m.wantBalance(m.settlementOf(merchant), due)
	}
	m.wantSameContents()
	for kind, ids := range map[invoice.IntentKind][]invoice.Hash{invoice.IntentOpen: m.opened, invoice.IntentClose: m.closed} {
		for _, id := range ids {
			status, err := m.dev.StatusOf(m.ctx, common.Hash(id))
			must(t, err)
			if status == statusNone || status == statusOpen && kind == invoice.IntentClose {
				t.Fatalf("commitment %s is %s after it was to be %s", id, status, kind)
			}
		}
	}
	m.wantShares()
	for _, tx := range m.txs() {
		if tx.Nonce >= m.nonce() && tx.Status != TxFailed {
			t.Fatalf("nonce %d was signed for, and neither used nor given up", tx.Nonce)
		}
	}
}

// wantShares fails the test unless merchants bear the cost of each transaction, to the gwei, however often it was
// replaced.
func (m *machine) wantShares() {
	got, want := make(map[string]int64), make(map[string]int64)
	shares, err := TxShares(m.ctx, m.store, ShareFilter{To: m.clock.Now().Add(time.Hour), Limit: 1000})
	must(m, err)
	for _, s := range shares {
		got[s.TxID] += s.Cost.Gwei
		if s.MerchantID == "" {
			m.Fatalf("nobody bears transaction %s", s.TxID)
		}
	}
	for _, tx := range m.txs() {
		if tx.Spent != nil {
			want[tx.ID] = tx.Spent.Gwei
		}
	}
	if !maps.Equal(got, want) {
		m.Fatalf("merchants bear %v, and the transactions cost %v", got, want)
	}
}

// around fails a transaction like a database with a lost connection: before or after the change.
func (m *machine) around(transaction func() error) error {
	if err := m.strike(false); err != nil {
		return err
	}
	if err := transaction(); err != nil {
		return err
	}
	return m.strike(true)
}
