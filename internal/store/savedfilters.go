package store

import (
	"context"

	"github.com/quittance/quittance/internal/access"
)

// SavedFilters returns up to limit filters of a list that the person of a key keeps, in the
// order of their names.
func (q *queries) SavedFilters(ctx context.Context, keyID string, list string, limit int) ([]access.SavedFilter, error) {
	return queryAll(ctx, q, func(row scanner) (f access.SavedFilter, err error) {
		err = row.Scan(&f.Name, &f.Query, seconds{&f.CreatedAt})
		f.List = list
		return f, err
	}, "SELECT name, query, created_at FROM saved_filters WHERE key_id = $1 AND list = $2 ORDER BY name LIMIT $3", keyID, list, limit)
}

// PutSavedFilter stores a filter. One of the same list and name is replaced.
func (tx *Tx) PutSavedFilter(ctx context.Context, keyID string, f access.SavedFilter) error {
	return tx.insert(ctx, insertion{
		"saved_filters", []string{"key_id", "list", "name", "query", "created_at"}, "ON CONFLICT (key_id, list, name) DO UPDATE SET query = excluded.query",
	}, [][]any{{keyID, f.List, f.Name, f.Query, f.CreatedAt.Unix()}})
}

// DeleteSavedFilter deletes a filter, if there is one.
func (tx *Tx) DeleteSavedFilter(ctx context.Context, keyID string, list string, name string) error {
	_, err := tx.exec(ctx, "DELETE FROM saved_filters WHERE key_id = $1 AND list = $2 AND name = $3", keyID, list, name)
	return err
}
