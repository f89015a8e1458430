//go:build !linux

package db

import "io"

// lockFile has no effect: on other systems a file has another path only by a link, and LockService
// resolves links.
func lockFile(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// renameNew renames a file unless the other name is taken.
func renameNew(from, to string) error { return linkNew(from, to) }
