package db_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
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
			expect.Error(t, db.ErrNoCopy, "in state %s", state)(s.MarkIsolated(t.Context(), false, time.Unix(2000, 0)))
			if state == db.RecoveryNormal {
				break
			}
			marked := s.MarkIsolated(t.Context(), true, time.Unix(2000, 0))
			var restored db.RestoredError
			if r, err := s.Recovery(t.Context()); err != nil || !errors.As(marked, &restored) || r.State != state || r.Reason != "a nonce" {
				t.Errorf("marked in state %s: %v, it is %+v, %v", state, marked, r, err)
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
			expect.Error(t, db.ErrIsolated, "to %s", state)(set(state, "recover"))
		}
		expect.Error(t, db.ErrIsolated, "to normal")(set(db.RecoveryNormal, ""))
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
		return webhooks.UnmarkCopy(t.Context(), tx, time.Unix(3000, 0))
	})
	expect.Error(t, db.ErrIsolated, "a copy became live")(err)
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
	u := expect.Must(url.Parse(dsn))
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
		expect.Success(t)(conn.ExecContext(t.Context(), strings.ReplaceAll(statement, "$role", role)))
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
	expect.Success(t)(dbtest.SQL(t, dsn).ExecContext(t.Context(), "CREATE SCHEMA elsewhere"))
	u := expect.Must(url.Parse(dsn))
	q := u.Query()
	q.Set("search_path", "elsewhere")
	u.RawQuery = q.Encode()
	_, err := db.Open(t.Context(), u.String())
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
	for _, table := range texts(t, conn, `SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
		AND relname <> 'goose_db_version'`) {
		if !slices.Contains(db.OwnTables(), table) {
			t.Errorf("the privileges on %s are not checked", table)
		}
	}
}

// vacuumMode returns the file's auto_vacuum: 0 is off, 2 is incremental.
func vacuumMode(t *testing.T, path string) (mode int) {
	t.Helper()
	conn := dbtest.SQL(t, "sqlite:"+path)
	rowtest.Must(t, conn.QueryRowContext(t.Context(), "PRAGMA auto_vacuum").Scan(&mode))
	rowtest.Must(t, conn.Close())
	return mode
}

// fillEvents makes the bodies of a store's events large.
func fillEvents(t *testing.T, s *db.DB, url string) {
	t.Helper()
	dbtest.Schedule(t, s, "shop", 0, 2000, 1000)
	conn := dbtest.SQL(t, url)
	defer func() { rowtest.Must(t, conn.Close()) }()
	for _, statement := range []string{"UPDATE events SET body = hex(randomblob(2000)), created_at = 1", "DELETE FROM deliveries"} {
		expect.Success(t)(conn.ExecContext(t.Context(), statement))
	}
}

// TestFileShrinks removes old events: the file shrinks in steps, and keeps some room.
func TestFileShrinks(t *testing.T) {
	url := dbtest.SQLite(t)
	path := strings.TrimPrefix(url, "sqlite:")
	s, err := db.Open(t.Context(), url)
	rowtest.Must(t, err)
	expect.Equal(t, vacuumMode(t, path), 2, "auto_vacuum of a new file is")
	fillEvents(t, s, url)
	const limit = 100
	if more, err := s.ReturnSpace(t.Context(), limit); more || err != nil {
		t.Errorf("space of a full file: %v, %v", more, err)
	}
	for after, more := int64(0), true; more; {
		after, more, err = webhooks.NewTables(s).CleanEvents(t.Context(), time.Unix(100, 0), after, 500)
		rowtest.Must(t, err)
	}
	conn := dbtest.SQL(t, url)
	counts := func() (free, pages int) {
		rowtest.Must(t, conn.QueryRowContext(t.Context(), "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count").Scan(&free, &pages))
		return free, pages
	}
	before, pagesBefore := counts()
	if more, err := s.ReturnSpace(t.Context(), limit); !more || err != nil {
		t.Fatalf("the first step: %v, %v", more, err)
	}
	if free, pages := counts(); free > before-limit || pages > pagesBefore-limit || pages < pagesBefore-limit-2 { // 2 pages of pointers
		t.Errorf("the first step left %d of %d pages free, of %d of %d", free, pages, before, pagesBefore)
	}
	for more := true; more; {
		more, err = s.ReturnSpace(t.Context(), limit)
		rowtest.Must(t, err)
	}
	free, pages := counts()
	if free < pages/10 || free > pages/10+2*limit || pages > pagesBefore/2 {
		t.Errorf("at the end %d of %d pages are free, at first %d of %d", free, pages, before, pagesBefore)
	}
	rowtest.Must(t, conn.Close())
	rowtest.Must(t, s.Close())
	if info, err := os.Stat(path); err != nil || info.Size() > int64(pages)*4096 {
		t.Errorf("the file has %d bytes and %d pages, %v", info.Size(), pages, err)
	}
}

// TestBackupCanShrink backs up a file of an older version, which cannot shrink, and one that can: the copies can.
func TestBackupCanShrink(t *testing.T) {
	url := dbtest.SQLite(t)
	path := strings.TrimPrefix(url, "sqlite:")
	conn := dbtest.SQL(t, url)
	expect.Success(t)(conn.ExecContext(t.Context(), "CREATE TABLE of_an_older_version (a)"))
	s := dbtest.Open(t, url)
	if mode := vacuumMode(t, path); mode != 0 {
		t.Fatalf("auto_vacuum of the older file is %d, want 0", mode)
	}
	fillEvents(t, s, url)
	expect.Success(t)(conn.ExecContext(t.Context(), "DELETE FROM events WHERE seq > 1"))
	if more, err := s.ReturnSpace(t.Context(), 10); more || err != nil {
		t.Errorf("space of a file that cannot shrink: %v, %v", more, err)
	}
	copied, again := filepath.Join(t.TempDir(), "copy.db"), filepath.Join(t.TempDir(), "again.db")
	rowtest.Must(t, db.Backup(t.Context(), url, copied, time.Now()))
	rowtest.Must(t, db.Backup(t.Context(), "sqlite:"+copied, again, time.Now()))
	for _, path := range []string{copied, again} {
		expect.Equal(t, vacuumMode(t, path), 2, "auto_vacuum of a copy is")
	}
}

// TestFullDisk fills a SQLite database to a limit. Every write without room returns an error that is retryable, also
// when it shares a commit with a failed one. Acknowledged writes are stored, and writes succeed once there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := dbtest.Open(t, dbtest.SQLite(t))
	rowtest.Must(t, s.LimitPages(t.Context(), 1))
	const writers, most = 16, 10_000
	var mu sync.Mutex
	var acknowledged []invoice.Address
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			for j := range most {
				address := invoice.Address{1, byte(i), byte(j >> 8), byte(j)}
				err := s.Update(t.Context(), func(tx *db.Tx) error {
					return access.InsertSettlementAddresses(t.Context(), tx, []access.SettlementAddress{{ChainKey: "a", Address: address, MerchantID: "m"}}, invoice.Unix(1))
				})
				if err != nil {
					if !db.Unavailable(err) || strings.Contains(err.Error(), "\n") {
						t.Errorf("a full disk gives %v, want an error that counts as unavailable and says nothing else", err)
					}
					return
				}
				mu.Lock()
				acknowledged = append(acknowledged, address)
				mu.Unlock()
			}
			t.Error("the disk never was full")
		})
	}
	group.Wait()
	rowtest.Must(t, s.LimitPages(t.Context(), 1<<30))
	rowtest.Insert(t, s, rowtest.Sample("inv_after", "m"))
	known, err := access.SettlementAddresses(t.Context(), s, "a", acknowledged)
	rowtest.Must(t, err)
	expect.Equal(t, len(known), len(acknowledged), "of %d writes that were acknowledged … are there:", len(acknowledged))
}

// TestSeenPaymentsChangeNoIndex requires that PostgreSQL does not write to the indexes of invoices when a payment of
// one is seen, because none of their columns changes: pages have room for such rows (HOT updates).
func TestSeenPaymentsChangeNoIndex(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedPostgres(t)
	s := dbtest.Open(t, url)
	rowtest.StartChain(t, s, "base")
	var all, seen []invoice.Invoice
	for i := range 200 {
		inv := rowtest.Sample(fmt.Sprintf("inv_%05d", i), "m")
		all = append(all, inv)
		if i%10 == 0 {
			p := rowtest.SamplePayment(i)
			p.Amount = inv.Amount
			seen = append(seen, inv.WithPayment(p.Payment))
		}
	}
	rowtest.Insert(t, s, all...)
	rowtest.Must(t, s.Update(t.Context(), func(tx *db.Tx) error { return ledger.UpdateInvoices(t.Context(), tx, seen) }))
	rowtest.Must(t, s.Close()) // PostgreSQL counts a connection's work when the connection ends
	conn := dbtest.SQL(t, url)
	var updated, inPlace int
	for end := time.Now().Add(time.Minute); updated == 0 && time.Now().Before(end); clock.Sleep(t.Context(), 10*time.Millisecond, nil) {
		rowtest.Must(t, conn.QueryRowContext(t.Context(), "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'invoices'").Scan(&updated, &inPlace))
	}
	if updated != len(seen) || inPlace != updated {
		t.Errorf("%d invoices were updated, %d of them without their indexes; want %d", updated, inPlace, len(seen))
	}
}

// TestBackup backs up a database during writes, and opens the copy.
func TestBackup(t *testing.T) {
	url := dbtest.SQLite(t)
	s := dbtest.Open(t, url)
	dbtest.Schedule(t, s, "shop", 0, 100, 1000)
	dir := t.TempDir()
	path := filepath.Join(dir, "copy.db")
	var both errgroup.Group
	both.Go(func() error { return db.Backup(t.Context(), url, path, time.Now()) })
	dbtest.Schedule(t, s, "shop", 100, 100, 1000)
	expect.OK(t, both.Wait())
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the backup has the mode %v, %v", info.Mode(), err)
	}
	copied := dbtest.Open(t, "sqlite:"+path)
	events, err := webhooks.NewReader(copied).Events(t.Context(), webhooks.EventFilter{After: new(int64), Limit: 200})
	if err != nil || len(events) < 100 {
		t.Errorf("the backup has %d events, %v", len(events), err)
	}
}

// TestBackupRefuses backs up an unsuitable database, and to unsuitable paths. Existing
// files stay unchanged, and no new one is left behind.
func TestBackupRefuses(t *testing.T) {
	url := dbtest.SQLite(t)
	s := dbtest.Open(t, url)
	dbtest.Schedule(t, s, "shop", 0, 1, 1000)
	dir := t.TempDir()
	write := func(name string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		expect.OK(t, os.WriteFile(path, []byte("mine"), 0o600))
		return path
	}
	taken := write("taken.db")
	write("busy.db.partial")
	damaged := write("damaged")
	for name, test := range map[string]struct{ url, to, want string }{
		"PostgreSQL":         {"postgres://db/quittance", "a.db", "pg_dump"},
		"no database":        {"sqlite:" + filepath.Join(dir, "none.db"), "a.db", "no such file"},
		"no database's file": {"sqlite:" + damaged, "a.db", "not a database"},
		"a file":             {url, "taken.db", "exists already"},
		"another backup":     {url, "busy.db", "another backup is in progress"},
		"no folder":          {url, "none/a.db", "no such file"},
	} {
		err := db.Backup(t.Context(), test.url, filepath.Join(dir, test.to), time.Now())
		if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, db.ErrNoBackup) != (name == "PostgreSQL") {
			t.Errorf("%s: %v; want %q", name, err, test.want)
		}
	}
	if text, err := os.ReadFile(taken); err != nil || string(text) != "mine" {
		t.Errorf("it overwrote a file: %q, %v", text, err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) != 3 {
		t.Errorf("it left %q behind, %v", files, err)
	}
}
