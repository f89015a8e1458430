package store

import (
	"context"

	"github.com/quittance/quittance/internal/invoice"
)

// Intent is what the registry of a chain must be told of an invoice.
type Intent struct {
	ID           string
	ChainKey     string
	InvoiceID    string
	CommitmentID invoice.Hash
	Kind         invoice.IntentKind
	CreatedAt    int64 // Unix seconds
}

// InsertIntents inserts intents that are due. One that the invoice has
// already is left out.
func (tx *Tx) InsertIntents(ctx context.Context, intents []Intent) error {
	rows := make([][]any, len(intents))
	for i, in := range intents {
		rows[i] = []any{in.ID, in.ChainKey, in.InvoiceID, in.CommitmentID.String(), string(in.Kind), "due", in.CreatedAt}
	}
	_, err := tx.into(ctx, insertion{"intents",
		[]string{"id", "chain_key", "invoice_id", "commitment_id", "kind", "status", "created_at"},
		"ON CONFLICT (invoice_id, kind) DO NOTHING"}, rows)
	return err
}

// SeeIntent records the block in which the registry announced what an intent
// of the commitment asks for.
func (tx *Tx) SeeIntent(ctx context.Context, chainKey string, commitment invoice.Hash, kind invoice.IntentKind, block uint64) error {
	_, err := tx.exec(ctx, `UPDATE intents SET seen_block = $4
		WHERE commitment_id = $2 AND chain_key = $1 AND kind = $3 AND status <> 'done'`,
		chainKey, commitment.String(), string(kind), int64(block))
	return err
}

// UnseeIntents takes back what was seen above a block that a reorg left.
func (tx *Tx) UnseeIntents(ctx context.Context, chainKey string, above uint64) error {
	_, err := tx.exec(ctx, `UPDATE intents SET seen_block = NULL
		WHERE chain_key = $1 AND seen_block > $2 AND status <> 'done'`, chainKey, int64(above))
	return err
}

// FinishIntents marks those done whose event stands in a final block.
func (tx *Tx) FinishIntents(ctx context.Context, chainKey string, final uint64) error {
	_, err := tx.exec(ctx, `UPDATE intents SET status = 'done'
		WHERE chain_key = $1 AND seen_block <= $2 AND status <> 'done'`, chainKey, int64(final))
	return err
}
