package mailer

import (
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// Order asks to send an invoice to a customer.
type Order struct {
	Invoice       invoice.Invoice
	Address       string
	Language      string // empty: the one of the last mail to the address
	ReminderHours []int  // from the end of the time to pay; negative is before it
	SentBy        string // may be empty
}

// SendInvoice queues an invoice, with reminders, which replace the invoice's reminders that are not due yet. Errors are
// ErrAddress, ErrUnwanted, ErrLater, ErrTooMany, ErrBusy and ErrStopped.
func (m *Mailer) SendInvoice(ctx context.Context, o Order) error {
	if !validAddress(o.Address) {
		return ErrAddress
	}
	now := m.conf.Now()
	mail := Mail{
		Kind: Invoice, InvoiceID: o.Invoice.ID, MerchantID: o.Invoice.MerchantID, Language: o.Language, Recipient: o.Address, SentBy: o.SentBy,
		Mailbox: mailboxOf(o.Address), Token: m.conf.Token(), CreatedAt: now, SendAt: now,
	}
	if _, err := m.conf.Compose(ctx, mail); err != nil {
		return fmt.Errorf("compose the mail: %w", err)
	}
	var reminders []Mail
	for _, hours := range o.ReminderHours {
		reminder := mail
		reminder.Kind, reminder.Hours, reminder.SendAt = Reminder, hours, o.Invoice.ExpiresAt.Add(time.Duration(hours)*time.Hour)
		if reminder.SendAt.After(now) {
			reminders = append(reminders, reminder)
		}
	}
	return m.queue(ctx, mail, reminders)
}

// DropReminders deletes the reminders of an invoice that are not due yet.
func (m *Mailer) DropReminders(ctx context.Context, invoiceID string) error {
	return m.conf.Store.DropReminders(ctx, invoiceID, m.conf.Now())
}

// MailByToken returns a mail with the token of the page on which its recipient stops mails, and whether that happened.
// The error is db.ErrNotFound.
func (m *Mailer) MailByToken(ctx context.Context, token string) (mail Mail, stopped bool, err error) {
	return m.conf.Store.MailByToken(ctx, token)
}

// Stop stops the mails of a merchant to the recipient of a mail, by its token, or allows them again. The error is
// db.ErrNotFound.
func (m *Mailer) Stop(ctx context.Context, token string, stop bool) error {
	return m.conf.Store.StopMails(ctx, token, stop, m.conf.Now())
}
