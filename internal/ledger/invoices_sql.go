package ledger

import (
	"cmp"
	"context"
	"slices"

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
