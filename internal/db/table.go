package db

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Column is a column of a row in memory: its name in the table, and the field that has its value.
type Column struct {
	name  string
	field Field
	read  bool // name is an expression that is only read
}

// Col is a column of a table.
func Col(name string, field Field) Column { return Column{name: name, field: field} }

// Expr is an expression that is read with a row, for example a column of another table, and never written.
func Expr(sql string, field Field) Column { return Column{name: sql, field: field, read: true} }

// Joined returns columns of a joined table, which are only read.
func Joined(columns ...Column) []Column {
	for i := range columns {
		columns[i].read = true
	}
	return columns
}

// Names returns the names of columns.
func Names(columns []Column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

// Table describes how the rows of a table are kept in values of type T. It is the only list of their columns: queries,
// scans, inserts, updates and bulk loads are derived from it.
type Table[T any] struct {
	name    string
	columns func(*T) []Column
	finish  func(*T)
	chosen  []int    // the positions of the columns in use
	list    string   // of these columns, see List
	names   []string // of those that are written
	types   []string // of names, as Insertion has them; empty for text
}

// NewTable describes the rows of a table by a function that returns the columns of a row, always the same ones in the
// same order.
func NewTable[T any](name string, columns func(*T) []Column) Table[T] {
	return Table[T]{name: name, columns: columns}.choose(func(Column) bool { return true })
}

// choose returns the table with the columns that are in it and for which in returns true.
func (t Table[T]) choose(in func(Column) bool) Table[T] {
	was, all := t.chosen, t.columns(new(T))
	t.chosen, t.names, t.types = nil, nil, nil
	for i, c := range all {
		if was != nil && !slices.Contains(was, i) || !in(c) {
			continue
		}
		t.chosen = append(t.chosen, i)
		if !c.read {
			t.names, t.types = append(t.names, c.name), append(t.types, typeOf(c.field))
		}
	}
	t.list = t.listWith("")
	return t
}

// typeOf returns the type of a field's column, as Insertion has it.
func typeOf(f Field) string {
	if f.number() {
		return "BIGINT"
	}
	return ""
}

// Finished returns the table with a function that completes each row that is read.
func (t Table[T]) Finished(finish func(*T)) Table[T] {
	t.finish = finish
	return t
}

// Only returns the table with only the named columns, in the order of the table.
func (t Table[T]) Only(names ...string) Table[T] {
	t.mustHave(names)
	return t.choose(func(c Column) bool { return slices.Contains(names, c.name) })
}

// Without returns the table without the named columns.
func (t Table[T]) Without(names ...string) Table[T] {
	t.mustHave(names)
	return t.choose(func(c Column) bool { return !slices.Contains(names, c.name) })
}

func (t Table[T]) mustHave(names []string) {
	for _, name := range names {
		if !slices.Contains(t.names, name) {
			panic("the table " + t.name + " has no column " + name)
		}
	}
}

// of returns the columns of a row.
func (t Table[T]) of(row *T) iter.Seq[Column] {
	all := t.columns(row)
	return func(yield func(Column) bool) {
		for _, i := range t.chosen {
			if !yield(all[i]) {
				return
			}
		}
	}
}

// List returns the columns as a query selects them.
func (t Table[T]) List() string { return t.list }

// Of is like List for a query of several tables. alias is the name of this one in the query.
func (t Table[T]) Of(alias string) string { return t.listWith(alias + ".") }

func (t Table[T]) listWith(prefix string) string {
	names := make([]string, 0, len(t.chosen))
	for c := range t.of(new(T)) {
		if c.read {
			names = append(names, c.name)
		} else {
			names = append(names, prefix+c.name)
		}
	}
	return strings.Join(names, ", ")
}

// Select returns the beginning of a query of the table, up to the name of the table.
func (t Table[T]) Select() string { return "SELECT " + t.list + " FROM " + t.name }

// Scan reads a row of the columns of List.
func (t Table[T]) Scan(row Scanner) (T, error) { return t.ScanAfter(row) }

// ScanAfter reads a row of other columns, followed by the columns of List.
func (t Table[T]) ScanAfter(row Scanner, first ...any) (v T, err error) {
	dest := append(make([]any, 0, len(first)+len(t.chosen)), first...)
	for c := range t.of(&v) {
		dest = append(dest, c.field)
	}
	if err = row.Scan(dest...); err == nil && t.finish != nil {
		t.finish(&v)
	}
	return v, err
}

// Insertion returns the description of an INSERT of Values, followed by the columns more.
func (t Table[T]) Insertion(conflict string, more ...string) Insertion {
	columns := make([]string, len(t.names), len(t.names)+len(more))
	for i, name := range t.names {
		columns[i] = strings.TrimSpace(name + " " + t.types[i])
	}
	return Insertion{Table: t.name, Columns: append(columns, more...), Conflict: conflict}
}

// Values returns the values to write of a row, followed by more.
func (t Table[T]) Values(row T, more ...any) []any {
	values := make([]any, 0, len(t.chosen)+len(more))
	for c := range t.of(&row) {
		if !c.read {
			values = append(values, c.field.value())
		}
	}
	return append(values, more...)
}

// rows returns the values to write of rows.
func (t Table[T]) rows(rows []T) [][]any {
	values := make([][]any, len(rows))
	for i, row := range rows {
		values[i] = t.Values(row)
	}
	return values
}

// Insert inserts rows. conflict is an ON CONFLICT clause, or empty.
func (t Table[T]) Insert(ctx context.Context, tx *Tx, conflict string, rows ...T) error {
	return tx.Insert(ctx, t.Insertion(conflict), t.rows(rows))
}

// InsertReturning inserts a row, and returns it as it is stored then.
func (t Table[T]) InsertReturning(ctx context.Context, tx *Tx, conflict string, row T) (T, error) {
	statement := "INSERT INTO " + t.name + " (" + strings.Join(t.names, ", ") + ") VALUES " + ParameterList(0, len(t.names)) + " " + conflict
	return QueryRow(ctx, tx, t.Scan, statement+" RETURNING "+t.list, t.Values(row)...)
}

// Excluded returns the assignments of an ON CONFLICT clause that replace the columns.
func (t Table[T]) Excluded() string { return t.From("excluded") }

// From returns assignments of the columns from columns of the same name.
func (t Table[T]) From(source string) string {
	return t.assignments(func(i int) string { return source + "." + t.names[i] })
}

// assignments returns assignments of values to the columns that are written.
func (t Table[T]) assignments(value func(i int) string) string {
	all := make([]string, len(t.names))
	for i, name := range t.names {
		all[i] = name + " = " + value(i)
	}
	return strings.Join(all, ", ")
}

// Update writes the columns to the rows under the condition, which has the parameters args, and returns how many rows
// it changed.
func (t Table[T]) Update(ctx context.Context, tx *Tx, row T, condition string, args ...any) (int64, error) {
	set := t.assignments(func(i int) string { return Parameter(len(args) + i + 1) })
	n, err := tx.Exec(ctx, "UPDATE "+t.name+" SET "+set+" WHERE "+condition, append(args, t.Values(row)...)...)
	if err != nil {
		return n, fmt.Errorf("update %s: %w", t.name, err)
	}
	return n, nil
}
