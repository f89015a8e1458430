package store

import (
	"context"

	"github.com/quittance/quittance/internal/invoice"
)

func scanSubmission(row scanner) (s invoice.Submission, err error) {
	err = row.Scan(&s.ID, &s.RefundID, nullText(&s.KeyID), &s.By, seconds{&s.StartedAt}, hashCol(&s.TxHash), nullText(&s.WithdrawnBy), seconds{&s.WithdrawnAt}, seconds{&s.Scheduled})
	return s, err
}

// InsertSubmission inserts a submission. At most one of a refund may be in force. key is empty without an Idempotency-Key;
// hash is of its request.
func (tx *Tx) InsertSubmission(ctx context.Context, s invoice.Submission, scope, key string, hash invoice.Hash) error {
	args := []any{s.ID, s.RefundID, orNull(s.KeyID), s.By, invoice.UnixSeconds(s.StartedAt), orNull(s.TxHash), orNull(s.Scheduled), nil, nil, nil}
	if key != "" {
		args = append(args[:7], scope, key, hash.String())
	}
	_, err := tx.exec(ctx, `INSERT INTO refund_submissions (id, refund_id, key_id, submitted_by, started_at, tx_hash, started_scheduled, idem_scope, idem_key, request_hash)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`, args...)
	return err
}

// HashInForce returns the hash of the request that made a refund's submission in force with an Idempotency-Key, or
// ErrNotFound if another request made it.
func (q *queries) HashInForce(ctx context.Context, refundID, scope, key string) (invoice.Hash, error) {
	return queryRow(ctx, q, func(row scanner) (hash invoice.Hash, err error) { return hash, row.Scan(hashCol(&hash)) },
		"SELECT request_hash FROM refund_submissions WHERE refund_id = $1 AND withdrawn_at IS NULL AND idem_scope = $2 AND idem_key = $3", refundID, scope, key)
}

// UpdateSubmission writes the start and the transaction of a submission, and whether it was withdrawn.
func (tx *Tx) UpdateSubmission(ctx context.Context, s invoice.Submission) error {
	_, err := tx.exec(ctx, "UPDATE refund_submissions SET tx_hash = $2, withdrawn_by = $3, withdrawn_at = $4, started_at = $5, started_scheduled = $6 WHERE id = $1",
		s.ID, orNull(s.TxHash), orNull(s.WithdrawnBy), orNull(s.WithdrawnAt), invoice.UnixSeconds(s.StartedAt), orNull(s.Scheduled))
	return err
}

// Submissions returns the submissions of a refund, newest first. They are at most
// invoice.MaxSubmissions.
func (q *queries) Submissions(ctx context.Context, refundID string) ([]invoice.Submission, error) {
	return queryAll(ctx, q, scanSubmission, `SELECT id, refund_id, key_id, submitted_by, started_at, tx_hash, withdrawn_by, withdrawn_at, started_scheduled
		FROM refund_submissions WHERE refund_id = $1 ORDER BY id DESC LIMIT $2`, refundID, invoice.MaxSubmissions)
}
