package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate applies the migrations that the database has not seen. Each runs in
// a transaction. With lock, processes that start together take turns.
func migrate(ctx context.Context, db *sql.DB, dialect goose.Dialect, locker lock.SessionLocker) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	opts := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger())}
	if locker != nil {
		opts = append(opts, goose.WithSessionLocker(locker))
	}
	p, err := goose.NewProvider(dialect, db, files, opts...)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	_, err = p.Up(ctx)
	return err
}
