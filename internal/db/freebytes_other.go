//go:build !linux

package db

import "errors"

// FreeBytes is not supported here.
func FreeBytes(string) (int64, error) { return 0, errors.ErrUnsupported }
