package db

import (
	"fmt"
	"strings"
)

// Where collects the conditions of a query.
type Where struct {
	Conditions []string
	Args       []any
}

// Add adds a condition, in which $%d is the number of its parameter.
func (w *Where) Add(condition string, arg any) {
	w.Args = append(w.Args, arg)
	w.Conditions = append(w.Conditions, fmt.Sprintf(condition, len(w.Args)))
}

// Equal adds a condition unless the value is empty.
func (w *Where) Equal(column, value string) {
	if value != "" {
		w.Add(column+" = $%d", value)
	}
}

// Below adds a keyset condition unless the value is empty.
func (w *Where) Below(column, value string) {
	if value != "" {
		w.Add(column+" < $%d", value)
	}
}

// Text returns the clause WHERE with all conditions, or an empty text.
func (w *Where) Text() string {
	if len(w.Conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.Conditions, " AND ")
}

// Next returns the number of the first parameter after the conditions.
func (w *Where) Next() int { return len(w.Args) + 1 }

// IndexedBy returns a clause that makes SQLite use an index. With statistics of many equal rows it
// would prefer others (TestStatementsUseIndexes).
func (q *Queries) IndexedBy(index string) string {
	if q.OnPostgres() {
		return ""
	}
	return "INDEXED BY " + index + " "
}

// Ordered returns an expression that sorts by the bytes of its text.
func (q *Queries) Ordered(expression string) string {
	if q.OnPostgres() {
		return expression + ` COLLATE "C"`
	}
	return expression
}
