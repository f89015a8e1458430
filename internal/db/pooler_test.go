package db_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestExtraPooler runs several stores through PgBouncer in transaction mode. They migrate at the same time, their
// transactions have the timeouts, and they leave no settings, locks or prepared statements in the shared sessions.
func TestExtraPooler(t *testing.T) {
	t.Parallel()
	direct := dbtest.Postgres(t)
	through := dbtest.PgBouncer(t, direct)
	const stores, writers, rounds = 3, 8, 10
	opened := make([]*db.DB, stores)
	var group sync.WaitGroup
	for i := range opened {
		group.Go(func() {
			s, err := db.Open(t.Context(), through)
			if err != nil {
				t.Error(err)
				return
			}
			opened[i] = s
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	rowtest.Insert(t, opened[0], rowtest.Sample("inv_first", "m"))
	for i, s := range opened {
		t.Cleanup(func() { rowtest.Must(t, s.Close()) })
		for w := range writers {
			group.Go(func() {
				for n := range rounds {
					id := fmt.Sprintf("inv_%d_%d_%d", i, w, n)
					rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return add(ctx, tx, id) })
					if !has(t, opened[(i+1)%stores], id) {
						t.Errorf("%s is not there", id)
					}
				}
			})
		}
	}
	group.Wait()
	for name, want := range map[string]string{"statement_timeout": "8s", "idle_in_transaction_session_timeout": "10s", "enable_seqscan": "off"} {
		rowtest.Must(t, opened[0].Update(t.Context(), func(tx *db.Tx) error {
			got, err := tx.Setting(t.Context(), name)
			if err == nil && got != want {
				t.Errorf("%s is %s in a transaction; want %s", name, got, want)
			}
			return err
		}))
	}
	wantCleanSessions(t, direct, through)
}

// wantCleanSessions fails the test if a connection of PgBouncer has a changed setting, a prepared statement or a lock.
func wantCleanSessions(t *testing.T, direct, through string) {
	t.Helper()
	admin, err := pgx.Connect(t.Context(), direct)
	rowtest.Must(t, err)
	defer admin.Close(t.Context()) //nolint:errcheck // a failure has no consequences
	var locks int
	rowtest.Must(t, admin.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())").Scan(&locks))
	if locks > 0 {
		t.Errorf("%d advisory locks are left", locks)
	}
	seen := make(map[uint32]bool)
	var held []pgx.Tx // each keeps a session, so that the next one is another
	for range 4 {
		cfg, err := pgx.ParseConfig(through)
		rowtest.Must(t, err)
		cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		conn, err := pgx.ConnectConfig(t.Context(), cfg)
		rowtest.Must(t, err)
		defer conn.Close(t.Context()) //nolint:errcheck // a failure has no consequences
		tx, err := conn.Begin(t.Context())
		rowtest.Must(t, err)
		held = append(held, tx)
		var pid uint32
		var changed string
		var statements int
		rowtest.Must(t, tx.QueryRow(t.Context(), `SELECT pg_backend_pid(), (SELECT count(*) FROM pg_prepared_statements),
			coalesce((SELECT string_agg(name, ' ') FROM pg_settings WHERE source = 'session' AND name NOT IN ('client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings', 'application_name')), '')`).
			Scan(&pid, &statements, &changed))
		if changed != "" || statements > 0 {
			t.Errorf("the session %d has %d prepared statements and the settings %q", pid, statements, changed)
		}
		seen[pid] = true
	}
	for _, tx := range held {
		rowtest.Must(t, tx.Rollback(t.Context()))
	}
	if len(seen) != len(held) {
		t.Errorf("%d sessions were looked at; want %d", len(seen), len(held))
	}
}
