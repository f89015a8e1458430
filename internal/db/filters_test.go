package db_test

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestFilteredLists compares lists by random filters with a scan of all rows.
func TestFilteredLists(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.StartChain(t, s, "base")
		rowtest.StartChain(t, s, "other")
		var invoices []invoice.Invoice
		var payments []ledger.PaymentRow
		for i := range 60 {
			created := int64(1000 + 100*(i/2))
			inv := rowtest.Sample(invoice.FirstID(invoice.PrefixInvoice, invoice.Unix(created).Add(time.Duration(i)*time.Millisecond)), []string{"m", "n"}[i%2])
			inv.CreatedAt, inv.ExpiresAt = invoice.Unix(created), invoice.Unix(created+9999)
			inv.Amount, inv.Merchant = invoice.NewAmount(uint64(100+i%3)), invoice.Address{0xa0 | byte(i%4)}
			inv.Status = []invoice.Status{invoice.Open, invoice.Expired, invoice.Void}[i/3%3]
			inv.Details = invoice.Details{
				Reference: []string{"", "order-1", "order-2", "ORDER-1"}[i%4], Customer: invoice.Customer{ID: []string{"", "c-1", "c-2"}[i%3], Email: []string{"", "c-1"}[i/3%2]},
				Metadata: map[string]string{"colour": []string{"red", "blue"}[i/2%2], "size": fmt.Sprint(i % 3)},
			}
			invoices = append(invoices, inv)
		}
		rowtest.Insert(t, s, invoices...)
		for i := range invoices {
			invoices[i].Exception = []invoice.Exception{"", "", invoice.Late, invoice.Underpaid}[i%4]
		}
		for i := range 90 {
			p := rowtest.SamplePayment(i)
			p.ChainKey, p.TxHash[0] = []string{"base", "other"}[i%2], byte(i%7)
			p.From, p.To, p.Amount = invoice.Address{byte(1 + i%3)}, invoice.Address{0xa0 | byte(i%4)}, invoice.NewAmount(uint64(1+i%5))
			if i%6 != 0 {
				inv := invoices[i%4]
				p.InvoiceID, p.MerchantID, p.Method = inv.ID, inv.MerchantID, invoice.ByAmount
			}
			switch {
			case i%11 == 0:
				p.Status = invoice.Orphaned
			case i%5 != 0:
				p.Status, p.ConfirmedAt = invoice.Confirmed, invoice.Unix(int64(1000+i*7%40))
			}
			payments = append(payments, p)
		}
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return errors.Join(ledger.UpdateInvoices(ctx, tx, invoices), ledger.SavePayments(ctx, tx, payments))
		})
		rapid.Check(t, func(r *rapid.T) { checkFilteredInvoices(t, r, s, invoices) })
		rapid.Check(t, func(r *rapid.T) { checkFilteredPayments(t, r, s, payments) })
	})
}

func drawSpan(r *rapid.T, name string, first, last int64) (s db.Span) {
	if rapid.Bool().Draw(r, name+" after") {
		s.From = invoice.Unix(rapid.Int64Range(first, last).Draw(r, "from"))
	}
	if rapid.Bool().Draw(r, name+" before") {
		s.To = invoice.Unix(rapid.Int64Range(first, last).Draw(r, "to"))
	}
	return s
}

func within(s db.Span, t time.Time) bool {
	return !t.Before(s.From) && (s.To.IsZero() || t.Before(s.To)) && (s.IsZero() || !t.IsZero())
}

func checkFilteredInvoices(t *testing.T, r *rapid.T, s *db.DB, all []invoice.Invoice) {
	t.Helper()
	f := ledger.InvoiceFilter{
		MerchantID: rapid.SampledFrom([]string{"", "m", "n"}).Draw(r, "merchant"),
		Status:     rapid.SampledFrom([]invoice.Status{"", "", invoice.Open, invoice.Expired}).Draw(r, "status"),
		Exception:  rapid.SampledFrom([]invoice.Exception{"", "", invoice.Late}).Draw(r, "exception"),
		Amount:     rapid.SampledFrom([]string{"", "", "100", "101"}).Draw(r, "amount"),
		To:         rapid.SampledFrom([]string{"", "", invoice.Address{0xa2}.String()}).Draw(r, "to"),
		Created:    drawSpan(r, "created", 900, 4200),
		Reference:  rapid.SampledFrom([]string{"", "", "order-1"}).Draw(r, "reference"),
		Metadata: rapid.SampledFrom([][]ledger.MetadataPair{nil, nil, {{Key: "colour", Value: "red"}}, {{Key: "colour", Value: "blue"}, {Key: "size", Value: "1"}}}).
			Draw(r, "metadata"),
		Limit: rapid.IntRange(1, 70).Draw(r, "limit"),
	}
	if f.MerchantID != "" {
		f.Customer = rapid.SampledFrom([]string{"", "c-1", "c-2"}).Draw(r, "customer")
	}
	var want, got []string
	for _, inv := range slices.Backward(all) {
		other := slices.ContainsFunc(f.Metadata, func(p ledger.MetadataPair) bool { return inv.Details.Metadata[p.Key] != p.Value })
		if !other && (f.Customer == "" || f.Customer == inv.Details.Customer.Key()) && (f.Reference == "" || f.Reference == inv.Details.Reference) && (f.MerchantID == "" || f.MerchantID == inv.MerchantID) && (f.Status == "" || f.Status == inv.Status) && (f.Exception == "" || f.Exception == inv.Exception) &&
			(f.Amount == "" || f.Amount == inv.Amount.String()) && (f.To == "" || f.To == inv.Merchant.String()) && within(f.Created, inv.CreatedAt) {
			want = append(want, inv.ID)
		}
	}
	for {
		page, examined, err := ledger.NewReader(s).Invoices(t.Context(), f)
		if err != nil || examined != "" {
			r.Fatal(err, examined)
		}
		for _, inv := range page {
			got = append(got, inv.ID)
			f.Before = inv.ID
		}
		if len(page) < f.Limit {
			break
		}
	}
	if !slices.Equal(got, want) {
		r.Fatalf("listed %v, want %v", got, want)
	}
}

func checkFilteredPayments(t *testing.T, r *rapid.T, s *db.DB, all []ledger.PaymentRow) {
	t.Helper()
	f := ledger.PaymentFilter{
		MerchantID:          rapid.SampledFrom([]string{"", "m", "n"}).Draw(r, "merchant"),
		ChainKey:            rapid.SampledFrom([]string{"", "base", "other"}).Draw(r, "chain"),
		InvoiceID:           rapid.SampledFrom([]string{"", "", all[1].InvoiceID}).Draw(r, "invoice"),
		TxHash:              rapid.SampledFrom([]string{"", "", all[1].TxHash.String()}).Draw(r, "transaction"),
		From:                rapid.SampledFrom([]string{"", "", all[1].From.String()}).Draw(r, "from"),
		To:                  rapid.SampledFrom([]string{"", "", all[1].To.String()}).Draw(r, "to"),
		Amount:              rapid.SampledFrom([]string{"", "", "2"}).Draw(r, "amount"),
		Confirmed:           drawSpan(r, "confirmed", 990, 1050),
		IncludePending:      rapid.Bool().Draw(r, "pending"),
		IncludeUnattributed: rapid.Bool().Draw(r, "unattributed"),
		Limit:               rapid.IntRange(1, 100).Draw(r, "limit"),
	}
	owners := map[invoice.Address][]string{{0xa0}: {"m"}, {0xa1}: {"n"}, {0xa2}: {"m"}, {0xa3}: {"n"}} // only on base
	var want []ledger.PaymentRow
	var got []string
	for _, p := range all {
		merchants := []string{p.MerchantID}
		if !p.Attributed() {
			merchants = nil
			if p.ChainKey == "base" {
				merchants = owners[p.To]
			}
		}
		if (f.MerchantID == "" || slices.Contains(merchants, f.MerchantID)) && (f.ChainKey == "" || f.ChainKey == p.ChainKey) && (f.InvoiceID == "" || f.InvoiceID == p.InvoiceID) &&
			(f.TxHash == "" || f.TxHash == p.TxHash.String()) && (f.From == "" || f.From == p.From.String()) && (f.To == "" || f.To == p.To.String()) &&
			(f.Amount == "" || f.Amount == p.Amount.String()) && within(f.Confirmed, p.ConfirmedAt) &&
			(f.IncludePending || p.Status == invoice.Confirmed) && (f.IncludeUnattributed || p.Attributed()) {
			want = append(want, p)
		}
	}
	slices.SortFunc(want, func(a, b ledger.PaymentRow) int {
		if f.ByConfirmation() {
			return cmp.Or(b.ConfirmedAt.Compare(a.ConfirmedAt), cmp.Compare(b.SeenID, a.SeenID))
		}
		return cmp.Compare(b.SeenID, a.SeenID)
	})
	for {
		page, examined, err := ledger.NewReader(s).Payments(t.Context(), f)
		if err != nil || examined != (ledger.PaymentPosition{}) {
			r.Fatal(err, examined)
		}
		for _, p := range page {
			got = append(got, p.SeenID)
			var ok bool
			if f.Before, ok = f.ParsePosition(f.Position(p).String()); !ok {
				r.Fatalf("position %q", f.Position(p))
			}
		}
		if len(page) < f.Limit {
			break
		}
	}
	var ids []string
	for _, p := range want {
		ids = append(ids, p.SeenID)
	}
	if !slices.Equal(got, ids) {
		r.Fatalf("listed %v, want %v", got, ids)
	}
}

// TestExaminedRows lists by two filters that each match many rows, and together one. A
// page ends after MaxExamined rows, and the next one continues there.
func TestExaminedRows(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.StartChain(t, s, "base")
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
		payments := make([]ledger.PaymentRow, db.MaxExamined+50)
		for i := range payments {
			p := rowtest.SamplePayment(i)
			p.SeenID = invoice.FirstID("", invoice.Unix(1000).Add(time.Duration(i)*time.Millisecond))
			p.InvoiceID, p.MerchantID, p.Method, p.Amount, p.From = "inv_1", "m", invoice.ByAmount, invoice.NewAmount(7), invoice.Address{2}
			p.Status, p.ConfirmedAt = invoice.Confirmed, invoice.Unix(1000+int64(i))
			payments[i] = p
		}
		payments[3].From = invoice.Address{1}
		for part := range slices.Chunk(payments, 1000) {
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.SavePayments(ctx, tx, part) })
		}
		first, last := payments[3], payments[len(payments)-db.MaxExamined]
		for name, f := range map[string]ledger.PaymentFilter{
			"amount":    {Amount: "7", ChainKey: "other", IncludeUnattributed: true},
			"to":        {To: first.To.String(), MerchantID: "n"},
			"confirmed": {Confirmed: db.Span{From: rowtest.At(1)}, ChainKey: "other", IncludeUnattributed: true},
		} {
			f.Limit = 50
			page, examined, err := ledger.NewReader(s).Payments(t.Context(), f)
			if err != nil || len(page) != 0 || examined != f.Position(last) {
				t.Errorf("%s: %d payments, examined down to %q, %v; want none, and %q", name, len(page), examined, err, f.Position(last))
			}
			f.Before = examined
			if page, examined, err = ledger.NewReader(s).Payments(t.Context(), f); err != nil || len(page) != 0 || examined != (ledger.PaymentPosition{}) {
				t.Errorf("%s: then %d payments, examined down to %q, %v; want the end", name, len(page), examined, err)
			}
		}
		found, examined, err := ledger.NewReader(s).Payments(t.Context(), ledger.PaymentFilter{Amount: "7", From: first.From.String(), Limit: 50})
		if err != nil || len(found) != 1 || found[0].ID != first.ID || examined != (ledger.PaymentPosition{}) {
			t.Errorf("from one account: %d payments, examined down to %q, %v", len(found), examined, err)
		}
	})
}

// TestShortListsReadFewBlocks checks how many blocks PostgreSQL reads for a list that ends before its
// limit: no more than the blocks with as many entries of an index as a list examines. With as many
// rows of one merchant, the rest of an index has hundreds.
func TestShortListsReadFewBlocks(t *testing.T) {
	t.Parallel()
	const few, indexed, merged, examined = 15, 40, 60, 80
	url := dbtest.MigratedPostgres(t)
	s := dbtest.Open(t, url)
	until := time.Unix(1_800_000_000, 0)
	invoices := yearOfInvoices(t, s, until, 20_000)
	blocks := newBlockCheck(t, url)

	for _, clean := range []string{"VACUUM FULL", "VACUUM ANALYZE"} {
		expect.Success(t)(blocks.conn.Exec(t.Context(), clean))
	}
	some, exceptional := invoices[15_001], invoices[0]
	merchant, details := some.MerchantID, some.Details
	basket := []ledger.MetadataPair{{Key: "basket", Value: details.Metadata["basket"]}}
	newest := db.Span{From: invoices[19_999].CreatedAt}
	read := db.Recorded(s, blocks.record)
	_, err := report.NewReader(read).InvoicedAmounts(t.Context(), merchant, invoice.Void, newest.From, db.MaxExamined)
	rowtest.Must(t, err)
	blocks.check("amounts of none void in a second", examined)
	rowtest.Must(t, s.Update(t.Context(), func(tx *db.Tx) error {
		_, err := ledger.ExpireRefunds(t.Context(), db.RecordedTx(tx, blocks.record), some.ChainKey, until, db.MaxExamined)
		return err
	}))
	blocks.check("expiry of prepared refunds", few)
	expect.Success(t)(ledger.NewReader(read).RefundRecords(t.Context(), ledger.RefundFilter{Limit: 3}))
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

// yearOfInvoices stores invoices of one merchant that were created in a year. Three of four are paid; one of 20 is paid
// late and refunded.
func yearOfInvoices(t *testing.T, s *db.DB, until time.Time, n int) []invoice.Invoice {
	t.Helper()
	rowtest.StartChain(t, s, "base")
	all := make([]invoice.Invoice, n)
	for i := range all {
		at := until.Add(-time.Duration(n-1-i) * (365 * 24 * time.Hour / time.Duration(n))).Truncate(time.Second)
		inv := rowtest.Sample(invoice.FirstID(invoice.PrefixInvoice, at), "m")
		inv.CreatedAt, inv.ExpiresAt, inv.Amount = at, at.Add(24*time.Hour), invoice.NewAmount(uint64(1_000_000+i*7919%20_011))
		inv.Details = invoice.Details{
			Reference: fmt.Sprint("order-", i), Metadata: map[string]string{"basket": fmt.Sprint("b-", i)}, Customer: invoice.Customer{ID: fmt.Sprint("c-", i)},
		}
		all[i] = inv
	}
	rowtest.Insert(t, s, all...)
	for from := 0; from < n; from += 1000 {
		var payments []ledger.PaymentRow
		var refunds []invoice.Refund
		part := all[from:min(from+1000, n)]
		for i := range part {
			inv, p := part[i], rowtest.SamplePayment(from+i)
			p.InvoiceID, p.MerchantID, p.Method, p.Amount = inv.ID, inv.MerchantID, invoice.ByAmount, inv.Amount
			p.Status, p.BlockTime = invoice.Confirmed, inv.CreatedAt
			p.ConfirmedAt = p.BlockTime
			switch kind := i % 20; {
			case kind == 0:
				inv, _ = inv.Expire(inv.ExpiresAt.Add(time.Second))
				p.BlockTime = inv.ExpiresAt.Add(time.Hour)
				payments, refunds = append(payments, p), append(refunds, rowtest.RefundOf(p))
				part[i] = inv.Recount([]invoice.Payment{p.Payment})
			case kind < 4:
				part[i], _ = inv.Expire(inv.ExpiresAt.Add(time.Second))
			case kind == 4:
				part[i], _ = inv.Cancel(1)
			default:
				part[i] = inv.Recount([]invoice.Payment{p.Payment})
			}
		}
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return errors.Join(ledger.SavePayments(ctx, tx, payments), ledger.SaveRefunds(ctx, tx, refunds...), ledger.UpdateInvoices(ctx, tx, part))
		})
	}
	return all
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
	expect.Success(t)(conn.Exec(t.Context(), db.SessionSettings+"; SET plan_cache_mode = force_generic_plan"))
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

func TestExpiringInvoices(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		var made []invoice.Invoice
		for i, expires := range []int64{1300, 1100, 1200} {
			inv := rowtest.Sample(fmt.Sprint("inv_", i), "m")
			inv.ExpiresAt, inv.FromBlock = invoice.Unix(expires), 7
			made = append(made, inv)
		}
		closed, other := rowtest.Sample("inv_closed", "m"), rowtest.Sample("inv_other", "m")
		closed.ExpiresAt, closed.Status = invoice.Unix(1050), invoice.Expired
		other.ExpiresAt, other.ChainKey = invoice.Unix(1050), "other"
		rowtest.Insert(t, s, append(made, closed, other)...)
		for before, want := range map[int64]int{1100: 0, 1101: 1, 1200: 1, 1201: 2, 9999: 3} {
			if got, err := ledger.ExpiringInvoices(t.Context(), s, "base", 7, invoice.Unix(before), 10); err != nil || len(got) != want {
				t.Errorf("expiring before %d: %d, %v, want %d", before, len(got), err, want)
			}
		}
		if got, err := ledger.ExpiringInvoices(t.Context(), s, "base", 0, invoice.Unix(9999), 2); err != nil || len(got) != 2 || got[0].ID != "inv_1" || got[1].ID != "inv_2" {
			t.Errorf("the first two that expire: %+v, %v", got, err)
		}
		if got, err := ledger.ExpiringInvoices(t.Context(), s, "base", 8, invoice.Unix(9999), 10); err != nil || len(got) != 0 {
			t.Errorf("%d expire that the block can pay, %v", len(got), err)
		}
	})
}

// TestAmountLookupsReadFewBlocks checks how many blocks PostgreSQL reads for an amount that no open
// invoice of an address has, if the open invoices of a chain have few prices and one address.
func TestAmountLookupsReadFewBlocks(t *testing.T) {
	t.Parallel()
	const prices, most = 2, 100 // two of each index for 10 lookups
	url := dbtest.MigratedPostgres(t)
	s := dbtest.Open(t, url)
	rowtest.StartChain(t, s, "base")
	var all []invoice.Invoice
	for i := range 4000 {
		inv := rowtest.Sample(fmt.Sprintf("inv_%05d", i), "m")
		inv.Amount = invoice.NewAmount(uint64(1 + i%prices))
		inv.TransferAmount = invoice.NewAmount(uint64(100_000 + i))
		all = append(all, inv)
	}
	rowtest.Insert(t, s, all...)
	blocks := newBlockCheck(t, url)
	expect.Success(t)(blocks.conn.Exec(t.Context(), "ANALYZE invoices, transfer_amounts"))
	read := db.Recorded(s, blocks.record)
	key := ledger.AmountKey{ChainKey: "base", Merchant: all[0].Merchant, Token: all[0].Token, Amount: all[9].TransferAmount}
	_, err := ledger.InvoicesByAmount(t.Context(), read, []ledger.AmountLookup{{AmountKey: key, FirstBlock: 101, LastBlock: 101, FirstTime: invoice.Unix(1500)}}, 16)
	rowtest.Must(t, err)
	_, err = ledger.AmountUses(t.Context(), read, []ledger.AmountKey{key.With(invoice.NewAmount(200_000))}, func() time.Time { return invoice.Unix(1500) })
	rowtest.Must(t, err)
	blocks.check("an unused amount", most)
}

// TestOldTransferAmountsAreNotRead checks how many blocks PostgreSQL reads for an amount that very many closed invoices
// of an address had as transfer amount, one after the other. It must read only the blocks of the newest.
func TestOldTransferAmountsAreNotRead(t *testing.T) {
	t.Parallel()
	const told, most = 1000, 100
	url := dbtest.MigratedPostgres(t)
	s := dbtest.Open(t, url)
	rowtest.StartChain(t, s, "base")
	var all []invoice.Invoice
	for i := range told {
		for other := range uint64(20) { // in the index between the rows of the amount
			inv := rowtest.Sample(fmt.Sprintf("inv_%05d_%d", i, other), "m")
			inv.Amount, inv.TransferAmount = invoice.NewAmount(100), invoice.NewAmount(101+other)
			inv.Status, inv.FromBlock, inv.ClosedBlock = invoice.Expired, uint64(i), uint64(i)
			all = append(all, inv)
		}
	}
	rowtest.Insert(t, s, all...)
	blocks := newBlockCheck(t, url)
	_, err := blocks.conn.Exec(t.Context(), "ANALYZE invoices, transfer_amounts")
	rowtest.Must(t, err)
	read := db.Recorded(s, blocks.record)
	key := ledger.AmountKey{ChainKey: "base", Merchant: all[0].Merchant, Token: all[0].Token, Amount: all[0].TransferAmount}
	uses, err := ledger.AmountUses(t.Context(), read, []ledger.AmountKey{key}, func() time.Time { return invoice.Unix(0) })
	if err != nil || uses[key] != (ledger.AmountUse{Until: all[0].ExpiresAt}) {
		t.Errorf("the amount's use is %+v, %v", uses[key], err)
	}
	moved := rowtest.SamplePayment(1).Transfer
	moved.To, moved.Amount, moved.BlockNumber = key.Merchant, key.Amount, told
	of, err := ledger.InvoicesByTransferAmount(t.Context(), read, []invoice.Transfer{moved})
	if want := fmt.Sprintf("inv_%05d_0", told-1); err != nil || len(of) != 1 || of[0] != want {
		t.Errorf("the amount is of %v, %v; want %s", of, err, want)
	}
	blocks.check("an amount of many", most)
}

// TestUpdateStatistics checks that a table is analyzed once it has 500 rows, and again once it has doubled.
func TestUpdateStatistics(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedPostgres(t)
	s := dbtest.Open(t, url)
	conn := dbtest.SQL(t, url)
	expect.Success(t)(conn.ExecContext(t.Context(), "ALTER TABLE merchants SET (autovacuum_enabled = false)"))
	written := 0
	for _, tc := range []struct {
		rows    int
		counted bool
	}{{499, false}, {1, true}, {400, false}, {100, true}} {
		written += tc.rows
		addMerchants(t, conn, written-tc.rows, written)
		grown, err := s.UpdateStatistics(t.Context())
		expect.OK(t, err)
		expect.Equal(t, slices.Contains(grown, "merchants"), tc.counted, "after %d rows: counted", written)
		var counted int
		expect.OK(t, conn.QueryRowContext(t.Context(), "SELECT reltuples::bigint FROM pg_class WHERE oid = 'merchants'::regclass").Scan(&counted))
		if tc.counted && counted != written {
			t.Errorf("the planner expects %d rows; want %d", counted, written)
		}
	}
}

// addMerchants adds merchants with the numbers from first, and waits until PostgreSQL has counted as many more changes.
func addMerchants(t *testing.T, conn *sql.DB, first, end int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changes := func() (n int) {
		err := conn.QueryRowContext(ctx, "SELECT n_mod_since_analyze FROM pg_stat_user_tables WHERE relname = 'merchants'").Scan(&n)
		expect.OK(t, err)
		return n
	}
	before := changes()
	expect.Success(t)(conn.ExecContext(ctx, "INSERT INTO merchants (id, created_at) SELECT 'm' || i, 0 FROM generate_series($1::bigint, $2::bigint - 1) AS i", first, end))
	for changes() < before+end-first {
		if !clock.Sleep(ctx, 20*time.Millisecond, nil) {
			t.Fatal("PostgreSQL has not noted the changes")
		}
	}
}
