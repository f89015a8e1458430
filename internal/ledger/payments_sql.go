package ledger

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// transferColumns are the columns that payments, refunds, sweeps and undecided refunds share.
func transferColumns(id *string, t *invoice.Transfer) []db.Column {
	return []db.Column{
		db.Col("id", db.Text(id)),
		db.Col("chain_key", db.Text(&t.ChainKey)),
		db.Col("tx_hash", db.Hash(&t.TxHash)),
		db.Col("ordinal", db.Int(&t.Ordinal)),
		db.Col("log_index", db.Int(&t.LogIndex)),
		db.Col("block_number", db.Int(&t.BlockNumber)),
		db.Col("block_hash", db.Hash(&t.BlockHash)),
		db.Col("block_time", db.Seconds(&t.BlockTime)),
		db.Col("token", db.Address(&t.Token)),
		db.Col("currency", db.Text(&t.Currency)),
		db.Col("from_address", db.Address(&t.From)),
		db.Col("to_address", db.Address(&t.To)),
		db.Col("amount", db.Amount(&t.Amount)),
		db.Col("commitment_id", db.Null(db.Hash(&t.Evidence.Calldata))),
		db.Col("registry_id", db.Null(db.Hash(&t.Evidence.Registry))),
		db.Col("authorization_id", db.Null(db.Hash(&t.Evidence.Authorization))),
	}
}

// observedColumns are the columns of transferColumns and those of the transfer's state.
func observedColumns[S ~string](id *string, t *invoice.Transfer, status *S, observed, confirmed *time.Time) []db.Column {
	return append(transferColumns(id, t),
		db.Col("status", db.Text(status)),
		db.Col("observed_at", db.Seconds(observed)),
		db.Col("confirmed_at", db.Null(db.Seconds(confirmed))),
	)
}

// transferKey are the columns that stay when a transfer is stored again. The others change with its block.
var transferKey = []string{"id", "chain_key", "tx_hash", "ordinal"}

// PaymentRow is a payment and its position in the lists of payments.
type PaymentRow struct {
	invoice.Payment
	Note      string // of the newest attribution by hand; may be empty
	SeenID    string
	SeenAfter int64 // number of the newest event when it was first seen
	// Use is the use of the payment. SavePayments ignores it.
	Use invoice.PaymentUse
	// OrphanedAt is when a reorg last dropped the payment, zero if none did. Only scanOrphaned reads it.
	OrphanedAt time.Time
}

// IsOpen reports whether the payment may be an item of the inbox.
func (p PaymentRow) IsOpen() bool {
	return !p.Attributed() || p.Screening == invoice.ScreeningQuarantined
}

// scanOrphaned reads a row of orphaned_at, followed by the columns of a payment.
func scanOrphaned(row db.Scanner) (PaymentRow, error) {
	var at time.Time
	p, err := paymentTable.ScanAfter(row, db.Seconds(&at))
	p.OrphanedAt = at
	return p, err
}

var paymentTable = db.NewTable("payments", func(p *PaymentRow) []db.Column {
	return append(observedColumns(&p.ID, &p.Transfer, &p.Status, &p.ObservedAt, &p.ConfirmedAt),
		db.Col("invoice_id", db.Null(db.Text(&p.InvoiceID))),
		db.Col("merchant_id", db.Null(db.Text(&p.MerchantID))),
		db.Col("method", db.Null(db.Text(&p.Method))),
		db.Col("attributed_by", db.Null(db.Text(&p.AttributedBy))),
		db.Col("attributed_at", db.Null(db.Seconds(&p.AttributedAt))),
		db.Col("attribution_note", db.Null(db.Text(&p.Note))),
		db.Col("seen_id", db.Text(&p.SeenID)),
		db.Col("seen_after", db.Int(&p.SeenAfter)),
		db.Col("deposit_of", db.Null(db.Text(&p.DepositOf))),
		db.Col("settles_to", db.Null(db.Address(&p.SettlesTo))),
		db.Col("returned", db.Null(db.Amount(&p.Returned))),
		db.Col("use", db.Text(&p.Use)),
		db.Col("screening", db.Null(db.Text(&p.Screening))),
		db.Col("screening_reason", db.Null(db.Text(&p.ScreeningReason))),
		db.Col("screening_since", db.Null(db.Seconds(&p.ScreeningSince))),
	)
})

// updatePayment replaces a stored payment, except what stays from when it was first seen.
var updatePayment = "ON CONFLICT (id) DO UPDATE SET item = NULL, " +
	paymentTable.Without(append(transferKey, "observed_at", "seen_id", "seen_after", "use")...).Excluded()

// SavePayments inserts payments, and updates existing ones: their block, transfer, state and invoice. The payments must
// be distinct. It adds payments without an invoice to the unattributed payments of merchants: for a settlement address,
// of the merchants that hold it and have invoices that named it on that chain; for a deposit address, of its merchant.
// Call RefreshUses afterwards if the invoice of an existing payment changes.
func SavePayments(ctx context.Context, tx *db.Tx, payments []PaymentRow) error {
	payments = slices.Clone(payments)
	seen := make([]string, len(payments))
	var unattributed, ids []string // of those without an invoice, and of these and the quarantined ones
	for i, p := range payments {
		payments[i].Use = useOf(useFacts(p, RefundedSum{}))
		seen[i] = p.SeenID
		if !p.Attributed() {
			unattributed = append(unattributed, p.SeenID)
		}
		if p.IsOpen() {
			ids = append(ids, p.ID)
		}
	}
	err := paymentTable.Insert(ctx, tx, updatePayment, payments...)
	if err != nil {
		return err
	}
	if err := markStale(ctx, tx, payments); err != nil {
		return err
	}
	err = tx.LookUpWanted([]string{"seen_id"}, db.RowsOf(seen), func(with string, args []any) error {
		return tx.Send(ctx, nil, with+"DELETE FROM unattributed WHERE seen_id IN (SELECT seen_id FROM wanted)", args...)
	})
	if err != nil {
		return err
	}
	if err := access.InsertUnattributed(ctx, tx, unattributed); err != nil {
		return err
	}
	return RefreshItems(ctx, tx, ids...)
}

// MerchantsOfUnattributed returns, for each payment without an invoice, the merchants with the address
// that received it.
func MerchantsOfUnattributed(ctx context.Context, q db.Querier, ids []string) (map[string][]string, error) {
	found := make(map[string][]string)
	_, err := db.AllIn(ctx, q, func(row db.Scanner) (merchantID string, err error) {
		var id string
		err = row.Scan(&id, &merchantID)
		found[id] = append(found[id], merchantID)
		return merchantID, err
	}, `SELECT payments.id, unattributed.merchant_id FROM payments CROSS JOIN unattributed
			WHERE unattributed.seen_id = payments.seen_id AND payments.id IN `, ids)
	return found, err
}

// Payment returns the payment with the id, or ErrNotFound.
func (q Reader) Payment(ctx context.Context, id string) (PaymentRow, error) {
	return db.QueryRow(ctx, q, paymentTable.Scan, paymentTable.Select()+" WHERE id = $1", id)
}

// PaymentsOfTransaction returns the payments of a transaction on any of the chains, in the order of its logs.
func (q Reader) PaymentsOfTransaction(ctx context.Context, chainKeys []string, tx invoice.Hash) ([]PaymentRow, error) {
	found, err := db.AllIn(ctx, q, paymentTable.Scan, paymentTable.Select()+" WHERE tx_hash = $1 AND chain_key IN ", chainKeys, tx.String())
	slices.SortFunc(found, func(a, b PaymentRow) int {
		return cmp.Or(strings.Compare(a.ChainKey, b.ChainKey), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	return found, err
}

// PaymentsByID returns the payments with the ids, in no order. It skips unknown ids.
func PaymentsByID(ctx context.Context, q db.Querier, ids []string) ([]PaymentRow, error) {
	return db.LookUpIn(ctx, q, paymentTable.Scan, paymentTable.Select()+" WHERE id IN ", ids)
}

// PaymentsOfInvoices returns the payments attributed to the invoices.
func (q Reader) PaymentsOfInvoices(ctx context.Context, invoiceIDs []string) ([]PaymentRow, error) {
	return db.AllIn(ctx, q, paymentTable.Scan, paymentTable.Select()+" WHERE invoice_id IN ", invoiceIDs)
}

// PaymentsInTime returns the ids of the payments of invoices that were mined before the invoice
// expired, by invoice. It does not read late ones, of which anyone can send any number.
func PaymentsInTime(ctx context.Context, q db.Querier, invoices []invoice.Invoice) (map[string][]string, error) {
	rows := make([][]any, len(invoices))
	for n, inv := range invoices {
		rows[n] = []any{int64(n), inv.ID, invoice.UnixSeconds(inv.ExpiresAt)}
	}
	found, err := lookUp(ctx, q, []string{"n BIGINT", "paid", "expires BIGINT"}, rows,
		`SELECT string_agg(id, ' ') FROM (SELECT id FROM payments WHERE invoice_id = paid AND block_time <= expires
			ORDER BY block_time) AS listed`)
	inTime := make(map[string][]string, len(invoices))
	for n, ids := range found {
		inTime[invoices[n].ID] = strings.Fields(ids)
	}
	return inTime, err
}

// pairLimit is how many payments between a payer and a merchant a refund is compared with: the newest ones.
const pairLimit = 2000

// PaymentsBetween returns the ids of the newest payments from an account to a settlement address, and
// of the newest to deposit addresses of it, in blocks up to a number, for each of the pairs.
func PaymentsBetween(ctx context.Context, q db.Querier, chainKey string, pairs []Pair, through uint64) (map[Pair][]string, error) {
	rows := make([][]any, len(pairs))
	for n, p := range pairs {
		rows[n] = []any{int64(n), chainKey, p.Payer.String(), p.Receiver.String(), int64(through)}
	}
	var newest []string
	for _, receiver := range receiversClause {
		newest = append(newest, "SELECT id FROM (SELECT id FROM payments WHERE from_address = payer AND "+receiver+` = receiver
			AND chain_key = chain AND block_number <= highest ORDER BY block_number DESC LIMIT `+strconv.Itoa(pairLimit)+") AS listed_"+receiver)
	}
	found, err := lookUp(ctx, q, []string{"n BIGINT", "chain", "payer", "receiver", "highest BIGINT"}, rows,
		"SELECT string_agg(id, ' ') FROM ("+strings.Join(newest, " UNION ALL ")+") AS listed")
	between := make(map[Pair][]string, len(pairs))
	for n, ids := range found {
		between[pairs[n]] = strings.Fields(ids)
	}
	return between, err
}

// receiversClause are the columns of payments that hold a settlement address: for a payment to the
// address itself, and for one to a deposit address.
var receiversClause = []string{"to_address", "settles_to"}

// Pair is a payer and a settlement address.
type Pair struct{ Payer, Receiver invoice.Address }

// PaidPairs returns the pairs that have payments, also through deposit addresses, and if wanted those with pending
// prepared refunds.
func PaidPairs(ctx context.Context, q db.Querier, chainKey string, pairs []Pair, orPrepared bool) (map[Pair]bool, error) {
	rows := db.Each(pairs, func(p Pair) []any { return []any{chainKey, p.Payer.String(), p.Receiver.String()} })
	exist := `payments WHERE from_address = payer AND to_address = receiver AND chain_key = chain
		UNION ALL SELECT 1 FROM payments WHERE from_address = payer AND settles_to = receiver AND chain_key = chain`
	if orPrepared {
		exist += " UNION ALL SELECT 1 FROM refund_records " + q.IndexedBy("refund_records_awaited") + `WHERE recipient = payer AND sender = receiver
			AND chain_key = chain AND tag IS NOT NULL AND status = 'pending'`
	}
	found, err := q.WhichExist(ctx, []string{"chain", "payer", "receiver"}, rows, exist)
	paid := make(map[Pair]bool, len(found))
	for _, n := range found {
		paid[pairs[n]] = true
	}
	return paid, err
}

// HasPaidManyInvoices reports whether a payment's account has paid at least n invoices at the
// settlement address or its deposit addresses, among up to pairLimit of its payments of each kind.
func HasPaidManyInvoices(ctx context.Context, q db.Querier, p invoice.Payment, n int) (bool, error) {
	var ids []string
	for _, receiver := range receiversClause {
		some, err := db.QueryAll(ctx, q, db.ScanID,
			"SELECT invoice_id FROM payments WHERE from_address = $1 AND "+receiver+" = $2 AND chain_key = $3 AND invoice_id IS NOT NULL LIMIT $4",
			p.From.String(), p.RefundedFrom().String(), p.ChainKey, pairLimit)
		if err != nil {
			return false, err
		}
		ids = append(ids, some...)
	}
	slices.Sort(ids)
	return len(slices.Compact(ids)) >= n, nil
}

// PendingPayments returns the chain's pending payments in blocks from one number to another, inclusive.
func PendingPayments(ctx context.Context, q db.Querier, chainKey string, from, to uint64) ([]PaymentRow, error) {
	return db.QueryAll(ctx, q, paymentTable.Scan, paymentTable.Select()+`
		WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3 AND status = 'pending'
		ORDER BY block_number, log_index`, chainKey, int64(from), int64(to))
}

// OrphanedPayments returns the chain's orphaned payments that were last seen in blocks from one number
// to another, inclusive. It leaves out a payment from an address that has become known as a deposit
// address: read again, the transfer is no payment.
func OrphanedPayments(ctx context.Context, q db.Querier, chainKey string, from, to uint64) ([]PaymentRow, error) {
	return db.QueryAll(ctx, q, paymentTable.Scan, paymentTable.Select()+`
		WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3 AND status = 'orphaned'
		AND NOT EXISTS (SELECT 1 FROM deposits AS d WHERE d.address = payments.from_address AND d.chain_key = payments.chain_key)
		AND NOT `+isFromLostDeposit+`
		ORDER BY block_number, log_index`, chainKey, int64(from), int64(to))
}

// ConfirmThrough confirms the chain's pending payments, refunds and sweeps in blocks up to a number, at a time, or
// during a recovery at the times of their blocks. Payments whose screening has not ended become held.
func ConfirmThrough(ctx context.Context, tx *db.Tx, chainKey string, number uint64, at time.Time, recovery bool) error {
	if err := recordStatuses(ctx, tx, "'confirmed'", "block_number <= $2", chainKey, number); err != nil {
		return err
	}
	if err := markConfirmed(ctx, tx, chainKey, number, at, recovery); err != nil {
		return err
	}
	if err := markRefundedBefore(ctx, tx, chainKey, number); err != nil {
		return err
	}
	const pending = " WHERE chain_key = $1 AND block_number <= $2 AND status = 'pending'"
	args, confirmed := []any{chainKey, int64(number), at.Unix()}, confirmedAt(recovery)
	err := tx.Send(ctx, nil, "UPDATE payments SET status = CASE WHEN "+isHolding+" THEN 'held' ELSE 'confirmed' END, confirmed_at = CASE WHEN "+isHolding+
		" THEN NULL ELSE "+confirmed+" END"+pending, args...)
	for _, table := range []string{"refunds", "sweeps"} {
		err = cmp.Or(err, tx.Send(ctx, nil, "UPDATE "+table+" SET status = 'confirmed', confirmed_at = "+confirmed+pending, args...))
	}
	return err
}

// confirmedAt is chainScope.confirmedAt in SQL, where $3 is the time.
func confirmedAt(recovery bool) string {
	if recovery {
		return "CASE WHEN block_time < CAST($3 AS BIGINT) THEN block_time ELSE CAST($3 AS BIGINT) END"
	}
	return "CAST($3 AS BIGINT)"
}

// isHolding is the condition of Screening.Holds.
const isHolding = "screening IN ('waiting', 'quarantined')"

// OrphanAbove orphans the chain's pending payments, refunds and sweeps in blocks above a number, at a
// time, and deletes the undecided refunds there.
func OrphanAbove(ctx context.Context, tx *db.Tx, chainKey string, number uint64, at time.Time) error {
	if _, err := tx.Exec(ctx, "DELETE FROM undecided_refunds WHERE chain_key = $1 AND block_number > $2", chainKey, int64(number)); err != nil {
		return err
	}
	if err := recordStatuses(ctx, tx, unsentStatus, "block_number > $2", chainKey, number); err != nil {
		return err
	}
	const pending = " WHERE chain_key = $1 AND block_number > $2 AND status = 'pending'"
	err := tx.Send(ctx, nil, "UPDATE refunds SET status = 'orphaned'"+pending, chainKey, int64(number))
	for _, table := range []string{"payments", "sweeps"} {
		err = cmp.Or(err, tx.Send(ctx, nil, "UPDATE "+table+" SET status = 'orphaned', orphaned_at = $3"+pending, chainKey, int64(number), at.Unix()))
	}
	return err
}
