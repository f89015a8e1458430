package ledger

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

const invoiceColumns = `id, commitment_id, merchant_id, merchant_address, chain_key, token, currency,
	amount, transfer_amount, tolerance, line_items, status, exception, amount_paid, amount_refunded,
	created_at, expires_at, settled_tx, settled_at, from_block, closed_block, remaining, remaining_transfer, registry,
	collection, deposit_factory, deposit_address, swept_tx, ` + sumColumns

func scanInvoice(row db.Scanner) (invoice.Invoice, error) {
	var inv invoice.Invoice
	err := row.Scan(append([]any{&inv.ID, db.HashCol(&inv.CommitmentID), &inv.MerchantID, db.AddressCol(&inv.Merchant),
		&inv.ChainKey, db.AddressCol(&inv.Token), &inv.Currency,
		db.AmountCol(&inv.Amount), db.AmountCol(&inv.TransferAmount), db.AmountCol(&inv.Tolerance), linesCol(&inv.LineItems),
		&inv.Status, &inv.Exception, db.AmountCol(&inv.AmountPaid), db.AmountCol(&inv.AmountRefunded),
		db.Seconds(&inv.CreatedAt), db.Seconds(&inv.ExpiresAt), db.HashCol(&inv.SettledTx), db.Seconds(&inv.SettledAt),
		&inv.FromBlock, db.NullUint(&inv.ClosedBlock), db.AmountCol(&inv.Remaining), db.AmountCol(&inv.RemainingTransfer), db.AddressCol(&inv.Registry),
		&inv.Collection, db.AddressCol(&inv.DepositFactory), db.AddressCol(&inv.DepositAddress), db.HashCol(&inv.SweptTx)}, sumTargets(&inv.Sums)...)...)
	return inv, err
}

// InsertInvoices inserts new invoices with their transfer amounts and deposit addresses, and returns
// the ids of the inserted ones. It leaves out an invoice if an open invoice has its transfer amount;
// after AssumeFree it leaves out no invoice.
func InsertInvoices(ctx context.Context, tx *db.Tx, invoices []invoice.Invoice) (map[string]bool, error) {
	inserted, err := tx.InsertFree(ctx, transferAmountInsertion, transferAmountRows(wholeAmounts(invoices)))
	if err != nil {
		return nil, err
	}
	var rows [][]any
	var kept []invoice.Invoice
	for _, inv := range invoices {
		if !inv.TransferAmount.IsZero() && !inserted[inv.ID] {
			continue
		}
		inserted[inv.ID] = true
		kept = append(kept, inv)
		row, err := invoiceValues(inv)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	if err := tx.Insert(ctx, db.Insertion{Table: "invoices", Columns: insertedColumns}, rows); err != nil {
		return nil, err
	}
	if err := insertDeposits(ctx, tx, kept); err != nil {
		return nil, err
	}
	return inserted, insertDetails(ctx, tx, kept)
}

// insertedColumns are the columns that an invoice has from its creation on, followed by their
// types unless they hold text.
var insertedColumns = []string{"id", "commitment_id", "merchant_id", "merchant_address", "chain_key", "token", "currency",
	"amount", "transfer_amount", "tolerance", "line_items", "status", "created_at BIGINT", "expires_at BIGINT", "from_block BIGINT", "closed_block BIGINT", "registry",
	"collection", "deposit_factory", "deposit_address"}

// invoiceValues returns the values of insertedColumns.
func invoiceValues(inv invoice.Invoice) ([]any, error) {
	lines, err := linesText(inv.LineItems)
	if err != nil {
		return nil, err
	}
	var closed any
	if inv.Status != invoice.Open || inv.EndedInLostPast() {
		closed = int64(inv.ClosedBlock)
	}
	return []any{inv.ID, inv.CommitmentID.String(), inv.MerchantID, inv.Merchant.String(),
		inv.ChainKey, inv.Token.String(), inv.Currency, inv.Amount.String(), db.OrNull(inv.TransferAmount),
		inv.Tolerance.String(), lines, string(inv.Status), invoice.UnixSeconds(inv.CreatedAt), invoice.UnixSeconds(inv.ExpiresAt), int64(inv.FromBlock), closed, inv.Registry.String(),
		string(cmp.Or(inv.Collection, invoice.Direct)), db.OrNull(inv.DepositFactory), db.OrNull(inv.DepositAddress)}, nil
}

// updatedColumns are the columns that change after creation, followed by their
// types unless they hold text.
var updatedColumns = []string{"status", "exception", "amount_paid", "amount_refunded", "settled_tx", "settled_at BIGINT",
	"remaining", "remaining_transfer",
	"sums_stale BIGINT", "payment_count BIGINT", "arrived_in_time", "arrived_in_time_dust", "arrived_late", "arrived_late_dust",
	"newest_block BIGINT", "newest_log BIGINT", "due", "due_dust", "beyond_dust", "counted_block BIGINT", "counted_log BIGINT",
	"arrived_returned", "due_returned"}

// closedBlock sets the block up to which the chain was indexed when an invoice was closed.
const closedBlock = `closed_block = CASE WHEN wanted.status = 'open' THEN closed_block
	ELSE coalesce(closed_block, (SELECT indexed_number FROM chains WHERE chains.chain_key = invoices.chain_key), 0) END`

// UpdateInvoices updates the state, sums, remainders and items of invoices. Transfer
// amounts of invoices that are not open become free for others. It returns
// ErrNotFound if an invoice does not exist.
func UpdateInvoices(ctx context.Context, tx *db.Tx, invoices []invoice.Invoice) error {
	rows := make([][]any, len(invoices))
	var closed []string
	for i, inv := range invoices {
		if inv.Status != invoice.Open {
			closed = append(closed, inv.ID)
			inv.Remaining, inv.RemainingTransfer = invoice.Amount{}, invoice.Amount{}
		}
		rows[i] = slices.Concat([]any{inv.ID}, updatedValues(inv), itemValues(inv))
	}
	set := []string{closedBlock}
	for _, c := range updatedColumns {
		name, _, _ := strings.Cut(c, " ")
		set = append(set, name+" = wanted."+name)
	}
	n, err := tx.UpdateFrom(ctx, slices.Concat([]string{"id"}, updatedColumns, []string{"kind", "version"}), rows,
		"UPDATE invoices SET "+strings.Join(set, ", ")+", item = "+undecidedInvoice+" FROM wanted WHERE invoices.id = wanted.id")
	if err == nil && n != int64(len(invoices)) {
		return db.ErrNotFound
	}
	if err != nil {
		return err
	}
	return db.SendIn(ctx, tx, freeAmounts+" WHERE closed_block IS NULL AND invoice_id IN ", closed)
}

// updatedValues returns the values of updatedColumns.
func updatedValues(inv invoice.Invoice) []any {
	return append([]any{string(inv.Status), string(inv.Exception), inv.AmountPaid.String(), inv.AmountRefunded.String(),
		db.OrNull(inv.SettledTx), db.OrNull(inv.SettledAt), db.OrNull(inv.Remaining), db.OrNull(inv.RemainingTransfer)}, sumValues(inv.Sums)...)
}

// Invoice returns the invoice with the id and its details, or ErrNotFound.
func (q Reader) Invoice(ctx context.Context, id string) (invoice.Invoice, error) {
	return db.QueryRow(ctx, q, scanDetailedInvoice, "SELECT "+detailedColumns+detailedInvoices+" WHERE id = $1", id)
}

// invoiceByCommitment returns the invoice with the commitment id, or
// ErrNotFound.
func invoiceByCommitment(ctx context.Context, q db.Querier, id invoice.Hash) (invoice.Invoice, error) {
	return db.QueryRow(ctx, q, scanInvoice, "SELECT "+invoiceColumns+" FROM invoices WHERE "+hasCommitment(q, "$1"), id.String())
}

// columnsWithoutLines are invoiceColumns without the line items, which can be much longer than all
// others.
var columnsWithoutLines = strings.Replace(invoiceColumns, "line_items", "'[]'", 1)

// InvoicesWithoutLines returns the invoices with the ids, in no order, without
// their line items. It skips unknown ids.
func InvoicesWithoutLines(ctx context.Context, q db.Querier, ids []string) ([]invoice.Invoice, error) {
	return db.LookUpIn(ctx, q, scanInvoice, "SELECT "+columnsWithoutLines+" FROM invoices WHERE id IN ", ids)
}

// firstInvoice returns the oldest invoice of the chain, or ErrNotFound. It
// reads the whole table, and is called only when a chain is first started.
func firstInvoice(ctx context.Context, q db.Querier, chainKey string) (invoice.Invoice, error) {
	return db.QueryRow(ctx, q, scanInvoice, "SELECT "+invoiceColumns+" FROM invoices WHERE chain_key = $1 ORDER BY id LIMIT 1", chainKey)
}
