package db

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

// LockService prevents a second service on the same SQLite file, because each would take over the
// other's work. Commands that read or change the file while a service runs do not take the lock. On
// PostgreSQL it has no effect, because several services may share the database. The lock ends with the
// process at the latest.
//
// There are two locks: a file next to the database, which names the process that holds it, and on
// Linux a lock on the database's file itself, which also works under another path to the file. Close
// the database before you unlock: closing the file ends all locks that this process has on it for
// SQLite.
func LockService(url string) (unlock func() error, err error) {
	path, ok := strings.CutPrefix(url, "sqlite:")
	if !ok || path == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the database's folder: %w", err)
	}
	if err := checkNames(path); err != nil {
		return nil, err
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
		return nil, errors.Join(inUse(path, holder(at)+", which holds "+at), lock.Close())
	}
	unlockFile, err := lockFile(path)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	_ = os.WriteFile(at, []byte(strconv.Itoa(os.Getpid())), 0o600) // the error of a second service is less precise without it
	return func() error { return errors.Join(unlockFile(), lock.Close()) }, nil
}

// inUse is the error of a second service.
func inUse(path, who string) error {
	return fmt.Errorf("the database %s is in use by another quittance%s; "+
		"stop that one, or use PostgreSQL, which several can share", path, who)
}

// checkNames returns an error if a SQLite file has a second name. SQLite keeps the newest changes in a
// file that is named after the database, so changes made under one name are missing under the other.
func checkNames(path string) error {
	if n := linkCount(path); n > 1 {
		return fmt.Errorf("the database %s is one file with %d names (hard links). SQLite keeps the newest changes in a file that is "+
			"named after the database, so two names damage it. Find the names with `find DIRECTORY -samefile %s`, "+
			"stop what uses them, and remove all but one", path, n, path)
	}
	return nil
}

// holder describes the process that holds a lock, if the lock file names it.
func holder(path string) string {
	text, err := os.ReadFile(path)
	if _, number := strconv.Atoi(string(text[:min(len(text), maxHolder)])); err != nil || number != nil {
		return ""
	}
	return ", process " + string(text)
}
