package db_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

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
		_, err := conn.ExecContext(t.Context(), statement)
		rowtest.Must(t, err)
	}
}

// TestFileShrinks removes old events: the file shrinks in steps, and keeps some room.
func TestFileShrinks(t *testing.T) {
	url := dbtest.SQLite(t)
	path := strings.TrimPrefix(url, "sqlite:")
	s, err := db.Open(t.Context(), url)
	rowtest.Must(t, err)
	if mode := vacuumMode(t, path); mode != 2 {
		t.Errorf("auto_vacuum of a new file is %d, want 2", mode)
	}
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
	_, err := conn.ExecContext(t.Context(), "CREATE TABLE of_an_older_version (a)")
	rowtest.Must(t, err)
	s := dbtest.Open(t, url)
	if mode := vacuumMode(t, path); mode != 0 {
		t.Fatalf("auto_vacuum of the older file is %d, want 0", mode)
	}
	fillEvents(t, s, url)
	_, err = conn.ExecContext(t.Context(), "DELETE FROM events WHERE seq > 1")
	rowtest.Must(t, err)
	if more, err := s.ReturnSpace(t.Context(), 10); more || err != nil {
		t.Errorf("space of a file that cannot shrink: %v, %v", more, err)
	}
	copied, again := filepath.Join(t.TempDir(), "copy.db"), filepath.Join(t.TempDir(), "again.db")
	rowtest.Must(t, db.Backup(t.Context(), url, copied, time.Now()))
	rowtest.Must(t, db.Backup(t.Context(), "sqlite:"+copied, again, time.Now()))
	for _, path := range []string{copied, again} {
		if mode := vacuumMode(t, path); mode != 2 {
			t.Errorf("auto_vacuum of a copy is %d, want 2", mode)
		}
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
	if len(known) != len(acknowledged) {
		t.Errorf("of %d writes that were acknowledged %d are there", len(acknowledged), len(known))
	}
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
