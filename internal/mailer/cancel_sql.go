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

// Erase deletes the address of a customer from the mails of a merchant, and cancels the mails that wait. It changes no
// mail if the customer is not an address. A stop by the customer is kept.
func Erase(ctx context.Context, tx *db.Tx, merchantID, customer string) error {
	if !validAddress(customer) {
		return nil
	}
	return tx.Send(ctx, nil, erase+"mailbox = $1 AND merchant_id = $2", mailboxOf(customer), merchantID)
}

// EraseOfInvoices does the same with all mails of invoices.
func EraseOfInvoices(ctx context.Context, tx *db.Tx, invoiceIDs []string) error {
	return tx.Send(ctx, nil, erase+"invoice_id IN "+db.ParameterList(0, len(invoiceIDs)), db.ToAny(invoiceIDs)...)
}

// erase ends mails. A receipt that is returned later is not known any more.
const erase = "UPDATE mails SET recipient = NULL, due_at = NULL, error = NULL, token = CASE kind WHEN 'receipt' THEN NULL ELSE token END, state = CASE state WHEN 'waiting' THEN 'canceled' ELSE state END WHERE "

// canceled sets the columns of a mail that is not needed any more. A receipt has no address then.
const canceled = "state = 'canceled', due_at = NULL, error = NULL, recipient = CASE kind WHEN 'receipt' THEN NULL ELSE recipient END"

// cancelOthers cancels waiting mails of an invoice to other mailboxes, because it goes to a new address now.
func cancelOthers(ctx context.Context, tx *db.Tx, m Mail) error {
	_, err := tx.Exec(ctx, "UPDATE mails SET "+canceled+" WHERE invoice_id = $1 AND mailbox <> $2 AND state = 'waiting'", m.InvoiceID, m.Mailbox)
	return err
}

// cancelReminders cancels the waiting reminders after a mail failed: the reminders of its invoice or, if the mailbox
// takes no mails, all reminders of the merchant to the mailbox.
func cancelReminders(ctx context.Context, tx *db.Tx, m Mail) error {
	_, err := tx.Exec(ctx, "UPDATE mails SET "+canceled+" WHERE mailbox = $1 AND merchant_id = $2 AND kind = 'reminder' AND state = 'waiting' AND (invoice_id = $3 OR $4)",
		m.Mailbox, m.MerchantID, m.InvoiceID, noMailbox.MatchString(m.Error))
	return err
}
