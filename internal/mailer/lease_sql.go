package mailer

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// LeaseRequest asks for a mail of a lane.
type LeaseRequest struct {
	Lane  Lane
	Wall  time.Time // the machine's clock, by which a reminder becomes due
	Now   time.Time // the schedule's clock, by which all other mails do
	Until time.Time // when the lease ends, by the schedule's clock
	After string    // the merchant that had the lane's last turn
	Full  [MaxInFlight / MaxInFlightOfMerchant]string
}

// Lane is a class of mails, which has its own turns.
type Lane int

// The lanes.
const (
	Asked     Lane = iota // first attempts of receipts and invoices
	Reminders             // first attempts of reminders
	Retries               // later attempts
)

// waiting are the rows of each lane. Each condition fits an index.
var waiting = [...][]string{
	Asked:     {asked + " AND attempts = 0"},
	Reminders: {remind + " AND attempts = 0"},
	Retries:   {asked + " AND attempts > 0", remind + " AND attempts > 0"},
}

// LeaseMail leases a due mail, and counts an attempt of it. Merchants take turns in the order of their ids, except those
// that are Full; a merchant's oldest mail goes first. It returns ErrNotFound without a due mail. If the lease ends without
// an outcome, the mail is due again.
func (s Tables) LeaseMail(ctx context.Context, r LeaseRequest) (leased Mail, err error) {
	due := r.Now
	if r.Lane == Reminders {
		due = r.Wall
	}
	for _, rows := range waiting[r.Lane] {
		rows += " AND due_at <= $1 AND merchant_id NOT IN ($2, $3)"
		found, err := db.QueryAll(ctx, s.DB, db.ScanSeq, "SELECT due_at FROM mails WHERE "+rows+" LIMIT 1", due.Unix(), r.Full[0], r.Full[1])
		if err != nil {
			return Mail{}, err
		}
		if len(found) == 0 {
			continue
		}
		err = s.DB.Update(ctx, func(tx *db.Tx) (err error) {
			leased, err = db.QueryRow(ctx, tx, mailTable.Scan, `WITH due AS (SELECT invoice_id AS invoice, number AS place FROM mails
				WHERE `+rows+` ORDER BY merchant_id <= $4, merchant_id, due_at LIMIT 1`+tx.SkipLocked()+`)
				UPDATE mails SET due_at = $5, attempts = attempts + 1 FROM due WHERE invoice_id = invoice AND number = place
				RETURNING `+mailTable.List(), due.Unix(), r.Full[0], r.Full[1], r.After, r.Until.Unix())
			return err
		})
		return leased, err
	}
	return Mail{}, db.ErrNotFound
}
