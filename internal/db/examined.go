package db

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
)

// MaxExamined is how many rows one statement of a list examines. A list with several filters reads the
// index of one of them, and tests the rows for the others, so a page may end before it is full.
const MaxExamined = 2000

var maxExamined = strconv.Itoa(MaxExamined)

// Selection is the statement of a list, in descending order of a key. An index finds the rows that
// meet the conditions of where, in that order. Up to MaxExamined of these rows are tested for the
// other conditions, if there are any.
type Selection struct {
	Where
	Rows     string   // the table that is listed
	From     string   // rows, or a table with an index that names its rows
	Joined   string   // rows, if it is not from
	On       string   // the condition of the join
	Index    string   // that SQLite must use; empty for its choice
	Order    []string // columns of the index
	Key      []string // columns of the index that are the key
	lower    string   // the condition on the index's columns where the rows end
	Ends     bool     // lower may be false for rows with the value in the first column
	Many     bool     // many rows for which lower is false may be read
	Found    int      // arguments of where
	Examined []string // other conditions
	Narrows  bool     // these may be false for some rows

	combinations [][]string // of values of the index's columns before the key
}

// Between makes the statement read an index, from below end down to first. The index has the columns;
// all except the last have one value. The conditions do not include these values, because PostgreSQL
// would then also consider other indexes that are in the order of the last column, and examine their
// rows for the value.
func (s *Selection) Between(index string, columns, values []string, first, end string) {
	s.Index = index
	row := "(" + strings.Join(columns, ", ") + ")"
	compare := func(comparison, id string) string {
		n := len(s.Args)
		for _, v := range append(values[:len(values):len(values)], id) {
			s.Args = append(s.Args, v)
		}
		return row + " " + comparison + " " + ParameterList(n, len(columns))
	}
	s.lower = compare(">=", first)
	s.Ends = len(columns) > 2 || len(columns) == 2 && len(first) > len(invoice.PrefixInvoice)
	s.Conditions = append(s.Conditions, compare("<", end))
	s.Order, s.Key = columns, columns[len(columns)-1:]
	s.Found = len(s.Args)
}

// BetweenAny makes the statement read an index like Between, for rows with one of several combinations of values in the
// columns before the last. The values are SQL. The rows of a combination are in the order of the key, and are merged.
func (s *Selection) BetweenAny(index string, columns []string, combinations [][]string, first, end string) {
	s.Index, s.Order, s.Key, s.combinations = index, columns, columns[len(columns)-1:], combinations
	s.Args = append(s.Args, first, end)
	s.Found = len(s.Args)
}

// merged is the read of an index for BetweenAny.
func (s *Selection) merged(q Querier, limit string) reading {
	last := len(s.Order) - 2
	key, first, end := s.Key[0], Parameter(s.Found-1), Parameter(s.Found)
	parts := []string{"SELECT '' AS id WHERE 1 = 0"}
	for _, values := range s.combinations {
		w := Where{}
		for i, value := range values[:last] {
			w.Conditions = append(w.Conditions, s.Order[i]+" = "+value)
		}
		part := "SELECT " + key + " FROM " + s.From + " " + q.Base().IndexedBy(s.Index)
		if !q.OnPostgres() {
			w.Conditions = append(w.Conditions, s.Order[last]+" = "+values[last], key+" < "+end, key+" >= "+first)
			parts = append(parts, part+w.Text())
			continue
		}
		// The primary key is not in the order of both columns. The scan ends where the first of them differs.
		pair, value := "("+s.Order[last]+", "+key+")", "("+values[last]+", "
		w.Conditions = append(w.Conditions, pair+" < "+value+end+")", pair+" >= "+value+first+")")
		parts = append(parts, "("+part+w.Text()+orderBy(s.Order[last:])+" LIMIT "+limit+")")
	}
	r := reading{from: "(" + strings.Join(parts, " UNION ALL ") + " ORDER BY 1 DESC LIMIT " + limit + ") AS listed", key: []string{"listed.id"}}
	if q.OnPostgres() { // SQLite keeps the order of the merged rows
		r.order = r.key
	}
	if s.Rows != "" {
		r.joined, r.on = s.Rows, s.Rows+".id = listed.id"
	}
	return r
}

// Examine adds a condition on the rows that the index finds. An empty value matches all rows, but the
// condition is still part of the statement, so that there are few different statements.
func (s *Selection) Examine(condition, value string) {
	s.Args, s.Narrows = append(s.Args, value), s.Narrows || value != ""
	n := Parameter(len(s.Args))
	s.Examined = append(s.Examined, "("+n+" = '' OR "+strings.ReplaceAll(condition, "?", n)+")")
}

// ExamineTime adds the condition that a column of Unix seconds lies within a span. NULL lies only
// within a span without bounds.
func (s *Selection) ExamineTime(column string, t Span) {
	first := int64(0)
	if !t.IsZero() {
		first = max(1, t.First())
	}
	s.Args, s.Narrows = append(s.Args, first, t.End()), s.Narrows || !t.IsZero()
	s.Examined = append(s.Examined, fmt.Sprintf("coalesce(%s, 0) >= $%d AND coalesce(%[1]s, 0) < $%[3]d", column, len(s.Args)-1, len(s.Args)))
}

// List reads up to limit rows. If there are fewer, and MaxExamined rows were examined for them, it
// returns the key of the last examined row; else the zero value.
func List[T, K any](ctx context.Context, q Querier, s *Selection, columns, join string, limit int, scan func(Scanner) (T, error), key func(Scanner) (K, error)) (found []T, last K, err error) {
	args := append(s.Args[:len(s.Args):len(s.Args)], limit)
	found, err = QueryAll(ctx, q, scan, s.Text(q, columns, join), args...)
	if err != nil || len(found) == limit || len(s.Examined) == 0 {
		return found, last, err
	}
	r := s.reading(q, maxExamined)
	last, err = QueryRow(ctx, q, key, "SELECT "+strings.Join(r.key, ", ")+" FROM "+r.from+r.Where.Text()+orderBy(r.order)+
		fmt.Sprintf(" LIMIT 1 OFFSET %d", MaxExamined-1), s.Args[:s.Found]...)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return found, last, err
}

// reading is a selection's read of an index.
type reading struct {
	Where
	from       string
	joined, on string // the rows that are listed, if they are not from
	order, key []string
}

// reading returns the read of an index, of which the caller needs at most limit rows.
func (s *Selection) reading(q Querier, limit string) reading {
	if s.Index != "" && s.combinations != nil {
		return s.merged(q, limit)
	}
	r := reading{Where: s.Where, from: s.From, joined: s.Joined, on: s.On, order: s.Order, key: s.Key}
	if s.Index != "" {
		r.from += " " + q.Base().IndexedBy(s.Index)
	}
	if s.lower == "" {
		return r
	}
	if !q.OnPostgres() || !s.Ends {
		r.Conditions = append(slices.Clone(r.Conditions), s.lower)
		return r
	}
	// PostgreSQL does not end a scan at a row to which an index's rows are compared, unless their first
	// columns differ: it would read the rest of a merchant's rows, or of a state's. So the limit ends it,
	// and the columns that are read of many rows are in the index.
	name, columns := s.From, "*"
	if s.Many || s.Joined != "" || len(s.Examined) > 0 {
		columns = strings.Join(s.Order, ", ")
		if s.Joined == "" {
			name, r.joined = "listed", s.Rows
			r.on = s.Key[0] + " = " + strings.Replace(s.Key[0], s.From+".", name+".", 1)
		}
	}
	r.from = "(SELECT " + columns + " FROM " + r.from + r.Where.Text() + orderBy(s.Order) + " LIMIT " + limit + ") AS " + name
	rename := strings.NewReplacer(s.From+".", name+".")
	r.Conditions = []string{rename.Replace(s.lower)}
	r.order = make([]string, len(s.Order))
	for i, column := range s.Order {
		r.order[i] = rename.Replace(column)
	}
	r.key = r.order[len(r.order)-1:]
	return r
}

// source returns the rows that the index finds, joined with the listed rows.
func (r reading) source(q Querier) string {
	switch {
	case r.joined == "":
		return r.from
	case q.OnPostgres(): // OFFSET keeps it from hashing the whole table
		return r.from + " CROSS JOIN LATERAL (SELECT * FROM " + r.joined + " WHERE " + r.on + " OFFSET 0) AS " + r.joined
	default:
		return r.from + " CROSS JOIN " + r.joined + " ON " + r.on // in this order
	}
}

// Text returns the statement of the list. Its last parameter is the limit.
func (s *Selection) Text(q Querier, columns, join string) string {
	limit := Parameter(s.Next())
	end, most, examined := " LIMIT "+limit, limit, ""
	if len(s.Examined) > 0 {
		most, examined = maxExamined, " WHERE "+strings.Join(s.Examined, " AND ")
	}
	r := s.reading(q, most)
	if examined == "" && join == "" && r.joined == "" {
		return "SELECT " + columns + " FROM " + r.source(q) + r.Where.Text() + orderBy(r.order) + end
	}
	inner, order := s.Rows+".*", slices.Clone(r.order)
	if r.joined != "" { // the outer statement does not see the columns of from
		for i, column := range r.order {
			order[i] = fmt.Sprintf("%s.order%d", s.Rows, i)
			inner += fmt.Sprintf(", %s AS order%d", column, i)
		}
	}
	if q.OnPostgres() {
		// SQLite keeps the order of the inner statement. If the outer one had an order, it would sort all
		// rows.
		end = orderBy(order) + end
	}
	return "SELECT " + columns + " FROM (SELECT " + inner + " FROM " + r.source(q) + r.Where.Text() + orderBy(r.order) +
		" LIMIT " + most + ") AS " + s.Rows + join + examined + end
}

func orderBy(key []string) string {
	if len(key) == 0 {
		return ""
	}
	return " ORDER BY " + strings.Join(key, " DESC, ") + " DESC"
}
