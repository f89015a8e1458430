package db

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxParameters is how many parameters one statement takes on PostgreSQL.
// chunked leaves one for the ON CONFLICT clause.
const maxParameters = 65535

// sqliteRows are the numbers of rows that one statement writes on SQLite. Few
// sizes keep the number of prepared statements small.
var sqliteRows = []int{16, 4, 1}

// Insertion describes an INSERT. The first column is the row's key. conflict is an ON CONFLICT clause,
// or empty. The type text or BIGINT may follow a column's name: if any column has a type, PostgreSQL
// gets one array for each column, and plans one statement for any number of rows.
type Insertion struct {
	Table    string
	Columns  []string
	Conflict string
}

// Insert inserts rows, as send does. The ON CONFLICT clause may skip rows or update existing
// ones.
func (q *Queries) Insert(ctx context.Context, ins Insertion, rows [][]any) error {
	return q.insertions(ins, rows, func(text string, args []any) error {
		return q.Send(ctx, nil, text, args...)
	})
}

// InsertReturningKeys inserts rows and returns the keys of those that the ON
// CONFLICT clause did not skip.
func (q *Queries) InsertReturningKeys(ctx context.Context, ins Insertion, rows [][]any) (map[string]bool, error) {
	inserted := make(map[string]bool, len(rows))
	err := q.insertions(ins, rows, func(text string, args []any) error {
		keys, err := QueryAll(ctx, q, ScanID, text+" RETURNING "+ins.Columns[0], args...)
		for _, key := range keys {
			inserted[key] = true
		}
		return err
	})
	return inserted, err
}

// InsertNew inserts a row, or returns ErrConflict if the ON CONFLICT clause skips it.
func (q *Queries) InsertNew(ctx context.Context, ins Insertion, row []any) error {
	inserted, err := q.InsertReturningKeys(ctx, ins, [][]any{row})
	if err == nil && len(inserted) == 0 {
		err = ErrConflict
	}
	return err
}

// insertions calls do with the statements that insert the rows.
func (q *Queries) insertions(ins Insertion, rows [][]any, do func(text string, args []any) error) error {
	names, types := splitTypes(ins.Columns)
	into := "INSERT INTO " + ins.Table + " (" + strings.Join(names, ", ") + ") "
	var err error
	switch {
	case len(rows) == 0:
	case q.OnPostgres() && slices.ContainsFunc(types, func(t string) bool { return t != "" }):
		err = do(into+"SELECT * FROM unnest("+arrayParameters(types)+") "+ins.Conflict, arrays(types, rows))
	default:
		err = q.chunked(rows, len(names), func(part [][]any) error {
			return do(into+"VALUES "+placeholders(len(part), len(names))+" "+ins.Conflict, slices.Concat(part...))
		})
	}
	if err != nil {
		return fmt.Errorf("insert into %s: %w", ins.Table, err)
	}
	return nil
}

// splitTypes splits columns into their names and their types, empty for text.
func splitTypes(columns []string) (names, types []string) {
	names, types = make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i], types[i], _ = strings.Cut(c, " ")
	}
	return names, types
}

// arrayParameters returns a parameter for an array of each type.
func arrayParameters(types []string) string {
	all := make([]string, len(types))
	for i, t := range types {
		all[i] = "CAST(" + Parameter(i+1) + " AS " + cmp.Or(t, "TEXT") + "[])"
	}
	return strings.Join(all, ", ")
}

// arrays returns the columns of rows that hold texts, numbers and nil.
func arrays(types []string, rows [][]any) []any {
	columns := make([]any, len(types))
	for c, t := range types {
		if t == "" {
			columns[c] = arrayOf(rows, c, func(v any) string { return v.(string) }) // the column has this type
		} else {
			columns[c] = arrayOf(rows, c, wideInt)
		}
	}
	return columns
}

// wideInt returns the value of an integer column, an int or an int64.
func wideInt(v any) int64 {
	if n, ok := v.(int); ok {
		return int64(n)
	}
	return v.(int64)
}

// arrayOf returns a column of rows, with nil for NULL.
func arrayOf[T any](rows [][]any, column int, as func(any) T) []*T {
	values := make([]*T, len(rows))
	for i, row := range rows {
		if row[column] != nil {
			v := as(row[column])
			values[i] = &v
		}
	}
	return values
}

// chunked calls fn with the rows in chunks, one for each statement. On
// PostgreSQL a chunk is as large as the parameters allow, since each statement
// costs a round trip; on SQLite its size is one of sqliteRows.
func (q *Queries) chunked(rows [][]any, columns int, fn func(part [][]any) error) error {
	for len(rows) > 0 {
		n := min(len(rows), (maxParameters-1)/columns)
		if !q.OnPostgres() {
			n = sqliteRows[slices.IndexFunc(sqliteRows, func(size int) bool { return size <= len(rows) })]
		}
		if err := fn(rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// placeholders returns rows of numbered parameters: ($1,$2),($3,$4).
func placeholders(rows, columns int) string {
	var b strings.Builder
	n := 0
	for r := range rows {
		if r > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('(')
		for c := range columns {
			if c > 0 {
				b.WriteByte(',')
			}
			n++
			b.WriteString(Parameter(n))
		}
		b.WriteByte(')')
	}
	return b.String()
}

// ParameterList returns n parameters in parentheses, numbered after the first
// `before` ones, for IN: with before 1 and n 2, ($2,$3).
func ParameterList(before, n int) string {
	var b strings.Builder
	b.WriteByte('(')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(Parameter(before + i + 1))
	}
	b.WriteByte(')')
	return b.String()
}

// Parameter returns the nth parameter of a statement.
func Parameter(n int) string { return "$" + strconv.Itoa(n) }
