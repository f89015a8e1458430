package ledger_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestTooManyCandidates pays amounts that match more invoices than are considered: by a
// former remainder, and by a larger amount.
func TestTooManyCandidates(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for n, attributed := range map[uint64]bool{99: true, 100: false} {
			w := d.world(t)
			var all []invoice.Invoice
			var parts []invoice.Transfer
			for s := range n {
				inv := w.insertable(s + 1)
				inv.Amount, inv.TransferAmount = invoice.NewAmount(1_000_000+10*s), invoice.Amount{}
				all = append(all, inv)
				parts = append(parts, tagged(w.pay(invoice.NewAmount(600_000+10*s)), invoice.Evidence{Calldata: inv.CommitmentID}))
				if s > 0 {
					parts = append(parts, tagged(w.pay(invoice.NewAmount(100_000)), invoice.Evidence{Calldata: inv.CommitmentID}))
				}
			}
			w.insert(all)
			w.mine(start+1, parts...)
			p := w.pay(invoice.NewAmount(400_000))
			w.mine(start+2, p)
			if got := w.payment(p); (got.InvoiceID == all[0].ID) != attributed || got.Attributed() != attributed {
				t.Errorf("with %d that had the remainder: attributed to %q, want %t", n, got.InvoiceID, attributed)
			}
		}
		for n, attributed := range map[uint64]bool{500: true, 501: false} {
			w := d.world(t)
			var all []invoice.Invoice
			for s := range n {
				inv := w.insertable(s + 1)
				inv.Amount, inv.TransferAmount, inv.Tolerance = invoice.NewAmount(1_010_000+s), invoice.Amount{}, invoice.NewAmount(5)
				all = append(all, inv)
			}
			all[0].Tolerance = invoice.NewAmount(20_000)
			w.insert(all)
			p := w.pay(invoice.NewAmount(1_000_000))
			w.mine(start+2, p)
			if got := w.payment(p); (got.InvoiceID == all[0].ID) != attributed || got.Attributed() != attributed {
				t.Errorf("with %d above the amount: attributed to %q, want %t", n, got.InvoiceID, attributed)
			}
		}
	})
}

// alone returns a SQLite database for a test that runs while no other does.
func alone(t *testing.T) *database {
	t.Helper()
	url := dbtest.Migrated(t)
	return &database{store: dbtest.Open(t, url), sql: dbtest.SQL(t, url)}
}

// allocated returns how many kilobytes fn allocates, as a measure of the rows it reads. No other test
// may run at the same time.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) >> 10
}

// TestCostOfDustOfAPrice compares transfers of an amount that many invoices ask for, or slightly more, with other
// transfers. Both must cost about the same: each amount is looked up once, and line items are not read.
func TestCostOfDustOfAPrice(t *testing.T) {
	d := alone(t)
	cost := func(tolerance, amount, step uint64) uint64 {
		w := d.world(t)
		var all []invoice.Invoice
		for s := range uint64(99) {
			inv := w.insertable(s + 1)
			inv.Amount, inv.TransferAmount, inv.Tolerance = invoice.NewAmount(1_500), invoice.Amount{}, invoice.NewAmount(tolerance)
			for range 20 {
				inv.LineItems = append(inv.LineItems, invoice.LineItem{Label: strings.Repeat("x", 100), Amount: invoice.NewAmount(75)})
			}
			all = append(all, inv)
		}
		w.insert(all)
		var dust []invoice.Transfer
		for i := range uint64(500) {
			dust = append(dust, w.pay(invoice.NewAmount(amount+i*step)))
		}
		b := w.next(start+1, dust...)
		return allocated(func() { w.observe(b) })
	}
	other := cost(0, 10_000, 0)
	if got := cost(0, 1_500, 0); got > 2*other {
		t.Errorf("500 transfers of a price allocate %d kB, others %d kB", got, other)
	}
	other = cost(0, 10_000, 1)
	if got := cost(1, 900, 1); got > 3*other {
		t.Errorf("500 transfers of different amounts below a price allocate %d kB, others %d kB", got, other)
	}
}

// TestChainOfTolerances mines many transfers in one block. Each is the amount of an invoice that the transfer before it
// pays within the tolerance, so that the invoices that it may pay are known only after that one.
func TestChainOfTolerances(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.merchant = "lenient-" + w.merchant
		const transfers = 70 // more than the reads of one decision
		var invoices []invoice.Invoice
		var block []invoice.Transfer
		n := uint64(1_000_000)
		for range transfers {
			block = append(block, w.pay(invoice.NewAmount(n)))
			n += n / 25
			invoices = append(invoices, w.create(amount(n)))
		}
		w.mine(start+10, block...)
		w.final()
		for i, inv := range invoices {
			if p := w.payment(block[i]); p.InvoiceID != inv.ID || p.Method != invoice.ByTolerance {
				t.Errorf("transfer %d belongs to %q by %q, want %s by tolerance", i, p.InvoiceID, p.Method, inv.ID)
			}
			if got := w.invoice(inv.ID); got.Status != invoice.Paid {
				t.Errorf("invoice %d is %s", i, got.Status)
			}
		}
	})
}

// TestInvoicesOfAmounts looks up several amounts at once, and compares the result with a scan of all invoices.
func TestInvoicesOfAmounts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.StartChain(t, s, "base")
		round := 0
		rapid.Check(t, func(r *rapid.T) {
			round++
			address := invoice.Address{0xee, byte(round >> 8), byte(round)}
			made, had := drawInvoices(t, r, s, address, round)
			var lookups []ledger.AmountLookup
			var transfers []invoice.Transfer
			for i := range rapid.IntRange(1, 20).Draw(r, "lookups") {
				l := rowtest.Lookup(rapid.SampledFrom([]uint64{7, 60, 98, 99, 100, 101, 102, 103, 960, 999, 1001}).Draw(r, "amount"),
					rapid.SampledFrom([]uint64{5, 6, 8}).Draw(r, "block"), rapid.SampledFrom([]int64{900, 1400, 1600, 2500}).Draw(r, "time"))
				l.Merchant, l.LastBlock = address, l.FirstBlock+rapid.SampledFrom([]uint64{0, 0, 3}).Draw(r, "blocks")
				lookups = append(lookups, l)
				moved := rowtest.SamplePayment(i).Transfer
				moved.To, moved.Amount, moved.BlockNumber = address, l.Amount, l.FirstBlock
				transfers = append(transfers, moved)
			}
			byAmount, err := ledger.InvoicesByAmount(t.Context(), s, lookups, 100)
			rowtest.Must(t, err)
			tolerant, err := ledger.InvoicesWithTolerance(t.Context(), s, lookups, 100)
			rowtest.Must(t, err)
			assigned, err := ledger.InvoicesByTransferAmount(t.Context(), s, transfers)
			rowtest.Must(t, err)
			for n, l := range lookups {
				var wantByAmount, wantTolerant []string
				var last invoice.Invoice
				for i, inv := range made {
					payable := inv.FromBlock < l.LastBlock && inv.ExpiresAt.Unix() >= l.FirstTime.Unix() && (inv.Status == invoice.Open || inv.ClosedBlock >= l.FirstBlock)
					hadRemainder := had[i] == l.Amount && inv.ExpiresAt.Unix() >= l.FirstTime.Unix() && (inv.Status == invoice.Open || inv.ClosedBlock >= l.FirstBlock)
					if payable && inv.Amount == l.Amount || hadRemainder {
						wantByAmount = append(wantByAmount, inv.ID)
					}
					if payable && !inv.Tolerance.IsZero() && l.Amount.Less(inv.Amount) && !l.Amount.Plus(l.Amount).Less(inv.Amount) {
						wantTolerant = append(wantTolerant, inv.ID)
					}
					newer := last.FromBlock < inv.FromBlock || last.FromBlock == inv.FromBlock && last.ID < inv.ID
					if inv.TransferAmount == l.Amount && inv.FromBlock < l.FirstBlock && newer {
						last = inv
					}
				}
				expect.NoDiff(r, cmp.Diff(wantByAmount, sorted(byAmount[n])), "by amount %+v", l)
				expect.NoDiff(r, cmp.Diff(wantTolerant, sorted(tolerant[n])), "with a tolerance %+v", l)
				expect.Equal(r, assigned[n], last.ID, "transfer amount %s in block %d is of", l.Amount, l.FirstBlock)
			}
		})
	})
}

// drawInvoices inserts invoices of an address in the order of their ids. Some had a remainder.
func drawInvoices(t *testing.T, r *rapid.T, s *db.DB, address invoice.Address, round int) (made []invoice.Invoice, had []invoice.Amount) {
	t.Helper()
	taken := make(map[invoice.Amount]bool)
	var remainders []ledger.TransferAmount
	for i := range rapid.IntRange(1, 12).Draw(r, "invoices") {
		inv := rowtest.Sample(fmt.Sprintf("inv_%d_%02d", round, i), "m")
		inv.Merchant = address
		inv.Amount = invoice.NewAmount(rapid.SampledFrom([]uint64{99, 100, 101, 105, 1000}).Draw(r, "amount"))
		inv.Tolerance = invoice.NewAmount(rapid.SampledFrom([]uint64{0, 0, 1, 40}).Draw(r, "tolerance"))
		inv.ExpiresAt = invoice.Unix(rapid.SampledFrom([]int64{1500, 2000}).Draw(r, "expires"))
		inv.FromBlock = rapid.SampledFrom([]uint64{0, 5, 7}).Draw(r, "from")
		inv.Status = rapid.SampledFrom([]invoice.Status{invoice.Open, invoice.Open, invoice.Expired}).Draw(r, "status")
		if inv.Status != invoice.Open {
			inv.ClosedBlock = rapid.SampledFrom([]uint64{5, 9}).Draw(r, "closed")
		}
		if a := inv.Amount.Plus(invoice.NewAmount(rapid.Uint64Range(1, 3).Draw(r, "suffix"))); inv.Status != invoice.Open || !taken[a] {
			inv.TransferAmount, taken[a] = a, taken[a] || inv.Status == invoice.Open
		}
		made = append(made, inv)
		remainder := invoice.NewAmount(rapid.SampledFrom([]uint64{0, 0, 7, 60}).Draw(r, "remainder"))
		had = append(had, remainder)
		if !remainder.IsZero() {
			remainders = append(remainders, ledger.TransferAmount{Invoice: inv, Base: remainder, FromBlock: 1, Remainder: true})
		}
	}
	rowtest.Insert(t, s, made...)
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.InsertBareRemainders(ctx, tx, remainders) })
	return made, had
}

func sorted(ids []string) []string {
	slices.Sort(ids)
	return ids
}

// TestListsEndAtTheirLimit looks up an amount that more invoices have than the limit.
func TestListsEndAtTheirLimit(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		var made []invoice.Invoice
		for i := range 50 {
			inv := rowtest.Sample(fmt.Sprintf("inv_%02d", i), "m")
			inv.Tolerance = invoice.NewAmount(1)
			if i%2 == 0 {
				inv.Status, inv.ClosedBlock = invoice.Expired, 9
			}
			made = append(made, inv)
		}
		rowtest.Insert(t, s, made...)
		for limit, want := range map[int]int{16: 16, 50: 50, 51: 50} {
			byAmount, err := ledger.InvoicesByAmount(t.Context(), s, []ledger.AmountLookup{rowtest.Lookup(100, 8, 1500), rowtest.Lookup(1, 8, 1500)}, limit)
			rowtest.Must(t, err)
			tolerant, err := ledger.InvoicesWithTolerance(t.Context(), s, []ledger.AmountLookup{rowtest.Lookup(99, 8, 1500), rowtest.Lookup(1, 8, 1500)}, limit)
			rowtest.Must(t, err)
			if len(byAmount[0]) != want || len(tolerant[0]) != want || len(byAmount[1])+len(tolerant[1]) > 0 {
				t.Errorf("up to %d: %d by amount, %d with a tolerance; want %d", limit, len(byAmount[0]), len(tolerant[0]), want)
			}
		}
	})
}

// TestNearInvoices looks among many invoices for those with amounts near a transfer's.
func TestNearInvoices(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		at := int64(1000)
		ids := invoice.NewIDs(func() time.Time { return time.Unix(at, 0) }, rand.Reader)
		names := map[string]string{}
		var made []invoice.Invoice
		add := func(name string, amount uint64, change ...func(*invoice.Invoice)) {
			inv := rowtest.Sample(ids.New(invoice.PrefixInvoice), "m")
			inv.Amount, inv.CreatedAt, inv.ExpiresAt = invoice.NewAmount(amount), invoice.Unix(at), invoice.Unix(at+1000)
			for _, by := range change {
				by(&inv)
			}
			names[inv.ID] = name
			made = append(made, inv)
		}
		expired := func(inv *invoice.Invoice) { inv.Status, inv.ClosedBlock = invoice.Expired, 7 }
		paid := func(inv *invoice.Invoice) {
			inv.Status, inv.SettledTx, inv.SettledAt, inv.ClosedBlock = invoice.Paid, invoice.Hash{1}, invoice.Unix(1500), 7
			inv.SettledTx[1] = byte(len(made))
		}
		elsewhere := func(inv *invoice.Invoice) { inv.Merchant = invoice.Address{0xab} }
		for _, a := range []uint64{1, 9, 980, 985, 990, 1005, 1010, 1020, 1030, 99_999, 5_000_000} {
			add(fmt.Sprint(a), a)
		}
		add("expired", 1000, expired)
		add("paid", 1000, paid)
		add("paid, near", 1001, paid)
		add("of another address", 1000, elsewhere)
		for i := range 30 {
			add(fmt.Sprint("crowd ", i), 1005, expired)
		}
		at = 3000
		add("created later", 1000)
		add("created later, expired", 1000, expired)
		settled := slices.DeleteFunc(slices.Clone(made), func(inv invoice.Invoice) bool { return inv.Status != invoice.Paid })
		for i := range made {
			if made[i].Status == invoice.Paid {
				made[i].Status, made[i].ClosedBlock = invoice.Open, 0
			}
		}
		rowtest.Insert(t, s, made...)
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.UpdateInvoices(ctx, tx, settled) })

		moved := rowtest.SamplePayment(1).Transfer
		moved.To, moved.Amount = invoice.Address{0xaa}, invoice.NewAmount(1000)
		other := ledger.NearLookup{Transfer: moved, CreatedBefore: invoice.Unix(2000)}
		other.Transfer.To = invoice.Address{0xab}
		find := func() []string {
			found, err := ledger.NewReader(s).NearInvoices(t.Context(), []ledger.NearLookup{other, {Transfer: moved, CreatedBefore: invoice.Unix(2000)}, other}, "m")
			rowtest.Must(t, err)
			if len(found) != 3 || len(found[0]) != 1 || len(found[2]) != 1 {
				t.Fatalf("of another address: %+v", found)
			}
			var got []string
			for _, inv := range found[1] {
				got = append(got, names[inv.ID])
			}
			slices.Sort(got)
			return got
		}
		// Of the crowd at 1005 only the newest ten are returned.
		want := []string{"1010", "1020", "980", "985", "990", "expired", "paid"}
		for i := 20; i < 30; i++ {
			want = append(want, fmt.Sprint("crowd ", i))
		}
		slices.Sort(want)
		expect.NoDiff(t, cmp.Diff(want, find()), "around 1000")
		found, err := ledger.NewReader(s).NearInvoices(t.Context(), []ledger.NearLookup{{Transfer: moved, CreatedBefore: invoice.Unix(2000)}}, "other")
		if err != nil || len(found) != 1 || len(found[0]) != 0 {
			t.Errorf("another merchant finds %+v, %v", found, err)
		}
		for amount, want := range map[uint64][]string{
			99_999:    {"1010", "1020", "1030", "99999"}, // also with one digit less
			2:         {"1", "9"},
			5_000_001: {"5000000"},
			1025:      {"1010", "1020", "1030", "99999"},
		} {
			moved.Amount = invoice.NewAmount(amount)
			got := slices.DeleteFunc(find(), func(name string) bool { return strings.HasPrefix(name, "crowd") })
			expect.NoDiff(t, cmp.Diff(want, got), "around %d", amount)
		}
	})
}

// TestRoundTripsOfNearInvoices checks that a page of payments takes as many round trips as one payment.
func TestRoundTripsOfNearInvoices(t *testing.T) {
	t.Parallel()
	proxy, through, err := dbtest.StartProxy(t.Context(), dbtest.Postgres(t), 0)
	rowtest.Must(t, err)
	s := dbtest.Open(t, through)
	t.Cleanup(func() { rowtest.Must(t, proxy.Close()) })
	turns := func(lookups int) int64 {
		all := make([]ledger.NearLookup, lookups)
		for i := range all {
			all[i] = ledger.NearLookup{Transfer: rowtest.SamplePayment(i).Transfer, CreatedBefore: invoice.Unix(2000)}
		}
		before := proxy.Turns()
		expect.Success(t)(ledger.NewReader(s).NearInvoices(t.Context(), all, "m"))
		return proxy.Turns() - before
	}
	turns(2) // it prepares the statements
	if one, many := turns(1), turns(100); many > one {
		t.Errorf("100 payments take %d round trips, one takes %d", many, one)
	}
}

// rivalry is a world in which creates choose suffix 1 first, and their round trips are counted.
type rivalry struct {
	*world
	proxy   *dbtest.Proxy
	holders []invoice.Invoice // their transfer amounts are changed by another process
	base    uint64            // the amount of the next invoice
}

func newRivalry(t *testing.T) *rivalry {
	t.Helper()
	w, proxy := proxied(t)
	w.chooseSuffixOne()
	r := &rivalry{world: w, proxy: proxy}
	r.holders = []invoice.Invoice{w.create(amount(9_000_000_000)), w.create(amount(8_000_000_000)), w.create(amount(7_000_000_000))}
	return r
}

// request returns a request for a new amount.
func (r *rivalry) request() ledger.CreateRequest {
	r.base += 1_000_000
	d := r.draft()
	d.Amount = invoice.NewAmount(r.base)
	return ledger.CreateRequest{Once: ledger.Once{Scope: r.merchant}, Draft: d}
}

// take gives the transfer amount that a request will choose to a holder. It is committed later.
func (r *rivalry) take(other session, req ledger.CreateRequest, holder int) {
	r.t.Helper()
	other.run("UPDATE transfer_amounts SET amount = $1 WHERE invoice_id = $2", fmt.Sprint(number(req.Draft.Amount)+1), r.holders[holder].ID)
}

// createDuring creates an invoice that waits for another session. end ends that session.
func (r *rivalry) createDuring(req ledger.CreateRequest, end func() error) (inv invoice.Invoice) {
	r.t.Helper()
	created := r.requestLater(req, &inv)
	r.awaitLocked(1, "transactionid", created)
	r.must(end())
	<-created
	return inv
}

// occupyLanes lets a create in each lane wait for another session.
func (r *rivalry) occupyLanes(other session) (blocked *[2]invoice.Invoice, done []<-chan struct{}) {
	r.t.Helper()
	blocked = new([2]invoice.Invoice)
	for i := range blocked {
		req := r.request()
		r.take(other, req, i)
		done = append(done, r.requestLater(req, &blocked[i]))
		r.awaitLocked(i+1, "transactionid", done[i])
	}
	return blocked, done
}

// awaitCreates waits until n creates wait for a lane, which another create occupies until it is done.
func (r *rivalry) awaitCreates(n int, done <-chan struct{}) {
	r.t.Helper()
	for r.CreatesWaiting() < n {
		select {
		case <-done:
			r.t.Fatal("the first creates did not wait")
		default:
			runtime.Gosched()
		}
	}
}

// checkStored checks that an invoice is stored as it was created, with one event.
func (r *rivalry) checkStored(inv invoice.Invoice) {
	r.t.Helper()
	expect.NoDiff(r.t, cmp.Diff(inv, r.invoice(inv.ID), comparer), "created and stored differ")
	expect.Len(r.t, r.eventTypes(inv), 1, "its events are")
}

// TestKeyUsedMeanwhile lets another process use the idempotency keys of creates that have looked them up.
func TestKeyUsedMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRivalry(t)
	req := r.request()
	req.Key = "0"
	first, err := r.Create(t.Context(), req)
	r.must(err)
	for used := range 3 {
		req.Key = fmt.Sprint(used + 1)
		other := r.session()
		other.run("UPDATE idempotency_keys SET idem_key = $1 WHERE idem_key = $2", req.Key, fmt.Sprint(used))
		if inv := r.createDuring(req, other.Commit); inv.ID != first.ID {
			t.Errorf("a key that another process has used gives %s and not its invoice", inv.ID)
		}
	}
	var invoices int
	r.must(r.db.sql.QueryRowContext(t.Context(), "SELECT count(*) FROM invoices WHERE amount = $1", first.Amount.String()).Scan(&invoices))
	expect.Equal(t, invoices, 1, "invoices exist:")
}

// TestDraftDeletedMeanwhile lets another process create and delete a draft with the idempotency key of a create that has
// looked it up.
func TestDraftDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRivalry(t)
	req, other := r.request(), r.session()
	req.Key = "k"
	r.take(other, req, 0)
	var err error
	created := make(chan struct{})
	go func() {
		defer close(created)
		_, err = r.Create(t.Context(), req)
	}()
	r.awaitLocked(1, "transactionid", created)
	same, s := req, r.service()
	same.Draft.Unissued = true
	draft, draftErr := s.Create(t.Context(), same)
	r.must(errors.Join(draftErr, s.DeleteDraft(t.Context(), r.own(), draft.ID), other.Rollback()))
	<-created
	expect.Error(t, ledger.ErrIdempotencyMismatch, "a key that was used for a draft created an invoice")(err)
}

// TestBatch creates invoices in one transaction. Two draw the same transfer amount and two have the
// same key. Another process may take the transfer amount of one meanwhile.
func TestBatch(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]bool{"undisturbed": false, "one transfer amount taken": true} {
		t.Run(name, func(t *testing.T) {
			r := newRivalry(t)
			other, rivals := r.session(), r.session()
			blocked, done := r.occupyLanes(other)
			twin, repeated, rival := r.request(), r.request(), r.request()
			repeated.Key = "k"
			if taken {
				r.take(rivals, rival, 2)
			}
			var made [5]invoice.Invoice
			for i, req := range []ledger.CreateRequest{twin, repeated, twin, repeated, rival} {
				done = append(done, r.requestLater(req, &made[i]))
			}
			r.awaitCreates(len(made), done[0])
			_, before := r.proxy.Statements()
			r.must(other.Rollback())
			if taken {
				r.awaitLocked(1, "transactionid", done[len(done)-1])
			}
			r.must(rivals.Commit())
			for _, d := range done {
				<-d
			}
			for _, inv := range append(made[:], blocked[:]...) {
				r.checkStored(inv)
			}
			if _, commits := r.proxy.Statements(); !taken && commits != before+3 {
				t.Errorf("%d commits, want 3", commits-before)
			}
			if made[0].TransferAmount == made[2].TransferAmount {
				t.Errorf("two invoices have the transfer amount %s", made[0].TransferAmount)
			}
			if made[1].ID != made[3].ID {
				t.Errorf("one key made %s and %s", made[1].ID, made[3].ID)
			}
			if got := number(made[4].TransferAmount) - number(made[4].Amount); (got == 1) == taken {
				t.Errorf("the suffix is %d; another process took 1: %v", got, taken)
			}
		})
	}
}

// TestBatchWithOneReference creates many invoices with one reference that must be unique, in one transaction. One gets
// it. The others do not cost a transaction each.
func TestBatchWithOneReference(t *testing.T) {
	t.Parallel()
	r := newRivalry(t)
	other := r.session()
	_, done := r.occupyLanes(other)
	const many = 64
	made := make(chan error, many)
	for range many {
		req := r.unique("R-1")
		go func() {
			_, err := r.Create(r.t.Context(), req)
			made <- err
		}()
	}
	r.awaitCreates(many, done[0])
	before, _ := r.proxy.Statements()
	r.must(other.Rollback())
	refused := 0
	for range many {
		if err := <-made; errors.As(err, new(*ledger.ReferenceTakenError)) {
			refused++
		} else {
			r.must(err)
		}
	}
	for _, d := range done {
		<-d
	}
	if refused != many-1 {
		t.Errorf("%d of %d creates were refused, want all but one", refused, many)
	}
	if after, _ := r.proxy.Statements(); after-before > 5*many {
		t.Errorf("%d statements for %d creates", after-before, many)
	}
}
