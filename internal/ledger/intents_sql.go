package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Intent is a change of an invoice to record in the registry of its chain.
type Intent struct {
	ID           string
	ChainKey     string
	InvoiceID    string
	CommitmentID invoice.Hash
	Registry     invoice.Address // to write to; zero when it is not known
	Kind         invoice.IntentKind
	CreatedAt    time.Time
	ExpiresAt    time.Time // of the invoice; only DueIntents sets it
}

// InsertIntents inserts due intents. It skips intents that the invoice has already.
func InsertIntents(ctx context.Context, tx *db.Tx, intents []Intent) error {
	rows := db.Each(intents, func(in Intent) []any {
		return []any{in.ID, in.ChainKey, in.InvoiceID, in.CommitmentID.String(), string(in.Kind), "due", invoice.UnixSeconds(in.CreatedAt), db.OrNull(in.Registry)}
	})
	return tx.Insert(ctx, db.Insertion{Table: "intents",
		Columns:  []string{"id", "chain_key", "invoice_id", "commitment_id", "kind", "status", "created_at BIGINT", "registry"},
		Conflict: "ON CONFLICT (invoice_id, kind) DO NOTHING"}, rows)
}

// IntentObservation is a registry event that carries out an intent, and its block.
type IntentObservation struct {
	Registry     invoice.Address
	CommitmentID invoice.Hash
	Kind         invoice.IntentKind
	Block        uint64
}

// MarkIntentsObserved records the blocks with events that carry out intents. Events of another registry than the
// intent's are ignored. The lowest such block is kept, because a reorg of a higher one does not undo it.
func MarkIntentsObserved(ctx context.Context, tx *db.Tx, chainKey string, observed []IntentObservation) error {
	type key struct {
		registry   invoice.Address
		commitment invoice.Hash
		kind       invoice.IntentKind
	}
	lowest := make(map[key]uint64, len(observed))
	for _, s := range observed {
		k := key{s.Registry, s.CommitmentID, s.Kind}
		if block, ok := lowest[k]; !ok || s.Block < block {
			lowest[k] = s.Block
		}
	}
	rows := make([][]any, 0, len(lowest))
	for k, block := range lowest {
		rows = append(rows, []any{chainKey, k.registry.String(), k.commitment.String(), string(k.kind), int64(block)})
	}
	err := tx.SendFrom(ctx, []string{"chain", "teller", "commitment", "kind", "block BIGINT"}, rows,
		`UPDATE intents SET seen_block = wanted.block FROM wanted
		WHERE intents.commitment_id = wanted.commitment AND intents.chain_key = wanted.chain AND intents.kind = wanted.kind AND intents.registry = wanted.teller
			AND intents.status <> 'done' AND (intents.seen_block IS NULL OR intents.seen_block > wanted.block)`)
	return err
}

// UnmarkIntentsObserved undoes MarkIntentsObserved for the blocks above a number, after a reorg replaced them.
func UnmarkIntentsObserved(ctx context.Context, tx *db.Tx, chainKey string, above uint64) error {
	return tx.Do(ctx, `UPDATE intents SET seen_block = NULL
		WHERE chain_key = $1 AND seen_block > $2 AND status <> 'done'`, chainKey, int64(above))
}

// FinishIntents marks intents with an event in a final block as done.
func FinishIntents(ctx context.Context, tx *db.Tx, chainKey string, final uint64) error {
	return tx.Send(ctx, nil, `UPDATE intents SET status = 'done'
		WHERE chain_key = $1 AND seen_block <= $2 AND status <> 'done'`, chainKey, int64(final))
}

// DueIntents returns intents for a registry of the chain that are due and have no event in the chain,
// oldest first, starting after the given id.
func DueIntents(ctx context.Context, q db.Querier, chainKey string, registry invoice.Address, after string, limit int) ([]Intent, error) {
	return db.QueryAll(ctx, q, db.Fields(func(in *Intent) []any {
		return []any{&in.ID, &in.ChainKey, &in.InvoiceID, db.Hash(&in.CommitmentID), db.Address(&in.Registry), &in.Kind, db.Seconds(&in.CreatedAt), db.Seconds(&in.ExpiresAt)}
	}), `SELECT id, chain_key, invoice_id, commitment_id, registry, kind, created_at, (SELECT expires_at FROM invoices WHERE id = intents.invoice_id) FROM intents
		WHERE chain_key = $1 AND registry = $2 AND status = 'due' AND seen_block IS NULL AND id > $3 ORDER BY id LIMIT $4`,
		chainKey, registry.String(), after, limit)
}

// DueCount returns how many intents of the chain are due for a registry, and how many for other or
// unknown registries: these wait until their registry is configured.
func DueCount(ctx context.Context, q db.Querier, chainKey string, registry invoice.Address) (due, elsewhere int64, err error) {
	type counts struct{ due, all int64 }
	n, err := db.QueryRow(ctx, q, db.Fields(func(n *counts) []any { return []any{&n.due, &n.all} }), `SELECT (SELECT count(*) FROM intents WHERE chain_key = $1 AND status = 'due' AND registry = $2),
		(SELECT count(*) FROM intents WHERE chain_key = $1 AND status = 'due')`, chainKey, registry.String())
	return n.due, n.all - n.due, err
}

// ReleaseIntents makes the open intents of a transaction due again. It returns ErrConflict if another
// holder has the lease.
func ReleaseIntents(ctx context.Context, s *db.DB, l db.WorkLease, txID string) error {
	return s.WithWorkLease(ctx, l, func(tx *db.Tx) error { return ReleaseTxIntents(ctx, tx, txID) })
}

// ReleaseTxIntents makes the intents of a transaction due again.
func ReleaseTxIntents(ctx context.Context, tx *db.Tx, txID string) error {
	return tx.Do(ctx, "UPDATE intents SET status = 'due', tx_id = NULL WHERE tx_id = $1 AND status = 'sent'", txID)
}

// SettleIntents marks the intents of a transaction as done. It returns ErrConflict if another holder has the lease.
func SettleIntents(ctx context.Context, s *db.DB, l db.WorkLease, txID string) error {
	return s.WithWorkLease(ctx, l, func(tx *db.Tx) error {
		return tx.Do(ctx, "UPDATE intents SET status = 'done' WHERE tx_id = $1 AND status = 'sent'", txID)
	})
}

// SatisfyIntents marks due intents as done if their commitments reached the wanted state without them.
// It returns ErrConflict if the lease has another holder.
func SatisfyIntents(ctx context.Context, s *db.DB, l db.WorkLease, ids []string) error {
	return s.WithWorkLease(ctx, l, func(tx *db.Tx) error {
		_, err := ChangeIntents(ctx, tx, "SET status = 'done' WHERE status = 'due'", nil, ids)
		return err
	})
}

// ChangeIntents updates the intents with the ids and returns how many it changed. args are the parameters of update.
func ChangeIntents(ctx context.Context, tx *db.Tx, update string, args []any, ids []string) (int64, error) {
	var changed int64
	for chunk := range slices.Chunk(ids, db.MaxBatch) {
		all := slices.Clone(args)
		for _, id := range chunk {
			all = append(all, id)
		}
		n, err := tx.Exec(ctx, "UPDATE intents "+update+" AND id IN "+db.ParameterList(len(args), len(chunk)), all...)
		if err != nil {
			return changed, err
		}
		changed += n
	}
	return changed, nil
}

// insertRegistry records a registry of the chain, unless it is known already. It reports whether it was new.
func insertRegistry(ctx context.Context, tx *db.Tx, chainKey string, registry invoice.Address, at time.Time) (bool, error) {
	n, err := tx.Exec(ctx, "INSERT INTO registries (chain_key, address, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
		chainKey, registry.String(), invoice.UnixSeconds(at))
	return n > 0, err
}

// Registries returns all registries that the service has ever used on a chain.
func Registries(ctx context.Context, q db.Querier, chainKey string) ([]invoice.Address, error) {
	return db.QueryAll(ctx, q, db.One(db.Address), "SELECT address FROM registries WHERE chain_key = $1 ORDER BY address", chainKey)
}
