package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"strings"

	"github.com/pressly/goose/v3"
)

// A migration whose statements only one database knows is a folder with a file for each.
//
//go:embed migrations/00111_merchant_holders migrations/00119_public_hosts
//go:embed migrations/00079_unread_transactions migrations/00080_chain_audits migrations/00082_keys_behind migrations/00083_storage
//go:embed migrations/00086_endpoint_headers migrations/00094_returned migrations/00102_keys_of_deleted_drafts migrations/00106_timelines
//go:embed migrations/00107_recovery migrations/00108_lost_invoices
//go:embed migrations/00109_known_chains migrations/00115_operator_nonces migrations/00118_unattributed_payments
//go:embed migrations/00116_closed_commitments migrations/00117_erasures migrations/00121_lost_openings
//go:embed migrations/00122_idempotency_keys
//go:embed migrations/00025_append_only migrations/00032_report_of_refunds migrations/00033_list_filters migrations/00040_deposits migrations/00046_sweep_costs migrations/00051_customers migrations/00059_deliveries_by_state migrations/00060_inbox_items migrations/00062_partitions migrations/00064_shares_of_transactions migrations/00065_statements migrations/00067_refunds_without_payment migrations/00070_amounts migrations/00071_byte_order migrations/00072_free_space migrations/00073_short_keys migrations/00074_long_keys migrations/00089_payment_uses migrations/00090_proved_addresses migrations/00093_authorized_payments
var folders embed.FS

// readFolder returns the file of a folder for the database.
func readFolder(folder string, dialect goose.Dialect) (string, error) {
	file := "sqlite.sql"
	if dialect == goose.DialectPostgres {
		file = "postgres.sql"
	}
	text, err := folders.ReadFile("migrations/" + folder + "/" + file)
	return string(text), err
}

// blockMigrations returns the migrations that both databases run in a transaction, and PostgreSQL as
// one statement. They contain bodies of triggers or blocks, or their text columns need an explicit
// collation on PostgreSQL.
func blockMigrations(dialect goose.Dialect) goose.ProviderOption {
	var all []*goose.Migration
	for version, folder := range map[int64]string{
		111: "00111_merchant_holders", 119: "00119_public_hosts",
		25: "00025_append_only", 71: "00071_byte_order", 79: "00079_unread_transactions", 80: "00080_chain_audits", 82: "00082_keys_behind",
		83: "00083_storage", 86: "00086_endpoint_headers", 94: "00094_returned",
		102: "00102_keys_of_deleted_drafts", 106: "00106_timelines", 107: "00107_recovery", 108: "00108_lost_invoices",
		109: "00109_known_chains", 115: "00115_operator_nonces", 116: "00116_closed_commitments", 117: "00117_erasures", 121: "00121_lost_openings",
		122: "00122_idempotency_keys",
	} {
		all = append(all, goose.NewGoMigration(version, inTransaction(folder, dialect), nil))
	}
	return goose.WithGoMigrations(all...)
}

// indexMigrations returns the migrations that add indexes to tables of an earlier release.
// PostgreSQL creates these outside of a transaction, while others write to the table.
func indexMigrations(dialect goose.Dialect) goose.ProviderOption {
	return goose.WithGoMigrations(indexMigration(32, "00032_report_of_refunds", dialect), indexMigration(33, "00033_list_filters", dialect), widenAfter(40, "00040_deposits", dialect),
		indexMigration(46, "00046_sweep_costs", dialect), indexMigration(51, "00051_customers", dialect), indexMigration(59, "00059_deliveries_by_state", dialect), indexMigration(60, "00060_inbox_items", dialect),
		indexMigration(64, "00064_shares_of_transactions", dialect), indexMigration(65, "00065_statements", dialect),
		indexMigration(67, "00067_refunds_without_payment", dialect), indexMigration(70, "00070_amounts", dialect), indexMigration(72, "00072_free_space", dialect), indexMigration(73, "00073_short_keys", dialect), indexMigration(74, "00074_long_keys", dialect),
		indexMigration(89, "00089_payment_uses", dialect), indexMigration(90, "00090_proved_addresses", dialect),
		indexMigration(93, "00093_authorized_payments", dialect), indexMigration(118, "00118_unattributed_payments", dialect))
}

// partitionMigration returns the migration that partitions the attempts.
func partitionMigration(dialect goose.Dialect) goose.ProviderOption {
	up := inTransaction("00062_partitions", dialect)
	if dialect == goose.DialectPostgres {
		up = &goose.GoFunc{RunDB: partitionAttempts}
	}
	return goose.WithGoMigrations(goose.NewGoMigration(62, up, nil))
}

// indexMigration returns the migration of a folder.
func indexMigration(version int64, folder string, dialect goose.Dialect) *goose.Migration {
	return goose.NewGoMigration(version, folderUp(folder, dialect), nil)
}

// folderUp runs the file of a folder: on SQLite in a transaction, and on PostgreSQL without.
func folderUp(folder string, dialect goose.Dialect) *goose.GoFunc {
	up := inTransaction(folder, dialect)
	if dialect == goose.DialectPostgres {
		up = &goose.GoFunc{RunDB: func(ctx context.Context, db *sql.DB) error {
			text, err := readFolder(folder, dialect)
			if err != nil {
				return err
			}
			for statement := range strings.SplitSeq(text, ";\n") {
				if statement = strings.TrimSpace(statement); statement == "" {
					continue
				}
				if _, err := db.ExecContext(ctx, statement); err != nil {
					return fmt.Errorf("%.80s: %w", statement, err)
				}
			}
			return nil
		}}
	}
	return up
}

// inTransaction runs the file of a folder in a transaction.
func inTransaction(folder string, dialect goose.Dialect) *goose.GoFunc {
	return &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		text, err := readFolder(folder, dialect)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, text)
		return err
	}}
}
