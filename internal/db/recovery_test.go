package db_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/txmgr"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestRecoveryStates walks through the states of a database. Evidence never replaces another state.
func TestRecoveryStates(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		t.Helper()
		state := func(want db.RecoveryState, reason string) {
			t.Helper()
			if r, err := s.Recovery(t.Context()); err != nil || r.State != want || r.Reason != reason || (r.Err() == nil) != (want == db.RecoveryNormal) {
				t.Errorf("the state is %+v, %v; want %s %q", r, err, want, reason)
			}
		}
		suspect := func(reason string) {
			t.Helper()
			rowtest.Must(t, s.Update(t.Context(), func(tx *db.Tx) error { return tx.SuspectRestore(t.Context(), reason, time.Unix(1000, 0)) }))
		}
		set := func(r db.Recovery) {
			t.Helper()
			rowtest.Must(t, s.Update(t.Context(), func(tx *db.Tx) error { return tx.SetRecovery(t.Context(), r) }))
		}
		state(db.RecoveryNormal, "")
		suspect("a nonce")
		state(db.RecoverySuspected, "a nonce")
		suspect("another")
		state(db.RecoverySuspected, "a nonce")
		set(db.Recovery{State: db.RecoveryUnderWay, Reason: "a nonce", Since: time.Unix(2000, 0)})
		suspect("another")
		state(db.RecoveryUnderWay, "a nonce")
		set(db.Recovery{State: db.RecoveryNormal, Since: time.Unix(3000, 0)})
		state(db.RecoveryNormal, "")
	})
}

// TestBackupIsMarked requires that a copy records what it is, and that the database itself stays as it was.
func TestBackupIsMarked(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	url := dbtest.SQLite(t)
	dbtest.Open(t, url)
	path := filepath.Join(t.TempDir(), "copy.db")
	rowtest.Must(t, db.Backup(t.Context(), url, path, at))
	r, err := dbtest.Open(t, "sqlite:"+path).Recovery(t.Context())
	rowtest.Must(t, err)
	if r.State != db.RecoveryBackup || !r.Since.Equal(at) || !strings.Contains(r.Err().Error(), "quittance recover --config FILE") {
		t.Errorf("the copy is %+v: %v", r, r.Err())
	}
	if r, err := dbtest.Open(t, url).Recovery(t.Context()); err != nil || r.State != db.RecoveryNormal {
		t.Errorf("the database is %+v, %v", r, err)
	}
}

// TestMarkIsolated marks only copies, and never lets one that ran in isolation become the live database.
func TestMarkIsolated(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		t.Helper()
		set := func(state db.RecoveryState, reason string) error {
			return s.Update(t.Context(), func(tx *db.Tx) error {
				return tx.SetRecovery(t.Context(), db.Recovery{State: state, Reason: reason, Since: time.Unix(1000, 0)})
			})
		}
		for _, state := range []db.RecoveryState{db.RecoverySuspected, db.RecoveryUnderWay, db.RecoveryNormal} {
			rowtest.Must(t, set(state, strings.TrimPrefix("a nonce", map[bool]string{true: "a nonce"}[state == db.RecoveryNormal])))
			if err := s.MarkIsolated(t.Context(), false, time.Unix(2000, 0)); !errors.Is(err, db.ErrNoCopy) {
				t.Errorf("in state %s: %v", state, err)
			}
		}
		if r, err := s.Recovery(t.Context()); err != nil || r.State != db.RecoveryNormal || !r.Isolated.IsZero() {
			t.Errorf("a refused mark left %+v, %v", r, err)
		}
		rowtest.Must(t, s.MarkIsolated(t.Context(), true, time.Unix(3000, 0)))
		rowtest.Must(t, s.MarkIsolated(t.Context(), false, time.Unix(4000, 0)))
		r, err := s.Recovery(t.Context())
		rowtest.Must(t, err)
		if r.State != db.RecoveryBackup || !r.Isolated.Equal(time.Unix(3000, 0)) || !errors.Is(r.Err(), db.ErrMarkedCopy) {
			t.Errorf("the copy is %+v: %v", r, r.Err())
		}
		for _, state := range []db.RecoveryState{db.RecoveryUnderWay, db.RecoveryBackup} {
			if err := set(state, "recover"); !errors.Is(err, db.ErrIsolated) {
				t.Errorf("to %s: %v", state, err)
			}
		}
		if err := set(db.RecoveryNormal, ""); !errors.Is(err, db.ErrIsolated) {
			t.Errorf("to normal: %v", err)
		}
	})
}

// TestIsolateBackup marks a copy that Backup made.
func TestIsolateBackup(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/copy.db"
	rowtest.Must(t, db.Backup(t.Context(), dbtest.Migrated(t), path, time.Unix(1000, 0)))
	s := dbtest.Open(t, "sqlite:"+path)
	rowtest.Must(t, s.MarkIsolated(t.Context(), false, time.Unix(2000, 0)))
	r, err := s.Recovery(t.Context())
	if err != nil || !r.Since.Equal(time.Unix(1000, 0)) || !strings.Contains(r.Reason, "quittance backup") || !errors.Is(r.Err(), db.ErrIsolated) {
		t.Errorf("the mark is %+v, %v", r, err)
	}
	err = s.Update(t.Context(), func(tx *db.Tx) error {
		return webhooks.UnmarkCopy(t.Context(), tx, func(string) bool { return true }, time.Unix(3000, 0))
	})
	if !errors.Is(err, db.ErrIsolated) {
		t.Errorf("a copy became live: %v", err)
	}
}

// TestSchemaVersions compares the migrations of a new database with the program's.
func TestSchemaVersions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		found, known, err := s.SchemaVersions(t.Context())
		if err != nil || found != known || found < 1 {
			t.Errorf("the database has %d, the program %d, %v", found, known, err)
		}
		if p := s.Product(); p != "sqlite" && p != "postgresql" {
			t.Errorf("the database is %q", p)
		}
	})
}

// TestOperatorReads counts a merchant's objects, and adds up the costs of transactions by day.
func TestOperatorReads(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		ctx, now := t.Context(), time.Unix(1_764_000_000, 0)
		for i, expires := range []time.Time{{}, now, now.Add(time.Second)} {
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
				return access.InsertKey(ctx, tx, access.Record{
					ID: "key_" + string(rune('a'+i)), Name: "n", Hint: "qk_live_abc", Hash: [access.HashSize]byte{byte(i)}, MerchantID: "m", Scopes: access.Read, CreatedAt: now.Add(-time.Hour), ExpiresAt: expires,
				})
			})
		}
		got, err := api.CountMerchant(ctx, s, "m", now)
		rowtest.Must(t, err)
		if want := (api.MerchantCounts{ActiveKeys: 2}); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
	})
}

// TestDailyCosts adds up the costs of transactions by day.
func TestDailyCosts(t *testing.T) {
	t.Parallel()
	rowtest.EachWriter(t, 3, func(t *testing.T, s *db.DB, _ *sql.DB) {
		ctx, day := t.Context(), time.Unix(1_763_942_400, 0).UTC()
		for i, gwei := range []int64{5, 7, 100} {
			id := fmt.Sprint("ctx_", i)
			rowtest.Must(t, txmgr.SaveChainTx(ctx, s, rowtest.WriterLease, rowtest.ChainTx(id, uint64(i)), []string{fmt.Sprint("int_", i)}))
			rowtest.Must(t, txmgr.SetTxStatus(ctx, s, rowtest.WriterLease, id, txmgr.TxMined, &ledger.TxCost{Gwei: gwei, At: day.Add(time.Duration(i-1) * 13 * time.Hour)}))
		}
		costs, err := txmgr.DailyCosts(ctx, s, "base", day.AddDate(0, 0, -1))
		rowtest.Must(t, err)
		want := []txmgr.DailyCost{{Day: day, Gwei: 107}, {Day: day.AddDate(0, 0, -1), Gwei: 5}}
		expect.NoDiff(t, cmp.Diff(want, costs), "costs by day")
		if costs, err = txmgr.DailyCosts(ctx, s, "moon", day); err != nil || len(costs) != 0 {
			t.Errorf("of another chain: %+v, %v", costs, err)
		}
	})
}

// as returns the URL of a database for a role.
func as(t *testing.T, dsn, role string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	rowtest.Must(t, err)
	u.User = url.User(role)
	return u.String()
}

// TestMissingPrivilege takes one privilege after the other from the role of a running service.
func TestMissingPrivilege(t *testing.T) {
	t.Parallel()
	dsn := dbtest.MigratedPostgres(t)
	dbtest.Open(t, dsn)
	conn := dbtest.SQL(t, dsn)
	role := "app_" + strings.ToLower(rand.Text())
	run := func(statement string) {
		t.Helper()
		_, err := conn.ExecContext(t.Context(), strings.ReplaceAll(statement, "$role", role))
		rowtest.Must(t, err)
	}
	run("CREATE ROLE $role LOGIN")
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			if _, err := conn.Exec(statement); err != nil { // the test's context has ended
				t.Error(err)
			}
		}
	})
	run("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO $role")
	s, err := db.Open(t.Context(), as(t, dsn, role))
	rowtest.Must(t, err)
	t.Cleanup(func() { rowtest.Must(t, s.Close()) })
	rowtest.Must(t, s.CheckWritable(t.Context()))
	run("CREATE TABLE unrelated (n int)") // of the same owner, as an extension's
	rowtest.Must(t, s.CheckWritable(t.Context()))
	for _, test := range []struct{ privilege, table string }{
		{"DELETE", "deliveries"}, {"UPDATE", "invoices"}, {"INSERT", "audit_entries"}, {"SELECT", "api_keys"}, {"DELETE", "attempts"},
	} {
		run("REVOKE " + test.privilege + " ON " + test.table + " FROM $role")
		if err := s.CheckWritable(t.Context()); err == nil || !strings.Contains(err.Error(), "lacks the privilege "+test.privilege+" on "+test.table) {
			t.Errorf("without %s on %s: %v", test.privilege, test.table, err)
		}
		run("GRANT " + test.privilege + " ON " + test.table + " TO $role")
	}
	run("REVOKE UPDATE, DELETE ON audit_entries FROM $role") // the service does not need them
	rowtest.Must(t, s.CheckWritable(t.Context()))
}

// TestOtherSchema opens a database with tables in another schema than the connection's.
func TestOtherSchema(t *testing.T) {
	t.Parallel()
	dsn := dbtest.MigratedPostgres(t)
	s := dbtest.Open(t, dsn)
	if s.Created() {
		t.Error("a database with tables is new")
	}
	_, err := dbtest.SQL(t, dsn).ExecContext(t.Context(), "CREATE SCHEMA elsewhere")
	rowtest.Must(t, err)
	u, err := url.Parse(dsn)
	rowtest.Must(t, err)
	q := u.Query()
	q.Set("search_path", "elsewhere")
	u.RawQuery = q.Encode()
	_, err = db.Open(t.Context(), u.String())
	if err == nil || !strings.Contains(err.Error(), `the schema "public" has them`) || !strings.Contains(err.Error(), "search_path") {
		t.Errorf("with another search_path: %v", err)
	}
	for name, empty := range dbtest.Databases() {
		s, err := db.Open(t.Context(), empty(t))
		rowtest.Must(t, err)
		if !s.Created() {
			t.Errorf("%s: an empty database is not new", name)
		}
		rowtest.Must(t, s.Close())
	}
}

// TestOwnTables compares the tables with checked privileges with the tables of a new database.
func TestOwnTables(t *testing.T) {
	t.Parallel()
	conn := dbtest.SQL(t, dbtest.MigratedPostgres(t))
	for _, table := range texts(t, conn, `SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
		AND NOT relispartition AND relname <> 'goose_db_version'`) {
		if !slices.Contains(db.OwnTables(), table) {
			t.Errorf("the privileges on %s are not checked", table)
		}
	}
}
