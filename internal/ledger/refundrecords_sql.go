package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// unsentStatus is the status of a record after a reorg dropped its transfer.
const unsentStatus = "CASE WHEN tag IS NULL THEN 'orphaned' WHEN canceled_at IS NOT NULL THEN 'canceled' ELSE 'pending' END"

// recordRow is a row of refund_records with its payment and its transfer.
type recordRow struct {
	invoice.RefundRecord
	listID     string
	paid, back invoice.Amount // of the payment, and of its refunds
}

var recordTable = db.NewTable("refund_records", func(r *recordRow) []db.Column {
	return append(slices.Concat(preparedColumns(r), paymentOfRecord(r), transferOfRecord(&r.Transfer)),
		db.Expr("sent.tx_hash", db.Hash(&r.SubmittedTx)),
		db.Expr("sent.id IS NOT NULL", db.Bool(&r.Submitted)),
		db.Expr("EXISTS (SELECT 1 FROM unrecognized_transfers AS unknown WHERE "+mayRefund+" LIMIT 1 OFFSET 0) OR "+waitsUndecided, db.Bool(&r.MayBeRefunded)),
	)
}).Finished(func(r *recordRow) { r.Left, r.Exceeded = r.paid.Minus(r.back), r.paid.Less(r.back) })

// preparedColumns are the columns that are written when a refund is prepared.
func preparedColumns(r *recordRow) []db.Column {
	return []db.Column{
		db.Col("id", db.Text(&r.ID)),
		db.Col("list_id", db.Text(&r.listID)),
		db.Col("payment_id", db.Text(&r.PaymentID)),
		db.Col("invoice_id", db.Null(db.Text(&r.InvoiceID))),
		db.Col("merchant_id", db.Null(db.Text(&r.MerchantID))),
		db.Col("chain_key", db.Text(&r.ChainKey)),
		db.Col("status", db.Text(&r.Status)),
		db.Col("created_at", db.Seconds(&r.CreatedAt)),
		db.Col("tag", db.Hash(&r.Tag)),
		db.Col("amount", db.Amount(&r.Amount)),
		db.Col("sender", db.Null(db.Address(&r.From))),
		db.Col("recipient", db.Null(db.Address(&r.To))),
		db.Col("token", db.Null(db.Address(&r.Token))),
		db.Col("reason", db.Null(db.Text(&r.Reason))),
		db.Col("account", db.Null(db.Text(&r.Account))),
		db.Col("many_invoices", db.Bool(&r.ManyInvoices)),
		db.Col("claim_token", db.Null(db.Code(&r.ClaimHash, parseClaimHash, claimHashText))),
		db.Col("claim_signature", db.Null(db.Text(&r.Signature))),
		db.Col("expires_at", db.Seconds(&r.ExpiresAt)),
		db.Col("canceled_at", db.Null(db.Seconds(&r.CanceledAt))),
	}
}

func paymentOfRecord(r *recordRow) []db.Column {
	return []db.Column{
		db.Expr("payments.token", db.Address(&r.Token)),
		db.Expr("payments.currency", db.Text(&r.Currency)),
		db.Expr("coalesce(payments.settles_to, payments.to_address)", db.Address(&r.From)),
		db.Expr("payments.from_address", db.Address(&r.Payer)),
		db.Expr("payments.amount", db.Amount(&r.paid)),
		db.Expr("payments.amount_refunded", db.Amount(&r.back)),
		db.Expr("payments.status", db.Text(&r.PaymentStatus)),
		db.Expr("refund_records.invoice_paid", db.Bool(&r.InvoicePaid)),
	}
}

func transferOfRecord(t *invoice.Refund) []db.Column {
	return []db.Column{
		db.Expr("refunds.id", db.Text(&t.ID)),
		db.Expr("refunds.tx_hash", db.Hash(&t.TxHash)),
		db.Expr("refunds.block_number", db.Int(&t.BlockNumber)),
		db.Expr("refunds.block_time", db.Seconds(&t.BlockTime)),
		db.Expr("refunds.token", db.Address(&t.Token)),
		db.Expr("refunds.from_address", db.Address(&t.From)),
		db.Expr("refunds.to_address", db.Address(&t.To)),
		db.Expr("refunds.amount", db.Amount(&t.Amount)),
		db.Expr("refunds.status", db.Text(&t.Status)),
		db.Expr("refunds.confirmed_at", db.Seconds(&t.ConfirmedAt)),
	}
}

// selectRecords reads records with their payment, their transfer and their submission in force. The joins are left
// joins, so that databases begin with the records. A record costs the same however many others its payment has.
var selectRecords = selectRecordsBy("")

// selectRecordsBy is selectRecords with an INDEXED BY clause.
func selectRecordsBy(index string) string {
	return "SELECT " + recordTable.Of("refund_records") + " FROM refund_records " + index + `
	LEFT JOIN payments ON payments.id = refund_records.payment_id
	LEFT JOIN refunds ON refunds.id = refund_records.refund_id
	LEFT JOIN refund_submissions AS sent ON sent.refund_id = refund_records.id AND sent.withdrawn_at IS NULL `
}

func scanRecord(row db.Scanner) (invoice.RefundRecord, error) {
	r, err := recordTable.Scan(row)
	return r.RefundRecord, err
}

// recordsWhere returns the records that a condition and an order select, with what other refunds of their payments mean
// for them.
func recordsWhere(ctx context.Context, q db.Querier, clause string, args ...any) ([]invoice.RefundRecord, error) {
	records, err := db.QueryAll(ctx, q, scanRecord, selectRecords+clause, args...)
	if err != nil {
		return nil, err
	}
	return records, addOthers(ctx, q, records)
}

// recordWhere returns the record that a condition selects as recordsWhere does, or ErrNotFound.
func recordWhere(ctx context.Context, q db.Querier, clause string, args ...any) (r invoice.RefundRecord, err error) {
	records, err := recordsWhere(ctx, q, clause, args...)
	if err == nil && len(records) == 0 {
		err = db.ErrNotFound
	}
	if err != nil {
		return r, err
	}
	return records[0], nil
}

// addOthers sets what other refunds of their payments mean for records that can still be sent. It reads each payment's
// refunds once.
func addOthers(ctx context.Context, q db.Querier, records []invoice.RefundRecord) error {
	var unsent []string
	for _, r := range records {
		if r.Prepared() && !r.Sent() {
			unsent = append(unsent, r.PaymentID)
		}
	}
	unsent = slices.Compact(slices.Sorted(slices.Values(unsent)))
	others, err := reservingRefunds(ctx, q, unsent)
	if err != nil {
		return err
	}
	// Withdrawn transfers reserve no amount, and may be mined again, unless they pay an invoice.
	dropped, err := q.WhichExist(ctx, []string{"paid"}, db.RowsOf(unsent), `refund_records AS unknown JOIN refund_submissions ON refund_submissions.refund_id = unknown.id
		WHERE unknown.payment_id = paid AND unknown.tag IS NULL AND unknown.status = 'orphaned' AND `+paysNoInvoice)
	for _, n := range dropped {
		others = append(others, invoice.RefundRecord{PaymentID: unsent[n], Transfer: invoice.Refund{Status: invoice.Orphaned}})
	}
	invoice.AddOthers(records, others)
	return err
}

// RefundListID returns the key by which lists of refunds are sorted.
func RefundListID(createdAt time.Time, id string) string {
	return invoice.FirstID("", createdAt) + "_" + id
}

// recordRefunds writes the records of refunds: for each, the record of the prepared refund that it pays, or its own.
func recordRefunds(ctx context.Context, tx *db.Tx, refunds []invoice.Refund) error {
	var ids, pays [][]any
	var own []invoice.Refund
	var prepared []string // transfers that have no separate row in the list any more, and their submissions are done
	row := make(map[string]int)
	for _, r := range refunds {
		ids = append(ids, []any{r.ID, r.PreparedID})
		if r.PreparedID == "" {
			own = append(own, r)
			continue
		}
		prepared = append(prepared, r.ID)
		status := string(r.Status)
		if r.Status == invoice.Orphaned {
			status = ""
		}
		values := []any{r.ID, r.TxHash.String(), status, r.PreparedID}
		if i, known := row[r.PreparedID]; known { // another transfer that paid it before
			pays[i] = values
			continue
		}
		row[r.PreparedID] = len(pays)
		pays = append(pays, values)
	}
	err := tx.SendFrom(ctx, []string{"transfer", "pays"}, ids, `UPDATE refund_records SET refund_id = NULL, tx_hash = NULL, item = NULL, status = `+unsentStatus+`
		FROM wanted WHERE refund_id = transfer AND id <> pays AND tag IS NOT NULL`)
	const ownRecords = "(SELECT id FROM wanted JOIN refund_records ON id = transfer WHERE tag IS NULL)"
	for _, statement := range []string{"DELETE FROM refund_submissions WHERE refund_id IN " + ownRecords, "DELETE FROM refund_records WHERE id IN " + ownRecords} {
		err = cmp.Or(err, tx.SendFrom(ctx, []string{"transfer"}, db.RowsOf(prepared), statement))
	}
	if err != nil {
		return fmt.Errorf("record refunds: %w", err)
	}
	update := "ON CONFLICT (id) DO UPDATE SET " + unpreparedTable.Only("payment_id", "invoice_id", "merchant_id", "status").Excluded()
	if err := unpreparedTable.Insert(ctx, tx, update, own...); err != nil {
		return fmt.Errorf("record refunds: %w", err)
	}
	return tx.SendFrom(ctx, []string{"transfer", "tx", "state", "record"}, pays, `UPDATE refund_records SET refund_id = transfer, tx_hash = tx,
		status = CASE WHEN state <> '' THEN state ELSE `+unsentStatus+` END FROM wanted WHERE id = record`)
}

// unpreparedTable has the columns of the record of a refund that was not prepared.
var unpreparedTable = db.NewTable("refund_records", func(r *invoice.Refund) []db.Column {
	listID := RefundListID(r.ObservedAt, r.ID)
	return []db.Column{
		db.Col("id", db.Text(&r.ID)),
		db.Col("list_id", db.Text(&listID)),
		db.Col("refund_id", db.Text(&r.ID)),
		db.Col("payment_id", db.Text(&r.PaymentID)),
		db.Col("invoice_id", db.Null(db.Text(&r.InvoiceID))),
		db.Col("merchant_id", db.Null(db.Text(&r.MerchantID))),
		db.Col("chain_key", db.Text(&r.ChainKey)),
		db.Col("tx_hash", db.Hash(&r.TxHash)),
		db.Col("status", db.Text(&r.Status)),
		db.Col("created_at", db.Seconds(&r.ObservedAt)),
	}
})

// recordStatuses sets the status of the records of the chain's pending refunds in some blocks.
func recordStatuses(ctx context.Context, tx *db.Tx, status, blocks, chainKey string, number uint64) error {
	return tx.Send(ctx, nil, "UPDATE refund_records SET item = NULL, status = "+status+` WHERE refund_id IN
		(SELECT id FROM refunds WHERE chain_key = $1 AND `+blocks+" AND status = 'pending')", chainKey, int64(number))
}

// SetRefundInvoices sets the invoices, senders and tokens of the records of payments to those of the payments, marks
// the rollups of their refunds, and sets the uses of the payments. A refund that another merchant
// prepared remains that merchant's.
func SetRefundInvoices(ctx context.Context, tx *db.Tx, paymentIDs []string) error {
	err := db.SendIn(ctx, tx, `UPDATE refund_records SET
		sender = (SELECT coalesce(payments.settles_to, payments.to_address) FROM payments WHERE payments.id = refund_records.payment_id),
		token = (SELECT payments.token FROM payments WHERE payments.id = refund_records.payment_id)
		WHERE tag IS NOT NULL AND payment_id IN `, paymentIDs)
	if err != nil {
		return err
	}
	err = db.SendIn(ctx, tx, `UPDATE refund_records SET
		invoice_id = (SELECT payments.invoice_id FROM payments WHERE payments.id = refund_records.payment_id),
		merchant_id = (SELECT payments.merchant_id FROM payments WHERE payments.id = refund_records.payment_id)
		WHERE (tag IS NULL OR merchant_id IS NULL OR merchant_id = (SELECT payments.merchant_id FROM payments WHERE payments.id = refund_records.payment_id))
		AND payment_id IN `, paymentIDs)
	if err != nil {
		return err
	}
	if err := markRefundsStale(ctx, tx, paymentIDs); err != nil {
		return err
	}
	return refreshUses(ctx, tx, paymentIDs...)
}

// insertPreparedRefund inserts a prepared refund. hash is the hash of its request, and is not used without a key.
func insertPreparedRefund(ctx context.Context, tx *db.Tx, r invoice.RefundRecord, scope, key string, hash invoice.Hash) error {
	if err := insertPreparedRefunds(ctx, tx, [][]any{preparedValues(r, scope, key, hash)}); err != nil {
		return err
	}
	return refreshUses(ctx, tx, r.PaymentID)
}

// preparedValues returns the row of insertPreparedRefunds of a prepared refund.
func preparedValues(r invoice.RefundRecord, scope, key string, hash invoice.Hash) []any {
	if r.ClaimToken != "" {
		r.ClaimHash = invoice.HashClaimToken(r.ClaimToken)
	}
	return recordTable.Values(recordRow{RefundRecord: r, listID: RefundListID(r.CreatedAt, r.ID)}, keyValues(scope, key, hash)...)
}

// insertPreparedRefunds inserts rows of prepared refunds. Call RefreshItems afterwards.
func insertPreparedRefunds(ctx context.Context, tx *db.Tx, rows [][]any) error {
	return tx.Insert(ctx, recordTable.Insertion("", keyColumns...), rows)
}

// updatePreparedRefund writes the state and the recipient of a prepared refund.
func updatePreparedRefund(ctx context.Context, tx *db.Tx, r invoice.RefundRecord) error {
	_, err := recordTable.Only("status", "recipient", "account", "claim_signature", "canceled_at").Update(ctx, tx, recordRow{RefundRecord: r}, "id = $1", r.ID)
	if err != nil {
		return err
	}
	return RefreshItems(ctx, tx, r.ID)
}

// RefundRecord returns the record with the id, or the record of the transfer with the id, or ErrNotFound.
func (q Reader) RefundRecord(ctx context.Context, id string) (invoice.RefundRecord, error) {
	r, err := recordWhere(ctx, q, "WHERE refund_records.id = $1", id)
	if errors.Is(err, db.ErrNotFound) {
		return recordWhere(ctx, q, "WHERE refund_records.refund_id = $1", id)
	}
	return r, err
}

// TransferLike returns the id of a transfer with the sender, the recipient and the amount of a refund that became final
// since a time, as any refund. It is empty without one.
func (q Reader) TransferLike(ctx context.Context, r invoice.RefundRecord, since time.Time) (string, error) {
	found, err := db.QueryAll(ctx, q, db.ScanID, `SELECT id FROM refunds WHERE confirmed_at >= $1
		AND chain_key = $2 AND token = $3 AND from_address = $4 AND to_address = $5 AND amount = $6 LIMIT 1`,
		since.Unix(), r.ChainKey, r.Token.String(), r.From.String(), r.To.String(), r.Amount.String())
	if len(found) == 0 {
		return "", err
	}
	return found[0], err
}

// RefundByKey returns the refund of a payment that was prepared with an Idempotency-Key,
// and the hash of that request, or ErrNotFound.
func RefundByKey(ctx context.Context, q db.Querier, paymentID, scope, key string) (r invoice.RefundRecord, hash invoice.Hash, err error) {
	var id string
	_, err = db.QueryRow(ctx, q, func(row db.Scanner) (struct{}, error) { return struct{}{}, row.Scan(&id, db.Hash(&hash)) },
		"SELECT id, request_hash FROM refund_records WHERE payment_id = $1 AND idem_scope = $2 AND idem_key = $3", paymentID, scope, key)
	if err == nil {
		r, err = NewReader(q).RefundRecord(ctx, id)
	}
	return r, hash, err
}

// PreparedByTag returns the prepared refunds of a chain with one of the tags, the oldest first.
func PreparedByTag(ctx context.Context, q db.Querier, chainKey string, tags []invoice.Hash) ([]invoice.RefundRecord, error) {
	return preparedWith(ctx, q, chainKey, "refund_records.tag", textsOf(tags))
}

// preparedWith returns the prepared refunds of a chain under a condition that ends with a column that has one of the
// values.
func preparedWith(ctx context.Context, q db.Querier, chainKey, condition string, values []string) ([]invoice.RefundRecord, error) {
	return db.QueryIn(values, func(chunk []any) ([]invoice.RefundRecord, error) {
		query := selectRecords + "WHERE refund_records.chain_key = $1 AND " + condition + " IN " + db.ParameterList(1, len(chunk))
		return db.QueryAll(ctx, q, scanRecord, query+" ORDER BY refund_records.list_id", append([]any{chainKey}, chunk...)...)
	})
}

func textsOf[V fmt.Stringer](values []V) []string {
	texts := db.Each(values, func(v V) string { return v.String() })
	return texts
}

// WhichRecorded returns those of the ids that a refund in the list of refunds has, or its transfer.
func WhichRecorded(ctx context.Context, q db.Querier, ids []string) (map[string]bool, error) {
	found, err := q.WhichExist(ctx, []string{"known"}, db.RowsOf(ids),
		"refund_records WHERE refund_records.id = known UNION ALL SELECT 1 FROM refund_records WHERE refund_records.refund_id = known")
	recorded := make(map[string]bool, len(found))
	for _, n := range found {
		recorded[ids[n]] = true
	}
	return recorded, err
}

// RefundFilter selects records. Empty fields match all.
type RefundFilter struct {
	MerchantID string
	SeenBy     string // a merchant; leaves out the refunds that another one prepared
	PaymentID  string
	InvoiceID  string
	Status     invoice.RefundStatus
	ChainKey   string
	TxHash     string
	Before     string // a list id; lists records after it
	Limit      int
}

// RefundRecords lists refunds, the newest first.
func (q Reader) RefundRecords(ctx context.Context, f RefundFilter) ([]invoice.RefundRecord, error) {
	w := db.Where{}
	w.Equal("refund_records.merchant_id", f.MerchantID)
	if f.SeenBy != "" {
		w.Add("(refund_records.merchant_id = $%d OR refund_records.merchant_id IS NULL)", f.SeenBy)
	}
	w.Equal("refund_records.payment_id", f.PaymentID)
	w.Equal("refund_records.invoice_id", f.InvoiceID)
	w.Equal("refund_records.status", string(f.Status))
	w.Equal("refund_records.chain_key", f.ChainKey)
	w.Equal("refund_records.tx_hash", f.TxHash)
	w.Below("refund_records.list_id", f.Before)
	return recordsWhere(ctx, q, w.Text()+" ORDER BY refund_records.list_id DESC LIMIT "+db.Parameter(w.Next()), append(w.Args, f.Limit)...)
}

// ExpireRefunds expires up to limit prepared refunds of a chain that were not sent by a time. It leaves out refunds with a
// submitted transaction, and refunds that a transfer may pay which waits for older blocks. It returns the payment of each.
// The chain's cursor must be locked.
func ExpireRefunds(ctx context.Context, tx *db.Tx, chainKey string, now time.Time, limit int) (paymentIDs []string, err error) {
	var ids []string
	err = db.ForEach(ctx, tx, func(row db.Scanner) error {
		var id, paymentID string
		err := row.Scan(&id, &paymentID)
		ids, paymentIDs = append(ids, id), append(paymentIDs, paymentID)
		return err
	}, `SELECT refund_records.id, refund_records.payment_id FROM refund_records
		LEFT JOIN refunds ON refunds.id = refund_records.refund_id LEFT JOIN payments ON payments.id = refund_records.payment_id
		WHERE refund_records.chain_key = $1 AND refund_records.expires_at <= $2 AND NOT `+waitsUndecided+`
			AND refund_records.status IN ('awaiting_address', 'awaiting_approval', 'pending')
			AND (refunds.id IS NULL OR refunds.status = 'orphaned')
			AND NOT EXISTS (SELECT 1 FROM refund_submissions AS sent
				WHERE sent.refund_id = refund_records.id AND sent.withdrawn_at IS NULL AND sent.tx_hash IS NOT NULL) LIMIT $3`, chainKey, invoice.UnixSeconds(now), limit)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	if err := db.SendIn(ctx, tx, "UPDATE refund_records SET status = 'expired', item = NULL WHERE id IN ", ids); err != nil {
		return nil, err
	}
	return paymentIDs, refreshUses(ctx, tx, paymentIDs...)
}
