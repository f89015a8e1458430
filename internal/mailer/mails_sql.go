package mailer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// Mail is a mail about an invoice.
type Mail struct {
	InvoiceID  string
	Number     int // within the invoice, from 1
	MerchantID string
	Kind       Kind
	Hours      int // of a reminder: hours from the end of the time to pay; negative is before it
	Language   string
	Recipient  string // empty once it is deleted
	Mailbox    string // hash of the address; empty of a receipt
	Token      string // secret, for its id and the page on which the recipient stops mails; empty of an erased receipt
	State      State
	Attempts   int // that began
	SentBy     string
	CreatedAt  time.Time
	SendAt     time.Time
	Due        time.Time // of the first attempt, by the schedule's clock, when it is queued; zero of a reminder: SendAt
	EndedAt    time.Time // when it was sent or failed
	BouncedAt  time.Time // when a server returned it
	Error      string    // why the last attempt failed, or it was returned
}

// mailTable has all columns but due_at: SendAt for the first attempt of a reminder, else a time of the schedule's clock.
var mailTable = db.NewTable("mails", func(m *Mail) []db.Column {
	return []db.Column{
		db.Col("invoice_id", db.Text(&m.InvoiceID)),
		db.Col("number", db.Int(&m.Number)),
		db.Col("merchant_id", db.Text(&m.MerchantID)),
		db.Col("kind", db.Text(&m.Kind)),
		db.Col("hours", db.NullIf(func() bool { return m.Hours == 0 }, db.Int(&m.Hours))),
		db.Col("language", db.Text(&m.Language)),
		db.Col("recipient", db.Null(db.Text(&m.Recipient))),
		db.Col("mailbox", db.Null(db.Text(&m.Mailbox))),
		db.Col("token", db.Null(db.Text(&m.Token))),
		db.Col("state", db.Text(&m.State)),
		db.Col("attempts", db.Int(&m.Attempts)),
		db.Col("sent_by", db.Null(db.Text(&m.SentBy))),
		db.Col("created_at", db.Seconds(&m.CreatedAt)),
		db.Col("send_at", db.Seconds(&m.SendAt)),
		db.Col("ended_at", db.Null(db.Seconds(&m.EndedAt))),
		db.Col("bounced_at", db.Null(db.Seconds(&m.BouncedAt))),
		db.Col("error", db.Null(db.Text(&m.Error))),
	}
})

// The mails that wait.
const (
	asked  = "due_at IS NOT NULL AND kind <> 'reminder'"
	remind = "due_at IS NOT NULL AND kind = 'reminder'"
)

// QueueMail queues a mail. The reminders replace the invoice's reminders that are not due yet. An invoice that goes to
// the same address again within Again is not queued a second time, only its reminders are. Errors are ErrTooMany,
// ErrStopped and db.ErrNotFound.
func (s Tables) QueueMail(ctx context.Context, m Mail, reminders []Mail) error {
	return s.DB.Update(ctx, func(tx *db.Tx) error {
		var err error
		if m.MerchantID, err = lockMerchant(ctx, tx, m.InvoiceID); err != nil {
			return err
		}
		n, err := db.QueryRow(ctx, tx, scanCounts, `SELECT (SELECT COALESCE(max(number), 0) FROM mails WHERE invoice_id = $1),
			(SELECT count(*) FROM mails WHERE invoice_id = $1 AND kind = $2), count(*) FROM mails
			WHERE invoice_id = $1 AND kind = 'invoice' AND mailbox = $3 AND state IN ('waiting', 'sent') AND created_at > $4`,
			m.InvoiceID, string(m.Kind), m.Mailbox, m.CreatedAt.Add(-Again).Unix())
		if err != nil {
			return err
		}
		last, full, all := n[0], n[1] >= MaxOfInvoice, []Mail{m}
		if m.Kind == Invoice {
			err := replaceMails(ctx, tx, m)
			if err != nil && !errors.Is(err, ErrTooMany) {
				return err
			}
			full = full || err != nil
		}
		if repeated := n[2] > 0; repeated {
			all = nil
		} else if full {
			return ErrTooMany
		}
		if m.Language, err = languageOf(ctx, tx, m); err != nil {
			return err
		}
		return insertMails(ctx, tx, last, m, append(all, reminders...))
	})
}

// replaceMails drops the reminders of an invoice that are not due yet, and what waits for other addresses. It returns
// ErrStopped, or also ErrTooMany, if the invoice may not be sent.
func replaceMails(ctx context.Context, tx *db.Tx, m Mail) error {
	err := checkMail(ctx, tx, m, m.CreatedAt)
	if err != nil && !errors.Is(err, ErrTooMany) {
		return err
	}
	if err := dropReminders(ctx, tx, m.InvoiceID, m.CreatedAt); err != nil {
		return err
	}
	return cmp.Or(cancelOthers(ctx, tx, m), err)
}

// scanCounts reads a row of three numbers.
func scanCounts(row db.Scanner) (n [3]int, err error) {
	err = row.Scan(&n[0], &n[1], &n[2])
	return n, err
}

// insertMails inserts mails with what they have in common with the first, numbered from after last on. A reminder with
// the schedule of another one is left out.
func insertMails(ctx context.Context, tx *db.Tx, last int, first Mail, all []Mail) error {
	for _, m := range all {
		last++
		m.Number, m.MerchantID, m.Language, m.State = last, first.MerchantID, first.Language, Waiting
		row := mailTable.Values(m, cmp.Or(m.Due, m.SendAt).Unix())
		if err := tx.Insert(ctx, mailTable.Insertion("ON CONFLICT (invoice_id, hours) WHERE hours IS NOT NULL DO NOTHING", "due_at BIGINT"), [][]any{row}); err != nil {
			return err
		}
	}
	return nil
}

// lockMerchant locks the merchant of an invoice, so that its mails are counted one after the other, and returns its id.
func lockMerchant(ctx context.Context, tx *db.Tx, invoiceID string) (string, error) {
	id, err := db.QueryRow(ctx, tx, db.ScanID, "SELECT merchant_id FROM invoices WHERE id = $1", invoiceID)
	if err != nil {
		return "", fmt.Errorf("merchant of %s: %w", invoiceID, err)
	}
	_, err = db.QueryAll(ctx, tx, db.ScanID, "SELECT id FROM merchants WHERE id = $1"+tx.ForNoKeyUpdate(), id)
	return id, err
}

// checkMail returns ErrStopped if the recipient wants no mails of the merchant. It returns ErrTooMany if the merchant or
// the mailbox had all mails of a Day; only an invoice that is queued and a reminder that is sent ask for that.
func checkMail(ctx context.Context, q db.Querier, m Mail, now time.Time) error {
	stopped, err := isStopped(ctx, q, m)
	if stopped {
		err = ErrStopped
	}
	if err != nil || m.Kind == Invoice && m.Number > 0 {
		return err
	}
	const ofDay = " AND mailbox IS NOT NULL AND (CASE kind WHEN 'invoice' THEN created_at ELSE ended_at END) > $3"
	n, err := db.QueryRow(ctx, q, scanCounts, "SELECT (SELECT count(*) FROM mails WHERE merchant_id = $1"+ofDay+"), count(*), count(CASE WHEN merchant_id = $1 THEN 1 END) FROM mails WHERE mailbox = $2"+ofDay,
		m.MerchantID, m.Mailbox, now.Add(-Day).Unix())
	if err == nil && (n[0] >= MaxOfMerchant || n[1] >= MaxOfMailbox || n[2] >= MaxToMailbox) {
		err = ErrTooMany
	}
	return err
}

// languageOf returns the language of a mail: its own, or the one in which the merchant last wrote to the mailbox, or
// the one of the invoice's last mail, or English.
func languageOf(ctx context.Context, tx *db.Tx, m Mail) (string, error) {
	if m.Language != "" {
		return m.Language, nil
	}
	return db.QueryRow(ctx, tx, db.ScanID, `SELECT COALESCE(
		(SELECT language FROM mails WHERE mailbox = $1 AND merchant_id = $2 ORDER BY created_at DESC LIMIT 1),
		(SELECT language FROM mails WHERE invoice_id = $3 ORDER BY number DESC LIMIT 1), 'en')`, m.Mailbox, m.MerchantID, m.InvoiceID)
}

// CheckMail returns ErrStopped, ErrTooMany, ErrLater or ErrUnwanted if a leased mail must not be sent now. A reminder
// follows the mail of its invoice, and is dropped if a later reminder is due.
func (q Reader) CheckMail(ctx context.Context, m Mail, now time.Time) error {
	if err := checkMail(ctx, q, m, now); err != nil || m.Kind != Reminder {
		return err
	}
	n, err := db.QueryRow(ctx, q, scanCounts, `SELECT count(CASE WHEN kind = 'invoice' AND state = 'sent' THEN 1 END),
		count(CASE WHEN kind = 'invoice' AND state = 'waiting' THEN 1 END),
		count(CASE WHEN kind = 'reminder' AND state IN ('waiting', 'sent') AND send_at > $3 AND send_at <= $4 THEN 1 END)
		FROM mails WHERE invoice_id = $1 AND mailbox = $2`, m.InvoiceID, m.Mailbox, m.SendAt.Unix(), now.Unix())
	switch sent, waits, later := n[0], n[1], n[2]; {
	case err != nil:
		return err
	case later > 0:
		return fmt.Errorf("%w: a later reminder is due", ErrUnwanted)
	case sent > 0:
		return nil
	case waits > 0:
		return fmt.Errorf("%w: the invoice waits to be sent", ErrLater)
	}
	return fmt.Errorf("%w: the invoice was not sent", ErrUnwanted)
}

// DropReminders deletes the reminders of an invoice that are not due yet.
func (s Tables) DropReminders(ctx context.Context, invoiceID string, now time.Time) error {
	return s.DB.Update(ctx, func(tx *db.Tx) error { return dropReminders(ctx, tx, invoiceID, now) })
}

func dropReminders(ctx context.Context, tx *db.Tx, invoiceID string, now time.Time) error {
	_, err := tx.Exec(ctx, "DELETE FROM mails WHERE invoice_id = $1 AND kind = 'reminder' AND send_at > $2", invoiceID, now.Unix())
	return err
}

// InvoiceMails returns the mails of an invoice, in the order of their numbers.
func (q Reader) InvoiceMails(ctx context.Context, invoiceID string) ([]Mail, error) {
	return db.QueryAll(ctx, q, mailTable.Scan, mailTable.Select()+" WHERE invoice_id = $1 ORDER BY number LIMIT $2", invoiceID, MaxListed)
}

// MailByToken returns a mail with a token, and whether the recipient has stopped the merchant's mails. It returns
// ErrNotFound without one.
func (q Reader) MailByToken(ctx context.Context, token string) (m Mail, stopped bool, err error) {
	if m, err = db.QueryRow(ctx, q, mailTable.Scan, mailTable.Select()+" WHERE token = $1 AND kind <> 'receipt' ORDER BY number LIMIT 1", token); err != nil {
		return m, false, err
	}
	stopped, err = isStopped(ctx, q, m)
	return m, stopped, err
}

// isStopped reports whether the recipient of a mail wants no mails of the merchant.
func isStopped(ctx context.Context, q db.Querier, m Mail) (bool, error) {
	n, err := db.QueryRow(ctx, q, db.ScanCount, "SELECT count(*) FROM mail_stops WHERE merchant_id = $1 AND mailbox = $2", m.MerchantID, m.Mailbox)
	return n > 0, err
}

// StopMails stops the mails of the merchant to the mailbox of the mail with a token, also those that wait, or allows
// them again. It returns ErrNotFound without the mail.
func (s Tables) StopMails(ctx context.Context, token string, stop bool, now time.Time) error {
	return s.DB.Update(ctx, func(tx *db.Tx) error {
		m, _, err := NewReader(tx).MailByToken(ctx, token)
		if err != nil {
			return err
		}
		if !stop {
			_, err = tx.Exec(ctx, "DELETE FROM mail_stops WHERE merchant_id = $1 AND mailbox = $2", m.MerchantID, m.Mailbox)
			return err
		}
		if _, err = tx.Exec(ctx, "INSERT INTO mail_stops (merchant_id, mailbox, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", m.MerchantID, m.Mailbox, now.Unix()); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE mails SET state = 'stopped', due_at = NULL, error = NULL WHERE mailbox = $1 AND merchant_id = $2 AND state = 'waiting'", m.Mailbox, m.MerchantID)
		return err
	})
}

// CountWaiting counts the mails that somebody asked for and that wait to be sent, up to limit. ofMerchant is how many
// of them are for invoices of the merchant of an invoice.
func (q Reader) CountWaiting(ctx context.Context, invoiceID string, limit int) (all, ofMerchant int, err error) {
	n, err := db.QueryRow(ctx, q, scanCounts, `SELECT count(*), count(CASE WHEN merchant_id = (SELECT merchant_id FROM invoices WHERE id = $2) THEN 1 END), 0
		FROM (SELECT merchant_id FROM mails WHERE `+asked+` LIMIT $1) AS waiting`, limit, invoiceID)
	return n[0], n[1], err
}

// EndMail records the State, EndedAt and Error of a leased mail that was sent or given up. It deletes the address of a
// receipt. If an invoice was not sent, or a reminder failed, it cancels the reminders. It returns ErrConflict if the mail
// was leased again, stopped or returned.
func (s Tables) EndMail(ctx context.Context, m Mail) error {
	return s.DB.Update(ctx, func(tx *db.Tx) error {
		err := updateMail(ctx, tx, m, `due_at = NULL, recipient = CASE WHEN kind = 'receipt' THEN NULL ELSE recipient END,
			state = $4, ended_at = $5, error = $6`, string(m.State), db.OrNull(m.EndedAt), db.OrNull(m.Error))
		if err == nil && (m.Kind == Invoice && m.State == Canceled || m.Kind != Receipt && m.State == Failed) {
			err = cancelReminders(ctx, tx, m)
		}
		return err
	})
}

// RetryMail makes a leased mail due at a time, and records its Error. It returns ErrConflict if the mail was leased
// again or stopped.
func (s Tables) RetryMail(ctx context.Context, m Mail, at time.Time) error {
	return s.DB.Update(ctx, func(tx *db.Tx) error {
		return updateMail(ctx, tx, m, "due_at = $4, error = $5", at.Unix(), db.OrNull(m.Error))
	})
}

func updateMail(ctx context.Context, tx *db.Tx, m Mail, change string, values ...any) error {
	n, err := tx.Exec(ctx, "UPDATE mails SET "+change+" WHERE invoice_id = $1 AND number = $2 AND attempts = $3 AND due_at IS NOT NULL",
		append([]any{m.InvoiceID, m.Number, m.Attempts}, values...)...)
	if err == nil && n == 0 {
		err = db.ErrConflict
	}
	return err
}
