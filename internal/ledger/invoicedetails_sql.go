package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// detailedColumns are invoiceColumns and the columns of the details, which
// detailedInvoices joins.
var detailedColumns = strings.Replace(invoiceColumns, "merchant_id", "invoices.merchant_id", 1) +
	", reference, unique_reference, description, customer_id, customer_email, return_url, cancel_url, metadata"

const (
	joinedDetails    = " LEFT JOIN invoice_details ON invoice_id = id"
	detailedInvoices = " FROM invoices" + joinedDetails
)

func scanDetailedInvoice(row db.Scanner) (invoice.Invoice, error) {
	var d invoice.Details
	var unique int64
	inv, err := scanInvoice(suffixedRow{row, []any{db.NullText(&d.Reference), db.NullInt(&unique), db.NullText(&d.Description),
		db.NullText(&d.Customer.ID), db.NullText(&d.Customer.Email), db.NullText(&d.ReturnURL), db.NullText(&d.CancelURL),
		db.Parsed(&d.Metadata, parseMetadata)}})
	d.UniqueReference = unique == 1
	inv.Details = d
	return inv, err
}

// suffixedRow scans the last columns of a row into its own targets, and the first into the caller's.
type suffixedRow struct {
	row  db.Scanner
	last []any
}

// Scan scans the first columns into dest, and then the last.
func (s suffixedRow) Scan(dest ...any) error { return s.row.Scan(append(dest, s.last...)...) }

func parseMetadata(text string) (pairs map[string]string, err error) {
	err = json.Unmarshal([]byte(text), &pairs)
	return pairs, err
}

// insertDetails inserts the details of new invoices. An invoice without details gets no row.
func insertDetails(ctx context.Context, tx *db.Tx, invoices []invoice.Invoice) error {
	details, pairs, err := detailRows(invoices)
	if err != nil {
		return err
	}
	if err := tx.Insert(ctx, detailInsertion, details); err != nil {
		return err
	}
	return tx.Insert(ctx, metadataInsertion, pairs)
}

var (
	detailInsertion = db.Insertion{Table: "invoice_details", Columns: []string{"invoice_id", "merchant_id", "reference", "unique_reference BIGINT",
		"description", "customer_id", "customer_email", "return_url", "cancel_url", "metadata"}}
	metadataInsertion = db.Insertion{Table: "invoice_metadata", Columns: []string{"invoice_id", "merchant_id", "key", "value"}}
)

// detailRows returns the rows of detailInsertion and metadataInsertion.
func detailRows(invoices []invoice.Invoice) (details, pairs [][]any, err error) {
	for _, inv := range invoices {
		d := inv.Details
		if d.IsZero() {
			continue
		}
		var metadata any
		if len(d.Metadata) > 0 {
			text, err := json.Marshal(d.Metadata)
			if err != nil {
				return nil, nil, err
			}
			metadata = string(text)
		}
		details = append(details, []any{inv.ID, inv.MerchantID, db.OrNull(d.Reference), bit(d.UniqueReference), db.OrNull(d.Description),
			db.OrNull(d.Customer.ID), db.OrNull(d.Customer.Email), db.OrNull(d.ReturnURL), db.OrNull(d.CancelURL), metadata})
		for _, key := range slices.Sorted(maps.Keys(d.Metadata)) {
			pairs = append(pairs, []any{inv.ID, inv.MerchantID, key, d.Metadata[key]})
		}
	}
	return details, pairs, nil
}

// reservation replaces the row of an invoice that is closed, and skips a reference that a draft or
// open invoice has. On PostgreSQL, the condition does not see an invoice that another transaction has
// committed since; so it asks for a closed one, and not for the lack of an open one.
var reservation = db.Insertion{
	Table:   "reserved_references",
	Columns: []string{"invoice_id", "merchant_id", "reference"},
	Conflict: `ON CONFLICT (merchant_id, reference) DO UPDATE SET invoice_id = excluded.invoice_id WHERE EXISTS
		(SELECT 1 FROM invoices WHERE invoices.id = reserved_references.invoice_id AND invoices.status NOT IN ('draft', 'open'))`,
}

// reserveReferences reserves the references of new invoices that must be unique. It returns the ids of
// the invoices with a reference that another invoice has, of the given ones or of others. References
// are inserted in sorted order, so that transactions that insert the same ones do not deadlock.
func reserveReferences(ctx context.Context, tx *db.Tx, invoices []invoice.Invoice) (taken map[string]bool, err error) {
	var unique []invoice.Invoice
	for _, inv := range invoices {
		if inv.Details.UniqueReference {
			unique = append(unique, inv)
		}
	}
	slices.SortFunc(unique, func(a, b invoice.Invoice) int {
		return cmp.Or(cmp.Compare(a.MerchantID, b.MerchantID), cmp.Compare(a.Details.Reference, b.Details.Reference), cmp.Compare(a.ID, b.ID))
	})
	first := slices.CompactFunc(slices.Clone(unique), func(a, b invoice.Invoice) bool {
		return a.MerchantID == b.MerchantID && a.Details.Reference == b.Details.Reference
	})
	rows := make([][]any, len(first))
	for i, inv := range first {
		rows[i] = []any{inv.ID, inv.MerchantID, inv.Details.Reference}
	}
	reserved, err := tx.InsertReturningKeys(ctx, reservation, rows)
	taken = make(map[string]bool)
	for _, inv := range unique {
		if !reserved[inv.ID] {
			taken[inv.ID] = true
		}
	}
	return taken, err
}

// referenceHolder returns the id of the draft or open invoice that has reserved a
// reference of the merchant, or ErrNotFound.
func referenceHolder(ctx context.Context, q db.Querier, merchantID, reference string) (string, error) {
	return db.QueryRow(ctx, q, db.ScanID, `SELECT invoice_id FROM reserved_references JOIN invoices ON id = invoice_id
		WHERE reserved_references.merchant_id = $1 AND reference = $2 AND status IN ('draft', 'open')`, merchantID, reference)
}

// References returns the references of the invoices that have one, by invoice id.
func (q Reader) References(ctx context.Context, invoiceIDs []string) (map[string]string, error) {
	type row struct{ id, reference string }
	rows, err := db.QueryIn(invoiceIDs, func(chunk []any) ([]row, error) {
		return db.QueryAll(ctx, q, func(s db.Scanner) (r row, err error) {
			err = s.Scan(&r.id, &r.reference)
			return r, err
		}, "SELECT invoice_id, reference FROM invoice_details WHERE reference IS NOT NULL AND invoice_id IN "+db.ParameterList(0, len(chunk)), chunk...)
	})
	found := make(map[string]string, len(rows))
	for _, r := range rows {
		found[r.id] = r.reference
	}
	return found, err
}
