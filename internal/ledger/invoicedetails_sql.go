package ledger

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// detailedTable has the columns of an invoice and of its details, as selectDetailed reads them.
var detailedTable = db.NewTable("invoices", func(inv *invoice.Invoice) []db.Column {
	return append(invoiceColumns(inv), db.Joined(detailColumns(&inv.Details)...)...)
})

const joinedDetails = " LEFT JOIN invoice_details ON invoice_id = id"

var (
	detailedColumns = detailedTable.Of("invoices")
	selectDetailed  = "SELECT " + detailedColumns + " FROM invoices" + joinedDetails
)

func detailColumns(d *invoice.Details) []db.Column {
	return []db.Column{
		db.Col("reference", db.Null(db.Text(&d.Reference))),
		db.Col("unique_reference", db.Bool(&d.UniqueReference)),
		db.Col("description", db.Null(db.Text(&d.Description))),
		db.Col("customer_id", db.Null(db.Text(&d.Customer.ID))),
		db.Col("customer_email", db.Null(db.Text(&d.Customer.Email))),
		db.Col("return_url", db.Null(db.Text(&d.ReturnURL))),
		db.Col("cancel_url", db.Null(db.Text(&d.CancelURL))),
		db.Col("metadata", db.NullIf(func() bool { return len(d.Metadata) == 0 }, db.JSON(&d.Metadata))),
	}
}

// detailTable has the details of invoices. An invoice without details has no row.
var detailTable = db.NewTable("invoice_details", func(inv *invoice.Invoice) []db.Column {
	return append([]db.Column{db.Col("invoice_id", db.Text(&inv.ID)), db.Col("merchant_id", db.Text(&inv.MerchantID))}, detailColumns(&inv.Details)...)
})

// insertDetails inserts the details of new invoices. An invoice without details gets no row.
func insertDetails(ctx context.Context, tx *db.Tx, invoices []invoice.Invoice) error {
	details, pairs := detailRows(invoices)
	if err := tx.Insert(ctx, detailTable.Insertion(""), details); err != nil {
		return err
	}
	if err := tx.Insert(ctx, metadataInsertion, pairs); err != nil {
		return err
	}
	return tx.Insert(ctx, wordInsertion, wordRows(invoices))
}

var metadataInsertion = db.Insertion{Table: "invoice_metadata", Columns: []string{"invoice_id", "merchant_id", "key", "value"}}

// detailRows returns the rows of detailTable and metadataInsertion.
func detailRows(invoices []invoice.Invoice) (details, pairs [][]any) {
	for _, inv := range invoices {
		if inv.Details.IsZero() {
			continue
		}
		details = append(details, detailTable.Values(inv))
		for _, key := range slices.Sorted(maps.Keys(inv.Details.Metadata)) {
			pairs = append(pairs, []any{inv.ID, inv.MerchantID, key, inv.Details.Metadata[key]})
		}
	}
	return details, pairs
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
	rows := db.Each(first, func(inv invoice.Invoice) []any {
		return []any{inv.ID, inv.MerchantID, inv.Details.Reference}
	})
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
	rows, err := db.AllIn(ctx, q, db.Fields(func(r *row) []any { return []any{&r.id, &r.reference} }), "SELECT invoice_id, reference FROM invoice_details WHERE reference IS NOT NULL AND invoice_id IN ", invoiceIDs)
	found := make(map[string]string, len(rows))
	for _, r := range rows {
		found[r.id] = r.reference
	}
	return found, err
}
