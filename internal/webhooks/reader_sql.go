package webhooks

import "github.com/quittance/quittance/internal/db"

// Reader reads the package's tables.
type Reader struct{ db.Querier }

// NewReader returns a Reader of the database, or of a transaction.
func NewReader(q db.Querier) Reader { return Reader{q} }

// Tables are the package's tables in a database.
type Tables struct {
	Reader
	*db.DB
}

// NewTables returns the package's tables in a database.
func NewTables(database *db.DB) Tables { return Tables{NewReader(database), database} }
