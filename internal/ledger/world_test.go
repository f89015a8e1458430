package ledger_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/keyringtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestMain reduces rapid's default number of checks, because each history is long, other
// histories are drawn in each run, and `make properties` plays more. An explicit flag wins.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "10"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// open returns the context of a request without a key, which the operator's service takes.
func open(t testing.TB) context.Context { return access.WithPrincipal(t.Context(), access.Open()) }

// start is the time of each world's clock and of its first block.
const start = 1_700_000_000

// The quarantines of transfer amounts in seconds.
const (
	minQuarantine = int64(ledger.MinQuarantine / time.Second)
	quarantine    = int64(ledger.Quarantine / time.Second)
)

var (
	usdc     = invoice.Address{0x70}
	eurc     = invoice.Address{0x71}
	registry = invoice.Address{0x60}
	factory  = invoice.Address{0x61}
	payer    = invoice.Address{0xbb}
)

// database is a database that several worlds share, each with its own merchant and chain.
type database struct {
	store  *db.DB
	url    string
	sql    *dbtest.DB
	worlds atomic.Int64
}

// everywhere has the tests of onSQLite and eachWorld run on PostgreSQL, too.
var everywhere = flag.Bool("everywhere", false, "run all tests on PostgreSQL; otherwise only those with concurrency or with an SQL statement of their own")

// each runs the test on both databases.
func each(t *testing.T, test func(t *testing.T, d *database)) {
	t.Helper()
	on(t, dbtest.MigratedDatabases(), test)
}

// on runs the test on databases.
func on(t *testing.T, databases map[string]func(testing.TB) string, test func(t *testing.T, d *database)) {
	t.Helper()
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := url(t)
			test(t, &database{url: u, store: dbtest.Open(t, u), sql: dbtest.SQL(t, u)})
		})
	}
}

// onSQLite runs the test on SQLite, and with -everywhere on PostgreSQL, too.
func onSQLite(t *testing.T, test func(t *testing.T, d *database)) {
	t.Helper()
	databases := dbtest.MigratedDatabases()
	if !*everywhere {
		delete(databases, "postgres")
	}
	on(t, databases, test)
}

// eachWorld runs the test in parallel in a world on SQLite, and with -everywhere in one on PostgreSQL.
func eachWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) { test(t, d.world(t)) })
}

// eachWorldOnBoth runs the test in parallel in a world on each database. It is for tests that run SQL statements which
// no other test runs, or that have several clients.
func eachWorldOnBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	each(t, func(t *testing.T, d *database) { test(t, d.world(t)) })
}

// world is a service with its clock and its chain. The chain's first block is final.
type world struct {
	*ledger.Service
	t        testing.TB
	db       *database
	merchant string
	address  invoice.Address
	chainKey string

	seconds atomic.Int64 // the clock
	blocks  []ledger.Block
	forks   int
	txs     int

	random io.Reader // of the service
	keys   *access.Keyring

	mu              sync.Mutex
	unattributedIDs []string // as they were reported
	signalled       []string // the signals that were called
}

// merchants knows every merchant except "stranger". "silent" has no endpoint, merchants
// with the prefix "lenient-" have a tolerance of 5 %, those with the prefix "depositing-"
// collect by deposit addresses, and "listed" has a list of return hosts.
type merchants struct{}

func (merchants) WantsEvents(_ context.Context, _ db.Querier, id string) (bool, error) {
	return id != "silent", nil
}

func (merchants) Find(_ context.Context, id string) (m invoice.Merchant, known bool, err error) {
	if strings.HasPrefix(id, "lenient-") {
		m.Tolerance = invoice.Tolerance{BasisPoints: 500}
	}
	if strings.HasPrefix(id, "depositing-") {
		m.Collection = invoice.Deposit
	}
	if id == "listed" {
		m.ReturnHosts = []string{"shop.example", "localhost"}
	}
	return m, id != "stranger", nil
}

func (d *database) world(t testing.TB) *world {
	t.Helper()
	w := d.unstarted(t)
	w.must(w.Start(t.Context(), w.chainKey, w.head(), w.head().Number+1))
	return w
}

// unstarted returns a world with a chain that is not recorded yet.
func (d *database) unstarted(t testing.TB) *world {
	t.Helper()
	w := newWorld(t, d.worlds.Add(1))
	w.db, w.keys = d, keyringtest.New(t)
	w.Service = w.service()
	return w
}

// newWorld returns the nth world, with a chain and without a service.
func newWorld(t testing.TB, n int64) *world {
	t.Helper()
	w := &world{t: t, random: rand.Reader, merchant: fmt.Sprintf("acme-%d", n), chainKey: fmt.Sprintf("chain-%d", n)}
	w.address = invoice.Address{0: 0xaa, 18: byte(n >> 8), 19: byte(n)}
	w.seconds.Store(start)
	w.blocks = []ledger.Block{{Header: invoice.Header{Number: 100, Hash: w.hash("genesis"), Time: invoice.Unix(start)}}}
	return w
}

// prove records that addresses are controlled by their holders, as a transaction that names a prepared refund does.
func (w *world) prove(addresses ...invoice.Address) {
	w.t.Helper()
	w.must(w.db.store.Update(w.t.Context(), func(tx *db.Tx) (err error) {
		for _, a := range addresses {
			err = errors.Join(err, ledger.ProveAddress(w.t.Context(), tx, invoice.Refund{
				ObservedAt: at(start), Transfer: invoice.Transfer{ChainKey: w.chainKey, From: a, TxHash: w.hash("proof of", a)},
			}))
		}
		return err
	}))
}

// service returns a service with empty caches, as after a restart, with a changed configuration.
func (w *world) service(change ...func(*ledger.Config)) *ledger.Service {
	tokens := []chain.Token{{Currency: "USDC", Address: usdc, Decimals: 6}, {Currency: "EURC", Address: eurc, Decimals: 6}}
	signal := func(format string, args ...any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.signalled = append(w.signalled, fmt.Sprintf(format, args...))
	}
	cfg := ledger.Config{
		Store: w.db.store,
		Chains: []chain.Chain{
			{Key: w.chainKey, ID: 1337, Tokens: tokens, Registry: registry, DepositFactory: factory},
			{Key: "unregistered", ID: 7, Tokens: tokens},
		},
		Merchants: merchants{},
		OptionalEvents: func(id string, stored []invoice.EventType) []invoice.EventType {
			if strings.HasPrefix(id, "curious-") {
				return []invoice.EventType{invoice.EventUnattributed}
			}
			return stored
		},
		Signals: ledger.Signals{
			WakeDeliverer: func([]webhooks.Event) { signal("deliveries") },
			WakeTxManager: func(key string) { signal("intents %s", key) },
			WakeIndexer:   func(key string) { signal("look %s", key) },
			OnUnattributed: func(p invoice.Payment) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.unattributedIDs = append(w.unattributedIDs, p.ID)
			},
		},
		Now:  func() time.Time { return time.Unix(w.seconds.Load(), 0) },
		Rand: w.random, Keyring: w.keys,
	}
	for _, apply := range change {
		apply(&cfg)
	}
	return ledger.New(cfg)
}

// Confirm confirms the payments that are pending up to a header.
func (w *world) Confirm(ctx context.Context, chainKey string, line invoice.Header) error {
	return confirm(ctx, w.Service, chainKey, line)
}

// confirm reads the pending payments up to a header, and confirms them without
// verification. The newest block that was read is the chain's head.
func confirm(ctx context.Context, s *ledger.Service, chainKey string, line invoice.Header) error {
	_, revision, err := s.Pending(ctx, chainKey, line.Number)
	if err != nil {
		return err
	}
	cur, err := s.Cursor(ctx, chainKey)
	if err != nil {
		return err
	}
	more, err := s.Confirm(ctx, chainKey, line, revision, cur.Indexed.Number-min(cur.Indexed.Number, line.Number))
	for more && err == nil {
		more, err = s.Expire(ctx, chainKey)
	}
	return err
}

// at returns a time that is given in Unix seconds.
func at(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

// must ends the test if the last of the results of a call is an error.
func (w *world) must(results ...any) {
	w.t.Helper()
	expect.Success(w.t)(results...)
}

// signals returns the signals since its last call.
func (w *world) signals() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	signalled := w.signalled
	w.signalled = nil
	return signalled
}

func (w *world) hash(parts ...any) invoice.Hash {
	return sha256.Sum256(fmt.Append(nil, append([]any{w.chainKey, " "}, parts...)...))
}

// draft asks for 100 units within an hour.
func (w *world) draft() invoice.Draft {
	return invoice.Draft{
		MerchantID: w.merchant, Merchant: w.address, Amount: invoice.NewAmount(1_000_000),
		Currency: "USDC", ChainKey: w.chainKey, ExpiresAt: invoice.Unix(w.seconds.Load() + 3600),
	}
}

// create creates an invoice from the world's draft, after the changes.
func (w *world) create(change ...func(*invoice.Draft)) invoice.Invoice {
	w.t.Helper()
	d := w.draft()
	for _, by := range change {
		by(&d)
	}
	inv, err := w.Create(w.t.Context(), ledger.CreateRequest{Draft: d})
	w.must(err)
	return inv
}

func amount(n uint64) func(*invoice.Draft) {
	return func(d *invoice.Draft) { d.Amount = invoice.NewAmount(n) }
}

// pay returns a transfer to the world's merchant in a new transaction.
func (w *world) pay(a invoice.Amount) invoice.Transfer {
	w.txs++
	return invoice.Transfer{
		ChainKey: w.chainKey, TxHash: w.hash("tx", w.txs), Token: usdc, Currency: "USDC",
		From: payer, To: w.address, Amount: a,
	}
}

// deposited asks for payments at a deposit address.
func deposited(d *invoice.Draft) { d.Collection = invoice.Deposit }

// deposit returns a transfer to the deposit address of an invoice.
func (w *world) deposit(inv invoice.Invoice, n uint64) invoice.Transfer {
	t := w.pay(invoice.NewAmount(n))
	t.To = inv.DepositAddress
	return t
}

// sweep returns a transfer from the deposit address of an invoice to its merchant.
func (w *world) sweep(inv invoice.Invoice, n uint64) invoice.Transfer {
	t := w.pay(invoice.NewAmount(n))
	t.From, t.To = inv.DepositAddress, inv.Merchant
	return t
}

// inEUR returns the transfer in the other currency of the chain.
func inEUR(t invoice.Transfer) invoice.Transfer {
	t.Token, t.Currency = eurc, "EURC"
	return t
}

// swept returns the stored sweep of a transfer; ok is false without one.
func (w *world) swept(t invoice.Transfer) (s invoice.Sweep, ok bool) {
	w.t.Helper()
	found, err := ledger.SweepsByID(w.t.Context(), w.db.store, []string{invoice.TransferID(invoice.PrefixSweep, t.ChainKey, t.TxHash, t.Ordinal)})
	w.must(err)
	if len(found) == 0 {
		return s, false
	}
	return found[0], true
}

// unswept returns the balances of deposit addresses in a token, by invoice.
func (w *world) unswept(token invoice.Address) map[string]uint64 {
	w.t.Helper()
	held := make(map[string]uint64)
	queued, err := ledger.QueuedSweeps(w.t.Context(), w.db.store, w.chainKey, "", 1000)
	w.must(err)
	for _, s := range queued {
		if s.Token == token {
			held[s.InvoiceID] = number(s.Amount)
		}
	}
	return held
}

// isPaymentOrRefund reports whether a transfer is stored as one of the two.
func (w *world) isPaymentOrRefund(t invoice.Transfer) bool {
	w.t.Helper()
	payments, err := ledger.PaymentsByID(w.t.Context(), w.db.store, []string{invoice.TransferID(invoice.PrefixPayment, t.ChainKey, t.TxHash, t.Ordinal)})
	w.must(err)
	refunds, err := ledger.RefundsByID(w.t.Context(), w.db.store, []string{invoice.TransferID(invoice.PrefixRefund, t.ChainKey, t.TxHash, t.Ordinal)})
	w.must(err)
	return len(payments)+len(refunds) > 0
}

// back returns a transfer from the merchant to the payer.
func (w *world) back(a invoice.Amount) invoice.Transfer {
	t := w.pay(a)
	t.From, t.To = t.To, t.From
	return t
}

func tagged(t invoice.Transfer, e invoice.Evidence) invoice.Transfer {
	t.Evidence = e
	return t
}

func (w *world) head() invoice.Header { return w.blocks[len(w.blocks)-1].Header }

// next returns a child of the head, with the transfers.
func (w *world) next(at int64, transfers ...invoice.Transfer) ledger.Block {
	parent := w.head()
	b := ledger.Block{Header: invoice.Header{
		Number: parent.Number + 1, Parent: parent.Hash, Time: invoice.Unix(at), Hash: w.hash("block", parent.Hash, w.forks, at),
	}}
	for i, t := range transfers {
		t.Position = invoice.Position{BlockNumber: b.Number, BlockHash: b.Hash, BlockTime: invoice.Unix(at), LogIndex: i}
		b.Transfers = append(b.Transfers, t)
	}
	return b
}

// mine adds a block with the transfers to the chain, and observes it.
func (w *world) mine(at int64, transfers ...invoice.Transfer) invoice.Header {
	w.t.Helper()
	return w.observe(w.next(at, transfers...))
}

func (w *world) observe(b ledger.Block) invoice.Header {
	w.t.Helper()
	w.must(w.Observe(w.t.Context(), w.chainKey, []ledger.Block{b}))
	w.blocks = append(w.blocks, b)
	return b.Header
}

// announce mines a block with registry events about the invoice.
func (w *world) announce(inv invoice.Invoice, kinds ...ledger.RegistryEventKind) invoice.Header {
	w.t.Helper()
	b := w.next(w.head().Time.Unix() + 1)
	for _, kind := range kinds {
		b.Registry = append(b.Registry, ledger.RegistryEvent{Registry: registry, Kind: kind, CommitmentID: inv.CommitmentID})
	}
	return w.observe(b)
}

// reorg removes the newest n blocks. Blocks that are mined next have other hashes.
func (w *world) reorg(n int) {
	w.t.Helper()
	w.blocks = w.blocks[:len(w.blocks)-n]
	w.forks++
	w.must(w.Rollback(w.t.Context(), w.chainKey, w.head()))
}

// advance sets the clock and the time of the chain's newest final block.
func (w *world) advance(at int64) {
	w.t.Helper()
	w.seconds.Store(at)
	w.mine(at)
	w.final()
}

// final confirms everything up to the head.
func (w *world) final() {
	w.t.Helper()
	w.must(w.Confirm(w.t.Context(), w.chainKey, w.head()))
}

func (w *world) invoice(id string) invoice.Invoice {
	w.t.Helper()
	inv, err := ledger.NewReader(w.db.store).Invoice(w.t.Context(), id)
	w.must(err)
	return inv
}

// payment returns the stored payment of a transfer.
func (w *world) payment(t invoice.Transfer) ledger.PaymentRow {
	w.t.Helper()
	p, err := ledger.NewReader(w.db.store).Payment(w.t.Context(), invoice.TransferID(invoice.PrefixPayment, t.ChainKey, t.TxHash, t.Ordinal))
	w.must(err)
	return p
}

// eventTypes returns the types of the events about the invoice, in their order.
func (w *world) eventTypes(inv invoice.Invoice) []string {
	w.t.Helper()
	types := []string{}
	for _, e := range dbtest.Events(w.t, w.db.sql, inv.MerchantID) {
		if e.InvoiceID == inv.ID {
			types = append(types, string(e.Type))
		}
	}
	return types
}

// intents returns the invoice's intents, as "kind status block".
func (w *world) intents(inv invoice.Invoice) []string {
	w.t.Helper()
	all := []string{}
	for _, in := range dbtest.Intents(w.t, w.db.sql, inv.ID) {
		all = append(all, fmt.Sprint(in.Kind, " ", in.Status, " ", in.Seen))
	}
	return all
}

// number converts an amount that fits 64 bits to a number.
func number(a invoice.Amount) uint64 {
	word := a.Bytes()
	return binary.BigEndian.Uint64(word[24:])
}

// insertable returns an invoice of the world's draft with a suffix.
func (w *world) insertable(suffix uint64) invoice.Invoice {
	d := w.draft()
	return invoice.Invoice{
		Terms: invoice.Terms{Merchant: d.Merchant, Token: usdc, Amount: d.Amount, ExpiresAt: d.ExpiresAt},
		ID:    fmt.Sprintf("inv_%s_%03d", w.merchant, suffix), CommitmentID: w.hash("suffix", suffix), MerchantID: w.merchant,
		Currency: d.Currency, ChainKey: d.ChainKey, Status: invoice.Open, CreatedAt: invoice.Unix(start),
		TransferAmount: d.Amount.Plus(invoice.NewAmount(suffix)),
	}
}

// insert stores invoices, without events and intents.
func (w *world) insert(invoices []invoice.Invoice) {
	w.t.Helper()
	ctx := w.t.Context()
	w.must(w.db.store.Update(ctx, func(tx *db.Tx) error {
		all := []access.SettlementAddress{{ChainKey: w.chainKey, Address: w.address, MerchantID: w.merchant}}
		if err := access.InsertSettlementAddresses(ctx, tx, all, invoice.Unix(start)); err != nil {
			return err
		}
		_, err := ledger.InsertInvoices(ctx, tx, invoices)
		return err
	}))
}
