package seed_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/dev/seed"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

func must(t testing.TB, err error) {
	t.Helper()
	expect.OK(t, err)
}

func config(n int) seed.Config {
	return seed.Config{
		Invoices: n, Merchants: 200, Open: n / 50, Seed: 7, Until: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC),
		KeepEvents: 60 * 24 * time.Hour, KeepAttempts: 30 * 24 * time.Hour, BlockTime: 2 * time.Second,
	}
}

func maker(t testing.TB, c seed.Config) *seed.Maker {
	t.Helper()
	m, err := seed.New(c)
	must(t, err)
	return m
}

func load(t testing.TB, s *db.DB, m *seed.Maker) (invoices int) {
	t.Helper()
	must(t, ledger.LoadInvoices(t.Context(), s, m.Batches(), func(p db.LoadProgress) {
		if p.Step == db.LoadInvoices {
			invoices = p.Done
		}
	}))
	return invoices
}

// TestSeededDatabaseIsConsistent compares the stored state of each invoice with the state that the
// rules derive from its payments and refunds, and reads each event with its attempts.
func TestSeededDatabaseIsConsistent(t *testing.T) {
	t.Parallel()
	const n = 4_000
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		m := maker(t, config(n))
		expect.Equal(t, load(t, s, m), n, "invoices were reported:")
		statuses := make(map[invoice.Status]int)
		exceptions := make(map[invoice.Exception]int)
		owners := make(map[string]int)
		listed := eachPage(t, s, func(page []invoice.Invoice) {
			for _, inv := range page {
				statuses[inv.Status]++
				exceptions[inv.Exception]++
				owners[inv.MerchantID]++
			}
			checkInvoices(t, s, page)
		})
		expect.Equal(t, listed, n, "invoices are listed:")
		if largest := owners[seed.Merchant(0)]; largest < n*19/100 || largest > n*21/100 {
			t.Errorf("the largest merchant has %d of %d invoices", largest, n)
		}
		for status, share := range map[invoice.Status]int{invoice.Open: 2, invoice.Paid: 77, invoice.Expired: 16, invoice.Void: 4} {
			if got := statuses[status]; got < n*(share-2)/100 || got > n*(share+2)/100 {
				t.Errorf("%d of %d invoices are %s, want about %d%%", got, n, status, share)
			}
		}
		for _, e := range []invoice.Exception{invoice.Overpaid, invoice.Underpaid, invoice.Late, invoice.Duplicate} {
			if exceptions[e] < n/100 {
				t.Errorf("%d invoices are %s", exceptions[e], e)
			}
		}
		checkEvents(t, s, m)
	})
}

// eachPage reads all invoices in pages.
func eachPage(t *testing.T, s *db.DB, do func([]invoice.Invoice)) (listed int) {
	t.Helper()
	f := ledger.InvoiceFilter{Limit: 500}
	for {
		page, _, err := ledger.NewReader(s).Invoices(t.Context(), f)
		must(t, err)
		if len(page) == 0 {
			return listed
		}
		do(page)
		listed += len(page)
		f.Before = page[len(page)-1].ID
	}
}

// checkInvoices compares invoices with their payments, refunds and terms.
func checkInvoices(t *testing.T, s *db.DB, page []invoice.Invoice) {
	t.Helper()
	var ids []string
	for _, inv := range page {
		ids = append(ids, inv.ID)
	}
	rows, err := ledger.NewReader(s).PaymentsOfInvoices(t.Context(), ids)
	must(t, err)
	payments := make(map[string][]invoice.Payment)
	for _, p := range rows {
		payments[p.InvoiceID] = append(payments[p.InvoiceID], p.Payment)
	}
	refunds, err := ledger.RefundsOfInvoices(t.Context(), s, ids)
	must(t, err)
	back := make(map[string]invoice.Amount)
	for _, r := range refunds {
		back[r.InvoiceID] = back[r.InvoiceID].Plus(r.Amount)
	}
	local, _ := chain.Lookup(chain.Local)
	for _, inv := range page {
		if diff := gocmp.Diff(inv.Recount(payments[inv.ID]), inv, gocmp.Comparer(func(a, b invoice.Amount) bool { return a == b })); diff != "" {
			t.Errorf("invoice %s (-recounted +stored):\n%s", inv.ID, diff)
		}
		if inv.AmountRefunded != back[inv.ID] {
			t.Errorf("invoice %s has %s refunded, its refunds %s", inv.ID, inv.AmountRefunded, back[inv.ID])
		}
		if !local.Commits(inv) {
			t.Errorf("invoice %s does not have the commitment of its terms", inv.ID)
		}
	}
}

// checkEvents checks that events are numbered in the order of their times, and are not older than KeepEvents.
func checkEvents(t *testing.T, s *db.DB, m *seed.Maker) {
	t.Helper()
	var before time.Time
	statuses := make(map[webhooks.Status]int)
	seq := int64(0)
	for {
		page, err := webhooks.NewReader(s).Events(t.Context(), webhooks.EventFilter{After: &seq, Limit: 500})
		must(t, err)
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			if seq++; e.Seq != seq || e.CreatedAt.Before(before) || m.Until.Sub(e.CreatedAt) >= m.KeepEvents {
				t.Fatalf("event %d is of %s; want number %d, and not before %s", e.Seq, e.CreatedAt, seq, before)
			}
			before = e.CreatedAt
			statuses[e.Status]++
		}
	}
	for _, want := range []webhooks.Status{"none", webhooks.Pending, webhooks.Delivered, webhooks.Failed} {
		if statuses[want] == 0 {
			t.Errorf("no event has the delivery status %q: %v", want, statuses)
		}
	}
}

func TestSeedIsDeterministic(t *testing.T) {
	t.Parallel()
	all := func(c seed.Config) (rows []ledger.Rows) {
		for r, err := range maker(t, c).Batches() {
			must(t, err)
			rows = append(rows, r)
		}
		return rows
	}
	c := config(6000)
	first := all(c)
	if !reflect.DeepEqual(first, all(c)) {
		t.Error("the same seed makes other rows")
	}
	c.Seed++
	if reflect.DeepEqual(first, all(c)) {
		t.Error("another seed makes the same rows")
	}
}

func TestLoadRefusesUsedDatabases(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		must(t, s.Update(t.Context(), func(tx *db.Tx) error {
			return access.InsertSettlementAddresses(t.Context(), tx, []access.SettlementAddress{{ChainKey: chain.Local, Address: invoice.Address{1}, MerchantID: "shop"}}, invoice.Unix(1))
		}))
		err := ledger.LoadInvoices(t.Context(), s, maker(t, config(10)).Batches(), func(db.LoadProgress) {})
		if !errors.Is(err, db.ErrNotEmpty) {
			t.Errorf("%v, want ErrNotEmpty", err)
		}
	})
}

// TestInterruptedLoad checks that PostgreSQL keeps no row of a load that fails.
func TestInterruptedLoad(t *testing.T) {
	t.Parallel()
	s := dbtest.Open(t, dbtest.MigratedPostgres(t))
	m := maker(t, config(100))
	interrupted := errors.New("interrupted")
	err := ledger.LoadInvoices(t.Context(), s, func(yield func(ledger.Rows, error) bool) {
		for rows, err := range m.Batches() {
			if !yield(rows, err) {
				return
			}
		}
		yield(ledger.Rows{}, interrupted)
	}, func(db.LoadProgress) {})
	if !errors.Is(err, interrupted) {
		t.Errorf("%v, want that it was interrupted", err)
	}
	expect.Equal(t, load(t, s, m), m.Invoices, "a second load writes … invoices:")
}

// TestLoadDoesNotWaitForServices checks that a load gives up when another connection uses a table.
func TestLoadDoesNotWaitForServices(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedPostgres(t)
	s, service := dbtest.Open(t, url), dbtest.Open(t, url)
	must(t, service.Update(t.Context(), func(tx *db.Tx) error {
		if _, err := webhooks.NewReader(tx).LastSeq(t.Context()); err != nil {
			return err
		}
		err := ledger.LoadInvoices(t.Context(), s, maker(t, config(10)).Batches(), func(db.LoadProgress) {})
		if err == nil || !strings.Contains(err.Error(), "does a service use the database?") {
			t.Errorf("%v, want that a service may use the database", err)
		}
		return nil
	}))
}

// ids returns the ids of all objects that may be items of the inbox.
func ids(t *testing.T, conn *dbtest.DB) (all []string) {
	t.Helper()
	rows, err := conn.QueryContext(t.Context(), "SELECT id FROM invoices UNION ALL SELECT id FROM payments UNION ALL SELECT id FROM refund_records")
	must(t, err)
	defer rows.Close() //nolint:errcheck // rows.Err is checked
	for rows.Next() {
		var id string
		must(t, rows.Scan(&id))
		all = append(all, id)
	}
	must(t, rows.Err())
	return all
}

// TestSeededItems compares the loaded items of the inbox with the items that the service sets.
func TestSeededItems(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		s, m := dbtest.Open(t, url), maker(t, config(3000))
		load(t, s, m)
		read := func(merchantID string) []ledger.InboxEntry {
			t.Helper()
			found, err := ledger.InboxEntries(t.Context(), s, ledger.InboxFilter{MerchantID: merchantID, Limit: 10_000}, time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
			must(t, err)
			return found
		}
		loaded := [][]ledger.InboxEntry{read(""), read(seed.Merchant(0))}
		ids := ids(t, dbtest.SQL(t, url))
		must(t, s.Update(t.Context(), func(tx *db.Tx) error { return ledger.RefreshItems(t.Context(), tx, ids...) }))
		if diff := gocmp.Diff([][]ledger.InboxEntry{read(""), read(seed.Merchant(0))}, loaded); diff != "" || len(loaded[1]) == 0 {
			t.Errorf("%d items of the largest merchant (-set +loaded):\n%s", len(loaded[1]), diff)
		}
	})
}
