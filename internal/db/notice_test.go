package db_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// readClock reads the schedule's clock, as each replica does every few seconds.
func readClock(ctx context.Context, s *db.DB) error {
	_, err := s.ReadClock(ctx, time.Unix(1000, 0), func(db.ClockReading, time.Time) db.ClockReading {
		return db.ClockReading{Now: time.Unix(1000, 0)}
	})
	return err
}

// TestLostBeatIsNoticed sets the database back under a running replica. Another replica, which has
// started since, notices it at its next reading.
func TestLostBeatIsNoticed(t *testing.T) {
	dbtest.EachURL(t, func(t *testing.T, url string) {
		s, other := dbtest.Open(t, url), dbtest.Open(t, url)
		for range 3 {
			rowtest.Must(t, readClock(t.Context(), s))
			rowtest.Must(t, readClock(t.Context(), other))
		}
		if r := s.Noticed(time.Unix(1000, 0)); r.State != db.RecoveryNormal {
			t.Fatalf("two replicas: %+v", r)
		}
		_, err := dbtest.SQL(t, url).ExecContext(t.Context(), "UPDATE recovery SET heartbeats = heartbeats - 4")
		rowtest.Must(t, err)
		rowtest.Must(t, readClock(t.Context(), s))
		rowtest.Must(t, readClock(t.Context(), other))
		for _, replica := range []*db.DB{s, other} {
			if r := replica.Noticed(time.Unix(1000, 0)); r.State != db.RecoverySuspected || !strings.Contains(r.Reason, "committed") {
				t.Errorf("it noticed %+v", r)
			}
		}
		if r, err := s.Recovery(t.Context()); err != nil || r.State != db.RecoverySuspected {
			t.Errorf("stored is %+v, %v", r, err)
		}
	})
}

// TestReplacedFileIsNoticed replaces the file of a SQLite database that is open.
func TestReplacedFileIsNoticed(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLite(t)
	s := dbtest.Open(t, url)
	rowtest.Must(t, readClock(t.Context(), s))
	if r := s.Noticed(time.Unix(1000, 0)); r.State != db.RecoveryNormal {
		t.Fatalf("noticed %+v", r)
	}
	path := strings.TrimPrefix(url, "sqlite:")
	text, err := os.ReadFile(path)
	rowtest.Must(t, err)
	rowtest.Must(t, os.WriteFile(path+".new", text, 0o600))
	rowtest.Must(t, os.Rename(path+".new", path))
	if r := s.Noticed(time.Unix(1000, 0)); r.State != db.RecoverySuspected || !strings.Contains(r.Reason, "replaced") {
		t.Errorf("noticed %+v", r)
	}
}

// TestAnotherClusterIsNoticed starts a service on other PostgreSQL databases than that of its last start.
func TestAnotherClusterIsNoticed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ change, want string }{
		"the same":           {"UPDATE recovery SET heartbeats = heartbeats", ""},
		"a new version":      {"UPDATE recovery SET cluster = NULL, database_oid = NULL, wal_timeline = NULL, wal_position = NULL", ""},
		"another cluster":    {"UPDATE recovery SET cluster = '1'", "system identifier"},
		"a restored dump":    {"UPDATE recovery SET database_oid = 1", "oid"},
		"a failover":         {"UPDATE recovery SET wal_timeline = wal_timeline - 1", ""},
		"a WAL that is back": {"UPDATE recovery SET wal_position = wal_position + 1000000000", "WAL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := dbtest.MigratedPostgres(t)
			s := dbtest.Open(t, url)
			if r, err := s.NoticeRestore(t.Context(), time.Unix(1000, 0)); err != nil || r.State != db.RecoveryNormal {
				t.Fatalf("the first start: %+v, %v", r, err)
			}
			conn := dbtest.SQL(t, url)
			var known int
			rowtest.Must(t, conn.QueryRowContext(t.Context(), "SELECT count(*) FROM recovery WHERE cluster <> '' AND database_oid > 0 AND wal_timeline > 0 AND wal_position > 0").Scan(&known))
			if known != 1 {
				t.Fatal("the first start stored no identity")
			}
			_, err := conn.ExecContext(t.Context(), c.change)
			rowtest.Must(t, err)
			r, err := s.NoticeRestore(t.Context(), time.Unix(2000, 0))
			if err != nil || (r.State == db.RecoverySuspected) != (c.want != "") || !strings.Contains(r.Reason, c.want) {
				t.Errorf("the second start: %+v, %v; want %q", r, err, c.want)
			}
			rowtest.Must(t, s.Update(t.Context(), func(tx *db.Tx) error {
				if err := tx.SetRecovery(t.Context(), db.Recovery{State: db.RecoveryNormal, Since: time.Unix(3000, 0)}); err != nil {
					return err
				}
				return tx.AdoptDatabase(t.Context())
			}))
			if r, err := s.NoticeRestore(t.Context(), time.Unix(4000, 0)); err != nil || r.State != db.RecoveryNormal {
				t.Errorf("after it was accepted: %+v, %v", r, err)
			}
		})
	}
}
