package mailer

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// ReceiptMail is a receipt to be sent by e-mail.
type ReceiptMail struct {
	InvoiceID string
	Number    int // within the invoice, from 1
	Language  string
	Recipient string
	Attempts  int // that began
	CreatedAt time.Time
}

// QueueReceiptMail queues a mail, due immediately, and returns its number. It returns ErrConflict if
// the invoice has limit mails, or another one is queued at the same time.
func (s Tables) QueueReceiptMail(ctx context.Context, m ReceiptMail, limit int) (number int, err error) {
	err = s.DB.Update(ctx, func(tx *db.Tx) error {
		numbers, err := db.QueryAll(ctx, tx, db.ScanSeq, `INSERT INTO receipt_mails (invoice_id, number, language, recipient, due_at, created_at)
			SELECT CAST($1 AS TEXT), COALESCE(max(number), 0) + 1, CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS BIGINT), CAST($4 AS BIGINT)
			FROM receipt_mails WHERE invoice_id = $1 HAVING COALESCE(max(number), 0) < $5
			ON CONFLICT DO NOTHING RETURNING number`, m.InvoiceID, m.Language, m.Recipient, m.CreatedAt.Unix(), limit)
		if err != nil {
			return err
		}
		if len(numbers) == 0 {
			return db.ErrConflict
		}
		number = int(numbers[0])
		return nil
	})
	return number, err
}

// CountReceiptMails counts the mails that wait to be sent, up to limit. ofMerchant is how many of them
// are for invoices of the merchant.
func (q Reader) CountReceiptMails(ctx context.Context, invoiceID string, limit int) (all, ofMerchant int, err error) {
	n, err := db.QueryRow(ctx, q, func(row db.Scanner) (n [2]int, err error) {
		err = row.Scan(&n[0], &n[1])
		return n, err
	}, `SELECT count(*), count(CASE WHEN i.merchant_id = (SELECT merchant_id FROM invoices WHERE id = $2) THEN 1 END)
		FROM (SELECT invoice_id FROM receipt_mails WHERE due_at IS NOT NULL LIMIT $1) AS waiting JOIN invoices i ON i.id = waiting.invoice_id`, limit, invoiceID)
	return n[0], n[1], err
}

// LeaseReceiptMails leases up to limit due mails until a time, oldest first, and counts an attempt of
// each. If the lease of a mail ends without an outcome, it is due again.
func (s Tables) LeaseReceiptMails(ctx context.Context, now, until time.Time, limit int) (leased []ReceiptMail, err error) {
	due, err := db.QueryAll(ctx, s.DB, db.ScanSeq, "SELECT due_at FROM receipt_mails WHERE due_at <= $1 LIMIT 1", now.Unix())
	if err != nil || len(due) == 0 {
		return nil, err
	}
	err = s.DB.Update(ctx, func(tx *db.Tx) error {
		leased, err = db.QueryAll(ctx, tx, func(row db.Scanner) (m ReceiptMail, err error) {
			err = row.Scan(&m.InvoiceID, &m.Number, &m.Language, &m.Recipient, &m.Attempts, db.Seconds(&m.CreatedAt))
			return m, err
		}, `WITH due AS (SELECT invoice_id AS invoice, number AS place FROM receipt_mails WHERE due_at <= $1 ORDER BY due_at LIMIT $3`+tx.SkipLocked()+`)
			UPDATE receipt_mails SET due_at = $2, attempts = attempts + 1 FROM due WHERE invoice_id = invoice AND number = place
			RETURNING invoice_id, number, language, recipient, attempts, created_at`, now.Unix(), until.Unix(), limit)
		return err
	})
	return leased, err
}

// EndReceiptMail records that a leased mail was sent, or given up if sentAt is zero, and deletes the
// address. It returns ErrConflict if the mail was leased again.
func (s Tables) EndReceiptMail(ctx context.Context, m ReceiptMail, sentAt time.Time) error {
	return updateReceiptMail(ctx, s.DB, m, "due_at = NULL, recipient = NULL, sent_at = $4", db.OrNull(sentAt))
}

// RetryReceiptMail makes a leased mail due at a time. It returns ErrConflict if the mail
// was leased again.
func (s Tables) RetryReceiptMail(ctx context.Context, m ReceiptMail, at time.Time) error {
	return updateReceiptMail(ctx, s.DB, m, "due_at = $4", at.Unix())
}

func updateReceiptMail(ctx context.Context, s *db.DB, m ReceiptMail, change string, value any) error {
	return s.Update(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, "UPDATE receipt_mails SET "+change+" WHERE invoice_id = $1 AND number = $2 AND attempts = $3 AND due_at IS NOT NULL",
			m.InvoiceID, m.Number, m.Attempts, value)
		if err == nil && n == 0 {
			err = db.ErrConflict
		}
		return err
	})
}
