package report

import "github.com/quittance/quittance/internal/db"

// Reader reads the package's tables.
type Reader struct{ db.Querier }

// NewReader returns a Reader of the database, or of a transaction.
func NewReader(q db.Querier) Reader { return Reader{q} }
