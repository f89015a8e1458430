package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

// ErrNoBackup is returned by Backup for PostgreSQL, which has its own tools.
var ErrNoBackup = errors.New("PostgreSQL is backed up by its own tools, also while the service runs: " +
	"pg_dump --format=custom --file=FILE, or pg_basebackup and an archive of the WAL for any moment")

// Backup writes the SQLite database at the URL to a new file at path, as of one moment, while services
// may use it. The file is complete, checked and on disk when Backup returns nil; otherwise it leaves
// no file. The copy is marked as one, in state RecoveryBackup since now. Backup does not migrate the
// schema, and returns ErrNoBackup for PostgreSQL.
func Backup(ctx context.Context, url, path string, now time.Time) (err error) {
	from, ok := strings.CutPrefix(url, "sqlite:")
	if !ok {
		return ErrNoBackup
	}
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("find the database: %w", err)
	}
	if err := checkNames(from); err != nil {
		return err
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s exists already; choose another file, or remove it", path)
	}
	partial := path + ".partial"
	if err := makeEmpty(partial); err != nil {
		return err
	}
	defer func() {
		if failed := os.Remove(partial); !errors.Is(failed, fs.ErrNotExist) { // it has its name
			err = errors.Join(err, failed)
		}
	}()
	if err := copyDatabase(ctx, from, partial); err != nil {
		return err
	}
	if err := markBackup(ctx, partial, now); err != nil {
		return err
	}
	if err := checkDatabase(ctx, partial); err != nil {
		return err
	}
	if err := syncFile(partial); err != nil {
		return err
	}
	if err := renameNew(partial, path); err != nil {
		return fmt.Errorf("name the backup: %w", err)
	}
	return syncFile(filepath.Dir(path))
}

// linkNew renames a file by a hard link, because a link, unlike a rename, never replaces a file.
func linkNew(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}

// makeEmpty creates a file that only its owner can read.
func makeEmpty(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: another backup is in progress, or one was broken off; if so, remove it", path)
	}
	if err != nil {
		return fmt.Errorf("create the backup: %w", err)
	}
	return f.Close()
}

// copyDatabase writes a database as of one moment to an empty file, which can shrink.
func copyDatabase(ctx context.Context, from, to string) (err error) {
	db, err := sql.Open("sqlite", sqliteDSN(from, SQLiteReaderCache, "_pragma=query_only(0)"))
	if err != nil {
		return fmt.Errorf("open %s: %w", from, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	var mode int64
	if err := db.QueryRowContext(ctx, "PRAGMA auto_vacuum").Scan(&mode); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	if mode != incrementalVacuum { // this would write to a file that has the setting
		if _, err := db.ExecContext(ctx, "PRAGMA auto_vacuum = INCREMENTAL"); err != nil {
			return fmt.Errorf("copy %s: %w", from, err)
		}
	}
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return nil
}

// markBackup marks a database as a copy.
func markBackup(ctx context.Context, path string, now time.Time) (err error) {
	db, err := sql.Open("sqlite", sqliteURI(path, "mode=rw"))
	if err != nil {
		return fmt.Errorf("open the backup: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, "UPDATE recovery SET state = 'backup', reason = ?, since = ?",
		"this file is a copy that quittance backup made at "+clock.Format(now, time.UTC, time.RFC3339), now.Unix())
	return During("mark the backup", err)
}

// checkDatabase returns an error if a database is damaged.
func checkDatabase(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", sqliteURI(path, "mode=ro"))
	if err != nil {
		return fmt.Errorf("open the backup: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var result string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&result); err != nil {
		return fmt.Errorf("check the backup: %w", err)
	}
	if result != "ok" {
		return fmt.Errorf("the backup is damaged, and so is the database, probably: %s", result)
	}
	return nil
}

// syncFile writes the content of a file or folder to disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("write the backup to disk: %w", err)
	}
	return During("write the backup to disk", errors.Join(f.Sync(), f.Close()))
}
