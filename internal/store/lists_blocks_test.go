package store_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/seed"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestShortListsReadFewBlocks checks how many blocks PostgreSQL reads for a list that ends before
// its limit: at most those of as many entries of an index as a list examines. With as many rows of one
// merchant, the rest of an index has hundreds.
func TestShortListsReadFewBlocks(t *testing.T) {
	t.Parallel()
	const few, indexed, examined = 15, 40, 80
	url := storetest.MigratedPostgres(t)
	s := storetest.Open(t, url)
	until := time.Unix(1_800_000_000, 0)
	rows, err := seed.New(seed.Config{Invoices: 20_000, Merchants: 1, Until: until})
	must(t, err)
	must(t, s.Load(t.Context(), rows.Batches(), func(store.LoadProgress) {}))
	blocks := newBlockCheck(t, url)

	some := rows.Invoice(15_000)
	merchant, details := some.MerchantID, some.Details
	exceptional := some
	for i := 0; exceptional.Exception == ""; i++ {
		exceptional = rows.Invoice(i)
	}
	basket := []store.MetadataPair{{Key: "basket", Value: details.Metadata["basket"]}}
	newest := store.Span{From: rows.Invoice(19_999).CreatedAt}
	read := store.Recorded(s, blocks.record)
	_, err = read.InvoicedAmounts(t.Context(), merchant, invoice.Void, newest.From, store.MaxExamined)
	must(t, err)
	blocks.check("amounts of none void in a second", examined)
	must(t, s.Update(t.Context(), func(tx *store.Tx) error {
		_, err := store.RecordedTx(tx, blocks.record).ExpireRefunds(t.Context(), some.ChainKey, until, store.MaxExamined)
		return err
	}))
	blocks.check("expiry of prepared refunds", few)
	// By an index alone, and with invoices that are examined for another filter.
	for most, filters := range map[int]map[string]store.InvoiceFilter{
		indexed: {
			"all":                    {},
			"address":                {To: some.Merchant.String()},
			"reference":              {Reference: details.Reference},
			"merchant and reference": {MerchantID: merchant, Reference: details.Reference},
			"pair":                   {Metadata: basket},
			"merchant and pair":      {MerchantID: merchant, Metadata: basket},
			"customer":               {MerchantID: merchant, Customer: details.Customer.ID},
			"amount":                 {Amount: some.Amount.String()},
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
			found, _, err := read.Invoices(t.Context(), f)
			must(t, err)
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
	list []statement // recorded since the last check
}

// newBlockCheck connects to a database as the service does, where statements that are prepared have one plan for all values.
func newBlockCheck(t *testing.T, url string) *blockCheck {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) }) //nolint:errcheck // nothing depends on it
	_, err = conn.Exec(t.Context(), store.SessionSettings+"; SET plan_cache_mode = force_generic_plan")
	must(t, err)
	return &blockCheck{T: t, conn: conn}
}

func (c *blockCheck) record(query string, args []any) {
	c.list = append(c.list, statement{query: query, args: args})
}

// check requires that each statement since the last check reads so many blocks at most.
func (c *blockCheck) check(name string, most int) {
	c.Helper()
	for _, l := range c.list {
		if n := c.blocksOf(l); n > most {
			c.Errorf("%s: %d blocks are read, want %d at most\n%s", name, n, most, l.query)
		}
	}
	c.list = nil
}

// blocksOf returns how many blocks PostgreSQL reads for a statement.
func (c *blockCheck) blocksOf(s statement) int {
	c.Helper()
	var text string
	must(c, c.conn.QueryRow(c.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+s.query, s.args...).Scan(&text))
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	must(c, json.Unmarshal([]byte(text), &plans))
	return plans[0].Plan.Hit + plans[0].Plan.Read
}
