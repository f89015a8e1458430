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

// maxHolder bounds how many bytes of a lock file are read.
const maxHolder = 20

// LockService prevents a second service on the same SQLite file, because each
// would take over the other's work. Commands that read or change the file while
// a service runs do not take the lock. On PostgreSQL it does nothing, since
// several services may share the database. The lock ends with the process at
// the latest.
func LockService(url string) (unlock func() error, err error) {
	path, ok := strings.CutPrefix(url, "sqlite:")
	if !ok || path == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the database's folder: %w", err)
	}
	// Symbolic links to one file share its lock.
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
	_ = os.WriteFile(at, []byte(strconv.Itoa(os.Getpid())), 0o600) // the error of a second service is less precise without it
	return lock.Close, nil
}

// holder describes the process that holds a lock, if the lock file names it.
func holder(path string) string {
	text, err := os.ReadFile(path)
	if _, number := strconv.Atoi(string(text[:min(len(text), maxHolder)])); err != nil || number != nil {
		return ""
	}
	return ", process " + string(text)
}
