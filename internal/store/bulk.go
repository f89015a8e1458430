package store

import (
	"context"
	"strings"
)

// chunkSize bounds the values that one statement is asked about.
const chunkSize = 1024

// listSizes are the numbers of values that one statement is asked about. They
// are few, so that the statements are.
var listSizes = []int{1, 4, 16, 64, 256, chunkSize}

// padded calls fn with the values in lists of few lengths, which are filled up
// with a value that finds nothing.
func padded[V any](values []V, nothing V, fn func(list []V) error) error {
	for len(values) > 0 {
		var size int
		for _, size = range listSizes {
			if size >= len(values) {
				break
			}
		}
		n := min(size, len(values))
		list := make([]V, size)
		for i := copy(list, values); i < size; i++ {
			list[i] = nothing
		}
		if err := fn(list); err != nil {
			return err
		}
		values = values[n:]
	}
	return nil
}

// inChunks runs a query over the values, none of which is empty, in lists of
// bounded length and joins the answers.
func inChunks[V, T any](values []V, query func(chunk []any) ([]T, error)) ([]T, error) {
	var all []T
	var nothing V
	err := padded(values, nothing, func(list []V) error {
		found, err := query(anys(list))
		all = append(all, found...)
		return err
	})
	return all, err
}

// execIn runs a statement that ends with IN over the values, none of which is
// empty.
func execIn[V any](ctx context.Context, q *queries, text string, values []V) error {
	var nothing V
	return padded(values, nothing, func(part []V) error {
		_, err := q.exec(ctx, text+list(0, len(part)), anys(part)...)
		return err
	})
}

func anys[V any](values []V) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}

// values writes the beginning of a statement that looks up rows of values:
// WITH wanted (…) AS (VALUES …), and returns its parameters, the first of the
// statement. A column that does not hold text is given with its type.
func values(columns []string, rows [][]any) (text string, args []any) {
	names, types := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i], types[i], _ = strings.Cut(c, " ")
	}
	var b strings.Builder
	b.WriteString("WITH wanted (" + strings.Join(names, ", ") + ") AS (VALUES ")
	for r, row := range rows {
		if r > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('(')
		for c := range row {
			if c > 0 {
				b.WriteByte(',')
			}
			p := parameter(r*len(row) + c + 1)
			if r == 0 && types[c] != "" {
				p = "CAST(" + p + " AS " + types[c] + ")" // PostgreSQL goes by the first row
			}
			b.WriteString(p)
		}
		b.WriteByte(')')
		args = append(args, row...)
	}
	b.WriteString(") ")
	return b.String(), args
}

// existing returns the numbers of the rows of texts for which a row exists: one
// of the table and under the conditions that are given, in which the texts have
// the names of the columns. Each is looked up by itself: the offset keeps
// PostgreSQL from reading the whole table for all of them.
func (q *queries) existing(ctx context.Context, columns []string, rows [][]any, tableAndConditions string) ([]int, error) {
	numbered := make([][]any, len(rows))
	for n, row := range rows {
		numbered[n] = append([]any{int64(n)}, row...)
	}
	nothing := append([]any{int64(-1)}, anys(make([]string, len(columns)))...)
	columns = append([]string{"n BIGINT"}, columns...)
	var found []int
	err := padded(numbered, nothing, func(part [][]any) error {
		text, args := values(columns, part)
		some, err := collect(ctx, q, func(row scanner) (n int, err error) {
			err = row.Scan(&n)
			return n, err
		}, text+"SELECT n FROM wanted WHERE EXISTS (SELECT 1 FROM "+tableAndConditions+" LIMIT 1 OFFSET 0)", args...)
		found = append(found, some...)
		return err
	})
	return found, err
}

// change runs an update from the table wanted that values writes, and returns
// how many rows it changed.
func (q *queries) change(ctx context.Context, columns []string, rows [][]any, update string) (changed int64, err error) {
	err = q.written(rows, len(columns), func(part [][]any) error {
		text, args := values(columns, part)
		n, err := q.exec(ctx, text+update, args...)
		changed += n
		return err
	})
	return changed, err
}
