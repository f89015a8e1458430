package store

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// scanner is a *sql.Row or *sql.Rows.
type scanner interface{ Scan(dest ...any) error }

// prefixedRow scans the first columns of a row into its own targets, and the
// rest into those of the caller.
type prefixedRow struct {
	row   scanner
	first []any
}

// Scan scans the first columns and then dest.
func (p prefixedRow) Scan(dest ...any) error { return p.row.Scan(append(p.first, dest...)...) }

// parsedColumn reads a text column into a domain value. NULL leaves the value
// unchanged.
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

func amountCol(dst *invoice.Amount) parsedColumn[invoice.Amount] {
	return parsedColumn[invoice.Amount]{dst, invoice.ParseAmount}
}

func addressCol(dst *invoice.Address) parsedColumn[invoice.Address] {
	return parsedColumn[invoice.Address]{dst, invoice.ParseAddress}
}

func hashCol(dst *invoice.Hash) parsedColumn[invoice.Hash] {
	return parsedColumn[invoice.Hash]{dst, invoice.ParseHash}
}

// nullText reads a text column that may be NULL.
func nullText[T ~string](dst *T) parsedColumn[T] {
	return parsedColumn[T]{dst, func(s string) (T, error) { return T(s), nil }}
}

// storedLine is the JSON of a line item in the column line_items.
type storedLine struct {
	Label  string `json:"label"`
	Amount string `json:"amount"`
}

func linesCol(dst *[]invoice.LineItem) parsedColumn[[]invoice.LineItem] {
	return parsedColumn[[]invoice.LineItem]{dst, func(text string) ([]invoice.LineItem, error) {
		var stored []storedLine
		if err := json.Unmarshal([]byte(text), &stored); err != nil {
			return nil, err
		}
		lines := make([]invoice.LineItem, len(stored))
		for i, l := range stored {
			amount, err := invoice.ParseAmount(l.Amount)
			if err != nil {
				return nil, err
			}
			lines[i] = invoice.LineItem{Label: l.Label, Amount: amount}
		}
		return lines, nil
	}}
}

func linesText(lines []invoice.LineItem) (string, error) {
	stored := make([]storedLine, len(lines))
	for i, l := range lines {
		stored[i] = storedLine{Label: l.Label, Amount: l.Amount.String()}
	}
	text, err := json.Marshal(stored)
	return string(text), err
}

// nullInt reads an integer column that may be NULL, which it reads as 0.
type nullInt struct{ dst *int64 }

// Scan implements sql.Scanner.
func (s nullInt) Scan(src any) error {
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

// seconds reads a time in Unix seconds. It reads NULL as the zero time.
type seconds struct{ dst *time.Time }

// Scan implements sql.Scanner.
func (s seconds) Scan(src any) error {
	var n int64
	err := nullInt{&n}.Scan(src)
	if *s.dst = (time.Time{}); src != nil {
		*s.dst = invoice.Unix(n)
	}
	return err
}

// milliseconds reads a time in Unix milliseconds. It reads NULL and 0 as the zero
// time.
type milliseconds struct{ dst *time.Time }

// Scan implements sql.Scanner.
func (m milliseconds) Scan(src any) error {
	var n int64
	err := nullInt{&n}.Scan(src)
	if *m.dst = (time.Time{}); n != 0 {
		*m.dst = time.UnixMilli(n).UTC()
	}
	return err
}

// unixMilli returns a time in Unix milliseconds, or 0 for the zero time.
func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// duration reads a duration in milliseconds.
type duration struct{ dst *time.Duration }

// Scan implements sql.Scanner.
func (d duration) Scan(src any) error {
	var n int64
	err := nullInt{&n}.Scan(src)
	*d.dst = time.Duration(n) * time.Millisecond
	return err
}

// nullMilliseconds returns a time in Unix milliseconds, or nil for the zero time.
func nullMilliseconds(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// nullUint reads a block number that may be NULL, which it reads as 0.
type nullUint struct{ dst *uint64 }

// Scan implements sql.Scanner.
func (h nullUint) Scan(src any) error {
	var n int64
	err := nullInt{&n}.Scan(src)
	*h.dst = uint64(n)
	return err
}

// orNull returns nil, for NULL, if v is the zero value, and otherwise v as the
// database stores it.
func orNull[T comparable](v T) any {
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
