package db

import (
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

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
