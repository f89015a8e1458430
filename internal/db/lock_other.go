//go:build !linux

package db

// lockFile has no effect: on other systems a file has another path only by a link, and LockService
// resolves links.
func lockFile(string) (unlock func() error, err error) { return func() error { return nil }, nil }

// renameNew renames a file unless the other name is taken.
func renameNew(from, to string) error { return linkNew(from, to) }
