package store_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

const (
	// byLocale counts the columns whose texts are in the order of the database's locale.
	byLocale = `SELECT count(*) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid WHERE relnamespace = 'public'::regnamespace
		AND relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped AND attcollation = 'default'::regcollation`
	// allIndexes lists the indexes, and allConstraints the constraints. Those that are made anew lose parentheses.
	allIndexes     = `SELECT string_agg(replace(indexdef, ' COLLATE "C"', ''), E'\n' ORDER BY indexdef COLLATE "C") FROM pg_indexes WHERE schemaname = 'public'`
	allConstraints = `SELECT string_agg(definition, E'\n' ORDER BY definition COLLATE "C") FROM (
		SELECT translate(conrelid::regclass || ' ' || pg_get_constraintdef(oid), '()', '') AS definition FROM pg_constraint WHERE connamespace = 'public'::regnamespace) AS all_of_them`
)

// TestByteOrder requires texts in the order of their bytes in a new database, with all indexes and constraints that
// the locale's order had. A database with invoices keeps its order, works with it, and gets the other one by what the
// documentation says.
func TestByteOrder(t *testing.T) {
	t.Parallel()
	old, fresh := storetest.Postgres(t), storetest.Postgres(t)
	used := upgrade(t, old, 2, append(firstSchema, firstInvoice(1), firstPayment(1, "inv_1"), firstPayment(2, ""))...)
	storetest.Open(t, fresh)
	oldDB, newDB := storetest.SQL(t, old), storetest.SQL(t, fresh)
	read := func(db *storetest.DB, query string) (text string) {
		t.Helper()
		must(t, db.QueryRowContext(t.Context(), query).Scan(&text))
		return text
	}
	same := func(when string) {
		t.Helper()
		for _, query := range []string{allIndexes, allConstraints} {
			if diff := cmp.Diff(strings.Split(read(oldDB, query), "\n"), strings.Split(read(newDB, query), "\n")); diff != "" {
				t.Errorf("%s a new database (+) and one with invoices (-) differ\n%s", when, diff)
			}
		}
	}
	works := func() {
		t.Helper()
		near, err := used.NearInvoices(t.Context(), []store.NearLookup{{Transfer: samplePayment(1).Transfer, CreatedBefore: invoice.Unix(2000)}}, "")
		if err != nil || len(near) != 1 {
			t.Errorf("near invoices: %v, %v", near, err)
		}
		if found, _, err := used.Invoices(t.Context(), store.InvoiceFilter{Limit: 10}); err != nil || len(found) != 1 {
			t.Errorf("%d invoices, %v", len(found), err)
		}
	}
	if n := read(newDB, byLocale); n != "0" {
		t.Errorf("%s columns of a new database are in the order of its locale", n)
	}
	if n := read(oldDB, byLocale); n == "0" {
		t.Error("the order in a database with invoices was changed")
	}
	same("before the change")
	works()

	text, err := os.ReadFile("../../docs/postgresql.md")
	must(t, err)
	block := regexp.MustCompile("(?s)\n(SELECT format\\('ALTER TABLE .*?) \\\\gexec\n").FindSubmatch(text)
	if block == nil {
		t.Fatal("docs/postgresql.md lacks the statement that changes the order")
	}
	must(t, used.Close())
	var changes string
	must(t, oldDB.QueryRowContext(t.Context(), "SELECT string_agg(change, ';') FROM ("+string(block[1])+") AS changes (change)").Scan(&changes))
	for change := range strings.SplitSeq(changes, ";") {
		_, err := oldDB.ExecContext(t.Context(), change)
		must(t, err)
	}
	if n := read(oldDB, byLocale); n != "0" {
		t.Errorf("%s columns are in the order of the locale after the change", n)
	}
	same("after the change")
	used = storetest.Open(t, old)
	works()
}
