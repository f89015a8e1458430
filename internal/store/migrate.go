package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"sync"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

var createsTable = regexp.MustCompile(`(?m)^CREATE TABLE (?:IF NOT EXISTS )?(\w+)`)

// ownTables returns the names of the tables that migrations create. Other programs may have tables next to them.
var ownTables = sync.OnceValue(func() (names []string) {
	for _, dir := range []fs.FS{migrations, folders} {
		_ = fs.WalkDir(dir, ".", func(path string, _ fs.DirEntry, err error) error { // of an embedded file system, which cannot fail
			if text, err := fs.ReadFile(dir, path); err == nil {
				for _, match := range createsTable.FindAllStringSubmatch(string(text), -1) {
					names = append(names, match[1])
				}
			}
			return err
		})
	}
	return names
})

// migrate applies the migrations that the database lacks, each in a
// transaction. It fails if a newer program has changed the schema. The options
// depend on the database.
func migrate(ctx context.Context, db *sql.DB, dialect goose.Dialect, of ...goose.ProviderOption) error {
	p, err := migrator(db, dialect, of...)
	if err != nil {
		return err
	}
	if _, err = p.Up(ctx); err != nil {
		return err
	}
	found, err := p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	known := int64(0)
	for _, source := range p.ListSources() {
		known = max(known, source.Version)
	}
	if found > known {
		return fmt.Errorf("its version is %d, and this program knows versions up to %d: a newer quittance has changed it; "+
			"run that one or a newer one, or restore a backup from before", found, known)
	}
	return nil
}

func migrator(db *sql.DB, dialect goose.Dialect, of ...goose.ProviderOption) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	opts := append(of, wideningMigrations(dialect), blockMigrations(dialect), indexMigrations(dialect), partitionMigration(dialect), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	p, err := goose.NewProvider(dialect, db, files, opts...)
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return p, nil
}
