package ledger

import (
	"cmp"
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

var submissionTable = db.NewTable("refund_submissions", func(s *invoice.Submission) []db.Column {
	return []db.Column{
		db.Col("id", db.Text(&s.ID)),
		db.Col("refund_id", db.Text(&s.RefundID)),
		db.Col("key_id", db.Null(db.Text(&s.KeyID))),
		db.Col("submitted_by", db.Text(&s.By)),
		db.Col("started_at", db.Seconds(&s.StartedAt)),
		db.Col("tx_hash", db.Null(db.Hash(&s.TxHash))),
		db.Col("signed_hash", db.Null(db.Hash(&s.SignedHash))),
		db.Col("withdrawn_by", db.Null(db.Text(&s.WithdrawnBy))),
		db.Col("withdrawn_at", db.Null(db.Seconds(&s.WithdrawnAt))),
		db.Col("started_scheduled", db.Null(db.Seconds(&s.Scheduled))),
	}
})

// insertSubmission inserts a submission. At most one of a refund may be in force. key is empty without
// an Idempotency-Key; hash is the request's.
func insertSubmission(ctx context.Context, tx *db.Tx, s invoice.Submission, scope, key string, hash invoice.Hash) error {
	err := tx.Insert(ctx, submissionTable.Insertion("", keyColumns...), [][]any{submissionTable.Values(s, keyValues(scope, key, hash)...)})
	return cmp.Or(err, setSubmitted(ctx, tx, s))
}

// hashInForce returns the hash of the request with an Idempotency-Key that made a refund's submission
// in force, or ErrNotFound if another request made it.
func hashInForce(ctx context.Context, q db.Querier, refundID, scope, key string) (invoice.Hash, error) {
	return db.QueryRow(ctx, q, func(row db.Scanner) (hash invoice.Hash, err error) { return hash, row.Scan(db.Hash(&hash)) },
		"SELECT request_hash FROM refund_submissions WHERE refund_id = $1 AND withdrawn_at IS NULL AND idem_scope = $2 AND idem_key = $3", refundID, scope, key)
}

// saveSubmissions inserts submissions without Idempotency-Keys, or writes the start and the transaction of stored ones, and
// whether they were withdrawn.
func saveSubmissions(ctx context.Context, tx *db.Tx, submissions ...invoice.Submission) error {
	update := "ON CONFLICT (id) DO UPDATE SET " + submissionTable.Without("id", "refund_id", "key_id", "submitted_by").Excluded()
	err := submissionTable.Insert(ctx, tx, update, submissions...)
	return cmp.Or(err, setSubmitted(ctx, tx, submissions...))
}

// setSubmitted sets the transactions of submissions in force in the records of their refunds, by which transfers find
// these.
func setSubmitted(ctx context.Context, tx *db.Tx, submissions ...invoice.Submission) error {
	ids := db.Each(submissions, func(s invoice.Submission) string { return s.RefundID })
	return db.SendIn(ctx, tx, `UPDATE refund_records SET submitted_tx = (SELECT sent.tx_hash FROM refund_submissions AS sent
		WHERE sent.refund_id = refund_records.id AND sent.withdrawn_at IS NULL) WHERE id IN `, ids)
}

// Submissions returns the submissions of refunds, newest first. Each refund has at most invoice.MaxSubmissions.
func (q Reader) Submissions(ctx context.Context, refundIDs ...string) ([]invoice.Submission, error) {
	return db.QueryIn(refundIDs, func(chunk []any) ([]invoice.Submission, error) {
		return db.QueryAll(ctx, q, submissionTable.Scan, submissionTable.Select()+" WHERE refund_id IN "+db.ParameterList(0, len(chunk))+" ORDER BY id DESC", chunk...)
	})
}
