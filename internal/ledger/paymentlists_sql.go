package ledger

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// PaymentFilter selects payments. Empty fields match all.
type PaymentFilter struct {
	// MerchantID selects payments of the merchant's invoices, and payments without an invoice to an
	// address of the merchant.
	MerchantID          string
	ChainKey            string
	InvoiceID           string
	TxHash              string // 0x and lower-case digits, as are From and To
	From, To            string
	Amount              string // in minor units
	Confirmed           db.Span
	IncludePending      bool // also unconfirmed and orphaned payments
	IncludeUnattributed bool // also payments without an invoice
	Before              PaymentPosition
	Limit               int
}

// PaymentPosition is a position in a list of payments. The zero value is before all.
type PaymentPosition struct {
	Confirmed int64  // Unix seconds; 0 in a list in the order of observation
	SeenID    string // of the payment
}

// ByConfirmation reports whether the list is in the order of confirmation. Otherwise it is in the order of observation.
func (f PaymentFilter) ByConfirmation() bool {
	return !f.Confirmed.IsZero() && f.InvoiceID == "" && f.TxHash == "" && f.From == "" && f.To == "" && f.Amount == ""
}

// Position returns the position of a payment in the list.
func (f PaymentFilter) Position(p PaymentRow) PaymentPosition {
	at := PaymentPosition{SeenID: p.SeenID}
	if f.ByConfirmation() {
		at.Confirmed = invoice.UnixSeconds(p.ConfirmedAt)
	}
	return at
}

// String returns the position as a text, which ParsePosition parses.
func (p PaymentPosition) String() string {
	if p.Confirmed == 0 {
		return p.SeenID
	}
	return strconv.FormatInt(p.Confirmed, 10) + "." + p.SeenID
}

// ParsePosition parses a position. It returns false if the list is not in the position's order.
func (f PaymentFilter) ParsePosition(text string) (p PaymentPosition, ok bool) {
	if !f.ByConfirmation() {
		return PaymentPosition{SeenID: text}, true
	}
	at, id, ok := strings.Cut(text, ".")
	n, err := strconv.ParseInt(at, 10, 64)
	return PaymentPosition{n, id}, ok && err == nil && n > 0
}

// compare returns a negative number if p comes before o in the list.
func (p PaymentPosition) compare(o PaymentPosition) int {
	return cmp.Or(cmp.Compare(o.Confirmed, p.Confirmed), cmp.Compare(o.SeenID, p.SeenID))
}

// Payments lists payments, the last seen or confirmed first. The cost does not depend on their number.
// If it examined MaxExamined payments without finding enough, it also returns the position of the
// last, behind which the list continues.
func (q Reader) Payments(ctx context.Context, f PaymentFilter) (found []PaymentRow, last PaymentPosition, err error) {
	columns := paymentTable.Of("payments")
	for _, s := range f.selections() {
		some, examined, err := db.List(ctx, q, s, columns, "", f.Limit, paymentTable.Scan, f.scanPosition)
		if err != nil {
			return nil, last, err
		}
		found = append(found, some...)
		if examined != (PaymentPosition{}) && (last == PaymentPosition{} || examined.compare(last) < 0) {
			last = examined
		}
	}
	slices.SortFunc(found, func(a, b PaymentRow) int { return f.Position(a).compare(f.Position(b)) })
	if last != (PaymentPosition{}) { // the rest may be incomplete
		found = slices.DeleteFunc(found, func(p PaymentRow) bool { return f.Position(p).compare(last) > 0 })
	}
	if len(found) >= f.Limit { // each selection was long enough
		return found[:f.Limit], PaymentPosition{}, nil
	}
	return found, last, nil
}

func (f PaymentFilter) scanPosition(row db.Scanner) (p PaymentPosition, err error) {
	if f.ByConfirmation() {
		return p, row.Scan(&p.Confirmed, &p.SeenID)
	}
	return p, row.Scan(&p.SeenID)
}

// selections returns the statements that find the payments together. Each begins with the filter that the fewest
// payments usually meet. Without a filter, payments with and without an invoice have separate indexes.
func (f PaymentFilter) selections() []*db.Selection {
	s := &db.Selection{Rows: "payments", From: "payments"}
	by := func(index, column, value string) {
		s.Between(index, []string{column, "payments.seen_id"}, []string{value}, "", cmp.Or(f.Before.SeenID, db.LastID))
	}
	switch {
	case f.TxHash != "": // few enough to be sorted
		if f.ChainKey == "" {
			s.Conditions = append(s.Conditions, "payments.chain_key IN (SELECT chain_key FROM chains)")
		}
		s.Equal("payments.chain_key", f.ChainKey)
		s.Equal("payments.tx_hash", f.TxHash)
		f.position(s, "payments")
	case f.InvoiceID != "":
		s.Conditions = []string{"payments.invoice_id IS NOT NULL"}
		by("payments_of_invoice", "payments.invoice_id", f.InvoiceID)
	case f.From != "":
		by("payments_by_payer", "payments.from_address", f.From)
	case f.Amount != "":
		by("payments_by_price", "payments.amount", f.Amount)
	case f.To != "":
		by("payments_by_address", "payments.to_address", f.To)
	default:
		return f.plainSelections()
	}
	f.examine(s)
	return []*db.Selection{s}
}

// plainSelections returns the selections of a list whose filters each match many payments.
func (f PaymentFilter) plainSelections() []*db.Selection {
	attributed := &db.Selection{Rows: "payments", From: "payments", Where: db.Where{Conditions: []string{"payments.invoice_id IS NOT NULL"}}}
	attributed.Equal("payments.merchant_id", f.MerchantID)
	all := []*db.Selection{attributed}
	if f.IncludeUnattributed {
		rest := &db.Selection{Rows: "payments", From: "payments", Where: db.Where{Conditions: []string{"payments.invoice_id IS NULL"}}}
		all = append(all, rest)
		if f.MerchantID != "" && !f.ByConfirmation() {
			rest.From, rest.Conditions = "unattributed JOIN payments ON payments.seen_id = unattributed.seen_id", nil
			rest.Equal("unattributed.merchant_id", f.MerchantID)
		}
	}
	for _, s := range all {
		index, _, _ := strings.Cut(s.From, " ")
		if f.ByConfirmation() {
			f.position(s, index)
			f.examine(s)
			continue
		}
		if !f.IncludePending {
			s.Conditions = append(s.Conditions, "payments.status = 'confirmed'")
		}
		s.Equal(index+".chain_key", f.ChainKey)
		f.position(s, index)
	}
	return all
}

// position adds the key of an index of the table, and the position in its order.
func (f PaymentFilter) position(s *db.Selection, table string) {
	s.Order = []string{table + ".seen_id"}
	if f.ByConfirmation() {
		s.Order = append([]string{table + ".confirmed_at"}, s.Order...)
		s.Add("payments.confirmed_at >= $%d", f.Confirmed.First())
		before, id := f.Confirmed.End(), ""
		if f.Before.SeenID != "" {
			before, id = f.Before.Confirmed, f.Before.SeenID
		}
		s.Args = append(s.Args, before, id)
		s.Conditions = append(s.Conditions, "(payments.confirmed_at, payments.seen_id) < "+db.ParameterList(len(s.Args)-2, 2))
	} else {
		s.Below(s.Order[0], f.Before.SeenID)
	}
	s.Key, s.Found = s.Order, len(s.Args)
}

// examine adds all filters as conditions on the rows that an index finds.
func (f PaymentFilter) examine(s *db.Selection) {
	if !f.IncludeUnattributed {
		s.Examined = append(s.Examined, "payments.invoice_id IS NOT NULL")
	}
	if !f.IncludePending {
		s.Examined = append(s.Examined, "payments.status = 'confirmed'")
	}
	// The count is not a join, which could change the order.
	s.Examine(`payments.merchant_id = ? OR payments.invoice_id IS NULL AND
		(SELECT count(*) FROM unattributed u WHERE u.seen_id = payments.seen_id AND u.merchant_id = ?) > 0`, f.MerchantID)
	s.Examine("payments.chain_key = ?", f.ChainKey)
	s.Examine("payments.invoice_id = ?", f.InvoiceID)
	s.Examine("payments.from_address = ?", f.From)
	s.Examine("payments.to_address = ?", f.To)
	s.Examine("payments.amount = ?", f.Amount)
	s.ExamineTime("payments.confirmed_at", f.Confirmed)
}

// HasUnattributed reports whether the merchant's list has a payment without an invoice, given by its SeenID.
func (q Reader) HasUnattributed(ctx context.Context, merchantID, seenID string) (bool, error) {
	n, err := db.QueryRow(ctx, q, db.ScanCount,
		"SELECT count(*) FROM unattributed WHERE seen_id = $1 AND merchant_id = $2", seenID, merchantID)
	return n > 0, err
}
