package mailer

import (
	"context"
	"crypto/subtle"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// BounceMail records that a mail which was sent, or may have been, was returned, and cancels reminders as
// cancelReminders does. It changes no mail if the bounce is not Failed. It returns ErrNotFound if no mail has the id,
// or it was erased.
func (s Tables) BounceMail(ctx context.Context, b Bounce, now time.Time) error {
	return s.DB.Update(ctx, func(tx *db.Tx) error {
		m, err := db.QueryRow(ctx, tx, mailTable.Scan, mailTable.Select()+" WHERE invoice_id = $1 AND number = $2", b.InvoiceID, b.Number)
		if err != nil {
			return err
		}
		erased := m.Token == "" || m.Kind != Receipt && m.Recipient == ""
		if erased || subtle.ConstantTimeCompare([]byte(m.mark()), []byte(b.mark)) != 1 {
			return db.ErrNotFound
		}
		if !b.Failed {
			return nil
		}
		m.Error = b.Reason
		n, err := tx.Exec(ctx, `UPDATE mails SET state = 'failed', due_at = NULL, ended_at = COALESCE(ended_at, $3), bounced_at = $3, error = $4,
			recipient = CASE kind WHEN 'receipt' THEN NULL ELSE recipient END
			WHERE invoice_id = $1 AND number = $2 AND state IN ('waiting', 'sent') AND attempts > 0`, m.InvoiceID, m.Number, now.Unix(), m.Error)
		if err != nil || n == 0 {
			return err
		}
		return cancelReminders(ctx, tx, m)
	})
}
