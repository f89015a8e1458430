package db_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/dev/seed"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestShortListsReadFewBlocks checks how many blocks PostgreSQL reads for a list that ends before its
// limit: no more than the blocks with as many entries of an index as a list examines. With as many
// rows of one merchant, the rest of an index has hundreds.
func TestShortListsReadFewBlocks(t *testing.T) {
	t.Parallel()
	const few, indexed, merged, examined = 15, 40, 60, 80
	url := dbtest.MigratedPostgres(t)
	s := dbtest.Open(t, url)
	until := time.Unix(1_800_000_000, 0)
	rows, err := seed.New(seed.Config{Invoices: 20_000, Merchants: 1, Until: until})
	rowtest.Must(t, err)
	rowtest.Must(t, ledger.LoadInvoices(t.Context(), s, rows.Batches(), func(db.LoadProgress) {}))
	blocks := newBlockCheck(t, url)

	some := rows.Invoice(15_000)
	merchant, details := some.MerchantID, some.Details
	exceptional := some
	for i := 0; exceptional.Exception == ""; i++ {
		exceptional = rows.Invoice(i)
	}
	basket := []ledger.MetadataPair{{Key: "basket", Value: details.Metadata["basket"]}}
	newest := db.Span{From: rows.Invoice(19_999).CreatedAt}
	read := db.Recorded(s, blocks.record)
	_, err = report.NewReader(read).InvoicedAmounts(t.Context(), merchant, invoice.Void, newest.From, db.MaxExamined)
	rowtest.Must(t, err)
	blocks.check("amounts of none void in a second", examined)
	rowtest.Must(t, s.Update(t.Context(), func(tx *db.Tx) error {
		_, err := ledger.ExpireRefunds(t.Context(), db.RecordedTx(tx, blocks.record), some.ChainKey, until, db.MaxExamined)
		return err
	}))
	blocks.check("expiry of prepared refunds", few)
	_, err = ledger.NewReader(read).RefundRecords(t.Context(), ledger.RefundFilter{Limit: 3})
	rowtest.Must(t, err)
	blocks.check("refunds", examined)
	// Only by an index, by an index for each combination of values, and with invoices that are examined for another
	// filter.
	for most, filters := range map[int]map[string]ledger.InvoiceFilter{
		indexed: {
			"all":                    {},
			"address":                {To: some.Merchant.String()},
			"reference":              {Reference: details.Reference},
			"merchant and reference": {MerchantID: merchant, Reference: details.Reference},
			"pair":                   {Metadata: basket},
			"merchant and pair":      {MerchantID: merchant, Metadata: basket},
			"customer":               {MerchantID: merchant, Customer: details.Customer.ID},
			"amount":                 {Amount: some.Amount.String()},
		},
		merged: {
			"exception":              {Exception: exceptional.Exception},
			"merchant and exception": {MerchantID: merchant, Exception: exceptional.Exception},
			"merchant and state":     {MerchantID: merchant, Status: some.Status},
		},
		examined: {
			"reference and state":   {MerchantID: merchant, Reference: details.Reference, Status: some.Status},
			"none void in a second": {MerchantID: merchant, Status: invoice.Void, Created: newest},
			"of a second":           {Created: newest},
			"of merchant, a second": {MerchantID: merchant, Created: newest},
		},
	} {
		for name, f := range filters {
			f.Limit = 5
			found, _, err := ledger.NewReader(read).Invoices(t.Context(), f)
			rowtest.Must(t, err)
			if len(found) == 0 && f.Status != invoice.Void {
				t.Errorf("%s: none is listed", name)
			}
			blocks.check(name, most)
		}
	}
}

// blockCheck checks how many blocks PostgreSQL reads for statements that are recorded.
type blockCheck struct {
	*testing.T
	conn *pgx.Conn
	list []rowtest.Statement // recorded since the last check
}

// newBlockCheck connects to a database as the service does, so that prepared statements have one plan for all values.
func newBlockCheck(t *testing.T, url string) *blockCheck {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	rowtest.Must(t, err)
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) }) //nolint:errcheck // a failure has no consequences
	_, err = conn.Exec(t.Context(), db.SessionSettings+"; SET plan_cache_mode = force_generic_plan")
	rowtest.Must(t, err)
	return &blockCheck{T: t, conn: conn}
}

func (c *blockCheck) record(query string, args []any) {
	c.list = append(c.list, rowtest.Statement{Query: query, Args: args})
}

// check requires that each statement since the last check reads at most the given number of blocks.
func (c *blockCheck) check(name string, most int) {
	c.Helper()
	for _, l := range c.list {
		if n := c.blocksOf(l); n > most {
			c.Errorf("%s: %d blocks are read, want %d at most\n%s", name, n, most, l.Query)
		}
	}
	c.list = nil
}

// blocksOf returns how many blocks PostgreSQL reads for a statement.
func (c *blockCheck) blocksOf(s rowtest.Statement) int {
	c.Helper()
	var text string
	rowtest.Must(c, c.conn.QueryRow(c.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+s.Query, s.Args...).Scan(&text))
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	rowtest.Must(c, json.Unmarshal([]byte(text), &plans))
	return plans[0].Plan.Hit + plans[0].Plan.Read
}
