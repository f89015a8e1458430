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

// transferColumns are the columns that payments and refunds share.
const transferColumns = "id, chain_key, tx_hash, ordinal, log_index, block_number, block_hash, block_time, " +
	"token, currency, from_address, to_address, amount, commitment_id, registry_id, authorization_id, status, observed_at, confirmed_at"

func scanTransfer(row db.Scanner, t *invoice.Transfer, more ...any) error {
	return row.Scan(append([]any{more[0], &t.ChainKey, db.HashCol(&t.TxHash), &t.Ordinal, &t.LogIndex,
		&t.BlockNumber, db.HashCol(&t.BlockHash), db.Seconds(&t.BlockTime), db.AddressCol(&t.Token), &t.Currency,
		db.AddressCol(&t.From), db.AddressCol(&t.To), db.AmountCol(&t.Amount),
		db.HashCol(&t.Evidence.Calldata), db.HashCol(&t.Evidence.Registry), db.HashCol(&t.Evidence.Authorization)}, more[1:]...)...)
}

func transferValues(id string, t invoice.Transfer) []any {
	return []any{id, t.ChainKey, t.TxHash.String(), t.Ordinal, t.LogIndex,
		int64(t.BlockNumber), t.BlockHash.String(), invoice.UnixSeconds(t.BlockTime), t.Token.String(), t.Currency,
		t.From.String(), t.To.String(), t.Amount.String(),
		db.OrNull(t.Evidence.Calldata), db.OrNull(t.Evidence.Registry), db.OrNull(t.Evidence.Authorization)}
}

// PaymentRow is a payment and its position in the lists of payments.
type PaymentRow struct {
	invoice.Payment
	SeenID    string
	SeenAfter int64 // number of the newest event when it was first seen
	// Use is the use of the payment. Inserts ignore it.
	Use invoice.PaymentUse
}

const paymentColumns = transferColumns + ", invoice_id, merchant_id, method, attributed_by, attributed_at, seen_id, seen_after, deposit_of, settles_to, returned, use"

// paymentValues returns the values of paymentColumns for a new payment.
func paymentValues(p PaymentRow) []any {
	return append(transferValues(p.ID, p.Transfer), string(p.Status), invoice.UnixSeconds(p.ObservedAt), db.OrNull(p.ConfirmedAt),
		db.OrNull(p.InvoiceID), db.OrNull(p.MerchantID), db.OrNull(p.Method), db.OrNull(p.AttributedBy), db.OrNull(p.AttributedAt), p.SeenID, p.SeenAfter,
		db.OrNull(p.DepositOf), db.OrNull(p.SettlesTo), db.OrNull(p.Returned), useValue(firstUse(p)))
}

func scanPayment(row db.Scanner) (PaymentRow, error) {
	var p PaymentRow
	err := scanTransfer(row, &p.Transfer, &p.ID, &p.Status, db.Seconds(&p.ObservedAt), db.Seconds(&p.ConfirmedAt),
		db.NullText(&p.InvoiceID), db.NullText(&p.MerchantID), db.NullText(&p.Method),
		db.NullText(&p.AttributedBy), db.Seconds(&p.AttributedAt), &p.SeenID, &p.SeenAfter, db.NullText(&p.DepositOf), db.AddressCol(&p.SettlesTo), db.AmountCol(&p.Returned), db.NullText(&p.Use))
	return p, err
}

// SavePayments inserts payments, and updates existing ones: their block, transfer, state and invoice.
// The payments must be distinct. It adds payments without an invoice to the unattributed payments of
// merchants: for a settlement address, those of the merchants that hold it and have invoices that
// named it on that chain; for a deposit address, those of its merchant. Call RefreshUses afterwards if
// the invoice of an existing payment changes.
func SavePayments(ctx context.Context, tx *db.Tx, payments []PaymentRow) error {
	rows := make([][]any, len(payments))
	seen := make([]string, len(payments))
	var unattributed, ids []string // of those without an invoice
	for i, p := range payments {
		rows[i] = paymentValues(p)
		seen[i] = p.SeenID
		if !p.Attributed() {
			unattributed, ids = append(unattributed, p.SeenID), append(ids, p.ID)
		}
	}
	err := tx.Insert(ctx, db.Insertion{Table: "payments", Columns: db.Typed(strings.Split(paymentColumns, ", ")),
		Conflict: `ON CONFLICT (id) DO UPDATE SET log_index = excluded.log_index, block_number = excluded.block_number,
			block_hash = excluded.block_hash, block_time = excluded.block_time, token = excluded.token,
			currency = excluded.currency, from_address = excluded.from_address, to_address = excluded.to_address,
			amount = excluded.amount, commitment_id = excluded.commitment_id, registry_id = excluded.registry_id,
			authorization_id = excluded.authorization_id, status = excluded.status, confirmed_at = excluded.confirmed_at, invoice_id = excluded.invoice_id,
			merchant_id = excluded.merchant_id, method = excluded.method,
			attributed_by = excluded.attributed_by, attributed_at = excluded.attributed_at,
			deposit_of = excluded.deposit_of, settles_to = excluded.settles_to, returned = excluded.returned, item = NULL`}, rows)
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
	_, err := db.QueryIn(ids, func(chunk []any) ([]string, error) {
		return db.QueryAll(ctx, q, func(row db.Scanner) (merchantID string, err error) {
			var id string
			err = row.Scan(&id, &merchantID)
			found[id] = append(found[id], merchantID)
			return merchantID, err
		}, `SELECT payments.id, unattributed.merchant_id FROM payments CROSS JOIN unattributed
			WHERE unattributed.seen_id = payments.seen_id AND payments.id IN `+db.ParameterList(0, len(chunk)), chunk...)
	})
	return found, err
}

// Payment returns the payment with the id, or ErrNotFound.
func (q Reader) Payment(ctx context.Context, id string) (PaymentRow, error) {
	return db.QueryRow(ctx, q, scanPayment, "SELECT "+paymentColumns+" FROM payments WHERE id = $1", id)
}

// PaymentsOfTransaction returns the payments of a transaction on any of the
// chains, in the order of its logs.
func (q Reader) PaymentsOfTransaction(ctx context.Context, chainKeys []string, tx invoice.Hash) ([]PaymentRow, error) {
	found, err := db.QueryIn(chainKeys, func(chunk []any) ([]PaymentRow, error) {
		return db.QueryAll(ctx, q, scanPayment, "SELECT "+paymentColumns+" FROM payments WHERE tx_hash = $1 AND chain_key IN "+db.ParameterList(1, len(chunk)),
			append([]any{tx.String()}, chunk...)...)
	})
	slices.SortFunc(found, func(a, b PaymentRow) int {
		return cmp.Or(strings.Compare(a.ChainKey, b.ChainKey), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	return found, err
}

// PaymentsByID returns the payments with the ids, in no order. It skips unknown ids.
func PaymentsByID(ctx context.Context, q db.Querier, ids []string) ([]PaymentRow, error) {
	return db.LookUpIn(ctx, q, scanPayment, "SELECT "+paymentColumns+" FROM payments WHERE id IN ", ids)
}

// PaymentsOfInvoices returns the payments attributed to the invoices.
func (q Reader) PaymentsOfInvoices(ctx context.Context, invoiceIDs []string) ([]PaymentRow, error) {
	return db.QueryIn(invoiceIDs, func(chunk []any) ([]PaymentRow, error) {
		return db.QueryAll(ctx, q, scanPayment, "SELECT "+paymentColumns+" FROM payments WHERE invoice_id IN "+db.ParameterList(0, len(chunk)), chunk...)
	})
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

// pairLimit is how many payments between a payer and a merchant a refund is compared with: the newest
// ones.
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

// PaidPairs returns the pairs that have payments, also through deposit addresses.
func PaidPairs(ctx context.Context, q db.Querier, chainKey string, pairs []Pair) (map[Pair]bool, error) {
	rows := make([][]any, len(pairs))
	for i, p := range pairs {
		rows[i] = []any{chainKey, p.Payer.String(), p.Receiver.String()}
	}
	found, err := q.WhichExist(ctx, []string{"chain", "payer", "receiver"}, rows,
		`payments WHERE from_address = payer AND to_address = receiver AND chain_key = chain
		UNION ALL SELECT 1 FROM payments WHERE from_address = payer AND settles_to = receiver AND chain_key = chain`)
	paid := make(map[Pair]bool, len(found))
	for _, n := range found {
		paid[pairs[n]] = true
	}
	return paid, err
}

// PendingPayments returns the chain's pending payments in blocks from one
// number to another, inclusive.
func PendingPayments(ctx context.Context, q db.Querier, chainKey string, from, to uint64) ([]PaymentRow, error) {
	return db.QueryAll(ctx, q, scanPayment, "SELECT "+paymentColumns+` FROM payments
		WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3 AND status = 'pending'
		ORDER BY block_number, log_index`, chainKey, int64(from), int64(to))
}

// OrphanedPayments returns the chain's orphaned payments that were last seen in
// blocks from one number to another, inclusive.
func OrphanedPayments(ctx context.Context, q db.Querier, chainKey string, from, to uint64) ([]PaymentRow, error) {
	return db.QueryAll(ctx, q, scanPayment, "SELECT "+paymentColumns+` FROM payments
		WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3 AND status = 'orphaned'
		ORDER BY block_number, log_index`, chainKey, int64(from), int64(to))
}

// ConfirmThrough confirms the chain's pending payments, refunds and sweeps in blocks up
// to a number, at a time.
func ConfirmThrough(ctx context.Context, tx *db.Tx, chainKey string, number uint64, at time.Time) error {
	if err := recordStatuses(ctx, tx, "'confirmed'", "block_number <= $2", chainKey, number); err != nil {
		return err
	}
	if err := markConfirmed(ctx, tx, chainKey, number, at); err != nil {
		return err
	}
	return changeTransfers(ctx, tx, `SET status = 'confirmed', confirmed_at = $3
		WHERE chain_key = $1 AND block_number <= $2 AND status = 'pending'`, chainKey, int64(number), at.Unix())
}

// OrphanAbove orphans the chain's pending payments, refunds and sweeps in blocks above a number, at a
// time, and deletes the undecided refunds there. The time for refunds is scheduled, by the schedule's
// clock, which decides whether they may be mined again.
func OrphanAbove(ctx context.Context, tx *db.Tx, chainKey string, number uint64, at, scheduled time.Time) error {
	if _, err := tx.Exec(ctx, "DELETE FROM undecided_refunds WHERE chain_key = $1 AND block_number > $2", chainKey, int64(number)); err != nil {
		return err
	}
	if err := recordStatuses(ctx, tx, unsentStatus, "block_number > $2", chainKey, number); err != nil {
		return err
	}
	for _, transfers := range []struct {
		table string
		at    time.Time
	}{{"payments", at}, {"refunds", scheduled}, {"sweeps", at}} {
		if err := tx.Send(ctx, nil, "UPDATE "+transfers.table+` SET status = 'orphaned', orphaned_at = $3
			WHERE chain_key = $1 AND block_number > $2 AND status = 'pending'`, chainKey, int64(number), transfers.at.Unix()); err != nil {
			return err
		}
	}
	return nil
}

// changeTransfers runs an update on payments, refunds and sweeps.
func changeTransfers(ctx context.Context, tx *db.Tx, update string, args ...any) error {
	for _, table := range []string{"payments", "refunds", "sweeps"} {
		if err := tx.Send(ctx, nil, "UPDATE "+table+" "+update, args...); err != nil {
			return err
		}
	}
	return nil
}
