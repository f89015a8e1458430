package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/test/dbtest"
)

const (
	// clients is the number of clients that create invoices in parallel, and the number of rows that the baseline on
	// SQLite groups.
	clients = 64
	// linkClients is the number of clients over a link.
	linkClients = 100
)

// roundTrips are the added delays of a round trip to PostgreSQL; values above 0 use a link.
var roundTrips = []time.Duration{0, 5 * time.Millisecond, 40 * time.Millisecond}

// measureCreates measures how many invoices per second are created through HTTP, on PostgreSQL also with a distant
// database. The baseline is a bare program that writes the same rows.
func measureCreates(ctx context.Context, r *measurement) error {
	f := figure{What: fmt.Sprintf("creates, %d clients", clients)}
	if r.database == "sqlite" {
		f.BaselineIs = fmt.Sprintf("bare inserts in groups of %d", clients)
		return r.compareCreates(ctx, f, 0, clients, r.sqliteInserts)
	}
	for _, roundTrip := range roundTrips {
		clients, threads := clients, 2
		if roundTrip > 0 {
			clients, threads = linkClients, linkClients
			f.What, f.unchecked = fmt.Sprintf("creates, %d clients, %v to the database", clients, roundTrip), true
		}
		f.BaselineIs = fmt.Sprintf("pgbench, %d clients", clients)
		baseline := func(ctx context.Context, url string) (float64, error) {
			return r.pgbench(ctx, url, clients, threads)
		}
		if err := r.compareCreates(ctx, f, roundTrip, clients, baseline); err != nil {
			return fmt.Errorf("with %v to the database: %w", roundTrip, err)
		}
	}
	return nil
}

// compareCreates measures the baseline and the server over links to two databases.
func (r *measurement) compareCreates(
	ctx context.Context, f figure, roundTrip time.Duration, clients int,
	baseline func(ctx context.Context, url string) (float64, error),
) error {
	// The baseline's rows refer to the merchant and the address of this invoice.
	bare, err := r.newFilled(ctx, fillConfig{History: &history{Shops: 1}, Open: 1, Shared: 1})
	if err != nil {
		return err
	}
	err = overLink(ctx, bare, roundTrip, func(far string) (err error) {
		f.Baseline, err = baseline(ctx, far)
		return err
	})
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	n, err := r.holding(ctx, history{})
	if err != nil {
		return err
	}
	url, err := r.newDatabase(ctx)
	if err != nil {
		return err
	}
	return overLink(ctx, url, roundTrip, func(far string) (err error) {
		s, err := r.startServer(ctx, n, serverConfig{Database: far, Registry: n.Registry})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.stop()) }()
		return r.createFor(ctx, s, f, clients)
	})
}

// overLink calls use with the URL of a link to a database, or with the database's URL if no delay is added.
func overLink(ctx context.Context, near string, roundTrip time.Duration, use func(far string) error) error {
	if roundTrip == 0 {
		return use(near)
	}
	link, far, err := dbtest.StartProxy(ctx, near, roundTrip)
	if err != nil {
		return err
	}
	return errors.Join(use(far), link.Close())
}

// createFor creates invoices for a time, and adds figures of the rate and of the server's CPU time.
func (r *measurement) createFor(ctx context.Context, s *service, f figure, clients int) error {
	if err := s.waitCaughtUp(ctx); err != nil {
		return err
	}
	before, err := s.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	made, err := s.create(ctx, clients, func() bool { return time.Since(began) < r.Creates })
	if err != nil {
		return err
	}
	f.Unit, f.Value = "/s", perSecond(made, time.Since(began))
	r.faster(f)
	used, err := s.cpuFor(made, before)
	r.slower(figure{What: "CPU time of the server for one of " + f.What, Value: used, Unit: "µs"})
	return err
}

// create creates invoices of one merchant, each with a different amount, while more returns true.
func (s *service) create(ctx context.Context, clients int, more func() bool) (int64, error) {
	var begun, made atomic.Int64
	client := *s
	client.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients, MaxConnsPerHost: clients}}
	defer client.client.CloseIdleConnections()
	group, ctx := errgroup.WithContext(ctx)
	expires := time.Now().Add(24 * time.Hour).Unix()
	for range clients {
		group.Go(func() error {
			for more() && ctx.Err() == nil {
				body := fmt.Appendf(nil, `{"merchantId":"shop","merchantAddress":"%s","amount":"%d","currency":"USDC",
					"chainKey":"local","expiresAt":%d}`, account(0), 1_000_000+1000*begun.Add(1), expires)
				_, err := client.request(ctx, http.MethodPost, "/api/invoices", body, http.StatusCreated)
				if err != nil {
					return err
				}
				made.Add(1)
			}
			return nil
		})
	}
	err := group.Wait()
	return made.Load(), err
}

// The rows that the creation of an invoice writes, as the baseline writes them: invoice, event and intent. %[1]s is a
// text and %[3]s a number, which differ each time. %[2]s is 64 lower-case hex digits, and their first half also
// differs. %[4]s is the body of the event and %[5]s the settlement address.
const createdRows = `INSERT INTO invoices (id, commitment_id, merchant_id, merchant_address, chain_key, token, currency,
amount, transfer_amount, line_items, status, created_at, expires_at, registry)
VALUES (%[1]s, '0x' || %[2]s, 'shop-0', '%[5]s', 'local',
'0x2222222222222222222222222222222222222222', 'USDC', '1000000', %[3]s, '[]', 'open', 1, 2,
'0x0000000000000000000000000000000000000000');
INSERT INTO events (id, seq, type, subject, merchant_id, invoice_id, body, created_at)
VALUES ('evt_' || %[1]s, CAST(%[3]s AS BIGINT), 'invoice.created', %[1]s, 'shop-0', %[1]s, '%[4]s', 1);
INSERT INTO intents (id, chain_key, invoice_id, commitment_id, kind, status, created_at)
VALUES ('int_' || %[1]s, 'local', %[1]s, '0x' || %[2]s, 'open', 'due', 1);
`

// sqliteInserts writes the rows on one connection, in groups, and returns how many invoices per second it wrote.
func (r *measurement) sqliteInserts(ctx context.Context, url string) (_ float64, err error) {
	const pragmas = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)"
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(url, "sqlite:")+pragmas)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	var inserts []*sql.Stmt
	text := fmt.Sprintf(createdRows, "?1", "?2", "?3", eventBody, account(0))
	// The driver parses a text again at each execution if it ends with a semicolon and a line feed.
	for one := range strings.SplitSeq(strings.TrimSpace(text), ";\n") {
		stmt, err := db.PrepareContext(ctx, one)
		if err != nil {
			return 0, err
		}
		defer stmt.Close() //nolint:errcheck // closing the connection closes it
		inserts = append(inserts, stmt)
	}
	began, n := time.Now(), 0
	for time.Since(began) < r.Creates {
		if _, err := db.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
			return 0, err
		}
		for range clients {
			n++
			args := []any{fmt.Sprintf("inv_%026d", n), fmt.Sprintf("%032[1]x%032[1]x", n), strconv.Itoa(1_000_000 + n)}
			for i, stmt := range inserts {
				if _, err := stmt.ExecContext(ctx, [][]any{args, args, args[:2]}[i]...); err != nil {
					return 0, err
				}
			}
		}
		if _, err := db.ExecContext(ctx, "COMMIT"); err != nil {
			return 0, err
		}
	}
	return perSecond(n, time.Since(began)), nil
}

// pgbench runs the rows as one transaction of prepared statements, with as many clients on some threads. A thread waits
// for each of its clients to prepare the statements, one after the other.
func (r *measurement) pgbench(ctx context.Context, url string, clients, threads int) (float64, error) {
	// A random number of 63 bits does not repeat in one run.
	id, hex := "('inv_' || lpad(:n::bigint::text, 26, '0'))", "repeat(lpad(to_hex(:n::bigint), 32, '0'), 2)"
	script := "\\set n random(1, 9223372036854775807)\nBEGIN;\n" +
		fmt.Sprintf(createdRows, id, hex, ":n::bigint::text", eventBody, account(0)) + "COMMIT;\n"
	path := filepath.Join(r.dir, "creates.sql")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, r.cluster.Bin("pgbench"), "-n", "-M", "prepared", "-c", strconv.Itoa(clients),
		"-j", strconv.Itoa(threads), "-T", strconv.Itoa(max(1, int(r.Creates.Seconds()))), "-f", path, url)
	cmd.Env = append(os.Environ(), "PGSSLMODE=disable", "PGGSSENCMODE=disable") // each makes another query
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
