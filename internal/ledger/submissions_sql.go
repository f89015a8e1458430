package ledger

import (
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

func scanSubmission(row db.Scanner) (s invoice.Submission, err error) {
	err = row.Scan(&s.ID, &s.RefundID, db.NullText(&s.KeyID), &s.By, db.Seconds(&s.StartedAt), db.HashCol(&s.TxHash), db.NullText(&s.WithdrawnBy), db.Seconds(&s.WithdrawnAt), db.Seconds(&s.Scheduled))
	return s, err
}

// insertSubmission inserts a submission. At most one of a refund may be in force. key is empty without
// an Idempotency-Key; hash is the request's.
func insertSubmission(ctx context.Context, tx *db.Tx, s invoice.Submission, scope, key string, hash invoice.Hash) error {
	args := []any{s.ID, s.RefundID, db.OrNull(s.KeyID), s.By, invoice.UnixSeconds(s.StartedAt), db.OrNull(s.TxHash), db.OrNull(s.Scheduled), nil, nil, nil}
	if key != "" {
		args = append(args[:7], scope, key, hash.String())
	}
	_, err := tx.Exec(ctx, `INSERT INTO refund_submissions (id, refund_id, key_id, submitted_by, started_at, tx_hash, started_scheduled, idem_scope, idem_key, request_hash)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`, args...)
	return err
}

// hashInForce returns the hash of the request with an Idempotency-Key that made a refund's submission
// in force, or ErrNotFound if another request made it.
func hashInForce(ctx context.Context, q db.Querier, refundID, scope, key string) (invoice.Hash, error) {
	return db.QueryRow(ctx, q, func(row db.Scanner) (hash invoice.Hash, err error) { return hash, row.Scan(db.HashCol(&hash)) },
		"SELECT request_hash FROM refund_submissions WHERE refund_id = $1 AND withdrawn_at IS NULL AND idem_scope = $2 AND idem_key = $3", refundID, scope, key)
}

// updateSubmission writes the start and the transaction of a submission, and whether it was withdrawn.
func updateSubmission(ctx context.Context, tx *db.Tx, s invoice.Submission) error {
	_, err := tx.Exec(ctx, "UPDATE refund_submissions SET tx_hash = $2, withdrawn_by = $3, withdrawn_at = $4, started_at = $5, started_scheduled = $6 WHERE id = $1",
		s.ID, db.OrNull(s.TxHash), db.OrNull(s.WithdrawnBy), db.OrNull(s.WithdrawnAt), invoice.UnixSeconds(s.StartedAt), db.OrNull(s.Scheduled))
	return err
}

// Submissions returns the submissions of refunds, newest first. Each refund has at most
// invoice.MaxSubmissions.
func (q Reader) Submissions(ctx context.Context, refundIDs ...string) ([]invoice.Submission, error) {
	return db.QueryIn(refundIDs, func(chunk []any) ([]invoice.Submission, error) {
		return db.QueryAll(ctx, q, scanSubmission, `SELECT id, refund_id, key_id, submitted_by, started_at, tx_hash, withdrawn_by,
			withdrawn_at, started_scheduled FROM refund_submissions WHERE refund_id IN `+db.ParameterList(0, len(chunk))+" ORDER BY id DESC", chunk...)
	})
}
