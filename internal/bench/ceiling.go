package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// The rows that the creation of an invoice writes, as the ceiling writes them:
// invoice, event and intent. %[1]s is a text that differs each time, and %[2]s
// 64 lower-case hex digits, of which the first half differs, too.
const ceilingRows = `INSERT INTO invoices (id, commitment_id, merchant_id, merchant_address, chain_key, token, currency, amount, transfer_amount, line_items, status, created_at, expires_at)
VALUES (%[1]s, '0x' || %[2]s, 'shop', '0x1111111111111111111111111111111111111111', 'local', '0x2222222222222222222222222222222222222222', 'USDC', '1000000', %[3]s, '[]', 'open', 1, 2);
INSERT INTO events (id, seq, type, subject, merchant_id, invoice_id, body, created_at)
VALUES ('evt_' || %[1]s, CAST(%[3]s AS BIGINT), 'invoice.created', %[1]s, 'shop', %[1]s, '%[4]s', 1);
INSERT INTO intents (id, chain_key, invoice_id, commitment_id, kind, status, created_at)
VALUES ('int_' || %[1]s, 'local', %[1]s, '0x' || %[2]s, 'open', 'due', 1);
`

// eventBody is about as long as the body of invoice.created.
var eventBody = `{"data":"` + strings.Repeat("x", 600) + `"}`

// ceiling measures how many invoices a bare program writes in a second: on
// SQLite one connection with groups of 64, on PostgreSQL pgbench with 64
// clients. It says which.
func (b *bench) ceiling(ctx context.Context, kind, url string) (float64, string, error) {
	if err := prepareCeiling(ctx, url); err != nil {
		return 0, "", err
	}
	if kind == "sqlite" {
		rate, err := b.sqliteCeiling(ctx, strings.TrimPrefix(url, "sqlite:"))
		return rate, "bare inserts in groups of 64", err
	}
	rate, err := b.pgbench(ctx, url, connections, 2, b.creates)
	return rate, "pgbench, 64 clients", err
}

// prepareCeiling makes the schema of a database, and what the rows of the ceiling refer to.
func prepareCeiling(ctx context.Context, url string) error {
	s, err := store.Open(ctx, url)
	if err != nil {
		return err
	}
	err = s.Update(ctx, func(tx *store.Tx) error {
		merchant, err := invoice.ParseAddress("0x1111111111111111111111111111111111111111")
		if err != nil {
			return err
		}
		return tx.InsertSettlementAddresses(ctx, []store.SettlementAddress{{ChainKey: "local", Address: merchant, MerchantID: "shop"}}, invoice.Unix(1))
	})
	return errors.Join(err, s.Close())
}

func (b *bench) sqliteCeiling(ctx context.Context, path string) (_ float64, err error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	var inserts []*sql.Stmt
	text := fmt.Sprintf(ceilingRows, "?1", "?2", "?3", eventBody)
	for _, one := range strings.SplitAfter(strings.TrimSpace(text), ";\n") {
		stmt, err := conn.PrepareContext(ctx, one)
		if err != nil {
			return 0, err
		}
		defer stmt.Close() //nolint:errcheck // the connection is closed with it
		inserts = append(inserts, stmt)
	}
	began, n := time.Now(), 0
	for time.Since(began) < b.creates {
		if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
			return 0, err
		}
		for range connections {
			n++
			args := []any{fmt.Sprintf("inv_%026d", n), fmt.Sprintf("%032[1]x%032[1]x", n), strconv.Itoa(1_000_000 + n)}
			for i, stmt := range inserts {
				if _, err := stmt.ExecContext(ctx, [][]any{args, args, args[:2]}[i]...); err != nil {
					return 0, err
				}
			}
		}
		if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// pgbench runs the rows as one transaction of prepared statements, with as many clients on some
// threads. A thread waits for each of its clients to prepare the statements, one after the other.
func (b *bench) pgbench(ctx context.Context, url string, clients, threads int, during time.Duration) (float64, error) {
	// A random number of 63 bits does not repeat in one run.
	id, hex := "('inv_' || lpad(:n::bigint::text, 26, '0'))", "repeat(lpad(to_hex(:n::bigint), 32, '0'), 2)"
	script := "\\set n random(1, 9223372036854775807)\nBEGIN;\n" +
		fmt.Sprintf(ceilingRows, id, hex, ":n::bigint::text", eventBody) + "COMMIT;\n"
	path := filepath.Join(b.dir, "creates.sql")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, b.cluster.Bin("pgbench"), "-n", "-M", "prepared", "-c", strconv.Itoa(clients), "-j", strconv.Itoa(threads),
		"-T", strconv.Itoa(max(1, int(during.Seconds()))), "-f", path, url)
	cmd.Env = append(os.Environ(), "PGSSLMODE=disable", "PGGSSENCMODE=disable") // each asks the server once more
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w\n%.500s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(line, "tps = "); ok {
			return strconv.ParseFloat(strings.Fields(rest)[0], 64)
		}
	}
	return 0, fmt.Errorf("pgbench printed no rate:\n%s", out)
}

// createDatabase makes a database on the cluster.
func createDatabase(ctx context.Context, url, name string) (err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	return err
}

// count returns the number that a query of a database counts.
func count(ctx context.Context, url, query string) (n int, err error) {
	driver, source := "pgx", url
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, source = "sqlite", "file:"+path
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}
