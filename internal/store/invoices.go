package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
)

const invoiceColumns = `id, commitment_id, merchant_id, merchant_address, chain_key, token, currency,
	amount, transfer_amount, line_items, status, exception, amount_paid, amount_refunded,
	created_at, expires_at, settled_tx, settled_at`

func scanInvoice(row scanner) (invoice.Invoice, error) {
	var inv invoice.Invoice
	err := row.Scan(&inv.ID, hashCol(&inv.CommitmentID), &inv.MerchantID, addressCol(&inv.Merchant),
		&inv.ChainKey, addressCol(&inv.Token), &inv.Currency,
		amountCol(&inv.Amount), amountCol(&inv.TransferAmount), linesCol(&inv.LineItems),
		&inv.Status, &inv.Exception, amountCol(&inv.AmountPaid), amountCol(&inv.AmountRefunded),
		&inv.CreatedAt, &inv.ExpiresAt, hashCol(&inv.SettledTx), seconds{&inv.SettledAt})
	return inv, err
}

// InsertInvoices inserts new invoices and returns, by id, which of them were:
// one whose transfer amount an open invoice has already is left out.
func (tx *Tx) InsertInvoices(ctx context.Context, invoices []invoice.Invoice) (map[any]bool, error) {
	rows := make([][]any, len(invoices))
	for i, inv := range invoices {
		lines, err := linesText(inv.LineItems)
		if err != nil {
			return nil, err
		}
		rows[i] = []any{inv.ID, inv.CommitmentID.String(), inv.MerchantID, inv.Merchant.String(),
			inv.ChainKey, inv.Token.String(), inv.Currency, inv.Amount.String(), orNull(inv.TransferAmount),
			lines, string(inv.Status), inv.CreatedAt, inv.ExpiresAt}
	}
	return tx.into(ctx, insertion{
		table: "invoices",
		columns: []string{"id", "commitment_id", "merchant_id", "merchant_address", "chain_key", "token", "currency",
			"amount", "transfer_amount", "line_items", "status", "created_at", "expires_at"},
		conflict: "ON CONFLICT (merchant_address, transfer_amount, chain_key, token) WHERE status = 'open' DO NOTHING",
	}, rows)
}

// UpdateInvoice writes what may change after creation: the state, and what
// was paid and refunded.
func (tx *Tx) UpdateInvoice(ctx context.Context, inv invoice.Invoice) error {
	n, err := tx.exec(ctx, `UPDATE invoices SET status = $2, exception = $3, amount_paid = $4, amount_refunded = $5,
		settled_tx = $6, settled_at = $7 WHERE id = $1`,
		inv.ID, string(inv.Status), string(inv.Exception), inv.AmountPaid.String(), inv.AmountRefunded.String(),
		orNull(inv.SettledTx), orNull(inv.SettledAt))
	if err == nil && n != 1 {
		return ErrNotFound
	}
	return err
}

// Invoice returns the invoice with the id, or ErrNotFound.
func (q *queries) Invoice(ctx context.Context, id string) (invoice.Invoice, error) {
	return one(ctx, q, scanInvoice, "SELECT "+invoiceColumns+" FROM invoices WHERE id = $1", id)
}

// InvoiceByCommitment returns the invoice with the commitment id, or
// ErrNotFound.
func (q *queries) InvoiceByCommitment(ctx context.Context, id invoice.Hash) (invoice.Invoice, error) {
	return one(ctx, q, scanInvoice, "SELECT "+invoiceColumns+" FROM invoices WHERE commitment_id = $1", id.String())
}

// InvoicesByID returns the invoices with the ids, in no order. Ids that no
// invoice has are left out.
func (q *queries) InvoicesByID(ctx context.Context, ids []string) ([]invoice.Invoice, error) {
	return inChunks(ids, func(chunk []any) ([]invoice.Invoice, error) {
		return collect(ctx, q, scanInvoice, "SELECT "+invoiceColumns+" FROM invoices WHERE id IN "+list(0, len(chunk)), chunk...)
	})
}

// InvoiceFilter says which invoices to list. Empty members do not filter.
type InvoiceFilter struct {
	MerchantID string
	Status     invoice.Status
	Before     string // an invoice's id; those listed were created before it
	Limit      int
}

// Invoices lists invoices, newest first. What it costs does not depend on how
// many there are.
func (q *queries) Invoices(ctx context.Context, f InvoiceFilter) ([]invoice.Invoice, error) {
	var w where
	w.equal("merchant_id", f.MerchantID)
	w.equal("status", string(f.Status))
	w.below("id", f.Before)
	return collect(ctx, q, scanInvoice, "SELECT "+invoiceColumns+" FROM invoices"+w.text()+
		fmt.Sprintf(" ORDER BY id DESC LIMIT $%d", w.next()), append(w.args, f.Limit)...)
}

// FirstInvoice returns the oldest invoice of the chain, or ErrNotFound. It
// reads the table, and is for the first start of a chain.
func (q *queries) FirstInvoice(ctx context.Context, chainKey string) (invoice.Invoice, error) {
	return one(ctx, q, scanInvoice, "SELECT "+invoiceColumns+" FROM invoices WHERE chain_key = $1 ORDER BY id LIMIT 1", chainKey)
}

// ExpiringInvoices returns open invoices of the chain whose expiresAt lies
// before the time (Unix seconds), oldest first.
func (q *queries) ExpiringInvoices(ctx context.Context, chainKey string, before int64, limit int) ([]invoice.Invoice, error) {
	return collect(ctx, q, scanInvoice, "SELECT "+invoiceColumns+` FROM invoices
		WHERE chain_key = $1 AND expires_at < $2 AND status = 'open' ORDER BY expires_at LIMIT $3`, chainKey, before, limit)
}

// CandidateLimit bounds the invoices that one rule of attribution looks at.
// More than one is ambiguous already; the rest leaves room for those that are
// covered.
const CandidateLimit = 100

// Candidates are the invoices that a transfer could be meant for. Crowded says
// that there are more with its bare amount than were looked at.
type Candidates struct {
	Invoices []invoice.Invoice
	Crowded  bool
}

// CandidateInvoices returns the invoices that a transfer could be meant for:
// those that its evidence names, and those of its receiver with its amount as
// transfer amount or as amount, as far as they were payable at its block's
// time or its amount can still name them.
func (q *queries) CandidateInvoices(ctx context.Context, t invoice.Transfer) (Candidates, error) {
	var all Candidates
	seen := make(map[string]bool)
	add := func(condition string, args ...any) (int, error) {
		found, err := collect(ctx, q, scanInvoice, fmt.Sprintf("SELECT %s FROM invoices WHERE %s LIMIT %d",
			invoiceColumns, condition, CandidateLimit), args...)
		for _, inv := range found {
			if !seen[inv.ID] {
				seen[inv.ID] = true
				all.Invoices = append(all.Invoices, inv)
			}
		}
		return len(found), err
	}
	for _, id := range []invoice.Hash{t.Evidence.Registry, t.Evidence.Authorization, t.Evidence.Calldata} {
		if id.IsZero() {
			continue
		}
		if _, err := add("commitment_id = $1", id.String()); err != nil {
			return all, err
		}
	}
	const receiver = "merchant_address = $1 AND chain_key = $3 AND token = $4 AND created_at <= $5 AND expires_at >= $6"
	args := []any{t.To.String(), t.Amount.String(), t.ChainKey, t.Token.String(), t.BlockTime + invoice.ClockSkew}
	for _, status := range []string{"status = 'open'", "status <> 'open'"} {
		if _, err := add(receiver+" AND transfer_amount = $2 AND "+status, append(args, t.BlockTime-invoice.LateWindow)...); err != nil {
			return all, err
		}
	}
	n, err := add(receiver+" AND amount = $2 AND status = 'open'", append(args, t.BlockTime)...)
	all.Crowded = n == CandidateLimit
	return all, err
}

// where collects the conditions of a list.
type where struct {
	conditions []string
	args       []any
}

func (w *where) add(condition string, arg any) {
	w.args = append(w.args, arg)
	w.conditions = append(w.conditions, fmt.Sprintf(condition, len(w.args)))
}

// equal adds a condition unless the value is empty.
func (w *where) equal(column, value string) {
	if value != "" {
		w.add(column+" = $%d", value)
	}
}

// below adds the condition of a keyset unless the value is empty.
func (w *where) below(column, value string) {
	if value != "" {
		w.add(column+" < $%d", value)
	}
}

func (w *where) text() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conditions, " AND ")
}

// next is the number of the parameter after those of the conditions.
func (w *where) next() int { return len(w.args) + 1 }

// chunkSize bounds the list of one IN.
const chunkSize = 500

// inChunks runs a query over the values in lists of bounded length and joins
// the answers.
func inChunks[V, T any](values []V, query func(chunk []any) ([]T, error)) ([]T, error) {
	var all []T
	for len(values) > 0 {
		n := min(len(values), chunkSize)
		chunk := make([]any, n)
		for i, v := range values[:n] {
			chunk[i] = v
		}
		found, err := query(chunk)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
		values = values[n:]
	}
	return all, nil
}
