package db_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// noticed opens a database, as a start of the service does, and returns the state that it finds.
func noticed(t *testing.T, url string) db.Recovery {
	t.Helper()
	r, err := dbtest.Open(t, url).NoticeRestore(t.Context(), time.Unix(1000, 0))
	rowtest.Must(t, err)
	return r
}

// TestExtraPromotionIsNoRestore promotes a synchronous standby of a primary that was killed, twice. Nothing is lost, so
// the service starts.
func TestExtraPromotionIsNoRestore(t *testing.T) {
	t.Parallel()
	primary := startCluster(t)
	standby, err := dbtest.StartStandby(t.Context(), primary)
	rowtest.Must(t, err)
	t.Cleanup(func() { rowtest.Must(t, standby.Stop()) })
	for _, id := range []string{"inv_1", "inv_2"} {
		s := dbtest.Open(t, primary.DSN("postgres"))
		if r, err := s.NoticeRestore(t.Context(), time.Unix(1000, 0)); err != nil || r.State != db.RecoveryNormal {
			t.Fatalf("the primary: %+v, %v", r, err)
		}
		rowtest.Insert(t, s, rowtest.Sample(id, "m"))
		rowtest.Must(t, primary.KillNine())
		rowtest.Must(t, standby.Promote(t.Context()))
		if r := noticed(t, standby.DSN("postgres")); r.State != db.RecoveryNormal {
			t.Errorf("the promoted standby: %+v", r)
		}
		if !has(t, dbtest.Open(t, standby.DSN("postgres")), id) {
			t.Errorf("%s is lost", id)
		}
		primary, standby = standby, primary
		rowtest.Must(t, standby.Follow(t.Context(), primary))
	}
}

// TestExtraPointInTimeRecoveryIsNoticed recovers a database to a point in time, which loses an invoice.
func TestExtraPointInTimeRecoveryIsNoticed(t *testing.T) {
	t.Parallel()
	c, err := dbtest.StartCluster(t.Context(), dbtest.Options{Archive: true})
	rowtest.Must(t, err)
	t.Cleanup(func() { rowtest.Must(t, c.Stop()) })
	s := dbtest.Open(t, c.DSN("postgres"))
	if r, err := s.NoticeRestore(t.Context(), time.Unix(1000, 0)); err != nil || r.State != db.RecoveryNormal {
		t.Fatalf("the first start: %+v, %v", r, err)
	}
	backup, err := c.BaseBackup(t.Context())
	rowtest.Must(t, err)
	rowtest.Insert(t, s, rowtest.Sample("inv_kept", "m"))
	rowtest.Must(t, c.RestorePoint(t.Context(), "before"))
	rowtest.Insert(t, s, rowtest.Sample("inv_lost", "m"))
	rowtest.Must(t, c.RestorePoint(t.Context(), "after"))
	rowtest.Must(t, c.KillNine())

	was, err := backup.RecoverTo(t.Context(), "recovery_target_name=before")
	rowtest.Must(t, err)
	t.Cleanup(func() { rowtest.Must(t, was.Stop()) })
	r := noticed(t, was.DSN("postgres"))
	if r.State != db.RecoverySuspected || !strings.Contains(r.Reason, "recovery_target_name = before") {
		t.Errorf("noticed %+v", r)
	}
	recovered := dbtest.Open(t, was.DSN("postgres"))
	if !has(t, recovered, "inv_kept") || has(t, recovered, "inv_lost") {
		t.Error("the recovery did not lose what came after its target, and nothing else")
	}
}

// TestExtraUnreplicatedCommitStaysInvisible cancels a commit that waits for a synchronous standby. Its rows must be
// invisible until a standby has them, because a failover would lose them.
func TestExtraUnreplicatedCommitStaysInvisible(t *testing.T) {
	t.Parallel()
	cluster, err := dbtest.StartCluster(t.Context(), dbtest.Options{Fsync: true})
	rowtest.Must(t, err)
	t.Cleanup(func() { rowtest.Must(t, cluster.Stop()) })
	s := dbtest.Open(t, cluster.DSN("postgres"))
	rowtest.Insert(t, s, rowtest.Sample("inv_0", "m"))
	admin, err := pgx.Connect(t.Context(), cluster.DSN("postgres"))
	rowtest.Must(t, err)
	defer admin.Close(context.Background()) //nolint:errcheck // a failure has no consequences
	standbys := func(names string) {
		for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + names + "'", "SELECT pg_reload_conf()"} {
			expect.Success(t)(admin.Exec(t.Context(), statement))
		}
	}
	waiting := func() (n int) {
		rowtest.Must(t, admin.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity, pg_sleep(0.02) WHERE wait_event = 'SyncRep'").Scan(&n))
		return n
	}
	standbys("nobody")
	// Until the server has loaded its configuration, commits do not wait for a standby.
	id := "inv_0"
	for waited, n := false, 1; !waited; n++ {
		id = fmt.Sprintf("inv_%d", n)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Update(ctx, func(tx *db.Tx) error { return add(t.Context(), tx, id) }) }()
		for !waited && len(ended) == 0 {
			waited = waiting() > 0
		}
		cancel()
		switch err := <-ended; {
		case waited && err == nil:
			t.Error("the transaction is reported as committed")
		case !waited:
			rowtest.Must(t, err)
		}
	}
	for begun := time.Now(); time.Since(begun) < time.Second; {
		if has(t, s, id) || waiting() == 0 {
			t.Fatal("the invoice is visible, and no standby has it")
		}
	}
	standbys("")
	for visible := false; !visible; {
		visible = has(t, s, id)
	}
}

// recoveryLimit is the time within which the store must work after it lost its connections.
const recoveryLimit = 20 * time.Second

// lossy opens a store with connections that can be cut.
func lossy(t *testing.T) (*db.DB, *dbtest.Proxy, string) {
	t.Helper()
	direct := dbtest.MigratedPostgres(t)
	proxy, through, err := dbtest.StartProxy(t.Context(), direct, 0)
	rowtest.Must(t, err)
	t.Cleanup(func() { rowtest.Must(t, proxy.Close()) })
	return dbtest.Open(t, through), proxy, direct
}

// awaitLockWaiter waits until a session of the database waits for a lock.
func awaitLockWaiter(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	rowtest.Must(t, err)
	defer func() { rowtest.Must(t, conn.Close(t.Context())) }()
	for waiting := 0; waiting == 0; {
		rowtest.Must(t, conn.QueryRow(t.Context(),
			"SELECT count(*) FROM pg_stat_activity, pg_sleep(0.01) WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting))
	}
}

// TestExtraHalfOpen cuts all connections of a pool: idle ones, one in a transaction that holds a lock, and one that
// waits for that lock. The next transaction must succeed in time, without a deadline.
func TestExtraHalfOpen(t *testing.T) {
	t.Parallel()
	for _, how := range []dbtest.Loss{dbtest.Swallowed, dbtest.Dropped} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			s, proxy, direct := lossy(t)
			ctx := context.WithoutCancel(t.Context()) // like a worker's context, without a deadline
			rowtest.Must(t, s.Update(ctx, func(tx *db.Tx) error {
				_, err := ledger.InsertChain(ctx, tx, "a", invoice.Header{}, nil)
				return err
			}))
			locked, lost := make(chan struct{}), make(chan struct{})
			held, waited := make(chan error, 1), make(chan error, 1)
			lock := func(s *db.DB, then func()) error {
				return s.Update(ctx, func(tx *db.Tx) error {
					if _, err := ledger.LockCursor(ctx, tx, "a"); err != nil {
						return err
					}
					then()
					return access.InsertSettlementAddresses(ctx, tx, []access.SettlementAddress{{ChainKey: "a", MerchantID: "m"}}, invoice.Unix(1))
				})
			}
			go func() { held <- lock(s, func() { close(locked); <-lost }) }()
			<-locked
			go func() { waited <- lock(s, func() {}) }()
			awaitLockWaiter(t, direct)
			n, err := proxy.Lose(how)
			rowtest.Must(t, err)
			begun := time.Now()
			close(lost)
			if n < 2 {
				t.Errorf("%d connections were lost; the test wants several", n)
			}
			for name, ended := range map[string]chan error{"held the lock": held, "waited for it": waited} {
				if err := <-ended; !db.Unavailable(err) {
					t.Errorf("the transaction that %s ended with %v", name, err)
				}
			}
			if err := lock(s, func() {}); err != nil {
				t.Errorf("the next transaction: %v", err)
			}
			took := time.Since(begun)
			t.Logf("%s: works again after %s", how, took.Round(10*time.Millisecond))
			if took > recoveryLimit {
				t.Errorf("it took %s; want at most %s", took, recoveryLimit)
			}
		})
	}
}

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
	expect.Equal(t, len(seen), len(held), "sessions were looked at:")
}
