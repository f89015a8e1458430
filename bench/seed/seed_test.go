package seed_test

import (
	"reflect"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/bench/seed"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
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

// TestSeededDatabaseIsConsistent compares the stored state of each invoice with the state that the
// rules derive from its payments and refunds, and reads each event with its attempts.
func TestSeededDatabaseIsConsistent(t *testing.T) {
	t.Parallel()
	const n = 4_000
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		m := maker(t, config(n))
		must(t, seed.Load(t.Context(), s, m.Batches()))
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
	all := func(c seed.Config) (rows []seed.Rows) {
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
