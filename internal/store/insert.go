package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxParameters is how many parameters one statement of PostgreSQL takes. One
// is left for what a conflict asks.
const maxParameters = 65535

// sqliteRows are how many rows one statement writes on SQLite, the most that
// there are: few numbers, so that the statements are few. With the largest,
// what it costs to begin a statement is shared.
var sqliteRows = []int{16, 4, 1}

// insertion describes rows to insert into a table. The first column is the
// row's key. Conflict is an ON CONFLICT clause that lets rows be left out.
type insertion struct {
	table    string
	columns  []string
	conflict string
}

// into inserts rows. A conflict may leave some out, or change those that are
// there.
func (q *queries) into(ctx context.Context, ins insertion, rows [][]any) error {
	return q.written(rows, len(ins.columns), func(part [][]any) error {
		_, err := q.exec(ctx, ins.text(len(part)), slices.Concat(part...)...)
		return ins.wrap(err)
	})
}

// intoSome inserts rows and returns, by key, which of them were: a conflict may
// have left some out.
func (q *queries) intoSome(ctx context.Context, ins insertion, rows [][]any) (map[string]bool, error) {
	inserted := make(map[string]bool, len(rows))
	err := q.written(rows, len(ins.columns), func(part [][]any) error {
		keys, err := collect(ctx, q, func(row scanner) (key string, err error) {
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

// text writes the statement for a number of rows.
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

// written calls fn with rows of so many values each, as many at once as one
// statement is best to write: on PostgreSQL all that it takes, since each costs
// a round trip; on SQLite one of sqliteRows.
func (q *queries) written(rows [][]any, columns int, fn func(part [][]any) error) error {
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

// placeholders writes rows of numbered parameters: ($1,$2),($3,$4).
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

// list writes a parenthesised list of n parameters after the first `before`
// ones, for IN: with before 1 and n 2, ($2,$3).
func list(before, n int) string {
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

// parameter writes the nth parameter of a statement.
func parameter(n int) string { return "$" + strconv.Itoa(n) }
