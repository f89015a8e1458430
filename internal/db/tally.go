package db

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
)

// tally sums up the rows of a table, in whatever order they come.
type tally struct {
	rows   int64
	hashes *big.Int // the sum of the hashes of the rows
	column int      // the index of the column amount, or -1
	sum    *big.Int // of that column
}

func newTally(columns []string) *tally {
	return &tally{hashes: new(big.Int), column: slices.Index(columns, "amount"), sum: new(big.Int)}
}

// add adds a row. Both databases return its values as int64 or less, float64, string, []byte and nil.
func (t *tally) add(values []any) {
	t.rows++
	hash := sha256.New()
	for i, v := range values {
		text := tallied(v)
		fmt.Fprintf(hash, "%d:%s,", len(text), text)
		if n, ok := new(big.Int).SetString(text[1:], 10); ok && i == t.column {
			t.sum.Add(t.sum, n)
		}
	}
	t.hashes.Add(t.hashes, new(big.Int).SetBytes(hash.Sum(nil)))
}

// tallied returns a value as text that begins with its kind.
func tallied(v any) string {
	switch v := v.(type) {
	case nil:
		return "n"
	case string:
		return "t" + v
	case []byte:
		return "t" + string(v)
	case int64:
		return "i" + strconv.FormatInt(v, 10)
	case int32:
		return "i" + strconv.FormatInt(int64(v), 10)
	case int16:
		return "i" + strconv.FormatInt(int64(v), 10)
	}
	return fmt.Sprintf("v%v", v)
}

func (t *tally) equal(o *tally) bool {
	return t.rows == o.rows && t.hashes.Cmp(o.hashes) == 0 && t.sum.Cmp(o.sum) == 0
}

// amount returns the sum of the column amount, or "" without one.
func (t *tally) amount() string {
	if t.column < 0 {
		return ""
	}
	return t.sum.String()
}

// String describes the tally in an error.
func (t *tally) String() string {
	return fmt.Sprintf("%d rows with the hash %x and amounts of %s", t.rows, new(big.Int).Rsh(t.hashes, 192), t.sum)
}

// sourceRows gives the rows of a SQLite table to COPY.
type sourceRows struct {
	rows  *sql.Rows
	width int
	tally *tally
	now   []any
	err   error
}

// Next implements pgx.CopyFromSource.
func (s *sourceRows) Next() bool {
	if s.err != nil || !s.rows.Next() {
		return false
	}
	s.now = make([]any, s.width)
	pointers := make([]any, s.width)
	for i := range s.now {
		pointers[i] = &s.now[i]
	}
	if s.err = s.rows.Scan(pointers...); s.err == nil {
		s.tally.add(s.now)
	}
	return s.err == nil
}

// Values implements pgx.CopyFromSource.
func (s *sourceRows) Values() ([]any, error) { return s.now, nil }

// Err implements pgx.CopyFromSource.
func (s *sourceRows) Err() error { return errors.Join(s.err, s.rows.Err()) }
