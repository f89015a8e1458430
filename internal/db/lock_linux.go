package db

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// lockedByte is the byte of a SQLite file that a service locks. It lies behind every byte that SQLite uses or locks.
const lockedByte = math.MaxInt64 - 1

// lockFile locks a SQLite file, which it may create. The lock belongs to the open file and not to the process: SQLite
// releases the process's locks whenever it closes its own file.
func lockFile(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: lockedByte, Len: 1}
	switch err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock); {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		return nil, errors.Join(inUse(path, " under another path"), f.Close())
	case slices.Contains([]error{unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP, unix.ENOLCK}, err): // such a file system has only the lock file
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() error {
		lock.Type = unix.F_UNLCK // a child process has the open file, too, until it executes its program
		_ = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock)
		return f.Close()
	}, nil
}

// renameNew renames a file unless the other name is taken. It has one name at any moment.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not every file system has it
		return linkNew(from, to)
	}
	return err
}
