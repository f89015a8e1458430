package db

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// Scanner is a *sql.Row or *sql.Rows.
type Scanner interface{ Scan(dest ...any) error }

// PrefixedRow scans the first columns of a row into its own targets, and the rest into the caller's.
type PrefixedRow struct {
	Row   Scanner
	First []any
}

// Scan scans the first columns and then dest.
func (p PrefixedRow) Scan(dest ...any) error { return p.Row.Scan(append(p.First, dest...)...) }

// Parsed reads a text column into a domain value. NULL leaves the value unchanged.
func Parsed[T any](dst *T, parse func(string) (T, error)) sql.Scanner {
	return parsedColumn[T]{dst, parse}
}

type parsedColumn[T any] struct {
	dst   *T
	parse func(string) (T, error)
}

// Scan implements sql.Scanner.
func (c parsedColumn[T]) Scan(src any) error {
	var text string
	switch v := src.(type) {
	case nil:
		return nil
	case string:
		text = v
	case []byte:
		text = string(v)
	default:
		return fmt.Errorf("a column holds a %T where text was expected", src)
	}
	v, err := c.parse(text)
	if err != nil {
		return fmt.Errorf("a column holds %q: %w", text, err)
	}
	*c.dst = v
	return nil
}

// AmountCol reads an amount.
func AmountCol(dst *invoice.Amount) sql.Scanner {
	return Parsed(dst, invoice.ParseAmount)
}

// AddressCol reads an address.
func AddressCol(dst *invoice.Address) sql.Scanner {
	return Parsed(dst, invoice.ParseAddress)
}

// HashCol reads a hash.
func HashCol(dst *invoice.Hash) sql.Scanner {
	return Parsed(dst, invoice.ParseHash)
}

// NullText reads a text column that may be NULL.
func NullText[T ~string](dst *T) sql.Scanner {
	return parsedColumn[T]{dst, func(s string) (T, error) { return T(s), nil }}
}

// NullInt reads an integer column that may be NULL, which it reads as 0.
func NullInt(dst *int64) sql.Scanner { return intColumn{dst} }

type intColumn struct{ dst *int64 }

// Scan implements sql.Scanner.
func (s intColumn) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*s.dst = 0
	case int64:
		*s.dst = v
	default:
		return fmt.Errorf("a column holds a %T where an integer was expected", src)
	}
	return nil
}

// Seconds reads a time in Unix seconds. It reads NULL as the zero time.
func Seconds(dst *time.Time) sql.Scanner { return secondsColumn{dst} }

type secondsColumn struct{ dst *time.Time }

// Scan implements sql.Scanner.
func (s secondsColumn) Scan(src any) error {
	var n int64
	err := NullInt(&n).Scan(src)
	if *s.dst = (time.Time{}); src != nil {
		*s.dst = invoice.Unix(n)
	}
	return err
}

// Milliseconds reads a time in Unix milliseconds. It reads NULL and 0 as the zero
// time.
func Milliseconds(dst *time.Time) sql.Scanner { return millisecondsColumn{dst} }

type millisecondsColumn struct{ dst *time.Time }

// Scan implements sql.Scanner.
func (m millisecondsColumn) Scan(src any) error {
	var n int64
	err := NullInt(&n).Scan(src)
	if *m.dst = (time.Time{}); n != 0 {
		*m.dst = time.UnixMilli(n).UTC()
	}
	return err
}

// UnixMilli returns a time in Unix milliseconds, or 0 for the zero time.
func UnixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Duration reads a duration in milliseconds.
func Duration(dst *time.Duration) sql.Scanner { return durationColumn{dst} }

type durationColumn struct{ dst *time.Duration }

// Scan implements sql.Scanner.
func (d durationColumn) Scan(src any) error {
	var n int64
	err := NullInt(&n).Scan(src)
	*d.dst = time.Duration(n) * time.Millisecond
	return err
}

// NullMilliseconds returns a time in Unix milliseconds, or nil for the zero time.
func NullMilliseconds(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// NullUint reads a block number that may be NULL, which it reads as 0.
func NullUint(dst *uint64) sql.Scanner { return uintColumn{dst} }

type uintColumn struct{ dst *uint64 }

// Scan implements sql.Scanner.
func (h uintColumn) Scan(src any) error {
	var n int64
	err := NullInt(&n).Scan(src)
	*h.dst = uint64(n)
	return err
}

// OrNull returns nil, for NULL, if v is the zero value, and otherwise v as the
// database stores it.
func OrNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	switch v := any(v).(type) {
	case invoice.Amount:
		return v.String()
	case invoice.Address:
		return v.String()
	case invoice.Hash:
		return v.String()
	case invoice.Method:
		return string(v)
	case time.Time:
		return v.Unix()
	}
	return v
}
