package ledger_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// onPostgres returns a world in a PostgreSQL database, where transactions run
// concurrently. Its service chooses suffix 1 first.
func onPostgres(t *testing.T) *world {
	t.Helper()
	u := dbtest.MigratedPostgres(t)
	w := (&database{store: dbtest.Open(t, u), sql: dbtest.SQL(t, u)}).world(t)
	w.chooseSuffixOne()
	return w
}

// chooseSuffixOne starts a service that chooses suffix 1 first.
func (w *world) chooseSuffixOne() {
	w.random = narrow{rand.New(rand.NewPCG(1, 0)), 0, 1}
	w.Service = w.service()
}

// session is a transaction of another process.
type session struct {
	*dbtest.Tx
	w *world
}

func (w *world) session() session {
	w.t.Helper()
	tx, err := w.db.sql.BeginTx(w.t.Context(), nil)
	w.must(err)
	return session{tx, w}
}

// run runs a statement of the session.
func (s session) run(query string, args ...any) {
	s.w.t.Helper()
	if _, err := s.ExecContext(s.w.t.Context(), query, args...); err != nil {
		s.w.t.Errorf("%v\n%s", err, query)
	}
}

// assign takes the lock under which transfer amounts are assigned at an address.
func (s session) assign(a invoice.Amount) {
	s.w.t.Helper()
	s.run(`INSERT INTO transfer_amounts (invoice_id, base, amount, merchant_address, chain_key, token, from_block, expires_at, remainder, live)
		VALUES ('inv_other', '1', $1, $2, $3, $4, 0, 0, 0, 1)`, a.String(), s.w.address.String(), s.w.chainKey, usdc.String())
}

// awaitLocked waits until n transactions of the database wait for a lock of a kind, or done is closed.
func (w *world) awaitLocked(n int, kind string, done <-chan struct{}) {
	w.t.Helper()
	for {
		var waiting int
		err := w.db.sql.QueryRowContext(w.t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = $1`, kind).Scan(&waiting)
		w.must(err)
		select {
		case <-done:
			return
		default:
		}
		if waiting >= n {
			return
		}
	}
}

// inBackground runs fn and returns a channel that is closed when it has ended.
func (w *world) inBackground(fn func(ctx context.Context) error) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		expect.NoError(w.t, fn(w.t.Context()))
	}()
	return done
}

// createLater creates an invoice in the background.
func (w *world) createLater(into *invoice.Invoice) <-chan struct{} {
	return w.requestLater(ledger.CreateRequest{Draft: w.draft()}, into)
}

// requestLater creates the invoice of a request in the background.
func (w *world) requestLater(r ledger.CreateRequest, into *invoice.Invoice) <-chan struct{} {
	return w.inBackground(func(ctx context.Context) (err error) {
		*into, err = w.Create(ctx, r)
		return err
	})
}

// TestCreateWhileBlocksAreReplaced replaces blocks after a create has read the indexed
// height, and before it commits. The new blocks can pay the invoice.
func TestCreateWhileBlocksAreReplaced(t *testing.T) {
	t.Parallel()
	w := onPostgres(t)
	w.create(amount(9_000_000))
	w.mine(start + 1)
	w.mine(start + 2)
	other := w.session()
	other.assign(invoice.NewAmount(1_000_001))
	var inv invoice.Invoice
	created := w.createLater(&inv)
	w.awaitLocked(1, "transactionid", created)
	w.reorg(2)
	p := w.pay(invoice.NewAmount(1_000_001))
	b := w.next(start+3, p)
	replaced := w.inBackground(func(ctx context.Context) error { return w.Observe(ctx, w.chainKey, []ledger.Block{b}) })
	w.awaitLocked(1, "advisory", replaced)
	w.must(other.Rollback())
	<-created
	<-replaced
	w.checkAttributed(p, w.invoice(inv.ID), invoice.ByTransferAmount)
}

// TestOnlyReplacedBlocksBindLower rolls blocks back and reads them again, with restarts in between. Invoices that were
// created above the fork can be paid in the replaced blocks, and in no others.
func TestOnlyReplacedBlocksBindLower(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		for name, test := range map[string]struct {
			late   bool   // the invoice is created while the blocks are rolled back
			forkAt uint64 // the first replaced block, or 0
			batch  int    // number of blocks that are observed together
			sparse bool   // block 102 is omitted at first
			bound  uint64
		}{
			"unchanged":                  {batch: 1, bound: 104},
			"unchanged, in one batch":    {batch: 4, bound: 104},
			"unchanged, created between": {batch: 1, bound: 104, late: true},
			"unchanged, with gaps":       {batch: 2, bound: 104, sparse: true},
			"replaced":                   {batch: 1, forkAt: 101, bound: 100},
			"replaced above":             {batch: 1, forkAt: 103, bound: 102},
			"replaced above, one batch":  {batch: 4, forkAt: 103, bound: 102},
			"replaced, created between":  {batch: 2, forkAt: 104, bound: 103, late: true},
			"replaced, with gaps":        {batch: 4, forkAt: 103, bound: 102, sparse: true},
		} {
			w := d.world(t)
			var read []ledger.Block
			var old []invoice.Transfer
			add := func(n uint64) {
				old = append(old, w.pay(invoice.NewAmount(34_000_000)))
				w.blocks = append(w.blocks, w.next(start+int64(n), old[n-1]))
				first := w.blocks[n]
				first.Transfers = nil // no merchant had the address yet
				if n != 2 || !test.sparse {
					read = append(read, first)
				}
			}
			for n := range uint64(4) {
				add(n + 1)
			}
			w.must(w.Observe(t.Context(), w.chainKey, read))
			genesis, all := w.blocks[0], w.blocks[1:]
			var inv invoice.Invoice
			if !test.late {
				inv = w.create(amount(34_000_000))
			}
			w.must(w.Rollback(t.Context(), w.chainKey, genesis.Header))
			if test.late {
				inv = w.create(amount(34_000_000))
			}
			paid := w.pay(inv.TransferAmount)
			if test.forkAt > 0 {
				kept := int(test.forkAt - 101)
				w.blocks, w.forks = append([]ledger.Block{genesis}, all[:kept]...), w.forks+1
				for n := kept; n < 4; n++ {
					w.blocks = append(w.blocks, w.next(start+10+int64(n), paid))
					paid = w.pay(inv.TransferAmount)
				}
				paid = w.blocks[test.forkAt-100].Transfers[0]
				all = w.blocks[1:]
			}
			for part := range slices.Chunk(all, test.batch) {
				w.Service = w.service()
				w.must(w.Observe(t.Context(), w.chainKey, part))
			}
			expect.Equal(t, w.invoice(inv.ID).FromBlock, test.bound, "%s: the invoice is bound to block", name)
			for i, p := range old {
				if number := 101 + uint64(i); number <= test.bound && (test.forkAt == 0 || number < test.forkAt) {
					if got := w.payment(p); got.Attributed() {
						t.Errorf("%s: the transfer in block %d, older than the invoice, pays it by %q", name, number, got.Method)
					}
				}
			}
			if test.forkAt > 0 {
				w.checkAttributed(paid, w.invoice(inv.ID), invoice.ByTransferAmount)
			}
		}
	})
}

// TestReorgReadInParts replaces a block of a range of which only the ends are known, and reads the range again in parts.
// At an address that was known when the range was read, an invoice is paid by a payment in the new block, and not by a
// transfer in an older one. At another address, it is not known whether a transfer in the range is older.
func TestReorgReadInParts(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.create(amount(9_000_000))
		base := w.head()
		older := w.pay(invoice.NewAmount(34_000_000))
		for n := range int64(10) {
			b := w.next(start + n)
			if n == 2 {
				b = w.next(start+n, older)
			}
			w.blocks = append(w.blocks, b)
		}
		all := w.blocks[len(w.blocks)-10:]
		w.must(w.Observe(t.Context(), w.chainKey, []ledger.Block{all[0], all[2], all[9]}))
		known := w.create(amount(34_000_000))
		w.address[0]++
		later := w.create(amount(34_000_000))
		w.must(w.Rollback(t.Context(), w.chainKey, base))
		w.blocks, w.forks = w.blocks[:len(w.blocks)-6], w.forks+1
		toLater := w.pay(later.Amount)
		w.address[0]--
		paid := w.pay(known.Amount)
		for n := range int64(6) {
			if n == 1 {
				w.blocks = append(w.blocks, w.next(start+10+n, paid, toLater))
				continue
			}
			w.blocks = append(w.blocks, w.next(start+10+n))
		}
		for part := range slices.Chunk(w.blocks[len(w.blocks)-10:], 2) {
			w.must(w.Observe(t.Context(), w.chainKey, part))
		}
		w.checkAttributed(paid, w.invoice(known.ID), invoice.ByAmount)
		for _, p := range []invoice.Transfer{older, toLater} {
			expect.Equal(t, w.payment(p).InvoiceID, "", "the transfer of %s in block %d pays", p.Amount, p.BlockNumber)
		}
		expect.Equal(t, w.invoice(known.ID).FromBlock, all[0].Number, "the invoice at the known address is bound to block")
		expect.Equal(t, w.invoice(later.ID).FromBlock, all[9].Number-1, "the invoice at the other address is bound to block")
	})
}

// TestReorgOfRange reads a range, of which only some headers are kept, replaces its newest blocks, and reads it again in
// parts. A payment in a new block counts, for the invoice at an address that was known when the range was first read.
// For one at a later address, it counts if a different header shows that the block is new. Older transfers of the same
// amount pay neither.
func TestReorgOfRange(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		rapid.Check(t, func(r *rapid.T) {
			w := w.db.world(t)
			w.create(amount(9_000_000))
			known, price := w.address, uint64(34_000_000)
			base, count := w.head(), rapid.IntRange(2, 12).Draw(r, "blocks")
			fork := rapid.IntRange(0, count-1).Draw(r, "first replaced block")
			later := w.address
			later[1] = 1
			to := func(address invoice.Address) invoice.Transfer {
				p := w.pay(invoice.NewAmount(price))
				p.To = address
				return p
			}
			mine := func(transfers ...invoice.Transfer) { w.blocks = append(w.blocks, w.next(start+1, transfers...)) }
			// read observes the blocks from one on, in parts, without some of them that hold no transfer to a known address.
			read := func(isNew bool, atOnce, skipped int) (headers map[uint64]bool) {
				headers = make(map[uint64]bool)
				all := w.blocks[len(w.blocks)-count:]
				for first := 0; first < count; {
					last := min(count, first+rapid.SampledFrom([]int{1, atOnce}).Draw(r, "at once")) - 1
					var part []ledger.Block
					for i := first; i <= last; i++ {
						b := all[i]
						b.Transfers = slices.DeleteFunc(slices.Clone(b.Transfers), func(p invoice.Transfer) bool { return !isNew && p.To != known })
						if i == first || i == last || len(b.Transfers) > 0 || rapid.IntRange(0, 9).Draw(r, "read") >= skipped {
							part = append(part, b)
							headers[b.Number] = true
						}
					}
					w.Service = w.service()
					w.must(w.Observe(t.Context(), w.chainKey, part))
					first = last + 1
				}
				return headers
			}
			var older []invoice.Transfer
			for i := range count {
				var held []invoice.Transfer
				for _, address := range []invoice.Address{known, later} {
					if rapid.IntRange(0, 3).Draw(r, "older transfer") == 0 {
						held = append(held, to(address))
					}
				}
				mine(held...)
				if i < fork {
					older = append(older, held...)
				}
			}
			kept := read(false, rapid.SampledFrom([]int{2, count}).Draw(r, "most at once"), 8)
			inv := w.create(amount(price))
			other := w.create(amount(price), func(d *invoice.Draft) { d.Merchant = later })
			w.must(w.Rollback(t.Context(), w.chainKey, base))
			w.blocks, w.forks = w.blocks[:len(w.blocks)-count+fork], w.forks+1
			paid, otherPaid := to(known), to(later)
			in := rapid.IntRange(fork, count-1).Draw(r, "paid in")
			for i := fork; i < count; i++ {
				if i == in {
					mine(paid, otherPaid)
				} else {
					mine()
				}
			}
			again := read(true, rapid.IntRange(1, count).Draw(r, "most at once"), rapid.SampledFrom([]int{0, 5}).Draw(r, "skipped"))
			if got := w.payment(paid); got.InvoiceID != inv.ID {
				r.Errorf("the payment at the known address belongs to %q", got.InvoiceID)
			}
			isShown := false
			for i := fork; i <= in; i++ {
				number := base.Number + 1 + uint64(i)
				isShown = isShown || kept[number] && again[number]
			}
			if got := w.payment(otherPaid); isShown && got.InvoiceID != other.ID {
				r.Errorf("the payment at the later address belongs to %q", got.InvoiceID)
			}
			for _, p := range older {
				if got := w.payment(p); got.Attributed() {
					r.Errorf("the transfer in block %d, older than the invoices, pays one by %q", got.BlockNumber, got.Method)
				}
			}
		})
	})
}

// TestCreateSurvivesADeadlock lets a create and another transaction deadlock. The database
// aborts the create, which is retried and succeeds once.
func TestCreateSurvivesADeadlock(t *testing.T) {
	t.Parallel()
	w := onPostgres(t)
	other := w.session()
	other.run("SET LOCAL deadlock_timeout = '1h'") // so that the database aborts the create
	other.assign(invoice.NewAmount(1_000_001))
	var inv invoice.Invoice
	created := w.createLater(&inv)
	w.awaitLocked(1, "transactionid", created) // the create has inserted its merchant, and waits for the transfer amount
	inserted := w.inBackground(func(ctx context.Context) error {
		_, err := other.ExecContext(ctx, "INSERT INTO merchants VALUES ($1, 1)", w.merchant)
		return err
	})
	<-inserted // the create was aborted, because it would hold the merchant's lock otherwise
	w.must(other.Rollback())
	<-created
	if got := w.invoice(inv.ID); got.TransferAmount != inv.TransferAmount {
		t.Errorf("the stored transfer amount is %s, the returned one %s", got.TransferAmount, inv.TransferAmount)
	}
	expect.Len(t, w.eventTypes(inv), 1, "its events are")
	expect.Len(t, w.intents(inv), 1, "its intents are")
}

// TestLockBeforeRows lets a create, and the finalizing of a draft, wait for the lock on from_block. At
// that point they must not have inserted a row for which holders of the lock could wait.
func TestLockBeforeRows(t *testing.T) {
	t.Parallel()
	w := onPostgres(t)
	draft := w.drafted()
	w.Service = w.service()
	for name, run := range map[string]func(ctx context.Context) error{
		"a create": func(ctx context.Context) error {
			_, err := w.Create(ctx, ledger.CreateRequest{Draft: w.draft()})
			return err
		},
		"a finalized draft": func(ctx context.Context) error {
			_, err := w.Finalize(ctx, w.own(), draft.ID)
			return err
		},
	} {
		gate := w.session()
		gate.run("SELECT pg_advisory_xact_lock(1651076708, hashtext($1))", w.chainKey)
		done := w.inBackground(run)
		w.awaitLocked(1, "advisory", done)
		var written string
		w.must(w.db.sql.QueryRowContext(t.Context(), `SELECT coalesce(string_agg(relation::regclass::text, ', '), '') FROM pg_locks
			WHERE mode = 'RowExclusiveLock' AND pid IN (SELECT pid FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory')`).Scan(&written))
		expect.Equal(t, written, "", "%s that waits for the lock has written to", name)
		w.must(gate.Rollback())
		<-done
	}
}
