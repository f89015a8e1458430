//go:build !linux

package db

import "io"

// lockFile does nothing: elsewhere a file has another path only by a link, and LockService knows links.
func lockFile(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// renameNew renames a file unless the other name is taken.
func renameNew(from, to string) error { return linkNew(from, to) }
