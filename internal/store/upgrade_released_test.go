package store_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestUpgradeOfReleases upgrades a database of each released schema, with the rows in
// testdata/released that the program of that release wrote. No row is lost, and the newest
// program reads them.
func TestUpgradeOfReleases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/released/*.sql")
	must(t, err)
	if len(files) == 0 || filepath.Base(files[len(files)-1]) != released+".sql" {
		t.Fatalf("there are rows of the releases %q; want them of %s as well", files, released)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			version, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(file), ".sql"), 10, 64)
			must(t, err)
			text, err := os.ReadFile(file)
			must(t, err)
			eachURL(t, func(t *testing.T, url string) {
				statements, tables := releasedRows(string(text))
				s := upgrade(t, url, version, statements...)
				wantCounts(t, url, tables)
				wantReadable(t, s)
			})
		})
	}
}

var insertInto = regexp.MustCompile(`^INSERT INTO (\w+) `)

// releasedRows returns the statements of a file, one on each line, and the number of rows
// by table.
func releasedRows(text string) (statements []string, tables map[string]int) {
	tables = make(map[string]int)
	for line := range strings.Lines(text) {
		if m := insertInto.FindStringSubmatch(line); m != nil {
			statements = append(statements, line)
			tables[m[1]]++
		}
	}
	return statements, tables
}

// wantCounts fails the test unless each table has as many rows.
func wantCounts(t *testing.T, url string, want map[string]int) {
	t.Helper()
	db := storetest.SQL(t, url)
	for table, n := range want {
		var got int
		must(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&got))
		if got != n {
			t.Errorf("%s has %d rows after the upgrade; want %d", table, got, n)
		}
	}
}

// wantReadable fails the test unless the store reads invoices, payments, refunds and
// events of each kind.
func wantReadable(t *testing.T, s *store.Store) {
	t.Helper()
	invoices, _, err := s.Invoices(t.Context(), store.InvoiceFilter{Limit: 100})
	must(t, err)
	statuses := make(map[invoice.Status]int)
	var ids []string
	for _, inv := range invoices {
		statuses[inv.Status]++
		ids = append(ids, inv.ID)
	}
	for _, status := range []invoice.Status{invoice.Open, invoice.Paid, invoice.Expired} {
		if statuses[status] == 0 {
			t.Errorf("no invoice is %s: %v", status, statuses)
		}
	}
	refunds, err := s.RefundsOfInvoices(t.Context(), ids)
	must(t, err)
	payments, _, err := s.Payments(t.Context(), store.PaymentFilter{Limit: 100})
	must(t, err)
	events, err := s.Events(t.Context(), store.EventFilter{Limit: 100})
	must(t, err)
	if len(refunds) == 0 || len(payments) == 0 || len(events) == 0 {
		t.Errorf("it reads %d refunds, %d payments and %d events", len(refunds), len(payments), len(events))
	}
}
