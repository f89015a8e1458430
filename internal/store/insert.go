package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxParameters is how many parameters one statement of PostgreSQL takes.
const maxParameters = 65535

// insertion describes rows to insert into a table. The first column is the
// row's key. Conflict is an ON CONFLICT clause that lets rows be left out.
type insertion struct {
	table    string
	columns  []string
	conflict string
}

// into inserts rows and returns, by key, which of them were: a conflict may
// have left some out. On SQLite, where a statement costs no round trip, the
// rows go in one by one; on PostgreSQL as few statements as possible carry
// them.
func (q *queries) into(ctx context.Context, ins insertion, rows [][]any) (map[any]bool, error) {
	inserted := make(map[any]bool, len(rows))
	perStatement := 1
	if q.postgres {
		perStatement = maxParameters / len(ins.columns)
	}
	for len(rows) > 0 {
		n := min(len(rows), perStatement)
		if err := q.intoOnce(ctx, ins, rows[:n], inserted); err != nil {
			return nil, fmt.Errorf("insert into %s: %w", ins.table, err)
		}
		rows = rows[n:]
	}
	return inserted, nil
}

func (q *queries) intoOnce(ctx context.Context, ins insertion, rows [][]any, inserted map[any]bool) (err error) {
	args := make([]any, 0, len(rows)*len(ins.columns))
	for _, row := range rows {
		args = append(args, row...)
	}
	text := "INSERT INTO " + ins.table + " (" + strings.Join(ins.columns, ", ") + ") VALUES " +
		placeholders(len(rows), len(ins.columns)) + " " + ins.conflict
	if len(rows) == 1 {
		n, err := q.exec(ctx, text, args...)
		if n == 1 {
			inserted[rows[0][0]] = true
		}
		return err
	}
	found, err := q.run.QueryContext(ctx, text+" RETURNING "+ins.columns[0], args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var key string
		if err := found.Scan(&key); err != nil {
			return err
		}
		inserted[key] = true
	}
	return found.Err()
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
