package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// transferColumns are the columns that payments and refunds share.
const transferColumns = "id, chain_key, tx_hash, ordinal, log_index, block_number, block_hash, block_time, " +
	"token, currency, from_address, to_address, amount, commitment_id, registry_id, authorization_id, status, observed_at, confirmed_at"

func scanTransfer(row scanner, t *invoice.Transfer, more ...any) error {
	return row.Scan(append([]any{more[0], &t.ChainKey, hashCol(&t.TxHash), &t.Ordinal, &t.LogIndex,
		&t.BlockNumber, hashCol(&t.BlockHash), seconds{&t.BlockTime}, addressCol(&t.Token), &t.Currency,
		addressCol(&t.From), addressCol(&t.To), amountCol(&t.Amount),
		hashCol(&t.Evidence.Calldata), hashCol(&t.Evidence.Registry), hashCol(&t.Evidence.Authorization)}, more[1:]...)...)
}

func transferValues(id string, t invoice.Transfer) []any {
	return []any{id, t.ChainKey, t.TxHash.String(), t.Ordinal, t.LogIndex,
		int64(t.BlockNumber), t.BlockHash.String(), invoice.UnixSeconds(t.BlockTime), t.Token.String(), t.Currency,
		t.From.String(), t.To.String(), t.Amount.String(),
		orNull(t.Evidence.Calldata), orNull(t.Evidence.Registry), orNull(t.Evidence.Authorization)}
}

// PaymentRow is a payment and its position in the lists of payments.
type PaymentRow struct {
	invoice.Payment
	SeenID    string
	SeenAfter int64 // number of the newest event when it was first seen
	// Use is the use of the payment. It is read
	// and not written.
	Use invoice.PaymentUse
}

const paymentColumns = transferColumns + ", invoice_id, merchant_id, method, attributed_by, attributed_at, seen_id, seen_after, deposit_of, settles_to, returned, use"

// paymentValues returns the values of paymentColumns for a new payment.
func paymentValues(p PaymentRow) []any {
	return append(transferValues(p.ID, p.Transfer), string(p.Status), invoice.UnixSeconds(p.ObservedAt), orNull(p.ConfirmedAt),
		orNull(p.InvoiceID), orNull(p.MerchantID), orNull(p.Method), orNull(p.AttributedBy), orNull(p.AttributedAt), p.SeenID, p.SeenAfter,
		orNull(p.DepositOf), orNull(p.SettlesTo), orNull(p.Returned), useValue(firstUse(p)))
}

func scanPayment(row scanner) (PaymentRow, error) {
	var p PaymentRow
	err := scanTransfer(row, &p.Transfer, &p.ID, &p.Status, seconds{&p.ObservedAt}, seconds{&p.ConfirmedAt},
		nullText(&p.InvoiceID), nullText(&p.MerchantID), nullText(&p.Method),
		nullText(&p.AttributedBy), seconds{&p.AttributedAt}, &p.SeenID, &p.SeenAfter, nullText(&p.DepositOf), addressCol(&p.SettlesTo), amountCol(&p.Returned), nullText(&p.Use))
	return p, err
}

// SavePayments inserts payments, and updates existing ones: their block,
// transfer, state and invoice. The payments must be distinct. Payments without an invoice are added to
// the unattributed payments of merchants. These are the merchants that hold the receiving settlement
// address and have invoices that named it on that chain. For a deposit address it is the merchant of
// that address. Of an existing payment with another invoice than before, RefreshUses must follow.
func (tx *Tx) SavePayments(ctx context.Context, payments []PaymentRow) error {
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
	err := tx.insert(ctx, insertion{"payments", typed(strings.Split(paymentColumns, ", ")),
		`ON CONFLICT (id) DO UPDATE SET log_index = excluded.log_index, block_number = excluded.block_number,
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
	if err := tx.markStale(ctx, payments); err != nil {
		return err
	}
	err = tx.lookUpWanted([]string{"seen_id"}, rowsOf(seen), func(with string, args []any) error {
		return tx.send(ctx, nil, with+"DELETE FROM unattributed WHERE seen_id IN (SELECT seen_id FROM wanted)", args...)
	})
	if err != nil {
		return err
	}
	if err := tx.insertUnattributed(ctx, unattributed); err != nil {
		return err
	}
	return tx.RefreshItems(ctx, ids...)
}

// MerchantsOfUnattributed returns, for each payment without an invoice, the
// merchants whose address received it.
func (q *queries) MerchantsOfUnattributed(ctx context.Context, ids []string) (map[string][]string, error) {
	found := make(map[string][]string)
	_, err := queryIn(ids, func(chunk []any) ([]string, error) {
		return queryAll(ctx, q, func(row scanner) (merchantID string, err error) {
			var id string
			err = row.Scan(&id, &merchantID)
			found[id] = append(found[id], merchantID)
			return merchantID, err
		}, `SELECT payments.id, unattributed.merchant_id FROM payments CROSS JOIN unattributed
			WHERE unattributed.seen_id = payments.seen_id AND payments.id IN `+parameterList(0, len(chunk)), chunk...)
	})
	return found, err
}

// Payment returns the payment with the id, or ErrNotFound.
func (q *queries) Payment(ctx context.Context, id string) (PaymentRow, error) {
	return queryRow(ctx, q, scanPayment, "SELECT "+paymentColumns+" FROM payments WHERE id = $1", id)
}

// PaymentsOfTransaction returns the payments of a transaction on any of the
// chains, in the order of its logs.
func (q *queries) PaymentsOfTransaction(ctx context.Context, chainKeys []string, tx invoice.Hash) ([]PaymentRow, error) {
	found, err := queryIn(chainKeys, func(chunk []any) ([]PaymentRow, error) {
		return queryAll(ctx, q, scanPayment, "SELECT "+paymentColumns+" FROM payments WHERE tx_hash = $1 AND chain_key IN "+parameterList(1, len(chunk)),
			append([]any{tx.String()}, chunk...)...)
	})
	slices.SortFunc(found, func(a, b PaymentRow) int {
		return cmp.Or(strings.Compare(a.ChainKey, b.ChainKey), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	return found, err
}

// PaymentsByID returns the payments with the ids, in no order. Ids that no
// payment has are left out.
func (q *queries) PaymentsByID(ctx context.Context, ids []string) ([]PaymentRow, error) {
	return lookUpIn(ctx, q, scanPayment, "SELECT "+paymentColumns+" FROM payments WHERE id IN ", ids)
}

// PaymentsOfInvoices returns the payments attributed to the invoices.
func (q *queries) PaymentsOfInvoices(ctx context.Context, invoiceIDs []string) ([]PaymentRow, error) {
	return queryIn(invoiceIDs, func(chunk []any) ([]PaymentRow, error) {
		return queryAll(ctx, q, scanPayment, "SELECT "+paymentColumns+" FROM payments WHERE invoice_id IN "+parameterList(0, len(chunk)), chunk...)
	})
}

// PaymentsInTime returns the invoice's payments that were mined before it
// expired. It does not read late ones, of which anyone can send any number.
func (q *queries) PaymentsInTime(ctx context.Context, inv invoice.Invoice) ([]PaymentRow, error) {
	return queryAll(ctx, q, scanPayment, "SELECT "+paymentColumns+` FROM payments
		WHERE invoice_id = $1 AND block_time <= $2 ORDER BY block_time`, inv.ID, invoice.UnixSeconds(inv.ExpiresAt))
}

// pairLimit bounds the payments between a payer and a merchant that a refund is
// matched with: the newest.
const pairLimit = 2000

// PaymentsBetween returns the newest payments from one account to a settlement address, and
// the newest to deposit addresses of it, in blocks up to a number.
func (q *queries) PaymentsBetween(ctx context.Context, chainKey string, from, to invoice.Address, through uint64) (found []PaymentRow, err error) {
	for _, receiver := range receivers {
		some, err := queryAll(ctx, q, scanPayment, "SELECT "+paymentColumns+` FROM payments
			WHERE from_address = $1 AND `+receiver+` = $2 AND chain_key = $3 AND block_number <= $4
			ORDER BY block_number DESC LIMIT $5`, from.String(), to.String(), chainKey, int64(through), pairLimit)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

// receivers are the columns of payments that hold a settlement address: that of a payment
// to the address itself, and of one to a deposit address.
var receivers = []string{"to_address", "settles_to"}

// Pair is a payer and a settlement address.
type Pair struct{ Payer, Receiver invoice.Address }

// PaidPairs returns the pairs between which there are payments, also by deposit addresses.
func (q *queries) PaidPairs(ctx context.Context, chainKey string, pairs []Pair) (map[Pair]bool, error) {
	rows := make([][]any, len(pairs))
	for i, p := range pairs {
		rows[i] = []any{chainKey, p.Payer.String(), p.Receiver.String()}
	}
	found, err := q.whichExist(ctx, []string{"chain", "payer", "receiver"}, rows,
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
func (q *queries) PendingPayments(ctx context.Context, chainKey string, from, to uint64) ([]PaymentRow, error) {
	return queryAll(ctx, q, scanPayment, "SELECT "+paymentColumns+` FROM payments
		WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3 AND status = 'pending'
		ORDER BY block_number, log_index`, chainKey, int64(from), int64(to))
}

// OrphanedPayments returns the chain's orphaned payments that were last seen in
// blocks from one number to another, inclusive.
func (q *queries) OrphanedPayments(ctx context.Context, chainKey string, from, to uint64) ([]PaymentRow, error) {
	return queryAll(ctx, q, scanPayment, "SELECT "+paymentColumns+` FROM payments
		WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3 AND status = 'orphaned'
		ORDER BY block_number, log_index`, chainKey, int64(from), int64(to))
}

// ConfirmThrough confirms the chain's pending payments, refunds and sweeps in blocks up
// to a number, at a time.
func (tx *Tx) ConfirmThrough(ctx context.Context, chainKey string, number uint64, at time.Time) error {
	if err := tx.recordStatuses(ctx, "'confirmed'", "block_number <= $2", chainKey, number); err != nil {
		return err
	}
	if err := tx.markConfirmed(ctx, chainKey, number, at); err != nil {
		return err
	}
	return tx.changeTransfers(ctx, `SET status = 'confirmed', confirmed_at = $3
		WHERE chain_key = $1 AND block_number <= $2 AND status = 'pending'`, chainKey, int64(number), at.Unix())
}

// OrphanAbove orphans the chain's pending payments, refunds and sweeps in blocks above
// a number, at a time, and deletes the undecided refunds there. For refunds the time is scheduled, by
// the schedule's clock, which decides whether they may be mined again.
func (tx *Tx) OrphanAbove(ctx context.Context, chainKey string, number uint64, at, scheduled time.Time) error {
	if _, err := tx.exec(ctx, "DELETE FROM undecided_refunds WHERE chain_key = $1 AND block_number > $2", chainKey, int64(number)); err != nil {
		return err
	}
	if err := tx.recordStatuses(ctx, unsentStatus, "block_number > $2", chainKey, number); err != nil {
		return err
	}
	for _, transfers := range []struct {
		table string
		at    time.Time
	}{{"payments", at}, {"refunds", scheduled}, {"sweeps", at}} {
		if err := tx.send(ctx, nil, "UPDATE "+transfers.table+` SET status = 'orphaned', orphaned_at = $3
			WHERE chain_key = $1 AND block_number > $2 AND status = 'pending'`, chainKey, int64(number), transfers.at.Unix()); err != nil {
			return err
		}
	}
	return nil
}

// changeTransfers runs an update on payments, refunds and sweeps.
func (tx *Tx) changeTransfers(ctx context.Context, update string, args ...any) error {
	for _, table := range []string{"payments", "refunds", "sweeps"} {
		if err := tx.send(ctx, nil, "UPDATE "+table+" "+update, args...); err != nil {
			return err
		}
	}
	return nil
}
