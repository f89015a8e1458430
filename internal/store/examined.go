package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// MaxExamined bounds the rows that one statement of a list examines. A list with several
// filters reads by the index of one of them and examines the rows for the others, so a
// page may end before it is full.
const MaxExamined = 5000

var maxExamined = strconv.Itoa(MaxExamined)

// selection is the statement of a list, in descending order of a key. An index answers the
// conditions of where in that order. The rows that it finds, up to MaxExamined, are
// examined for the other conditions, if there are any.
type selection struct {
	where
	rows     string   // the table that is listed
	from     string   // rows, or a table whose index names its rows
	joined   string   // rows, if it is not from
	on       string   // the condition of the join
	index    string   // that SQLite must use; empty for its choice
	order    []string // columns of the index
	key      []string // columns of the index that are the key
	lower    string   // the condition on the index's columns where the rows end
	ends     bool     // lower may be false of rows whose first column has the value
	many     bool     // many rows may be read that lower is false of
	found    int      // arguments of where
	examined []string // other conditions
	narrows  bool     // these may be false of some rows
}

// between makes the statement read an index, from below end down to first. The index has
// the columns, of which all but the last have one value. The conditions do not say so,
// because PostgreSQL would then also consider other indexes that are in the order of the
// last column, and examine their rows for the value.
func (s *selection) between(index string, columns, values []string, first, end string) {
	s.index = index
	row := "(" + strings.Join(columns, ", ") + ")"
	compare := func(comparison, id string) string {
		n := len(s.args)
		for _, v := range append(values[:len(values):len(values)], id) {
			s.args = append(s.args, v)
		}
		return row + " " + comparison + " " + parameterList(n, len(columns))
	}
	s.lower = compare(">=", first)
	s.ends = len(columns) > 2 || len(columns) == 2 && len(first) > len(invoice.PrefixInvoice)
	s.conditions = append(s.conditions, compare("<", end))
	s.order, s.key = columns, columns[len(columns)-1:]
	s.found = len(s.args)
}

// examine adds a condition on the rows that the index finds. An empty value matches all:
// the condition is part of the statement nevertheless, so that there are few statements.
func (s *selection) examine(condition, value string) {
	s.args, s.narrows = append(s.args, value), s.narrows || value != ""
	n := parameter(len(s.args))
	s.examined = append(s.examined, "("+n+" = '' OR "+strings.ReplaceAll(condition, "?", n)+")")
}

// examineTime adds the condition that a column of Unix seconds lies within a span. NULL
// lies only within the span without bounds.
func (s *selection) examineTime(column string, t Span) {
	first := int64(0)
	if !t.IsZero() {
		first = max(1, t.first())
	}
	s.args, s.narrows = append(s.args, first, t.end()), s.narrows || !t.IsZero()
	s.examined = append(s.examined, fmt.Sprintf("coalesce(%s, 0) >= $%d AND coalesce(%[1]s, 0) < $%[3]d", column, len(s.args)-1, len(s.args)))
}

// list reads up to limit rows. Unless there are so many, and if MaxExamined rows were
// examined for them, it returns the key of the last of these; else the zero value.
func list[T, K any](ctx context.Context, q *queries, s *selection, columns, join string, limit int, scan func(scanner) (T, error), key func(scanner) (K, error)) (found []T, last K, err error) {
	args := append(s.args[:len(s.args):len(s.args)], limit)
	found, err = queryAll(ctx, q, scan, s.text(q, columns, join), args...)
	if err != nil || len(found) == limit || len(s.examined) == 0 {
		return found, last, err
	}
	r := s.reading(q, maxExamined)
	last, err = queryRow(ctx, q, key, "SELECT "+strings.Join(r.key, ", ")+" FROM "+r.from+r.where.text()+orderBy(r.order)+
		fmt.Sprintf(" LIMIT 1 OFFSET %d", MaxExamined-1), s.args[:s.found]...)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return found, last, err
}

// reading is what a selection reads by an index.
type reading struct {
	where
	from       string
	joined, on string // the rows that are listed, if they are not from
	order, key []string
}

// reading returns what is read, of which no more than limit is wanted.
func (s *selection) reading(q *queries, limit string) reading {
	r := reading{where: s.where, from: s.from, joined: s.joined, on: s.on, order: s.order, key: s.key}
	if s.index != "" {
		r.from += " " + q.indexedBy(s.index)
	}
	if s.lower == "" {
		return r
	}
	if !q.postgres || !s.ends {
		r.conditions = append(slices.Clone(r.conditions), s.lower)
		return r
	}
	// PostgreSQL does not end a scan at a row to which those of an index are compared, unless their first columns
	// differ: it would read the rest of a merchant's rows, or of a state's. So the limit ends it, and what is
	// read of many rows is in the index.
	name, columns := s.from, "*"
	if s.many || s.joined != "" || len(s.examined) > 0 {
		columns = strings.Join(s.order, ", ")
		if s.joined == "" {
			name, r.joined = "listed", s.rows
			r.on = s.key[0] + " = " + strings.Replace(s.key[0], s.from+".", name+".", 1)
		}
	}
	r.from = "(SELECT " + columns + " FROM " + r.from + r.where.text() + orderBy(s.order) + " LIMIT " + limit + ") AS " + name
	rename := strings.NewReplacer(s.from+".", name+".")
	r.conditions = []string{rename.Replace(s.lower)}
	r.order = make([]string, len(s.order))
	for i, column := range s.order {
		r.order[i] = rename.Replace(column)
	}
	r.key = r.order[len(r.order)-1:]
	return r
}

// source returns what is read, joined with the rows that are listed.
func (r reading) source(q *queries) string {
	switch {
	case r.joined == "":
		return r.from
	case q.postgres: // OFFSET keeps it from hashing the whole table
		return r.from + " CROSS JOIN LATERAL (SELECT * FROM " + r.joined + " WHERE " + r.on + " OFFSET 0) AS " + r.joined
	default:
		return r.from + " CROSS JOIN " + r.joined + " ON " + r.on // in this order
	}
}

// text returns the statement of the list. Its last parameter is the limit.
func (s *selection) text(q *queries, columns, join string) string {
	limit := parameter(s.next())
	end, most, examined := " LIMIT "+limit, limit, ""
	if len(s.examined) > 0 {
		most, examined = maxExamined, " WHERE "+strings.Join(s.examined, " AND ")
	}
	r := s.reading(q, most)
	if examined == "" && join == "" && r.joined == "" {
		return "SELECT " + columns + " FROM " + r.source(q) + r.where.text() + orderBy(r.order) + end
	}
	inner, order := s.rows+".*", slices.Clone(r.order)
	if r.joined != "" { // the outer statement does not see the columns of from
		for i, column := range r.order {
			order[i] = fmt.Sprintf("%s.order%d", s.rows, i)
			inner += fmt.Sprintf(", %s AS order%d", column, i)
		}
	}
	if q.postgres {
		// SQLite keeps the order of the inner statement, and would sort all rows for
		// an order of the outer one.
		end = orderBy(order) + end
	}
	return "SELECT " + columns + " FROM (SELECT " + inner + " FROM " + r.source(q) + r.where.text() + orderBy(r.order) +
		" LIMIT " + most + ") AS " + s.rows + join + examined + end
}

func orderBy(key []string) string { return " ORDER BY " + strings.Join(key, " DESC, ") + " DESC" }

// Span is a span of time in whole seconds: From is the first, and To the one after the
// last. A zero time does not bound it.
type Span struct{ From, To time.Time }

// IsZero reports whether the span has no bounds.
func (t Span) IsZero() bool { return t.From.IsZero() && t.To.IsZero() }

func (t Span) first() int64 {
	if t.From.IsZero() {
		return 0
	}
	return t.From.Unix()
}

func (t Span) end() int64 {
	if t.To.IsZero() {
		return math.MaxInt64
	}
	return t.To.Unix()
}

// idSlack is how far the time in an identifier may lie from the time that its object was
// created at, which was read from the clock before.
const idSlack = time.Minute

// ids returns bounds of the identifiers of what was created in the span: from the first,
// and below the second.
func (t Span) ids(prefix string) (first, end string) {
	first, end = prefix, prefix+lastID
	if from := t.From.Add(-idSlack); !t.From.IsZero() && from.Unix() > 0 {
		first = invoice.FirstID(prefix, from)
	}
	if !t.To.IsZero() {
		end = invoice.FirstID(prefix, t.To.Add(idSlack))
	}
	return first, end
}
