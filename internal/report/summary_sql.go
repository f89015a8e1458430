package report

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// SettledAmount is the part of a confirmed payment of an invoice that a report by days needs.
type SettledAmount struct {
	SeenID, MerchantID string
	ConfirmedAt        time.Time
	ChainKey, Currency string
	Amount             invoice.Amount
}

// SettledAmounts returns confirmed payments of invoices.
func (q Reader) SettledAmounts(ctx context.Context, f ReportFilter) ([]SettledAmount, error) {
	w := f.condition("payments.confirmed_at", "payments.seen_id")
	return db.QueryAll(ctx, q, func(row db.Scanner) (a SettledAmount, err error) {
		err = row.Scan(&a.SeenID, &a.MerchantID, db.Seconds(&a.ConfirmedAt), &a.ChainKey, &a.Currency, db.Amount(&a.Amount))
		return a, err
	}, "SELECT seen_id, merchant_id, confirmed_at, chain_key, currency, amount FROM payments "+q.IndexedBy(f.index())+w.Text()[1:]+
		fmt.Sprintf(" ORDER BY payments.confirmed_at, payments.seen_id LIMIT $%d", w.Next()), append(w.Args, f.Limit)...)
}

// index is the index of confirmed payments that the filter uses.
func (f ReportFilter) index() string {
	if f.MerchantID == "" {
		return "payments_by_confirmation"
	}
	return "payments_by_merchant_confirmation"
}

// InvoicedAmount is the amount of an invoice.
type InvoicedAmount struct {
	ChainKey, Currency string
	Amount             invoice.Amount
	createdAt          time.Time
}

// InvoicedAmounts returns the amounts of up to limit invoices in a state that were created at
// a time or later, newest first, of one merchant or of all.
func (q Reader) InvoicedAmounts(ctx context.Context, merchantID string, status invoice.Status, since time.Time, limit int) ([]InvoicedAmount, error) {
	list := &db.Selection{Rows: "invoices", From: "invoices"}
	first, end := db.Span{From: since}.Ids(invoice.PrefixInvoice)
	ledger.InvoiceFilter{MerchantID: merchantID, Status: status}.ByState(list, first, end)
	list.Many = true
	all, err := db.QueryAll(ctx, q, func(row db.Scanner) (a InvoicedAmount, err error) {
		err = row.Scan(&a.ChainKey, &a.Currency, db.Amount(&a.Amount), db.Seconds(&a.createdAt))
		return a, err
	}, list.Text(q, "chain_key, currency, amount, created_at", ""), append(list.Args, limit)...)
	return slices.DeleteFunc(all, func(a InvoicedAmount) bool { return a.createdAt.Before(since) }), err
}
