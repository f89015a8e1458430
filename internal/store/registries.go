package store

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// InsertRegistry records a registry of the chain, unless it is known already. It reports
// whether it was new.
func (tx *Tx) InsertRegistry(ctx context.Context, chainKey string, registry invoice.Address, at time.Time) (bool, error) {
	n, err := tx.exec(ctx, "INSERT INTO registries (chain_key, address, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
		chainKey, registry.String(), invoice.UnixSeconds(at))
	return n > 0, err
}

// Registries returns all registries that the service ever used on a chain.
func (q *queries) Registries(ctx context.Context, chainKey string) ([]invoice.Address, error) {
	return queryAll(ctx, q, func(row scanner) (a invoice.Address, err error) {
		err = row.Scan(addressCol(&a))
		return a, err
	}, "SELECT address FROM registries WHERE chain_key = $1 ORDER BY address", chainKey)
}

// InvoicesWithoutRegistry returns invoices whose registry is unknown, ordered
// by id, after the given id.
func (q *queries) InvoicesWithoutRegistry(ctx context.Context, after string, limit int) ([]invoice.Invoice, error) {
	return queryAll(ctx, q, scanInvoice, "SELECT "+invoiceColumns+` FROM invoices
		WHERE registry IS NULL AND id > $1 ORDER BY id LIMIT $2`, after, limit)
}

// SetRegistries stores the registries of the invoices, and of their intents.
// The zero address means none.
func (tx *Tx) SetRegistries(ctx context.Context, invoices []invoice.Invoice) error {
	rows := make([][]any, len(invoices))
	for i, inv := range invoices {
		rows[i] = []any{inv.ID, inv.Registry.String()}
	}
	for _, update := range []string{
		"UPDATE invoices SET registry = wanted.address FROM wanted WHERE invoices.id = wanted.invoice AND invoices.registry IS NULL",
		"UPDATE intents SET registry = wanted.address FROM wanted WHERE intents.invoice_id = wanted.invoice AND intents.registry IS NULL",
	} {
		if err := tx.sendFrom(ctx, []string{"invoice", "address"}, rows, update); err != nil {
			return err
		}
	}
	return nil
}
