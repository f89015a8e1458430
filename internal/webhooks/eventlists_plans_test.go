package webhooks_test

import (
	"cmp"
	"context"
	"database/sql"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// eventLists are the lists of events of the API, with the indexes that they must use.
var eventLists = []struct {
	filter  webhooks.EventFilter
	inParts bool // listed among the events of the type
	want    []string
}{
	{filter: webhooks.EventFilter{}, want: []string{"events"}},
	{filter: webhooks.EventFilter{MerchantID: "m"}, want: []string{"events_by_merchant", "events_unwanted_by_merchant"}},
	{filter: webhooks.EventFilter{Type: "invoice.paid"}, want: []string{"events_by_type", "events_unwanted_by_type"}},
	{filter: webhooks.EventFilter{MerchantID: "m", Type: "invoice.paid"}, want: []string{"events_by_merchant", "events_unwanted_by_merchant"}},

	{filter: webhooks.EventFilter{Delivery: "none"}, want: []string{"events_unwanted_by_type"}},
	{filter: webhooks.EventFilter{Delivery: "none", MerchantID: "m"}, want: []string{"events_unwanted_by_merchant"}},
	{filter: webhooks.EventFilter{Delivery: "none", Type: "invoice.paid"}, want: []string{"events_unwanted_by_type"}},
	{filter: webhooks.EventFilter{Delivery: "none", MerchantID: "m", Type: "invoice.paid"}, want: []string{"events_unwanted_by_merchant"}},

	{filter: webhooks.EventFilter{Delivery: "delivered"}, want: []string{"delivered_deliveries"}},
	{filter: webhooks.EventFilter{Delivery: "delivered", MerchantID: "m"}, want: []string{"delivered_deliveries_by_merchant"}},
	{filter: webhooks.EventFilter{Delivery: "delivered", Type: "invoice.paid"}, want: []string{"delivered_deliveries"}},
	{filter: webhooks.EventFilter{Delivery: "delivered", MerchantID: "m", Type: "invoice.paid"}, want: []string{"delivered_deliveries_by_merchant"}},
	{filter: webhooks.EventFilter{Delivery: "delivered", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_type"}},
	{filter: webhooks.EventFilter{Delivery: "delivered", MerchantID: "m", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_merchant"}},

	{filter: webhooks.EventFilter{Delivery: "failed"}, want: []string{"failed_deliveries"}},
	{filter: webhooks.EventFilter{Delivery: "failed", MerchantID: "m"}, want: []string{"failed_deliveries_by_merchant"}},
	{filter: webhooks.EventFilter{Delivery: "failed", Type: "invoice.paid"}, want: []string{"failed_deliveries"}},
	{filter: webhooks.EventFilter{Delivery: "failed", MerchantID: "m", Type: "invoice.paid"}, want: []string{"failed_deliveries_by_merchant"}},
	{filter: webhooks.EventFilter{Delivery: "failed", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_type"}},
	{filter: webhooks.EventFilter{Delivery: "failed", MerchantID: "m", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_merchant"}},

	{filter: webhooks.EventFilter{Delivery: "pending"}, want: []string{"deliveries"}},
	{filter: webhooks.EventFilter{Delivery: "pending", MerchantID: "m"}, want: []string{"deliveries_by_merchant"}},
	{filter: webhooks.EventFilter{Delivery: "pending", Type: "invoice.paid"}, want: []string{"deliveries"}},
	{filter: webhooks.EventFilter{Delivery: "pending", MerchantID: "m", Type: "invoice.paid"}, want: []string{"deliveries_by_merchant"}},
	{filter: webhooks.EventFilter{Delivery: "pending", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_type"}},
	{filter: webhooks.EventFilter{Delivery: "pending", MerchantID: "m", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_merchant"}},

	{filter: webhooks.EventFilter{InvoiceID: "inv_1"}, want: []string{"events_by_invoice"}},
	{filter: webhooks.EventFilter{InvoiceID: "inv_1", Delivery: "none", MerchantID: "m", Type: "invoice.paid"}, want: []string{"events_by_invoice"}},
	{filter: webhooks.EventFilter{InvoiceID: "inv_1", Delivery: "delivered", MerchantID: "m", Type: "invoice.paid"}, want: []string{"events_by_invoice"}},
	{filter: webhooks.EventFilter{InvoiceID: "inv_1", Delivery: "pending", MerchantID: "m"}, want: []string{"events_by_invoice"}},
}

// TestEventListsUseTheirIndexes checks that each list of events uses its index and sorts nothing.
func TestEventListsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		url := dbtest.SQLite(t)
		s := dbtest.Open(t, url)
		checkEventLists(t, s, dbtest.SQL(t, url), rowtest.PlanReader{
			Explain: "EXPLAIN QUERY PLAN ", Columns: 4, Parameters: "?", Sort: "TEMP B-TREE",
			Index: regexp.MustCompile(`^(?:SEARCH|SCAN) s(?: USING (?:COVERING )?INDEX (\S+)| USING INTEGER PRIMARY KEY|$)`),
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := dbtest.MigratedPostgres(t)
		s := dbtest.Open(t, url)
		conn := rowtest.IndexesAlone(t, url)
		checkEventLists(t, s, conn, rowtest.PlanReader{
			Explain: "EXPLAIN ", Columns: 1, Parameters: "$", Sort: "Sort",
			Index: regexp.MustCompile(`using (\S+) on \w+ s  `),
			// Both indexes have the order that is asked for; the database chooses by its statistics.
			Names: map[string]string{
				"events_pkey": "events", "deliveries_pkey": "deliveries",
				"events_by_type": "events_by_merchant", "events_unwanted_by_type": "events_unwanted_by_merchant",
			},
		})
	})
}

// tableRead finds the table that a statement lists.
var tableRead = regexp.MustCompile(`FROM (\w+)`)

func checkEventLists(t *testing.T, s *db.DB, conn *sql.DB, r rowtest.PlanReader) {
	t.Helper()
	rowtest.Fill(t, s)
	for _, c := range eventLists {
		c.filter.Limit = 50
		for _, before := range []int64{0, 1000} {
			c.filter.Before = before
			var statements []rowtest.Statement
			read := db.Recorded(s, func(query string, args []any) {
				statements = append(statements, rowtest.Statement{Query: query, Args: slices.Clone(args)})
			})
			list := webhooks.NewReader(read).Events
			if c.inParts {
				list = func(ctx context.Context, f webhooks.EventFilter) ([]webhooks.EventRow, error) {
					return webhooks.EventsInParts(ctx, read, f)
				}
			}
			_, err := list(t.Context(), c.filter)
			rowtest.Must(t, err)
			var got []string
			for _, s := range statements {
				if strings.Contains(s.Query, "seq IN") {
					continue // it reads what other steps found
				}
				for _, step := range rowtest.Explain(t, conn, r.Explain+strings.ReplaceAll(s.Query, "$", r.Parameters), s.Args, r.Columns) {
					if strings.Contains(step, r.Sort) {
						t.Errorf("%+v: %s\n%s", c.filter, step, s.Query)
					}
					if found := r.Index.FindStringSubmatch(step); found != nil {
						// A step without an index name reads the table by its primary key.
						got = append(got, cmp.Or(r.Names[found[1]], found[1], tableRead.FindStringSubmatch(s.Query)[1]))
					}
				}
			}
			want := make([]string, len(c.want))
			for i, name := range c.want {
				want[i] = cmp.Or(r.Names[name], name)
			}
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, want) {
				t.Errorf("%+v, in parts %t: found by %v, want %v\n%v", c.filter, c.inParts, got, want, statements)
			}
		}
	}
}
