package store

import (
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// SettledAmount is what a report by days needs of a confirmed payment of an invoice.
type SettledAmount struct {
	SeenID, MerchantID string
	ConfirmedAt        time.Time
	ChainKey, Currency string
	Amount             invoice.Amount
}

// SettledAmounts returns confirmed payments of invoices.
func (q *queries) SettledAmounts(ctx context.Context, f ReportFilter) ([]SettledAmount, error) {
	w := f.condition("payments.confirmed_at", "payments.seen_id")
	return queryAll(ctx, q, func(row scanner) (a SettledAmount, err error) {
		err = row.Scan(&a.SeenID, &a.MerchantID, seconds{&a.ConfirmedAt}, &a.ChainKey, &a.Currency, amountCol(&a.Amount))
		return a, err
	}, "SELECT seen_id, merchant_id, confirmed_at, chain_key, currency, amount FROM payments "+q.indexedBy(f.index())+w.text()[1:]+
		fmt.Sprintf(" ORDER BY payments.confirmed_at, payments.seen_id LIMIT $%d", w.next()), append(w.args, f.Limit)...)
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
}

// InvoicedAmounts returns the amounts of up to limit invoices in a state that were created at
// a time or later, newest first, of one merchant or of all.
func (q *queries) InvoicedAmounts(ctx context.Context, merchantID string, status invoice.Status, since time.Time, limit int) ([]InvoicedAmount, error) {
	list := &selection{rows: "invoices", from: "invoices"}
	first, end := Span{From: since}.ids(invoice.PrefixInvoice)
	InvoiceFilter{MerchantID: merchantID, Status: status}.byState(list, first, end)
	list.many = true
	return queryAll(ctx, q, func(row scanner) (a InvoicedAmount, err error) {
		err = row.Scan(&a.ChainKey, &a.Currency, amountCol(&a.Amount))
		return a, err
	}, list.text(q, "chain_key, currency, amount", ""), append(list.args, limit)...)
}
