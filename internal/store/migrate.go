package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate applies the migrations that the database has not seen. Each runs in
// a transaction. The options are those of one kind of database.
func migrate(ctx context.Context, db *sql.DB, dialect goose.Dialect, of ...goose.ProviderOption) error {
	p, err := migrator(db, dialect, of...)
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

func migrator(db *sql.DB, dialect goose.Dialect, of ...goose.ProviderOption) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	opts := append(of, goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	p, err := goose.NewProvider(dialect, db, files, opts...)
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return p, nil
}
