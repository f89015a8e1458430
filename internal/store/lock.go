package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// maxHolder bounds how much of a lock file is read.
const maxHolder = 20

// LockService keeps a second service from running on the same SQLite file: each
// would take the other's work for its own. Commands that look at the file or
// change it beside the service do not take the lock. PostgreSQL needs none, and
// gets none. The lock ends with the process, however that ends.
func LockService(url string) (unlock func() error, err error) {
	path, ok := strings.CutPrefix(url, "sqlite:")
	if !ok || path == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the database's folder: %w", err)
	}
	// Two names of one file are one file.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	at := path + ".lock"
	lock := flock.New(at, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR))
	held, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", at, err)
	}
	if !held {
		return nil, errors.Join(fmt.Errorf("the database %s is in use by another quittance%s, which holds %s; "+
			"stop that one, or use PostgreSQL, which several can share", path, holder(at), at), lock.Close())
	}
	_ = os.WriteFile(at, []byte(strconv.Itoa(os.Getpid())), 0o600) // without it another's error says less
	return lock.Close, nil
}

// holder says which process holds a lock, if the file tells.
func holder(path string) string {
	text, err := os.ReadFile(path)
	if _, number := strconv.Atoi(string(text[:min(len(text), maxHolder)])); err != nil || number != nil {
		return ""
	}
	return ", process " + string(text)
}
