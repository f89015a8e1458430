package mailer

import (
	"context"

	"github.com/quittance/quittance/internal/db"
)

// CancelAll cancels all mails that wait, in a recovery: they may have been sent since the backup, or their recipients
// may have stopped them.
func CancelAll(ctx context.Context, tx *db.Tx) error {
	_, err := tx.Exec(ctx, "UPDATE mails SET "+canceled+" WHERE state = 'waiting'")
	return err
}

// Erase deletes the address of a customer from the mails of a merchant, and cancels those that wait. A customer that is
// no address has none. That the customer wants no mails is kept.
func Erase(ctx context.Context, tx *db.Tx, merchantID, customer string) error {
	if !validAddress(customer) {
		return nil
	}
	_, err := tx.Exec(ctx, `UPDATE mails SET recipient = NULL, due_at = NULL, error = NULL, state = CASE state WHEN 'waiting' THEN 'canceled' ELSE state END
		WHERE mailbox = $1 AND merchant_id = $2`, mailboxOf(customer), merchantID)
	return err
}

// canceled changes a row to that of a mail that is not needed any more. A receipt has no address then.
const canceled = "state = 'canceled', due_at = NULL, error = NULL, recipient = CASE kind WHEN 'receipt' THEN NULL ELSE recipient END"

// cancelOthers cancels the mails of an invoice to other mailboxes, that wait: it goes to another address now.
func cancelOthers(ctx context.Context, tx *db.Tx, m Mail) error {
	_, err := tx.Exec(ctx, "UPDATE mails SET "+canceled+" WHERE invoice_id = $1 AND mailbox <> $2 AND state = 'waiting'", m.InvoiceID, m.Mailbox)
	return err
}
