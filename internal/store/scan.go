package store

import (
	"encoding/json"
	"fmt"

	"github.com/quittance/quittance/internal/invoice"
)

// scanner is a *sql.Row or *sql.Rows.
type scanner interface{ Scan(dest ...any) error }

// prefixed scans a row whose first columns are not for the function that it is
// given to.
type prefixed struct {
	row   scanner
	first []any
}

// Scan reads the first columns, and then those of dest.
func (p prefixed) Scan(dest ...any) error { return p.row.Scan(append(p.first, dest...)...) }

// column reads a text column into a domain value. A null leaves the value as
// it is.
type column[T any] struct {
	dst   *T
	parse func(string) (T, error)
}

// Scan is database/sql's.
func (c column[T]) Scan(src any) error {
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

func amountCol(dst *invoice.Amount) column[invoice.Amount] {
	return column[invoice.Amount]{dst, invoice.ParseAmount}
}

func addressCol(dst *invoice.Address) column[invoice.Address] {
	return column[invoice.Address]{dst, invoice.ParseAddress}
}

func hashCol(dst *invoice.Hash) column[invoice.Hash] {
	return column[invoice.Hash]{dst, invoice.ParseHash}
}

// textCol reads a text that may be null.
func textCol[T ~string](dst *T) column[T] {
	return column[T]{dst, func(s string) (T, error) { return T(s), nil }}
}

// storedLine is a line item as the column line_items holds it.
type storedLine struct {
	Label  string `json:"label"`
	Amount string `json:"amount"`
}

func linesCol(dst *[]invoice.LineItem) column[[]invoice.LineItem] {
	return column[[]invoice.LineItem]{dst, func(text string) ([]invoice.LineItem, error) {
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

// seconds reads a time that may be null, as 0, whatever its unit is.
type seconds struct{ dst *int64 }

// Scan is database/sql's.
func (s seconds) Scan(src any) error {
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

// height reads a block's number that may be null, as 0.
type height struct{ dst *uint64 }

// Scan is database/sql's.
func (h height) Scan(src any) error {
	var n int64
	err := seconds{&n}.Scan(src)
	*h.dst = uint64(n)
	return err
}

// orNull gives null for the zero value of a column that may be null.
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
	}
	return v
}
