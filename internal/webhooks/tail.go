package webhooks

import "sort"

// tail is the newest rows of a log.
//
// Invariant: rows holds all rows with a number above base and up to head, in order, and
// bytes is the sum of their sizes.
type tail[T any] struct {
	number func(T) int64
	size   func(T) int

	base, head int64
	rows       []T
	bytes      int
}

// reset drops all rows, and continues after a number.
func (t *tail[T]) reset(head int64) {
	t.base, t.head, t.rows, t.bytes = head, head, nil, 0
}

// add adds the rows after head, and drops the oldest beyond the limits.
func (t *tail[T]) add(rows []T) {
	for _, row := range rows {
		t.bytes += t.size(row)
	}
	all := append(t.rows, rows...) //nolint:gocritic // t.rows is replaced below
	for len(all) > MaxEvents || t.bytes > MaxBytes && len(all) > 0 {
		t.base, t.bytes = t.number(all[0]), t.bytes-t.size(all[0])
		var none T
		all[0] = none
		all = all[1:]
	}
	t.rows, t.head = all, t.number(rows[len(rows)-1])
}

// next returns the first rows after a position, up to MaxNext bytes or one row, and the position after them. behind is
// true if the tail does not hold all rows after the position; the log has them up to through.
func (t *tail[T]) next(after int64) (rows []T, through int64, behind bool) {
	if after < t.base {
		return nil, t.head, true
	}
	first := sort.Search(len(t.rows), func(i int) bool { return t.number(t.rows[i]) > after })
	rest := t.rows[first:]
	if n := FirstUpTo(MaxNext, rest, t.size); n < len(rest) {
		return append(rows, rest[:n]...), t.number(rest[n-1]), false
	}
	return append(rows, rest...), max(after, t.head), false
}

// FirstUpTo returns how many of the first rows have a number of bytes together, or 1 if the first row has more.
func FirstUpTo[T any](bytes int, rows []T, size func(T) int) int {
	for i, row := range rows {
		if bytes -= size(row); bytes < 0 && i > 0 {
			return i
		}
	}
	return len(rows)
}
