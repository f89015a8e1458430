package access

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/quittance/quittance/internal/db"
)

// Errors of SaveFilter.
var (
	ErrFilterName  = errors.New("a filter's name must have 1 to 60 characters, without control characters")
	ErrFilterQuery = errors.New("the filter is empty, or too long")
	ErrFilters     = errors.New("the person keeps as many filters of the list as are allowed")
)

// Filters returns the saved filters of a list of the person of a session, by name.
func (m *SessionManager) Filters(ctx context.Context, s Session, list string) ([]SavedFilter, error) {
	return savedFilters(ctx, m.cfg.Store, s.KeyID, list, MaxSavedFilters)
}

// SaveFilter saves a filter for the person of a session. It replaces a filter with the same name.
func (m *SessionManager) SaveFilter(ctx context.Context, s Session, f SavedFilter) error {
	f.Name = strings.TrimSpace(f.Name)
	f.CreatedAt = m.now()
	switch n := utf8.RuneCountInString(f.Name); {
	case n == 0, n > MaxFilterName, !utf8.ValidString(f.Name), strings.ContainsFunc(f.Name, unicode.IsControl):
		return ErrFilterName
	case f.Query == "", len(f.Query) > MaxFilterQuery:
		return ErrFilterQuery
	}
	return m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		if err := PutSavedFilter(ctx, tx, s.KeyID, f); err != nil {
			return err
		}
		all, err := savedFilters(ctx, tx, s.KeyID, f.List, MaxSavedFilters+1)
		if err == nil && len(all) > MaxSavedFilters {
			err = ErrFilters
		}
		return err
	})
}

// RemoveFilter removes a filter of the person of a session, if there is one.
func (m *SessionManager) RemoveFilter(ctx context.Context, s Session, list string, name string) error {
	return m.cfg.Store.Update(ctx, func(tx *db.Tx) error { return deleteSavedFilter(ctx, tx, s.KeyID, list, name) })
}

// Limits of saved filters.
const (
	// MaxSavedFilters bounds the filters of a person for a list.
	MaxSavedFilters = 20
	// MaxFilterName bounds the name of a filter, in characters.
	MaxFilterName = 60
	// MaxFilterQuery bounds the query of a filter, in bytes.
	MaxFilterQuery = 4000
)

// SavedFilter is a filter of a list at the dashboard that a person saved under a name.
type SavedFilter struct {
	List      string // path of the list's page
	Name      string
	Query     string // of the page's address, encoded
	CreatedAt time.Time
}
