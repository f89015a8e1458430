package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// PaymentFilter selects payments. Empty fields match all.
type PaymentFilter struct {
	// MerchantID lists the payments of the merchant's invoices and, of those
	// without an invoice, the ones that an address of the merchant got.
	MerchantID          string
	ChainKey            string
	IncludePending      bool   // those not confirmed, and those orphaned, too
	IncludeUnattributed bool   // those that belong to no invoice, too
	Before              string // a payment's SeenID; those listed were seen before it
	Limit               int
}

// Payments lists payments, the last seen first. The cost does not depend on
// their number.
func (q *queries) Payments(ctx context.Context, f PaymentFilter) ([]PaymentRow, error) {
	attributed := where{conditions: []string{"payments.invoice_id IS NOT NULL"}}
	attributed.equal("payments.merchant_id", f.MerchantID)
	found, err := q.pageOfPayments(ctx, f, "payments", "payments", attributed)
	if err != nil || !f.IncludeUnattributed {
		return found, err
	}
	list, from := "payments", "payments"
	rest := where{conditions: []string{"payments.invoice_id IS NULL"}}
	if f.MerchantID != "" {
		list, from = "unattributed", "unattributed JOIN payments ON payments.seen_id = unattributed.seen_id"
		rest = where{}
		rest.equal("unattributed.merchant_id", f.MerchantID)
	}
	more, err := q.pageOfPayments(ctx, f, list, from, rest)
	if err != nil {
		return nil, err
	}
	found = append(found, more...)
	slices.SortFunc(found, func(a, b PaymentRow) int { return cmp.Compare(b.SeenID, a.SeenID) })
	return found[:min(len(found), f.Limit)], nil // each list alone was long enough
}

// HasUnattributed reports whether a payment without an invoice, by its SeenID, is listed
// for the merchant.
func (q *queries) HasUnattributed(ctx context.Context, merchantID, seenID string) (bool, error) {
	n, err := queryRow(ctx, q, scanCount,
		"SELECT count(*) FROM unattributed WHERE seen_id = $1 AND merchant_id = $2", seenID, merchantID)
	return n > 0, err
}

// pageOfPayments reads a page of the payments that match the conditions. The
// table named by list has the index in the page's order.
func (q *queries) pageOfPayments(ctx context.Context, f PaymentFilter, list, from string, w where) ([]PaymentRow, error) {
	if !f.IncludePending {
		w.conditions = append(w.conditions, "payments.status = 'confirmed'")
	}
	w.equal(list+".chain_key", f.ChainKey)
	w.below(list+".seen_id", f.Before)
	columns := "payments." + strings.ReplaceAll(paymentColumns, ", ", ", payments.")
	return queryAll(ctx, q, scanPayment, "SELECT "+columns+" FROM "+from+w.text()+
		fmt.Sprintf(" ORDER BY %s.seen_id DESC LIMIT $%d", list, w.next()), append(w.args, f.Limit)...)
}
