package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// MaxExamined bounds the rows that one statement of a list examines. A list with several
// filters reads by the index of one of them and examines the rows for the others, so a
// page may end before it is full.
const MaxExamined = 5000

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
	found    int      // arguments of where
	examined []string // other conditions
}

// between makes the statement read an index, from below end down to first. The index has
// the columns, of which all but the last have one value. The conditions do not say so,
// because PostgreSQL would then also consider other indexes that are in the order of the
// last column, and examine their rows for the value.
func (s *selection) between(index string, columns, values []string, first, end string) {
	s.index = index
	row := "(" + strings.Join(columns, ", ") + ")"
	for _, bound := range []struct{ comparison, id string }{{">=", first}, {"<", end}} {
		n := len(s.args)
		for _, v := range append(values[:len(values):len(values)], bound.id) {
			s.args = append(s.args, v)
		}
		s.conditions = append(s.conditions, row+" "+bound.comparison+" "+parameterList(n, len(columns)))
	}
	s.order, s.key = columns, columns[len(columns)-1:]
	s.found = len(s.args)
}

// examine adds a condition on the rows that the index finds. An empty value matches all:
// the condition is part of the statement nevertheless, so that there are few statements.
func (s *selection) examine(condition, value string) {
	s.args = append(s.args, value)
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
	s.args = append(s.args, first, t.end())
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
	last, err = queryRow(ctx, q, key, "SELECT "+strings.Join(s.key, ", ")+" FROM "+s.source(q)+s.where.text()+orderBy(s.order)+
		fmt.Sprintf(" LIMIT 1 OFFSET %d", MaxExamined-1), s.args[:s.found]...)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return found, last, err
}

// source returns the table to read, with the index for SQLite.
func (s *selection) source(q *queries) string {
	source := s.from
	if s.index != "" {
		source += " " + q.indexedBy(s.index)
	}
	switch {
	case s.joined == "":
	case q.postgres: // OFFSET keeps it from hashing the whole table
		source += " CROSS JOIN LATERAL (SELECT * FROM " + s.joined + " WHERE " + s.on + " OFFSET 0) AS " + s.joined
	default:
		source += " CROSS JOIN " + s.joined + " ON " + s.on // in this order
	}
	return source
}

// text returns the statement of the list. Its last parameter is the limit.
func (s *selection) text(q *queries, columns, join string) string {
	end := " LIMIT " + parameter(s.next())
	if len(s.examined) == 0 {
		return "SELECT " + columns + " FROM " + s.source(q) + join + s.where.text() + orderBy(s.order) + end
	}
	inner, order := s.rows+".*", slices.Clone(s.order)
	if s.joined != "" { // the outer statement does not see the columns of from
		for i, column := range s.order {
			order[i] = fmt.Sprintf("%s.order%d", s.rows, i)
			inner += fmt.Sprintf(", %s AS order%d", column, i)
		}
	}
	if q.postgres {
		// SQLite keeps the order of the inner statement, and would sort all rows for
		// an order of the outer one.
		end = orderBy(order) + end
	}
	return "SELECT " + columns + " FROM (SELECT " + inner + " FROM " + s.source(q) + s.where.text() + orderBy(s.order) +
		fmt.Sprintf(" LIMIT %d) AS ", MaxExamined) + s.rows + join + " WHERE " + strings.Join(s.examined, " AND ") + end
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
