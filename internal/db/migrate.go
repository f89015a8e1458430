package db

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"sync"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// schemaFiles has the current schema of each database, from which new databases are made.
//
//go:embed schema/sqlite.sql schema/postgres.sql
var schemaFiles embed.FS

// migrationFiles has the migrations since the first release, in a folder for each database. Only databases of
// earlier releases run them. Until there is one, the only file is README.md.
//
//go:embed migrations
var migrationFiles embed.FS

// firstVersion is the version of the first release's schema. Each migration adds 1.
const firstVersion = 1

// schema is a program's knowledge of a database's schema. Tests replace parts of it.
type schema struct {
	dialect    goose.Dialect
	current    string // statements that make it in an empty database
	migrations fs.FS  // files that change the schema of an earlier release, in the format of goose
}

// schemaOf returns the schema of this program.
func schemaOf(dialect goose.Dialect) (schema, error) {
	folder := "sqlite"
	if dialect == goose.DialectPostgres {
		folder = "postgres"
	}
	current, err := schemaFiles.ReadFile("schema/" + folder + ".sql")
	if err != nil {
		return schema{}, err
	}
	migrations, err := fs.Sub(migrationFiles, path.Join("migrations", folder))
	return schema{dialect, string(current), migrations}, err
}

// migrate makes the schema in an empty database, and otherwise applies the migrations that the database lacks. It
// fails if a newer program has changed the schema.
func (s schema) migrate(ctx context.Context, db *sql.DB, empty bool) error {
	p, err := goose.NewProvider(s.dialect, db, s.migrations, goose.WithGoMigrations(goose.NewGoMigration(firstVersion, nil, nil)),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	if empty {
		return s.create(ctx, db, p.ListSources())
	}
	found, err := p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	if known, err := newest(s.migrations); err != nil {
		return err
	} else if found > known {
		return fmt.Errorf("its version is %d, and this program knows versions up to %d: a newer quittance has changed it; "+
			"run that one or a newer one, or restore a backup from before", found, known)
	}
	_, err = p.Up(ctx)
	return err
}

// create makes the current schema in one transaction, and records all migrations as applied.
func (s schema) create(ctx context.Context, db *sql.DB, sources []*goose.Source) (err error) {
	versions, err := database.NewStore(s.dialect, goose.DefaultTablename)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	if err := versions.CreateVersionTable(ctx, tx); err != nil {
		return fmt.Errorf("create the table of migrations: %w", err)
	}
	for _, source := range append([]*goose.Source{{Version: 0}}, sources...) { // goose expects a 0 before the first one
		if err := versions.Insert(ctx, tx, database.InsertRequest{Version: source.Version}); err != nil {
			return fmt.Errorf("record a migration: %w", err)
		}
	}
	if _, err := tx.ExecContext(ctx, s.current); err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	return tx.Commit()
}

// newestMigration returns the version of the schema that this program makes.
var newestMigration = sync.OnceValue(func() int64 {
	version := int64(firstVersion)
	for _, dialect := range []goose.Dialect{goose.DialectSQLite3, goose.DialectPostgres} {
		s, err := schemaOf(dialect)
		if err != nil {
			panic(err) // the files are embedded
		}
		n, err := newest(s.migrations)
		if err != nil {
			panic(err) // TestMigrationFiles reads all names
		}
		version = max(version, n)
	}
	return version
})

// newest returns the version of the schema after all migrations.
func newest(migrations fs.FS) (int64, error) {
	version := int64(firstVersion)
	files, err := fs.Glob(migrations, "*.sql")
	for _, file := range files {
		n, wrong := goose.NumericComponent(file)
		version, err = max(version, n), errors.Join(err, wrong)
	}
	return version, err
}

var createsTable = regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)

// ownTables returns the names of the tables that the schema has. Other programs may have tables next to them.
var ownTables = sync.OnceValue(func() (names []string) {
	text, err := schemaFiles.ReadFile("schema/postgres.sql")
	if err != nil {
		panic(err) // the file is embedded
	}
	for _, match := range createsTable.FindAllStringSubmatch(string(text), -1) {
		names = append(names, match[1])
	}
	return names
})
