package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"
)

// widening replaces constraints of a table by less strict ones. Every existing
// row satisfies them, so no row is read or written.
type widening struct {
	table    string
	sqlite   [][2]string // parts of the table's definition, and their replacements
	obsolete []string    // substrings of the constraints to drop on PostgreSQL
	postgres string      // the statement that adds the new ones on PostgreSQL
}

// widenings are the widenings of each migration, by version.
var widenings = map[int64][]widening{
	9: {
		{
			table: "events",
			sqlite: [][2]string{
				{"'payment.received', 'payment.refunded'))", "'payment.received', 'payment.refunded', 'payment.unattributed'))"},
				{"invoice_id  TEXT   NOT NULL REFERENCES invoices (id),", "invoice_id  TEXT   REFERENCES invoices (id) CHECK (invoice_id IS NOT NULL OR type = 'payment.unattributed'),"},
			},
			obsolete: []string{"payment.refunded"},
			postgres: `ALTER TABLE events
				ADD CONSTRAINT events_type CHECK (type IN ('invoice.created', 'invoice.paid', 'invoice.expired', 'payment.received', 'payment.refunded', 'payment.unattributed')),
				ALTER COLUMN invoice_id DROP NOT NULL,
				ADD CONSTRAINT events_of_invoice CHECK (invoice_id IS NOT NULL OR type = 'payment.unattributed')`,
		},
		{
			table: "payments",
			sqlite: [][2]string{
				{"'tolerance', 'by_hand'))", "'tolerance', 'by_hand', 'by_claim'))"},
				{"(method IS NULL OR method <> 'by_hand')", "(method IS NULL OR method NOT IN ('by_hand', 'by_claim'))"},
			},
			obsolete: []string{"by_hand"},
			postgres: `ALTER TABLE payments
				ADD CONSTRAINT payments_method CHECK (method IN ('registry', 'authorization', 'calldata', 'transfer_amount', 'amount', 'tolerance', 'by_hand', 'by_claim')),
				ADD CONSTRAINT payments_attributed_by CHECK ((attributed_by IS NULL) = (method IS NULL OR method NOT IN ('by_hand', 'by_claim')))`,
		},
	},
	40: {{
		table:    "payments",
		sqlite:   [][2]string{{"'tolerance', 'by_hand', 'by_claim'))", "'tolerance', 'by_hand', 'by_claim', 'deposit'))"}},
		obsolete: []string{"calldata"},
		postgres: `ALTER TABLE payments ADD CONSTRAINT payments_method CHECK (method IN
			('registry', 'authorization', 'calldata', 'transfer_amount', 'amount', 'tolerance', 'by_hand', 'by_claim', 'deposit')) NOT VALID`,
	}},
}

// wideningMigrations returns the migrations that only widen constraints.
func wideningMigrations(dialect goose.Dialect) goose.ProviderOption {
	return goose.WithGoMigrations(goose.NewGoMigration(9, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		return widen(ctx, tx, 9, dialect)
	}}, nil))
}

// widen runs the widenings of a migration.
func widen(ctx context.Context, tx *sql.Tx, version int64, dialect goose.Dialect) error {
	for _, w := range widenings[version] {
		widen := w.inSQLite
		if dialect == goose.DialectPostgres {
			widen = w.inPostgres
		}
		if err := widen(ctx, tx); err != nil {
			return fmt.Errorf("widen the constraints of %s: %w", w.table, err)
		}
	}
	return nil
}

// widenAfter returns the migration of a folder followed by the widenings of its version.
func widenAfter(version int64, folder string, dialect goose.Dialect) *goose.Migration {
	up := folderUp(folder, dialect)
	if up.RunTx != nil {
		return goose.NewGoMigration(version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			if err := up.RunTx(ctx, tx); err != nil {
				return err
			}
			return widen(ctx, tx, version, dialect)
		}}, nil)
	}
	return goose.NewGoMigration(version, &goose.GoFunc{RunDB: func(ctx context.Context, db *sql.DB) error {
		if err := up.RunDB(ctx, db); err != nil {
			return err
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := widen(ctx, tx, version, dialect); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	}}, nil)
}

// inSQLite edits the table's definition, as SQLite's documentation of ALTER
// TABLE describes for changes that do not affect stored rows.
func (w widening) inSQLite(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, "PRAGMA writable_schema = ON"); err != nil {
		return err
	}
	for _, change := range w.sqlite {
		done, err := tx.ExecContext(ctx, "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE type = 'table' AND name = ? AND instr(sql, ?) > 0",
			change[0], change[1], w.table, change[0])
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		if err != nil {
			return err
		}
		if n != 1 {
			return fmt.Errorf("its definition lacks %q", change[0])
		}
	}
	var version int64
	if err := tx.QueryRowContext(ctx, "PRAGMA schema_version").Scan(&version); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA schema_version = %d", version+1)); err != nil { // so that other connections read the definition again
		return err
	}
	_, err := tx.ExecContext(ctx, "PRAGMA writable_schema = RESET")
	return err
}

// inPostgres drops the constraints that contain the obsolete parts and adds the
// new ones.
func (w widening) inPostgres(ctx context.Context, tx *sql.Tx) error {
	for _, part := range w.obsolete {
		_, err := tx.ExecContext(ctx, fmt.Sprintf(`DO $$ DECLARE found record; BEGIN
			FOR found IN SELECT conname FROM pg_constraint WHERE conrelid = '%s'::regclass AND contype = 'c' AND pg_get_constraintdef(oid) LIKE '%%%s%%'
			LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %%I', found.conname); END LOOP; END $$`, w.table, part, w.table))
		if err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, w.postgres)
	return err
}
