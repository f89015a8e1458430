package ledger_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// depositInvoices is how many invoices a case of TestDepositsKeepTheirMoney has.
var depositInvoices = flag.Int("deposit.invoices", 30, "how many deposit invoices a case of the property has")

// TestDepositsKeepTheirMoney plays payments of any amount, order, time and currency to the deposit
// addresses of many invoices of several merchants, with sweeps by anyone, refunds, direct payments,
// reorgs, blocks read again, restarts, two replicas, and transactions that are killed. A transaction
// that a reorg dropped may be mined again with another outcome. Then:
//
//   - Each transfer to a deposit address is stored once, for the invoice of that address and
//     no other, and counts if it is in the invoice's currency.
//   - Each transfer from a deposit address is stored only as a sweep of its invoice.
//   - The balance of an address is the sum of the payments after its newest sweep. The same sum is
//     queued to be swept.
//   - An invoice is paid once its final payments in time are enough, less their refunds by then,
//     and not otherwise. It stays paid.
//   - A refund goes back to the payer, and was mined above its payment, which a reorg may have
//     dropped since. Refunds never exceed their payment, unless they were final when it was mined
//     again with less.
//
// Each case begins with a copy of the same invoices.
func TestDepositsKeepTheirMoney(t *testing.T) {
	t.Parallel()
	set := newDepositSet(t, *depositInvoices)
	var counts depositCounts
	storedProperties(t, func(_ *database, r *rand.Rand) string {
		w, done := set.open(t)
		defer done()
		d := newDepositGame(w, r, set)
		for range 5 + r.IntN(15) {
			d.step()
			d.follow()
		}
		d.finish()
		return d.judge(&counts)
	})
	t.Logf("%d invoices in each case; %s", *depositInvoices, counts.String())
}

// depositSet is the invoices that every case begins with, in a SQLite database.
type depositSet struct {
	dir      string
	file     []byte
	opened   atomic.Int64
	deposits []invoice.Invoice
	direct   []invoice.Invoice
	ids      []string                   // of both
	owner    map[invoice.Address]string // deposit invoices by address
	byID     map[string]invoice.Invoice
}

// depositMerchants is how many merchants the invoices of a depositSet belong to.
const depositMerchants = 3

// newDepositSet makes n deposit invoices, of which one in ten expires early, and some direct invoices
// over amounts that others are paid.
func newDepositSet(t *testing.T, n int) *depositSet {
	t.Helper()
	set := &depositSet{dir: t.TempDir(), owner: make(map[invoice.Address]string), byID: make(map[string]invoice.Invoice)}
	url := dbtest.Migrated(t)
	s, err := db.Open(t.Context(), url)
	expect.OK(t, err)
	w := (&database{store: s}).world(t)
	r := rand.New(rand.NewPCG(12, 0))
	var addresses []access.SettlementAddress
	for i := range depositMerchants {
		addresses = append(addresses, access.SettlementAddress{ChainKey: w.chainKey, Address: w.settlement(i), MerchantID: w.merchantID(i)})
	}
	for i := range n + n/10 {
		inv := w.insertable(uint64(i + 1))
		inv.MerchantID, inv.Merchant = w.merchantID(i%depositMerchants), w.settlement(i%depositMerchants)
		inv.Amount, inv.FromBlock = invoice.NewAmount(1+r.Uint64N(3_000_000)), 100
		inv.ExpiresAt = invoice.Unix(start + 100_000)
		if i%10 == 0 {
			inv.ExpiresAt = invoice.Unix(start + 1 + r.Int64N(200))
		}
		if i < n {
			inv.Collection, inv.DepositFactory, inv.TransferAmount = invoice.Deposit, factory, invoice.Amount{}
			inv.DepositAddress = invoice.Address(contracts.DepositAddress(common.Address(factory), common.Address(inv.Merchant), common.Hash(inv.CommitmentID)))
			set.deposits = append(set.deposits, inv)
			set.owner[inv.DepositAddress] = inv.ID
		} else {
			inv.TransferAmount = inv.Amount.Plus(invoice.NewAmount(uint64(1 + i - n)))
			set.direct = append(set.direct, inv)
		}
		set.ids = append(set.ids, inv.ID)
		set.byID[inv.ID] = inv
	}
	w.must(s.Update(t.Context(), func(tx *db.Tx) error {
		if err := access.InsertSettlementAddresses(t.Context(), tx, addresses, invoice.Unix(start)); err != nil {
			return err
		}
		_, err := ledger.InsertInvoices(t.Context(), tx, append(set.deposits, set.direct...))
		return err
	}))
	w.must(s.Close())
	set.file, err = os.ReadFile(strings.TrimPrefix(url, "sqlite:"))
	w.must(err)
	return set
}

// merchantID returns one of the merchants of a depositSet.
func (w *world) merchantID(n int) string { return w.merchant + strings.Repeat("-partner", n) }

// settlement returns the settlement address of one of the merchants of a depositSet.
func (w *world) settlement(n int) invoice.Address {
	a := w.address
	a[1] = byte(n)
	return a
}

// open returns a world with a copy of the invoices, and a function that closes it.
func (set *depositSet) open(t *testing.T) (*world, func()) {
	t.Helper()
	dir := filepath.Join(set.dir, fmt.Sprint(set.opened.Add(1)))
	path := filepath.Join(dir, "case.db")
	expect.OK(t, errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(path, set.file, 0o600)))
	s, err := db.Open(t.Context(), "sqlite:"+path)
	expect.OK(t, err)
	return (&database{store: s}).unstarted(t), func() { expect.NoError(t, errors.Join(s.Close(), os.RemoveAll(dir))) }
}

// transferKey identifies a transfer: a reorg may change its amount and accounts.
type transferKey struct {
	tx      invoice.Hash
	ordinal int
}

func keyOf(t invoice.Transfer) transferKey { return transferKey{t.TxHash, t.Ordinal} }

// returned is a transfer back, in any block, and the payment below it.
type returned struct {
	payment transferKey
	back    invoice.Transfer
}

// returnOf returns a transfer with its payment, regardless of its block.
func returnOf(payment, back invoice.Transfer) returned {
	back.Position = invoice.Position{}
	return returned{keyOf(payment), back}
}

// depositGame is a case of TestDepositsKeepTheirMoney.
type depositGame struct {
	*world
	*rand.Rand
	set      *depositSet
	hot      []invoice.Invoice // deposit invoices that get many transfers
	replicas []*ledger.Service
	txs      [][]invoice.Transfer    // each transaction with its newest outcome
	mined    map[transferKey]bool    // every transfer that was in a block
	returns  map[returned]bool       // transfers that were mined above others between the same accounts
	finality map[invoice.Hash]uint64 // the newest final block when a block was mined, by its hash
	line     int                     // blocks up to this index are final
	restarts int
	kills    int // transactions that were killed
	depositStates
}

func newDepositGame(w *world, r *rand.Rand, set *depositSet) *depositGame {
	d := &depositGame{world: w, Rand: r, set: set, mined: make(map[transferKey]bool), depositStates: newDepositStates(), returns: make(map[returned]bool), finality: make(map[invoice.Hash]uint64)}
	for i := range 8 {
		n := r.IntN(len(set.deposits))
		if i%2 == 0 {
			n -= n % 10 // expires early
		}
		d.hot = append(d.hot, set.deposits[n])
	}
	d.replicas = []*ledger.Service{w.service(), w.service()}
	return d
}

// replica returns one of the replicas, with its caches.
func (d *depositGame) replica() *ledger.Service { return pick(d.Rand, d.replicas...) }

func (d *depositGame) step() {
	switch d.IntN(10) {
	case 0:
		d.replicas[d.IntN(len(d.replicas))] = d.service()
		d.restarts++
	case 1:
		d.rollBack()
	case 2:
		d.confirmSome()
	case 3:
		d.rescan()
	case 4:
		d.void()
	default:
		d.mineSome()
	}
}

// some returns a deposit invoice, usually one of the few that are paid often.
func (d *depositGame) some() invoice.Invoice {
	if d.IntN(4) == 0 {
		return pick(d.Rand, d.set.deposits...)
	}
	return pick(d.Rand, d.hot...)
}

// transfer returns a transfer to or from a deposit or settlement address.
func (d *depositGame) transfer() invoice.Transfer {
	inv := d.some()
	n := pick(d.Rand, number(inv.Amount), 1+d.Uint64N(4_000_000), 1_000_000)
	if d.IntN(30) == 0 {
		n = 0
	}
	t := invoice.Transfer{
		ChainKey: d.chainKey, Token: usdc, Currency: "USDC", From: pick(d.Rand, payer, payer, invoice.Address{0xbc}, pick(d.Rand, d.hot...).Merchant),
		To: inv.DepositAddress, Amount: invoice.NewAmount(n),
	}
	switch d.IntN(9) {
	case 0, 1:
		t.From, t.To = inv.DepositAddress, inv.Merchant
	case 2: // directly, perhaps naming the invoice
		t.From, t.To = payer, inv.Merchant
		if d.IntN(2) == 0 {
			t.Evidence.Calldata = inv.CommitmentID
		} else if len(d.set.direct) > 0 {
			t.Amount = pick(d.Rand, t.Amount, pick(d.Rand, d.set.direct...).TransferAmount)
		}
		return t
	case 3:
		t.From, t.To = inv.Merchant, pick(d.Rand, payer, invoice.Address{0xbc})
	}
	if d.IntN(5) == 0 {
		t = inEUR(t)
	}
	if d.IntN(5) == 0 {
		t.Evidence.Calldata = d.some().CommitmentID
	}
	return t
}

// transaction returns a transaction with some transfers.
func (d *depositGame) transaction() []invoice.Transfer {
	d.world.txs++
	all := make([]invoice.Transfer, 1+d.IntN(3)*d.IntN(2))
	for i := range all {
		all[i] = d.transfer()
	}
	return numbered(d.hash("tx", d.world.txs), all)
}

// numbered returns the transfers as transfers of one transaction.
func numbered(tx invoice.Hash, all []invoice.Transfer) []invoice.Transfer {
	for i := range all {
		all[i].TxHash, all[i].Ordinal = tx, i
	}
	return all
}

// otherwise returns a transaction that is mined again with another result of some of its calls: a
// transfer is missing, or is a different one.
func (d *depositGame) otherwise(was []invoice.Transfer) []invoice.Transfer {
	all := append([]invoice.Transfer(nil), was...)
	at := d.IntN(len(all))
	if len(all) > 1 && d.IntN(2) == 0 {
		all = append(all[:at], all[at+1:]...)
	} else {
		all[at] = d.transfer()
	}
	return numbered(was[0].TxHash, all)
}

// mineSome mines up to three blocks, and has them read together. They contain new transactions, and
// some that a reorg dropped.
func (d *depositGame) mineSome() {
	var blocks []ledger.Block
	on := d.canonical()
	for range 1 + d.IntN(3)*d.IntN(2) {
		var transfers []invoice.Transfer
		for i, tx := range d.txs {
			if _, ok := on[keyOf(tx[0])]; ok || d.IntN(2) == 0 {
				continue
			}
			if d.IntN(3) == 0 {
				d.txs[i] = d.otherwise(tx)
			}
			transfers = append(transfers, d.txs[i]...)
			on[keyOf(tx[0])] = tx[0]
		}
		for range d.IntN(5) {
			tx := d.transaction()
			d.txs = append(d.txs, tx)
			transfers = append(transfers, tx...)
			on[keyOf(tx[0])] = tx[0]
		}
		at := d.head().Time.Unix() + d.Int64N(30)
		d.seconds.Store(max(at, d.seconds.Load())) // a branch of the chain may be earlier, but no clock goes back
		b := d.next(at, transfers...)
		d.blocks = append(d.blocks, b) // the next one is its child
		blocks = append(blocks, b)
		d.note(b)
	}
	observe := func(ctx context.Context, s *ledger.Service) error { return s.Observe(ctx, d.chainKey, blocks) }
	if d.IntN(4) == 0 {
		d.race(observe)
	} else {
		d.do(observe)
	}
	if d.IntN(4) == 0 {
		expect.Error(d.t, ledger.ErrCursorMoved, "blocks that were read")(observe(d.t.Context(), d.replica()))
	}
}

// note records the transactions of a block that was mined on top of the chain.
func (d *depositGame) note(b ledger.Block) {
	d.finality[b.Hash] = d.blocks[d.line].Number
	for _, t := range b.Transfers {
		d.mined[keyOf(t)] = true
		for _, below := range d.blocks {
			for _, p := range below.Transfers {
				if p.Before(t.Position) && d.isReverse(p, t) {
					d.returns[returnOf(p, t)] = true
				}
			}
		}
	}
}

// isReverse reports whether a transfer goes from the final address of a payment to its payer.
func (d *depositGame) isReverse(p, t invoice.Transfer) bool {
	receiver := p.To
	if id := d.set.owner[p.To]; id != "" {
		receiver = d.set.byID[id].Merchant
	}
	return p.Token == t.Token && p.From == t.To && receiver == t.From
}

// race makes both replicas do the same work.
func (d *depositGame) race(fn func(context.Context, *ledger.Service) error) {
	errs := make([]error, len(d.replicas))
	var replicas sync.WaitGroup
	for i, s := range d.replicas {
		replicas.Go(func() { errs[i] = fn(d.t.Context(), s) })
	}
	replicas.Wait()
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
		} else if !errors.Is(err, ledger.ErrCursorMoved) {
			d.t.Errorf("one of two replicas: %v", err)
		}
	}
	expect.Equal(d.t, done, 1, "replicas that read a block:")
}

// do makes a replica do some work. Before, another one may be killed while it does the same.
func (d *depositGame) do(fn func(context.Context, *ledger.Service) error) {
	if d.IntN(4) == 0 && d.kill(fn) {
		return
	}
	d.must(fn(d.t.Context(), d.replica()))
}

// kill makes a replica do some work and kills it when it has read the clock some times. It reports
// whether the replica finished before.
func (d *depositGame) kill(fn func(context.Context, *ledger.Service) error) (done bool) {
	ctx, cancel := context.WithCancel(d.t.Context())
	defer cancel()
	left := d.IntN(8)
	if left == 0 {
		cancel()
	}
	err := fn(ctx, d.service(func(c *ledger.Config) {
		now := c.Now
		c.Now = func() time.Time {
			if left--; left == 0 {
				cancel()
			}
			return now()
		}
	}))
	if err != nil && !errors.Is(err, context.Canceled) {
		d.t.Errorf("a killed replica: %v", err)
	}
	if err != nil {
		d.kills++
	}
	return err == nil
}

// rollBack removes some of the blocks that are not final.
func (d *depositGame) rollBack() {
	n := len(d.blocks) - 1 - d.line
	if n <= 0 {
		return
	}
	d.blocks = d.blocks[:len(d.blocks)-1-d.IntN(n)]
	d.forks++
	d.do(func(ctx context.Context, s *ledger.Service) error { return s.Rollback(ctx, d.chainKey, d.head()) })
}

// confirmSome makes some of the read blocks final.
func (d *depositGame) confirmSome() {
	d.line += d.IntN(len(d.blocks) - d.line)
	d.do(func(ctx context.Context, s *ledger.Service) error {
		return confirm(ctx, s, d.chainKey, d.blocks[d.line].Header)
	})
}

// rescan schedules blocks to be read again, and reads some of them immediately.
func (d *depositGame) rescan() {
	if len(d.blocks) == 1 {
		return
	}
	d.must(d.Rescan(d.t.Context(), d.chainKey, 101+uint64(d.IntN(len(d.blocks)-1))))
	onDatabase(d.world).fillSome(d.Rand)
}

// void makes one of the hot invoices void, unless it is covered, closed or another merchant's.
func (d *depositGame) void() {
	if d.gap() != nil || d.IntN(3) > 0 {
		return
	}
	inv := pick(d.Rand, d.hot...)
	_, err := d.Void(d.t.Context(), d.own(), inv.ID)
	switch {
	case err == nil:
		d.voided[inv.ID] = true
	case !errors.Is(err, invoice.ErrFinal) && !errors.Is(err, invoice.ErrCovered) && !errors.Is(err, ledger.ErrUnread) && !errors.Is(err, db.ErrNotFound):
		d.must(err)
	}
}

// finish makes everything final.
func (d *depositGame) finish() {
	d.world.mine(d.head().Time.Unix() + 1)
	d.follow()
	d.final()
	d.line = len(d.blocks) - 1
	d.follow()
	for d.gap() != nil {
		onDatabase(d.world).fillSome(d.Rand)
		d.follow()
	}
}

// canonical returns the transfers of the chain.
func (d *depositGame) canonical() map[transferKey]invoice.Transfer {
	on := make(map[transferKey]invoice.Transfer)
	for _, b := range d.blocks {
		for _, t := range b.Transfers {
			on[keyOf(t)] = t
		}
	}
	return on
}
