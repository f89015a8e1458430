package db

import (
	"context"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
)

// MaxBatch bounds the values that one statement looks up.
const MaxBatch = 1024

// batchSizes are the numbers of values that one statement looks up. Few sizes
// keep the number of prepared statements small.
var batchSizes = []int{1, 4, 16, 64, 256, MaxBatch}

// InBatches calls fn with the values in batches of batchSizes. It pads the last batch with nothing, a
// value that must match no row.
func InBatches[V any](values []V, nothing V, fn func(list []V) error) error {
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

// QueryIn runs a query for batches of the values and joins the results. The
// zero value pads batches, so it must match no row.
func QueryIn[V, T any](values []V, query func(chunk []any) ([]T, error)) ([]T, error) {
	var all []T
	var nothing V
	err := InBatches(values, nothing, func(list []V) error {
		found, err := query(ToAny(list))
		all = append(all, found...)
		return err
	})
	return all, err
}

// AllIn reads all rows of a query that ends with IN, for batches of the values. first are its parameters before them. The
// zero value pads batches, so it must match no row.
func AllIn[V, T any](ctx context.Context, q Querier, scan func(Scanner) (T, error), query string, values []V, first ...any) ([]T, error) {
	return QueryIn(values, func(chunk []any) ([]T, error) {
		return QueryAll(ctx, q, scan, query+ParameterList(len(first), len(chunk)), slices.Concat(first, chunk)...)
	})
}

// SendIn runs a statement that ends with IN for batches of the values, as send does. The
// zero value pads batches, so it must match no row.
func SendIn[V any](ctx context.Context, q Querier, text string, values []V) error {
	var nothing V
	return InBatches(values, nothing, func(part []V) error {
		return q.Send(ctx, nil, text+ParameterList(0, len(part)), ToAny(part)...)
	})
}

// ToAny returns the values as arguments of a statement.
func ToAny[V any](values []V) []any {
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
			p := Parameter(r*len(row) + c + 1)
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

// WhichExist returns the indexes of the rows that have a match in the table. The conditions refer to a
// row's texts by the names in columns.
func (q *Queries) WhichExist(ctx context.Context, columns []string, rows [][]any, tableAndConditions string) ([]int, error) {
	numbered := make([][]any, len(rows))
	for n, row := range rows {
		numbered[n] = append([]any{int64(n)}, row...)
	}
	columns = append([]string{"n BIGINT"}, columns...)
	var found []int
	err := q.LookUpWanted(columns, numbered, func(with string, args []any) error {
		some, err := QueryAll(ctx, q, ScanCount, with+"SELECT n"+FromExisting(tableAndConditions), args...)
		found = append(found, some...)
		return err
	})
	return found, err
}

// SendCountExisting is like WhichExist, but sets count to the number of these rows at the next Flush.
func (tx *Tx) SendCountExisting(ctx context.Context, columns []string, rows [][]any, tableAndConditions string) (count *int, err error) {
	count = new(int)
	err = tx.LookUpWanted(columns, rows, func(with string, args []any) error {
		return tx.Send(ctx, func(row Scanner) error {
			var some int
			err := row.Scan(&some)
			*count += some
			return err
		}, with+"SELECT count(*)"+FromExisting(tableAndConditions), args...)
	})
	return count, err
}

// FromExisting ends a query on wanted. It selects the rows that have a match in a table under the
// conditions. OFFSET 0 keeps PostgreSQL from turning the lookups into a join that reads the whole
// table.
func FromExisting(tableAndConditions string) string {
	return " FROM wanted WHERE EXISTS (SELECT 1 FROM " + tableAndConditions + " LIMIT 1 OFFSET 0)"
}

// minLookups is how many rows PostgreSQL expects of an array. For fewer it would make a new plan each
// time, which takes longer than looking up the additional rows.
const minLookups = 10

// LookUpWanted calls do with the clause WITH wanted that holds rows to look up, up to maxBatch at a
// time. Rows of -1, 0 and empty texts, which must match no row, pad them: to batchSizes on SQLite, to
// minLookups on PostgreSQL.
func (q *Queries) LookUpWanted(columns []string, rows [][]any, do func(with string, args []any) error) error {
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
	if q.OnPostgres() {
		for part := range slices.Chunk(rows, MaxBatch) {
			for len(part) < minLookups {
				part = append(part[:len(part):len(part)], nothing)
			}
			if err := q.Wanted(columns, part, do); err != nil {
				return err
			}
		}
		return nil
	}
	return InBatches(rows, nothing, func(part [][]any) error {
		return do(withWanted(columns, part))
	})
}

// LookUpIn runs a query that ends with IN for texts to look up, and joins the results. An empty text must
// match no row.
func LookUpIn[T any](ctx context.Context, q Querier, scan func(Scanner) (T, error), query string, texts []string) (all []T, err error) {
	err = q.Base().LookUpWanted([]string{"text"}, RowsOf(texts), func(with string, args []any) error {
		found, err := QueryAll(ctx, q, scan, with+query+"(SELECT text FROM wanted)", args...)
		all = append(all, found...)
		return err
	})
	return all, err
}

// RowsOf returns one row for each text.
func RowsOf(texts []string) [][]any {
	rows := make([][]any, len(texts))
	for i, text := range texts {
		rows[i] = []any{text}
	}
	return rows
}

// UpdateFrom runs an UPDATE … FROM wanted, where wanted holds the rows, and
// returns how many rows it changed.
func (q *Queries) UpdateFrom(ctx context.Context, columns []string, rows [][]any, update string) (changed int64, err error) {
	err = q.Wanted(columns, rows, func(with string, args []any) error {
		n, err := q.Exec(ctx, with+update, args...)
		changed += n
		return err
	})
	return changed, err
}

// SendFrom runs an UPDATE … FROM wanted, where wanted holds the rows, as send does.
func (q *Queries) SendFrom(ctx context.Context, columns []string, rows [][]any, update string) error {
	return q.Wanted(columns, rows, func(with string, args []any) error {
		return q.Send(ctx, nil, with+update, args...)
	})
}

// Wanted calls do with the clause WITH Wanted that holds the rows: on PostgreSQL once, with one array
// for each column, and on SQLite for each chunk of the rows.
func (q *Queries) Wanted(columns []string, rows [][]any, do func(with string, args []any) error) error {
	switch {
	case len(rows) == 0:
		return nil
	case q.OnPostgres():
		names, types := splitTypes(columns)
		return do("WITH wanted ("+strings.Join(names, ", ")+") AS (SELECT * FROM unnest("+arrayParameters(types)+")) ", arrays(types, rows))
	}
	return q.chunked(rows, len(columns), func(part [][]any) error {
		return do(withWanted(columns, part))
	})
}

// Each returns column(row) of every row.
func Each[R, V any](rows []R, column func(R) V) []V {
	values := make([]V, len(rows))
	for i, r := range rows {
		values[i] = column(r)
	}
	return values
}

// ForNoKeyUpdate is the clause that locks the rows of a SELECT until the transaction ends, for changes that leave their
// keys alone. Other transactions can still insert rows that refer to them. SQLite has one writer and needs no clause.
func (tx *Tx) ForNoKeyUpdate() string {
	if tx.OnPostgres() {
		return " FOR NO KEY UPDATE"
	}
	return ""
}

// SkipLocked is like ForNoKeyUpdate, and skips rows that other transactions have locked.
func (tx *Tx) SkipLocked() string {
	if tx.OnPostgres() {
		return tx.ForNoKeyUpdate() + " SKIP LOCKED"
	}
	return ""
}

// WhichAddresses returns the addresses for which the table has a row under the conditions on chain and
// account.
func (q *Queries) WhichAddresses(ctx context.Context, chainKey string, among []invoice.Address, tableAndConditions string) (map[invoice.Address]bool, error) {
	rows := make([][]any, len(among))
	for i, a := range among {
		rows[i] = []any{chainKey, a.String()}
	}
	found, err := q.WhichExist(ctx, []string{"chain", "account"}, rows, tableAndConditions)
	which := make(map[invoice.Address]bool, len(found))
	for _, n := range found {
		which[among[n]] = true
	}
	return which, err
}
