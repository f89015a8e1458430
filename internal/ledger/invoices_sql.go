package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// invoiceTable has the columns of an invoice, except its details.
var invoiceTable = db.NewTable("invoices", invoiceColumns)

func invoiceColumns(inv *invoice.Invoice) []db.Column {
	inv.Collection = cmp.Or(inv.Collection, invoice.Direct)
	remains := func() bool { return inv.Status == invoice.Open && !inv.EndedInLostPast() }
	columns := append(make([]db.Column, 0, 43), // as many as there are, since an invoice is written with each create
		db.Col("id", db.Text(&inv.ID)),
		db.Col("commitment_id", db.Hash(&inv.CommitmentID)),
		db.Col("merchant_id", db.Text(&inv.MerchantID)),
		db.Col("merchant_address", db.Address(&inv.Merchant)),
		db.Col("chain_key", db.Text(&inv.ChainKey)),
		db.Col("token", db.Address(&inv.Token)),
		db.Col("currency", db.Text(&inv.Currency)),
		db.Col("amount", db.Amount(&inv.Amount)),
		db.Col("transfer_amount", db.Null(db.Amount(&inv.TransferAmount))),
		db.Col("tolerance", db.Amount(&inv.Tolerance)),
		db.Col("line_items", db.CodeOf(&inv.LineItems, parseLines, linesText)),
		db.Col("status", db.Text(&inv.Status)),
		db.Col("exception", db.Text(&inv.Exception)),
		db.Col("amount_paid", db.Amount(&inv.AmountPaid)),
		db.Col("amount_refunded", db.Amount(&inv.AmountRefunded)),
		db.Col("created_at", db.Seconds(&inv.CreatedAt)),
		db.Col("expires_at", db.Seconds(&inv.ExpiresAt)),
		db.Col("settled_tx", db.Null(db.Hash(&inv.SettledTx))),
		db.Col("settled_at", db.Null(db.Seconds(&inv.SettledAt))),
		db.Col("from_block", db.Int(&inv.FromBlock)),
		db.Col("closed_block", db.NullIf(remains, db.Int(&inv.ClosedBlock))),
		db.Col("remaining", db.Null(db.Amount(&inv.Remaining))),
		db.Col("remaining_transfer", db.Null(db.Amount(&inv.RemainingTransfer))),
		db.Col("registry", db.Address(&inv.Registry)),
		db.Col("collection", db.Text(&inv.Collection)),
		db.Col("deposit_factory", db.Null(db.Address(&inv.DepositFactory))),
		db.Col("deposit_address", db.Null(db.Address(&inv.DepositAddress))),
		db.Col("swept_tx", db.Null(db.Hash(&inv.SweptTx))),
	)
	return append(columns, sumColumns(&inv.Sums)...)
}

var (
	// stateTable has the columns of an invoice that payments, refunds and time change.
	stateTable = invoiceTable.Only(append([]string{"status"}, stateColumns...)...)
	// termsTable has the columns that an invoice has from its creation on.
	termsTable = invoiceTable.Without(append([]string{"swept_tx"}, stateColumns...)...)

	stateColumns = append([]string{"exception", "amount_paid", "amount_refunded", "settled_tx", "settled_at", "remaining", "remaining_transfer"},
		db.Names(sumColumns(new(invoice.Sums)))...)
)

// InsertInvoices inserts new invoices with their transfer amounts and deposit addresses, and returns
// the ids of the inserted ones. It leaves out an invoice if an open invoice has its transfer amount.
func InsertInvoices(ctx context.Context, tx *db.Tx, invoices []invoice.Invoice) (map[string]bool, error) {
	amounts := wholeAmounts(invoices)
	free, err := insertTransferAmounts(ctx, tx, amounts)
	if err != nil {
		return nil, err
	}
	inserted := make(map[string]bool, len(invoices))
	for _, inv := range invoices {
		inserted[inv.ID] = true
	}
	for _, a := range amounts {
		inserted[a.Invoice.ID] = free[a.Invoice.ID]
	}
	return inserted, insertTerms(ctx, tx, slices.DeleteFunc(slices.Clone(invoices), func(inv invoice.Invoice) bool { return !inserted[inv.ID] }))
}

// insertFree is like InsertInvoices, but does not wait for the database to report which transfer amounts are free. If
// an open invoice has one, the transaction fails with an error for which db.Taken holds.
func insertFree(ctx context.Context, tx *db.Tx, invoices []invoice.Invoice) error {
	if err := insertFreeAmounts(ctx, tx, wholeAmounts(invoices)); err != nil {
		return err
	}
	return insertTerms(ctx, tx, invoices)
}

// insertTerms inserts invoices with their deposit addresses and details.
func insertTerms(ctx context.Context, tx *db.Tx, invoices []invoice.Invoice) error {
	if err := termsTable.Insert(ctx, tx, "", invoices...); err != nil {
		return err
	}
	if err := insertDeposits(ctx, tx, invoices); err != nil {
		return err
	}
	return insertDetails(ctx, tx, invoices)
}

// closedBlock sets the block up to which the chain was indexed when an invoice was closed.
const closedBlock = `closed_block = CASE WHEN wanted.status = 'open' THEN closed_block
	ELSE coalesce(closed_block, (SELECT indexed_number FROM chains WHERE chains.chain_key = invoices.chain_key), 0) END`

// UpdateInvoices updates the state, sums, remainders and items of invoices. Transfer amounts of invoices that are not
// open become free for others. It returns ErrNotFound if an invoice does not exist.
func UpdateInvoices(ctx context.Context, tx *db.Tx, invoices []invoice.Invoice) error {
	rows := make([][]any, len(invoices))
	var closed []string
	for i, inv := range invoices {
		if inv.Status != invoice.Open {
			closed = append(closed, inv.ID)
			inv.Remaining, inv.RemainingTransfer = invoice.Amount{}, invoice.Amount{}
		}
		rows[i] = slices.Concat([]any{inv.ID}, stateTable.Values(inv, itemValues(inv)...))
	}
	n, err := tx.UpdateFrom(ctx, slices.Concat([]string{"id"}, stateTable.Insertion("", "kind", "version").Columns), rows,
		"UPDATE invoices SET "+closedBlock+", "+stateTable.From("wanted")+", item = "+undecidedInvoice+" FROM wanted WHERE invoices.id = wanted.id")
	if err == nil && n != int64(len(invoices)) {
		return db.ErrNotFound
	}
	if err != nil {
		return err
	}
	return db.SendIn(ctx, tx, freeAmounts+" WHERE closed_block IS NULL AND invoice_id IN ", closed)
}

// Invoice returns the invoice with the id and its details, or ErrNotFound.
func (q Reader) Invoice(ctx context.Context, id string) (invoice.Invoice, error) {
	return db.QueryRow(ctx, q, detailedTable.Scan, selectDetailed+" WHERE id = $1", id)
}

// invoiceByCommitment returns the invoice with the commitment id, or ErrNotFound.
func invoiceByCommitment(ctx context.Context, q db.Querier, id invoice.Hash) (invoice.Invoice, error) {
	return db.QueryRow(ctx, q, invoiceTable.Scan, invoiceTable.Select()+" WHERE "+hasCommitment(q, "$1"), id.String())
}

// withoutLines are the columns without the line items, which can be much longer than all others.
var withoutLines = invoiceTable.Without("line_items")

// InvoicesWithoutLines returns the invoices with the ids, in no order, without their line items. It skips unknown ids.
func InvoicesWithoutLines(ctx context.Context, q db.Querier, ids []string) ([]invoice.Invoice, error) {
	return db.LookUpIn(ctx, q, withoutLines.Scan, withoutLines.Select()+" WHERE id IN ", ids)
}

// firstInvoice returns the oldest invoice of the chain, or ErrNotFound. It
// reads the whole table, and is called only when a chain is first started.
func firstInvoice(ctx context.Context, q db.Querier, chainKey string) (invoice.Invoice, error) {
	return db.QueryRow(ctx, q, invoiceTable.Scan, invoiceTable.Select()+" WHERE chain_key = $1 ORDER BY id LIMIT 1", chainKey)
}

// storedLine is the JSON of a line item in the column line_items.
type storedLine struct {
	Label  string `json:"label"`
	Amount string `json:"amount"`
}

func parseLines(text string) ([]invoice.LineItem, error) {
	var stored []storedLine
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, err
	}
	lines := make([]invoice.LineItem, len(stored))
	for i, l := range stored {
		amount, err := invoice.ParseAmount(l.Amount)
		if err != nil {
			return nil, err
		}
		lines[i] = invoice.LineItem{Label: l.Label, Amount: amount}
	}
	return lines, nil
}

func linesText(lines []invoice.LineItem) string {
	stored := db.Each(lines, func(l invoice.LineItem) storedLine {
		return storedLine{Label: l.Label, Amount: l.Amount.String()}
	})
	return db.JSONText(stored)
}

// ExpiringInvoices returns open invoices of the chain, with their details, that expire before a time
// and that no transfer up to the block from can pay, ordered by their expiry. It leaves out invoices
// that ended in a past that the database has lost, because they were voided or paid, and those with a
// payment in time that waits for the verdict of the screening hook.
func ExpiringInvoices(ctx context.Context, q db.Querier, chainKey string, from uint64, before time.Time, limit int) ([]invoice.Invoice, error) {
	return db.QueryAll(ctx, q, detailedTable.Scan, selectDetailed+`
		WHERE chain_key = $1 AND expires_at < $2 AND from_block >= $3 AND status = 'open' AND closed_block IS NULL AND NOT EXISTS (
			SELECT 1 FROM payments AS held WHERE held.invoice_id = invoices.id AND held.screening = 'waiting' AND held.status <> 'orphaned'
				AND held.block_time <= invoices.expires_at)
		ORDER BY expires_at LIMIT $4`,
		chainKey, invoice.UnixSeconds(before), int64(from), limit)
}

// ExpireInvoices updates open invoices of a chain that have expired. Their transfer amounts become
// free for others. It returns ErrNotFound if an invoice does not exist.
//
// Most of them have no payment: only their state changes, which costs half of UpdateInvoices.
func ExpireInvoices(ctx context.Context, tx *db.Tx, chainKey string, expired []invoice.Invoice) error {
	var paid []invoice.Invoice // in part
	var unpaid [][]any
	for _, inv := range expired {
		if inv.Sums.Payments > 0 || inv.Sums.Stale || !inv.Remaining.IsZero() {
			paid = append(paid, inv)
		} else {
			unpaid = append(unpaid, []any{inv.ID})
		}
	}
	if err := UpdateInvoices(ctx, tx, paid); err != nil {
		return err
	}
	var changed int64
	err := tx.LookUpWanted([]string{"id"}, unpaid, func(with string, args []any) error {
		n, err := tx.Exec(ctx, with+"UPDATE invoices SET status = 'expired', closed_block = coalesce(closed_block, (SELECT indexed_number FROM chains WHERE chain_key = "+
			db.Parameter(len(args)+1)+"), 0) FROM wanted WHERE invoices.id = wanted.id", append(args, chainKey)...)
		changed += n
		return err
	})
	if err == nil && changed != int64(len(unpaid)) {
		return db.ErrNotFound
	}
	if err != nil {
		return err
	}
	return tx.LookUpWanted([]string{"id"}, unpaid, func(with string, args []any) error {
		return tx.Send(ctx, nil, with+freeAmounts+" FROM wanted WHERE closed_block IS NULL AND invoice_id = wanted.id", args...)
	})
}

// freeAmounts ends the transfer amounts of invoices that are no longer open.
const freeAmounts = `UPDATE transfer_amounts SET live = 0, closed_block =
	(SELECT invoices.closed_block FROM invoices WHERE invoices.id = transfer_amounts.invoice_id)`

// lockInvoice locks an invoice until the transaction ends, and returns it with its details, or ErrNotFound.
func lockInvoice(ctx context.Context, tx *db.Tx, id string) (invoice.Invoice, error) {
	if _, err := db.QueryAll(ctx, tx, db.ScanID, "SELECT id FROM invoices WHERE id = $1"+tx.ForUpdate(), id); err != nil {
		return invoice.Invoice{}, err
	}
	return NewReader(tx).Invoice(ctx, id)
}

// UpdateDraft writes the terms and the state of a locked draft, which may have become open. Insert the
// transfer amount of an open invoice first.
func UpdateDraft(ctx context.Context, tx *db.Tx, inv invoice.Invoice) error {
	n, err := termsTable.Without("id", "merchant_id", "created_at").Update(ctx, tx, inv, "id = $1 AND status = 'draft'", inv.ID)
	if err == nil && n == 0 {
		err = db.ErrNotFound
	}
	if err != nil {
		return err
	}
	return insertDeposits(ctx, tx, []invoice.Invoice{inv})
}

// replaceDetails writes the details of a locked invoice, and its reservation if it is a
// draft or open. It returns whether another invoice has reserved the reference.
func replaceDetails(ctx context.Context, tx *db.Tx, inv invoice.Invoice) (taken bool, err error) {
	if err := deleteDetails(ctx, tx, inv.ID); err != nil {
		return false, err
	}
	if err := insertDetails(ctx, tx, []invoice.Invoice{inv}); err != nil {
		return false, err
	}
	if inv.Status != invoice.Drafted && inv.Status != invoice.Open {
		return false, nil
	}
	reserved, err := reserveReferences(ctx, tx, []invoice.Invoice{inv})
	return reserved[inv.ID], err
}

func deleteDetails(ctx context.Context, tx *db.Tx, id string) error {
	for _, table := range []string{"invoice_details", "invoice_metadata", "invoice_words", "reserved_references"} {
		if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE invoice_id = $1", id); err != nil {
			return err
		}
	}
	return nil
}

// deleteDraft deletes a locked draft with its details. Its idempotency keys stay used. It returns
// ErrNotFound if the invoice is no draft.
func deleteDraft(ctx context.Context, tx *db.Tx, id string) error {
	if err := deleteDetails(ctx, tx, id); err != nil {
		return err
	}
	return tx.Change(ctx, "DELETE FROM invoices WHERE id = $1 AND status = 'draft'", id)
}
