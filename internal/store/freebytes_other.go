//go:build !linux

package store

import "errors"

// FreeBytes is not supported here.
func FreeBytes(string) (int64, error) { return 0, errors.ErrUnsupported }
