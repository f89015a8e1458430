package ledger

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Customer is a customer of a merchant: all invoices with the same customer id or, without an id, with
// the same e-mail address.
type Customer struct {
	MerchantID string
	invoice.Customer
	// NewestInvoice is the newest invoice. Its e-mail address is the customer's.
	NewestInvoice string
	InvoicedAt    time.Time // when that was created
}

// CustomerFilter selects customers of a merchant, in the order of their keys' bytes.
type CustomerFilter struct {
	MerchantID string
	Prefix     string // of the key; empty for all
	After      string // a key; those listed come after it
	Limit      int
}

const (
	isCustomer  = "coalesce(customer_id, customer_email) IS NOT NULL" // as in invoice_details_by_customer
	hasIDAndBox = "customer_email IS NOT NULL AND customer_id IS NOT NULL"
)

// text returns a parameter that is compared with the expression of an index. SQLite does not use such
// an index for a value that has a type.
func text(q db.Querier, parameter string) string {
	if q.OnPostgres() {
		return q.Base().Ordered("CAST(" + parameter + " AS TEXT)")
	}
	return parameter
}

// customerKey returns the expression of a customer's key in invoice_details.
func customerKey(q db.Querier) string {
	return q.Base().Ordered("coalesce(customer_id, customer_email)")
}

// Customers lists customers of a merchant. It reads a few rows of each, however many invoices they have.
func (q Reader) Customers(ctx context.Context, f CustomerFilter) ([]Customer, error) {
	key := customerKey(q)
	from := "FROM invoice_details " + q.IndexedBy("invoice_details_by_customer") + "WHERE merchant_id = $1 AND " + isCustomer
	next := "SELECT " + key + " " + from + " AND " + key
	// Each step finds the first customer behind the one before.
	listed := `WITH RECURSIVE listed (n, customer) AS (
		SELECT 1, (` + next + ` > ` + text(q, "$2") + ` AND ` + key + ` >= ` + text(q, "$3") + ` ORDER BY merchant_id, ` + key + ` LIMIT 1)
		UNION ALL
		SELECT n + 1, (` + next + ` > ` + q.Base().Ordered("listed.customer") + ` ORDER BY merchant_id, ` + key + ` LIMIT 1) FROM listed
			WHERE n < $4 AND customer IS NOT NULL AND substr(customer, 1, length(CAST($3 AS TEXT))) = $3)`
	found, err := db.QueryAll(ctx, q, scanCustomer, listed+` SELECT newest.merchant_id, newest.customer_id, newest.customer_email, newest.invoice_id, invoices.created_at
		FROM listed CROSS JOIN invoice_details AS newest JOIN invoices ON invoices.id = newest.invoice_id
		WHERE listed.customer IS NOT NULL AND substr(listed.customer, 1, length(CAST($3 AS TEXT))) = $3
		AND newest.invoice_id = (SELECT max(invoice_id) `+from+` AND `+key+` = `+q.Ordered("listed.customer")+`)`, f.MerchantID, f.After, f.Prefix, f.Limit)
	slices.SortFunc(found, func(a, b Customer) int { return strings.Compare(a.Key(), b.Key()) })
	return found, err
}

func scanCustomer(row db.Scanner) (c Customer, err error) {
	err = row.Scan(&c.MerchantID, db.Text(&c.ID), db.Text(&c.Email), &c.NewestInvoice, db.Seconds(&c.InvoicedAt))
	return c, err
}

// FindCustomers returns up to limit customers of a merchant with an id that begins with a text, or
// with an invoice that has such an e-mail address.
func (q Reader) FindCustomers(ctx context.Context, merchantID, text string, limit int) ([]Customer, error) {
	found, err := q.Customers(ctx, CustomerFilter{MerchantID: merchantID, Prefix: text, Limit: limit})
	if err != nil || len(found) == limit {
		return found, err
	}
	ids, err := customersOfEmail(ctx, q, merchantID, text, limit)
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool)
	for _, c := range found {
		known[c.Key()] = true
	}
	for _, id := range ids {
		if known[id] || len(found) == limit {
			continue
		}
		known[id] = true
		named, err := FindCustomer(ctx, q, merchantID, id)
		if err != nil {
			return nil, err
		}
		found = append(found, named)
	}
	return found, nil
}

// FindCustomer returns the customer of a merchant with a key, or ErrNotFound.
func FindCustomer(ctx context.Context, q db.Querier, merchantID, key string) (Customer, error) {
	column, order := customerKey(q), "invoice_id DESC"
	if q.OnPostgres() { // which finds the index by all of its columns
		order = "merchant_id DESC, " + column + " DESC, " + order
	}
	return db.QueryRow(ctx, q, scanCustomer, `SELECT newest.merchant_id, customer_id, customer_email, invoice_id, created_at
		FROM (SELECT merchant_id, customer_id, customer_email, invoice_id FROM invoice_details `+q.IndexedBy("invoice_details_by_customer")+`
			WHERE merchant_id = $1 AND `+isCustomer+` AND `+column+` = `+text(q, "$2")+`
			ORDER BY `+order+` LIMIT 1) AS newest JOIN invoices ON invoices.id = newest.invoice_id`, merchantID, key)
}

// customersOfEmail returns the ids of customers with an id and an e-mail address that begins with a
// text. A customer may occur more than once.
func customersOfEmail(ctx context.Context, q db.Querier, merchantID, text string, limit int) ([]string, error) {
	email, id := q.Base().Ordered("customer_email"), q.Ordered("customer_id")
	from := "FROM invoice_details " + q.IndexedBy("invoice_details_by_customer_email") + "WHERE merchant_id = $1 AND " + hasIDAndBox
	order := " ORDER BY merchant_id, " + email + ", " + id + " LIMIT 1)"
	first := from + " AND " + email + " >= " + q.Base().Ordered("CAST($2 AS TEXT)")
	next := from + " AND (" + email + ", " + id + ") > (" + q.Base().Ordered("listed.email") + ", " + q.Ordered("listed.id") + ")"
	return db.QueryAll(ctx, q, db.ScanID, `WITH RECURSIVE listed (n, email, id) AS (
		SELECT 1, (SELECT `+email+` `+first+order+`, (SELECT `+id+` `+first+order+`
		UNION ALL
		SELECT n + 1, (SELECT `+email+` `+next+order+`, (SELECT `+id+` `+next+order+` FROM listed
			WHERE n < $3 AND listed.email IS NOT NULL AND substr(listed.email, 1, length(CAST($2 AS TEXT))) = $2)
		SELECT id FROM listed WHERE email IS NOT NULL AND substr(email, 1, length(CAST($2 AS TEXT))) = $2`, merchantID, text, limit)
}

// byCustomer makes the statement read the invoices of a merchant's customer.
func byCustomer(s *db.Selection, q db.Querier, f InvoiceFilter, first, end string) {
	s.From, s.Joined, s.On = "invoice_details", "invoices", "invoices.id = invoice_details.invoice_id"
	s.Conditions = []string{strings.ReplaceAll(isCustomer, "customer_", "invoice_details.customer_")}
	const index, id = "invoice_details_by_customer", "invoice_details.invoice_id"
	key := q.Base().Ordered("coalesce(invoice_details.customer_id, invoice_details.customer_email)")
	// SQLite compares rows by an index only up to an expression. PostgreSQL must expect few invoices of a
	// customer, or it prefers another index.
	s.Index, s.Order, s.Key = index, []string{id}, []string{id}
	s.Args = []any{f.MerchantID, f.Customer, first, end}
	s.Conditions = append(s.Conditions, "invoice_details.merchant_id = $1", key+" = $2", id+" >= $3", id+" < $4")
	s.Found = len(s.Args)
}
