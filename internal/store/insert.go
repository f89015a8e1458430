package store

import (
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

// insertion describes an INSERT. The first column is the row's key. conflict is
// an ON CONFLICT clause, or empty.
type insertion struct {
	table    string
	columns  []string
	conflict string
}

// insert inserts rows, as send does. The ON CONFLICT clause may skip rows or update existing
// ones.
func (q *queries) insert(ctx context.Context, ins insertion, rows [][]any) error {
	return q.chunked(rows, len(ins.columns), func(part [][]any) error {
		return ins.wrap(q.send(ctx, nil, ins.text(len(part)), slices.Concat(part...)...))
	})
}

// insertReturningKeys inserts rows and returns the keys of those that the ON
// CONFLICT clause did not skip.
func (q *queries) insertReturningKeys(ctx context.Context, ins insertion, rows [][]any) (map[string]bool, error) {
	inserted := make(map[string]bool, len(rows))
	err := q.chunked(rows, len(ins.columns), func(part [][]any) error {
		keys, err := queryAll(ctx, q, func(row scanner) (key string, err error) {
			err = row.Scan(&key)
			return key, err
		}, ins.text(len(part))+" RETURNING "+ins.columns[0], slices.Concat(part...)...)
		for _, key := range keys {
			inserted[key] = true
		}
		return ins.wrap(err)
	})
	return inserted, err
}

// text returns the statement for a number of rows.
func (ins insertion) text(rows int) string {
	return "INSERT INTO " + ins.table + " (" + strings.Join(ins.columns, ", ") + ") VALUES " +
		placeholders(rows, len(ins.columns)) + " " + ins.conflict
}

func (ins insertion) wrap(err error) error {
	if err != nil {
		return fmt.Errorf("insert into %s: %w", ins.table, err)
	}
	return nil
}

// chunked calls fn with the rows in chunks, one for each statement. On
// PostgreSQL a chunk is as large as the parameters allow, since each statement
// costs a round trip; on SQLite its size is one of sqliteRows.
func (q *queries) chunked(rows [][]any, columns int, fn func(part [][]any) error) error {
	for len(rows) > 0 {
		n := min(len(rows), (maxParameters-1)/columns)
		if !q.postgres {
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
			b.WriteString(parameter(n))
		}
		b.WriteByte(')')
	}
	return b.String()
}

// parameterList returns n parameters in parentheses, numbered after the first
// `before` ones, for IN: with before 1 and n 2, ($2,$3).
func parameterList(before, n int) string {
	var b strings.Builder
	b.WriteByte('(')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(parameter(before + i + 1))
	}
	b.WriteByte(')')
	return b.String()
}

// parameter returns the nth parameter of a statement.
func parameter(n int) string { return "$" + strconv.Itoa(n) }
