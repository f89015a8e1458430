package store

import (
	"context"
	"slices"
	"strings"
)

// maxBatch bounds the values that one statement looks up.
const maxBatch = 1024

// batchSizes are the numbers of values that one statement looks up. Few sizes
// keep the number of prepared statements small.
var batchSizes = []int{1, 4, 16, 64, 256, maxBatch}

// inBatches calls fn with the values in batches of batchSizes. It pads the last
// batch with the value nothing, which must match no row.
func inBatches[V any](values []V, nothing V, fn func(list []V) error) error {
	for len(values) > 0 {
		var size int
		for _, size = range batchSizes {
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

// queryIn runs a query for batches of the values and joins the results. The
// zero value pads batches, so it must match no row.
func queryIn[V, T any](values []V, query func(chunk []any) ([]T, error)) ([]T, error) {
	var all []T
	var nothing V
	err := inBatches(values, nothing, func(list []V) error {
		found, err := query(toAny(list))
		all = append(all, found...)
		return err
	})
	return all, err
}

// sendIn runs a statement that ends with IN for batches of the values, as send does. The
// zero value pads batches, so it must match no row.
func sendIn[V any](ctx context.Context, q *queries, text string, values []V) error {
	var nothing V
	return inBatches(values, nothing, func(part []V) error {
		return q.send(ctx, nil, text+parameterList(0, len(part)), toAny(part)...)
	})
}

func toAny[V any](values []V) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}

// withWanted returns the clause WITH wanted (…) AS (VALUES …) that a statement
// begins with, and its parameters. A column's name is followed by its type
// unless the column holds text.
func withWanted(columns []string, rows [][]any) (text string, args []any) {
	names, types := splitTypes(columns)
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
				p = "CAST(" + p + " AS " + types[c] + ")" // PostgreSQL takes the types of the first row
			}
			b.WriteString(p)
		}
		b.WriteByte(')')
		args = append(args, row...)
	}
	b.WriteString(") ")
	return b.String(), args
}

// whichExist returns the indexes of those rows for which the table holds a row
// under the conditions. The conditions refer to a row's texts by the names in
// columns.
func (q *queries) whichExist(ctx context.Context, columns []string, rows [][]any, tableAndConditions string) ([]int, error) {
	numbered := make([][]any, len(rows))
	for n, row := range rows {
		numbered[n] = append([]any{int64(n)}, row...)
	}
	columns = append([]string{"n BIGINT"}, columns...)
	var found []int
	err := q.lookUpWanted(columns, numbered, func(with string, args []any) error {
		some, err := queryAll(ctx, q, func(row scanner) (n int, err error) {
			err = row.Scan(&n)
			return n, err
		}, with+"SELECT n"+fromExisting(tableAndConditions), args...)
		found = append(found, some...)
		return err
	})
	return found, err
}

// sendCountExisting is whichExist for their number, which count has after the next Flush.
func (tx *Tx) sendCountExisting(ctx context.Context, columns []string, rows [][]any, tableAndConditions string) (count *int, err error) {
	count = new(int)
	err = tx.lookUpWanted(columns, rows, func(with string, args []any) error {
		return tx.send(ctx, func(row scanner) error {
			var some int
			err := row.Scan(&some)
			*count += some
			return err
		}, with+"SELECT count(*)"+fromExisting(tableAndConditions), args...)
	})
	return count, err
}

// fromExisting is the end of a query that selects of those rows of wanted for which one of the tables
// holds a row under its conditions. OFFSET 0 keeps PostgreSQL from turning the lookups into a join that
// reads the whole table.
func fromExisting(tablesAndConditions ...string) string {
	exists := make([]string, len(tablesAndConditions))
	for i, t := range tablesAndConditions {
		exists[i] = "EXISTS (SELECT 1 FROM " + t + " LIMIT 1 OFFSET 0)"
	}
	return " FROM wanted WHERE " + strings.Join(exists, " OR ")
}

// minLookups is how many rows PostgreSQL expects of an array. For fewer it would make a new plan each time, which takes
// longer than looking up so many.
const minLookups = 10

// lookUpWanted calls do with the clause WITH wanted that holds rows to look up, up to maxBatch
// at a time. Rows of -1, 0 and empty texts, which must match nothing, pad them: to batchSizes on SQLite, to
// minLookups on PostgreSQL.
func (q *queries) lookUpWanted(columns []string, rows [][]any, do func(with string, args []any) error) error {
	nothing := make([]any, len(columns))
	for i, column := range columns {
		switch {
		case !strings.HasSuffix(column, " BIGINT"):
			nothing[i] = ""
		case i == 0:
			nothing[i] = int64(-1)
		default:
			nothing[i] = int64(0)
		}
	}
	if q.postgres {
		for part := range slices.Chunk(rows, maxBatch) {
			for len(part) < minLookups {
				part = append(part[:len(part):len(part)], nothing)
			}
			if err := q.wanted(columns, part, do); err != nil {
				return err
			}
		}
		return nil
	}
	return inBatches(rows, nothing, func(part [][]any) error {
		return do(withWanted(columns, part))
	})
}

// lookUpIn runs a query that ends with IN for texts to look up, and joins the results. An empty text must
// match no row.
func lookUpIn[T any](ctx context.Context, q *queries, scan func(scanner) (T, error), query string, texts []string) (all []T, err error) {
	err = q.lookUpWanted([]string{"text"}, rowsOf(texts), func(with string, args []any) error {
		found, err := queryAll(ctx, q, scan, with+query+"(SELECT text FROM wanted)", args...)
		all = append(all, found...)
		return err
	})
	return all, err
}

// rowsOf returns a row of each text.
func rowsOf(texts []string) [][]any {
	rows := make([][]any, len(texts))
	for i, text := range texts {
		rows[i] = []any{text}
	}
	return rows
}

// updateFrom runs an UPDATE … FROM wanted, where wanted holds the rows, and
// returns how many rows it changed.
func (q *queries) updateFrom(ctx context.Context, columns []string, rows [][]any, update string) (changed int64, err error) {
	err = q.wanted(columns, rows, func(with string, args []any) error {
		n, err := q.exec(ctx, with+update, args...)
		changed += n
		return err
	})
	return changed, err
}

// sendFrom runs an UPDATE … FROM wanted, where wanted holds the rows, as send does.
func (q *queries) sendFrom(ctx context.Context, columns []string, rows [][]any, update string) error {
	return q.wanted(columns, rows, func(with string, args []any) error {
		return q.send(ctx, nil, with+update, args...)
	})
}

// wanted calls do with the clause WITH wanted that holds the rows: with all of them on
// PostgreSQL, as one array for each column, and with chunks of them on SQLite.
func (q *queries) wanted(columns []string, rows [][]any, do func(with string, args []any) error) error {
	switch {
	case len(rows) == 0:
		return nil
	case q.postgres:
		names, types := splitTypes(columns)
		return do("WITH wanted ("+strings.Join(names, ", ")+") AS (SELECT * FROM unnest("+arrayParameters(types)+")) ", arrays(types, rows))
	}
	return q.chunked(rows, len(columns), func(part [][]any) error {
		return do(withWanted(columns, part))
	})
}
