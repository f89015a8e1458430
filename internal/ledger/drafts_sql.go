package ledger

import (
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// lockInvoice locks an invoice until the transaction ends, and returns it with its details, or ErrNotFound.
func lockInvoice(ctx context.Context, tx *db.Tx, id string) (invoice.Invoice, error) {
	if _, err := db.QueryAll(ctx, tx, db.ScanID, "SELECT id FROM invoices WHERE id = $1"+tx.ForUpdate(), id); err != nil {
		return invoice.Invoice{}, err
	}
	return NewReader(tx).Invoice(ctx, id)
}

// UpdateDraft writes the terms and the state of a locked draft, which may have become open. Insert the
// transfer amount of an open invoice first.
func UpdateDraft(ctx context.Context, tx *db.Tx, inv invoice.Invoice) error {
	n, err := termsTable.Without("id", "merchant_id", "created_at").Update(ctx, tx, inv, "id = $1 AND status = 'draft'", inv.ID)
	if err == nil && n == 0 {
		err = db.ErrNotFound
	}
	if err != nil {
		return err
	}
	return insertDeposits(ctx, tx, []invoice.Invoice{inv})
}

// replaceDetails writes the details of a locked invoice, and its reservation if it is a
// draft or open. It returns whether another invoice has reserved the reference.
func replaceDetails(ctx context.Context, tx *db.Tx, inv invoice.Invoice) (taken bool, err error) {
	if err := deleteDetails(ctx, tx, inv.ID); err != nil {
		return false, err
	}
	if err := insertDetails(ctx, tx, []invoice.Invoice{inv}); err != nil {
		return false, err
	}
	if inv.Status != invoice.Drafted && inv.Status != invoice.Open {
		return false, nil
	}
	reserved, err := reserveReferences(ctx, tx, []invoice.Invoice{inv})
	return reserved[inv.ID], err
}

func deleteDetails(ctx context.Context, tx *db.Tx, id string) error {
	for _, table := range []string{"invoice_details", "invoice_metadata", "invoice_words", "reserved_references"} {
		if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE invoice_id = $1", id); err != nil {
			return err
		}
	}
	return nil
}

// deleteDraft deletes a locked draft with its details. Its idempotency keys stay used. It returns
// ErrNotFound if the invoice is no draft.
func deleteDraft(ctx context.Context, tx *db.Tx, id string) error {
	if err := deleteDetails(ctx, tx, id); err != nil {
		return err
	}
	return tx.Change(ctx, "DELETE FROM invoices WHERE id = $1 AND status = 'draft'", id)
}
