package ledger

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// maxItemClaims bounds the claims that the version of a payment's item counts.
const maxItemClaims = 10

// InboxFilter selects items. Empty fields match all.
type InboxFilter struct {
	MerchantID string
	Kind       invoice.ItemKind
	ObjectID   string // only the item about this payment or invoice
	Before     string // a position
	Limit      int
}

// InboxEntry names an item of the inbox.
type InboxEntry struct {
	Kind invoice.ItemKind
	// Position orders the items by when their objects were created.
	Position string
	Key      string // id of the invoice or the refund, or SeenID of the payment
}

// itemTable is a table with the items of a kind. An index has the positions of each merchant's items, or of all.
type itemTable struct {
	name, position, key string
	prefix              string // of the positions in the table of invoices
}

// itemTableOf returns the table with the items of a kind, of all merchants or of one.
func itemTableOf(kind invoice.ItemKind, merchantID string) itemTable {
	switch {
	case kind == invoice.ItemApproval, kind == invoice.ItemWithoutPayment:
		return itemTable{name: "refund_records", position: "list_id", key: "id"}
	case !kind.OfPayment():
		return itemTable{name: "invoices", position: "id", key: "id", prefix: invoice.PrefixInvoice}
	case merchantID == "":
		return itemTable{name: "payments", position: "seen_id", key: "seen_id"}
	}
	return itemTable{name: "unattributed", position: "seen_id", key: "seen_id"}
}

// selection returns the statement that reads the items of a kind at a time, in the order of an index
// of items. Its parameters come after the parameters of before, which are the first of its arguments.
func (t itemTable) selection(kind invoice.ItemKind, f InboxFilter, now time.Time, before ...any) *db.Selection {
	if t.prefix != "" {
		s := &db.Selection{From: t.name, Where: db.Where{Args: slices.Clone(before)}}
		byStates(s, f.MerchantID, states(invoice.State{Item: kind}), "", t.prefix+cmp.Or(f.Before, db.LastID))
		return s
	}
	s := &db.Selection{Rows: t.name, From: t.name, Where: db.Where{Conditions: []string{"item IS NOT NULL"}, Args: slices.Clone(before)}}
	index, columns, values := t.name+"_by_item", []string{"item", t.position}, []string{string(kind)}
	if f.MerchantID != "" {
		index, columns, values = t.name+"_by_merchant_item", append([]string{"merchant_id"}, columns...), []string{f.MerchantID, string(kind)}
	}
	first, end := "", cmp.Or(f.Before, db.LastID)
	if kind == invoice.ItemApproval {
		// It skips expired ones without reading them, because all have the same lifetime.
		first = invoice.FirstID("", now.Add(-invoice.RefundLifetime).Truncate(time.Second))
	}
	s.Between(index, columns, values, first, end)
	if kind == invoice.ItemApproval {
		s.Ends = false // otherwise it would read the expired ones to test the condition
		s.Add("expires_at > $%d", invoice.UnixSeconds(now))
	}
	return s
}

// kinds returns the kinds that a filter selects.
func (f InboxFilter) kinds() []invoice.ItemKind {
	if f.Kind != "" {
		return []invoice.ItemKind{f.Kind}
	}
	return invoice.ItemKinds
}

// InboxEntries lists what needs a decision at a time, newest first. It reads up to the limit of each kind.
func InboxEntries(ctx context.Context, q db.Querier, f InboxFilter, now time.Time) (found []InboxEntry, err error) {
	for _, kind := range f.kinds() {
		t := itemTableOf(kind, f.MerchantID)
		s := t.selection(kind, f, now)
		some, err := db.QueryAll(ctx, q, func(row db.Scanner) (InboxEntry, error) {
			e := InboxEntry{Kind: kind}
			err := row.Scan(&e.Position, &e.Key)
			e.Position = strings.TrimPrefix(e.Position, t.prefix)
			return e, err
		}, s.Text(q, t.position+", "+t.key, ""), append(s.Args, f.Limit)...)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	slices.SortFunc(found, func(a, b InboxEntry) int { return cmp.Compare(b.Position, a.Position) })
	return found[:min(len(found), f.Limit)], nil
}

// CountInbox counts the items of each kind, up to a limit each, in the order of invoice.ItemKinds. It
// is one statement, because every page of the dashboard shows the sum.
func CountInbox(ctx context.Context, q db.Querier, merchantID string, now time.Time, limit int) ([]int, error) {
	var parts []string
	var args []any
	for _, kind := range invoice.ItemKinds {
		t := itemTableOf(kind, merchantID)
		s := t.selection(kind, InboxFilter{MerchantID: merchantID}, now, args...)
		parts = append(parts, "(SELECT count(*) FROM ("+s.Text(q, "1", "")+") AS listed)")
		args = append(s.Args, limit)
	}
	return db.QueryRow(ctx, q, func(row db.Scanner) ([]int, error) {
		counts := make([]int, len(parts))
		columns := make([]any, len(parts))
		for i := range counts {
			columns[i] = &counts[i]
		}
		err := row.Scan(columns...)
		return counts, err
	}, "SELECT "+strings.Join(parts, ", "), args...)
}

// InvoicesByID returns the invoices with the ids and their details, in no order. It skips unknown ids.
func InvoicesByID(ctx context.Context, q db.Querier, ids []string) ([]invoice.Invoice, error) {
	return db.AllIn(ctx, q, detailedTable.Scan, selectDetailed+" WHERE id IN ", ids)
}

// PaymentsSeen returns the payments with the SeenIDs, in no order. It skips unknown ones.
func PaymentsSeen(ctx context.Context, q db.Querier, seen []string) ([]PaymentRow, error) {
	return db.AllIn(ctx, q, paymentTable.Scan, paymentTable.Select()+" WHERE seen_id IN ", seen)
}

// RefundRecordsByID returns the records with the ids, in no order. It skips unknown ids.
func RefundRecordsByID(ctx context.Context, q db.Querier, ids []string) ([]invoice.RefundRecord, error) {
	return db.QueryIn(ids, func(chunk []any) ([]invoice.RefundRecord, error) {
		return recordsWhere(ctx, q, "WHERE refund_records.id IN "+db.ParameterList(0, len(chunk)), chunk...)
	})
}
