package access

import "time"

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
