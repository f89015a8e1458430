package access

import (
	"context"

	"github.com/quittance/quittance/internal/db"
)

// savedFilters returns up to limit filters of a list that the person with a key saved, in the order of their names.
func savedFilters(ctx context.Context, q db.Querier, keyID string, list string, limit int) ([]SavedFilter, error) {
	return db.QueryAll(ctx, q, func(row db.Scanner) (f SavedFilter, err error) {
		err = row.Scan(&f.Name, &f.Query, db.Seconds(&f.CreatedAt))
		f.List = list
		return f, err
	}, "SELECT name, query, created_at FROM saved_filters WHERE key_id = $1 AND list = $2 ORDER BY name LIMIT $3", keyID, list, limit)
}

// PutSavedFilter stores a filter. It replaces one with the same list and name.
func PutSavedFilter(ctx context.Context, tx *db.Tx, keyID string, f SavedFilter) error {
	return tx.Insert(ctx, db.Insertion{
		Table: "saved_filters", Columns: []string{"key_id", "list", "name", "query", "created_at"}, Conflict: "ON CONFLICT (key_id, list, name) DO UPDATE SET query = excluded.query",
	}, [][]any{{keyID, f.List, f.Name, f.Query, f.CreatedAt.Unix()}})
}

// deleteSavedFilter deletes a filter, if there is one.
func deleteSavedFilter(ctx context.Context, tx *db.Tx, keyID string, list string, name string) error {
	return tx.Do(ctx, "DELETE FROM saved_filters WHERE key_id = $1 AND list = $2 AND name = $3", keyID, list, name)
}
