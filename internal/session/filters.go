package session

import (
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
)

// Errors of SaveFilter.
var (
	ErrFilterName  = errors.New("a filter's name must have 1 to 60 characters, without control characters")
	ErrFilterQuery = errors.New("the filter is empty, or too long")
	ErrFilters     = errors.New("the person keeps as many filters of the list as are allowed")
)

// Filters returns the saved filters of a list of the person of a session, by name.
func (m *Manager) Filters(ctx context.Context, s access.Session, list string) ([]access.SavedFilter, error) {
	return access.SavedFilters(ctx, m.cfg.Store, s.KeyID, list, access.MaxSavedFilters)
}

// SaveFilter saves a filter for the person of a session. It replaces a filter with the same name.
func (m *Manager) SaveFilter(ctx context.Context, s access.Session, f access.SavedFilter) error {
	f.Name = strings.TrimSpace(f.Name)
	f.CreatedAt = m.now()
	switch n := utf8.RuneCountInString(f.Name); {
	case n == 0, n > access.MaxFilterName, !utf8.ValidString(f.Name), strings.ContainsFunc(f.Name, unicode.IsControl):
		return ErrFilterName
	case f.Query == "", len(f.Query) > access.MaxFilterQuery:
		return ErrFilterQuery
	}
	return m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		if err := access.PutSavedFilter(ctx, tx, s.KeyID, f); err != nil {
			return err
		}
		all, err := access.SavedFilters(ctx, tx, s.KeyID, f.List, access.MaxSavedFilters+1)
		if err == nil && len(all) > access.MaxSavedFilters {
			err = ErrFilters
		}
		return err
	})
}

// RemoveFilter removes a filter of the person of a session, if there is one.
func (m *Manager) RemoveFilter(ctx context.Context, s access.Session, list string, name string) error {
	return m.cfg.Store.Update(ctx, func(tx *db.Tx) error { return access.DeleteSavedFilter(ctx, tx, s.KeyID, list, name) })
}
