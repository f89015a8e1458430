package db

import (
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// Scanner is a *sql.Row or *sql.Rows.
type Scanner interface{ Scan(dest ...any) error }

// Field is a variable that a column fills, and from which the column is written. A column with NULL makes it zero.
type Field interface {
	sql.Scanner
	value() any // a string or an int64
	isZero() bool
	number() bool // whether the column holds integers, and not text
}

// Text is a field with text.
func Text[T ~string](v *T) Field { return textField[T]{v} }

type textField[T ~string] struct{ v *T }

func (f textField[T]) Scan(src any) error { return scanText(src, func(s string) { *f.v = T(s) }) }
func (f textField[T]) value() any         { return string(*f.v) }
func (f textField[T]) isZero() bool       { return *f.v == "" }
func (f textField[T]) number() bool       { return false }

// scanText calls set with the text of a column.
func scanText(src any, set func(string)) error {
	switch v := src.(type) {
	case nil:
		set("")
	case string:
		set(v)
	case []byte:
		set(string(v))
	default:
		return fmt.Errorf("a column holds a %T where text was expected", src)
	}
	return nil
}

type integer interface {
	~int | ~int64 | ~uint | ~uint8 | ~uint64
}

// Int is a field with an integer.
func Int[T integer](v *T) Field { return intField[T]{v} }

type intField[T integer] struct{ v *T }

func (f intField[T]) Scan(src any) error { return scanInt(src, func(n int64) { *f.v = T(n) }) }
func (f intField[T]) value() any         { return int64(*f.v) }
func (f intField[T]) isZero() bool       { return *f.v == 0 }
func (f intField[T]) number() bool       { return true }

// scanInt calls set with the integer of a column.
func scanInt(src any, set func(int64)) error {
	switch v := src.(type) {
	case nil:
		set(0)
	case int64:
		set(v)
	case bool:
		set(Bit(v))
	default:
		return fmt.Errorf("a column holds a %T where an integer was expected", src)
	}
	return nil
}

// Bit returns 1 for true and 0 for false.
func Bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// intCode is how values of a type are stored as integers.
type intCode[T any] interface {
	decode(n int64) T
	encode(v T) int64
}

// codedInt is a field that is stored as an integer. Like other common fields it is one pointer, which needs no memory
// of its own.
type codedInt[T comparable, C intCode[T]] struct{ v *T }

func (f codedInt[T, C]) Scan(src any) error {
	if src == nil {
		*f.v = *new(T)
		return nil
	}
	return scanInt(src, func(n int64) { *f.v = (*new(C)).decode(n) })
}
func (f codedInt[T, C]) value() any   { return (*new(C)).encode(*f.v) }
func (f codedInt[T, C]) isZero() bool { return *f.v == *new(T) }
func (f codedInt[T, C]) number() bool { return true }

// Bool is a field that is stored as 0 or 1.
func Bool(v *bool) Field { return codedInt[bool, boolCode]{v} }

type boolCode struct{}

func (boolCode) decode(n int64) bool { return n != 0 }
func (boolCode) encode(v bool) int64 { return Bit(v) }

// Seconds is a time in Unix seconds.
func Seconds(v *time.Time) Field { return codedInt[time.Time, secondsCode]{v} }

type secondsCode struct{}

func (secondsCode) decode(n int64) time.Time  { return invoice.Unix(n) }
func (secondsCode) encode(at time.Time) int64 { return invoice.UnixSeconds(at) }

// Milliseconds is a time in Unix milliseconds. 0 is the zero time.
func Milliseconds(v *time.Time) Field { return codedInt[time.Time, millisecondsCode]{v} }

type millisecondsCode struct{}

func (millisecondsCode) decode(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}
func (millisecondsCode) encode(at time.Time) int64 { return UnixMilli(at) }

// Duration is a duration that is stored as a number of units.
func Duration(v *time.Duration, unit time.Duration) Field { return durationField{v, unit} }

type durationField struct {
	v    *time.Duration
	unit time.Duration
}

func (f durationField) Scan(src any) error {
	return scanInt(src, func(n int64) { *f.v = time.Duration(n) * f.unit })
}
func (f durationField) value() any   { return int64(*f.v / f.unit) }
func (f durationField) isZero() bool { return *f.v == 0 }
func (f durationField) number() bool { return true }

// OptionalInt is an integer that may be unknown, which is stored as NULL.
func OptionalInt[T integer](v **T) Field { return optional[T]{v, func(v *T) Field { return Int(v) }} }

// OptionalBool is a truth value that may be unknown, which is stored as NULL.
func OptionalBool(v **bool) Field { return optional[bool]{v, Bool} }

// optional is a field that is nil for NULL.
type optional[T any] struct {
	v     **T
	field func(*T) Field
}

func (f optional[T]) Scan(src any) error {
	if *f.v = nil; src == nil {
		return nil
	}
	*f.v = new(T)
	return f.field(*f.v).Scan(src)
}

func (f optional[T]) value() any {
	if *f.v == nil {
		return nil
	}
	return f.field(*f.v).value()
}
func (f optional[T]) isZero() bool { return *f.v == nil }
func (f optional[T]) number() bool { return f.field(new(T)).number() }

// textCode is a field that is stored as text. format may be nil for a column that is not written.
type textCode[T any] struct {
	v      *T
	parse  func(string) (T, error)
	format func(T) string
	zero   func(T) bool
}

func (f textCode[T]) Scan(src any) error {
	if src == nil {
		*f.v = *new(T)
		return nil
	}
	var text string
	if err := scanText(src, func(s string) { text = s }); err != nil {
		return err
	}
	v, err := f.parse(text)
	if err != nil {
		return fmt.Errorf("a column holds %q: %w", text, err)
	}
	*f.v = v
	return nil
}
func (f textCode[T]) value() any   { return f.format(*f.v) }
func (f textCode[T]) isZero() bool { return f.zero(*f.v) }
func (f textCode[T]) number() bool { return false }

// Code is a field that is stored as text, with the functions that read and write the text.
func Code[T comparable](v *T, parse func(string) (T, error), format func(T) string) Field {
	return textCode[T]{v, parse, format, func(v T) bool { return v == *new(T) }}
}

// JSON is a field that is stored as JSON. Its type must have a form in JSON.
func JSON[T any](v *T) Field {
	return CodeOf(v, func(text string) (v T, err error) {
		err = json.Unmarshal([]byte(text), &v)
		return v, err
	}, func(v T) string { return JSONText(v) })
}

// JSONText returns the JSON of a value. Its type must have a form in JSON.
func JSONText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// CodeOf is like Code, for values without a comparison. They are never stored as NULL.
func CodeOf[T any](v *T, parse func(string) (T, error), format func(T) string) Field {
	return textCode[T]{v, parse, format, func(T) bool { return false }}
}

// Bytes is a field with text in bytes.
func Bytes[T ~[]byte](v *T) Field {
	return CodeOf(v, func(text string) (T, error) { return T(text), nil }, func(b T) string { return string(b) })
}

// Hex is a field with bytes that is stored in hex.
func Hex[T ~[]byte](v *T) Field {
	return CodeOf(v, func(text string) (T, error) { return hex.DecodeString(text) }, func(b T) string { return hex.EncodeToString(b) })
}

// Base64 is a field with bytes that is stored in base64.
func Base64(v *[]byte) Field {
	return CodeOf(v, base64.StdEncoding.DecodeString, base64.StdEncoding.EncodeToString)
}

// Parsed is a field that is only read, from text.
func Parsed[T any](v *T, parse func(string) (T, error)) Field { return CodeOf(v, parse, nil) }

// textual is a value with a text.
type textual interface {
	comparable
	fmt.Stringer
	IsZero() bool
}

// parser reads the text of a value.
type parser[T any] interface{ parse(text string) (T, error) }

// codedText is a field that is stored as its text.
type codedText[T textual, P parser[T]] struct{ v *T }

func (f codedText[T, P]) Scan(src any) error {
	return textCode[T]{v: f.v, parse: (*new(P)).parse}.Scan(src)
}
func (f codedText[T, P]) value() any   { return (*f.v).String() }
func (f codedText[T, P]) isZero() bool { return (*f.v).IsZero() }
func (f codedText[T, P]) number() bool { return false }

// Amount is a field with an amount.
func Amount(v *invoice.Amount) Field { return codedText[invoice.Amount, amountParser]{v} }

type amountParser struct{}

func (amountParser) parse(text string) (invoice.Amount, error) { return invoice.ParseAmount(text) }

// Address is a field with an address.
func Address(v *invoice.Address) Field { return codedText[invoice.Address, addressParser]{v} }

type addressParser struct{}

func (addressParser) parse(text string) (invoice.Address, error) { return invoice.ParseAddress(text) }

// Hash is a field with a hash.
func Hash(v *invoice.Hash) Field { return codedText[invoice.Hash, hashParser]{v} }

type hashParser struct{}

func (hashParser) parse(text string) (invoice.Hash, error) { return invoice.ParseHash(text) }

// Null is a field whose zero value is stored as NULL.
func Null(f Field) Field { return nullField{f, nil} }

// NullIf is a field that is stored as NULL under a condition.
func NullIf(null func() bool, f Field) Field { return nullField{f, null} }

type nullField struct {
	Field
	null func() bool // nil if the zero value is NULL
}

func (f nullField) value() any {
	if f.null == nil && f.isZero() || f.null != nil && f.null() {
		return nil
	}
	return f.Field.value()
}

// UnixMilli returns a time in Unix milliseconds, or 0 for the zero time.
func UnixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// NullMilliseconds returns a time in Unix milliseconds, or nil for the zero time.
func NullMilliseconds(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
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
