package store

import (
	"context"
	"database/sql"
	"embed"

	"github.com/pressly/goose/v3"
)

// Triggers have no syntax that both databases know, so a migration of triggers is a
// folder with a file for each database.
//
//go:embed migrations/00025_append_only
var triggers embed.FS

// triggerMigrations returns the migrations of triggers.
func triggerMigrations(dialect goose.Dialect) goose.ProviderOption {
	file := "migrations/00025_append_only/sqlite.sql"
	if dialect == goose.DialectPostgres {
		file = "migrations/00025_append_only/postgres.sql"
	}
	return goose.WithGoMigrations(goose.NewGoMigration(25, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		text, err := triggers.ReadFile(file)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, string(text))
		return err
	}}, nil))
}
