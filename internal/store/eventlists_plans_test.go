package store_test

import (
	"cmp"
	"database/sql"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// eventLists are the lists of events of the API, with the indexes that they must use.
var eventLists = []struct {
	filter  store.EventFilter
	inParts bool // listed among the events of the type
	want    []string
}{
	{filter: store.EventFilter{}, want: []string{"events"}},
	{filter: store.EventFilter{MerchantID: "m"}, want: []string{"events_by_merchant", "events_unwanted_by_merchant"}},
	{filter: store.EventFilter{Type: "invoice.paid"}, want: []string{"events_by_type", "events_unwanted_by_type"}},
	{filter: store.EventFilter{MerchantID: "m", Type: "invoice.paid"}, want: []string{"events_by_merchant", "events_unwanted_by_merchant"}},

	{filter: store.EventFilter{Delivery: "none"}, want: []string{"events_unwanted_by_type"}},
	{filter: store.EventFilter{Delivery: "none", MerchantID: "m"}, want: []string{"events_unwanted_by_merchant"}},
	{filter: store.EventFilter{Delivery: "none", Type: "invoice.paid"}, want: []string{"events_unwanted_by_type"}},
	{filter: store.EventFilter{Delivery: "none", MerchantID: "m", Type: "invoice.paid"}, want: []string{"events_unwanted_by_merchant"}},

	{filter: store.EventFilter{Delivery: "delivered"}, want: []string{"delivered_deliveries"}},
	{filter: store.EventFilter{Delivery: "delivered", MerchantID: "m"}, want: []string{"delivered_deliveries_by_merchant"}},
	{filter: store.EventFilter{Delivery: "delivered", Type: "invoice.paid"}, want: []string{"delivered_deliveries"}},
	{filter: store.EventFilter{Delivery: "delivered", MerchantID: "m", Type: "invoice.paid"}, want: []string{"delivered_deliveries_by_merchant"}},
	{filter: store.EventFilter{Delivery: "delivered", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_type"}},
	{filter: store.EventFilter{Delivery: "delivered", MerchantID: "m", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_merchant"}},

	{filter: store.EventFilter{Delivery: "failed"}, want: []string{"failed_deliveries"}},
	{filter: store.EventFilter{Delivery: "failed", MerchantID: "m"}, want: []string{"failed_deliveries_by_merchant"}},
	{filter: store.EventFilter{Delivery: "failed", Type: "invoice.paid"}, want: []string{"failed_deliveries"}},
	{filter: store.EventFilter{Delivery: "failed", MerchantID: "m", Type: "invoice.paid"}, want: []string{"failed_deliveries_by_merchant"}},
	{filter: store.EventFilter{Delivery: "failed", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_type"}},
	{filter: store.EventFilter{Delivery: "failed", MerchantID: "m", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_merchant"}},

	{filter: store.EventFilter{Delivery: "pending"}, want: []string{"deliveries"}},
	{filter: store.EventFilter{Delivery: "pending", MerchantID: "m"}, want: []string{"deliveries_by_merchant"}},
	{filter: store.EventFilter{Delivery: "pending", Type: "invoice.paid"}, want: []string{"deliveries"}},
	{filter: store.EventFilter{Delivery: "pending", MerchantID: "m", Type: "invoice.paid"}, want: []string{"deliveries_by_merchant"}},
	{filter: store.EventFilter{Delivery: "pending", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_type"}},
	{filter: store.EventFilter{Delivery: "pending", MerchantID: "m", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_merchant"}},

	{filter: store.EventFilter{InvoiceID: "inv_1"}, want: []string{"events_by_invoice"}},
	{filter: store.EventFilter{InvoiceID: "inv_1", Delivery: "none", MerchantID: "m", Type: "invoice.paid"}, want: []string{"events_by_invoice"}},
	{filter: store.EventFilter{InvoiceID: "inv_1", Delivery: "delivered", MerchantID: "m", Type: "invoice.paid"}, want: []string{"events_by_invoice"}},
	{filter: store.EventFilter{InvoiceID: "inv_1", Delivery: "pending", MerchantID: "m"}, want: []string{"events_by_invoice"}},
}

// TestEventListsUseTheirIndexes checks that each list of events uses its index and sorts
// nothing.
func TestEventListsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		url := storetest.SQLite(t)
		s := storetest.Open(t, url)
		checkEventLists(t, s, storetest.SQL(t, url), planReader{
			explain: "EXPLAIN QUERY PLAN ", columns: 4, parameters: "?", sort: "TEMP B-TREE",
			index: regexp.MustCompile(`^(?:SEARCH|SCAN) s(?: USING (?:COVERING )?INDEX (\S+)| USING INTEGER PRIMARY KEY|$)`),
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := storetest.MigratedPostgres(t)
		s := storetest.Open(t, url)
		db := indexesAlone(t, url)
		checkEventLists(t, s, db, planReader{
			explain: "EXPLAIN ", columns: 1, parameters: "$", sort: "Sort",
			index: regexp.MustCompile(`using (\S+) on \w+ s  `),
			// Both indexes have the order that is asked for; the database chooses by its
			// statistics.
			names: map[string]string{
				"events_pkey": "events", "deliveries_pkey": "deliveries",
				"events_by_type": "events_by_merchant", "events_unwanted_by_type": "events_unwanted_by_merchant",
			},
		})
	})
}

// tableRead finds the table that a statement lists.
var tableRead = regexp.MustCompile(`FROM (\w+)`)

// planReader parses the query plans of a database.
type planReader struct {
	explain    string
	columns    int
	parameters string
	sort       string
	index      *regexp.Regexp
	names      map[string]string // our names of the indexes that the database has named
}

func checkEventLists(t *testing.T, s *store.Store, db *sql.DB, r planReader) {
	t.Helper()
	fill(t, s)
	for _, c := range eventLists {
		c.filter.Limit = 50
		for _, before := range []int64{0, 1000} {
			c.filter.Before = before
			var statements []statement
			read := store.Recorded(s, func(query string, args []any) {
				statements = append(statements, statement{query: query, args: slices.Clone(args)})
			})
			list := read.Events
			if c.inParts {
				list = read.EventsInParts
			}
			_, err := list(t.Context(), c.filter)
			must(t, err)
			var got []string
			for _, s := range statements {
				if strings.Contains(s.query, "seq IN") {
					continue // it reads what other steps found
				}
				for _, step := range explain(t, db, r.explain+strings.ReplaceAll(s.query, "$", r.parameters), s.args, r.columns) {
					if strings.Contains(step, r.sort) {
						t.Errorf("%+v: %s\n%s", c.filter, step, s.query)
					}
					if found := r.index.FindStringSubmatch(step); found != nil {
						// A step without an index name reads the table by its primary key.
						got = append(got, cmp.Or(r.names[found[1]], found[1], tableRead.FindStringSubmatch(s.query)[1]))
					}
				}
			}
			want := make([]string, len(c.want))
			for i, name := range c.want {
				want[i] = cmp.Or(r.names[name], name)
			}
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, want) {
				t.Errorf("%+v, in parts %t: found by %v, want %v\n%v", c.filter, c.inParts, got, want, statements)
			}
		}
	}
}
