package store_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// readClock reads the schedule's clock, as each replica does every few seconds.
func readClock(ctx context.Context, s *store.Store) error {
	_, err := s.ReadClock(ctx, time.Unix(1000, 0), func(store.ClockReading, time.Time) store.ClockReading {
		return store.ClockReading{Now: time.Unix(1000, 0)}
	})
	return err
}

// TestLostBeatIsNoticed sets the database back under a replica that runs. Another replica, which has started
// since, learns it by its next reading.
func TestLostBeatIsNoticed(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, other := storetest.Open(t, url), storetest.Open(t, url)
		for range 3 {
			must(t, readClock(t.Context(), s))
			must(t, readClock(t.Context(), other))
		}
		if r := s.Noticed(time.Unix(1000, 0)); r.State != store.RecoveryNormal {
			t.Fatalf("two replicas: %+v", r)
		}
		_, err := storetest.SQL(t, url).ExecContext(t.Context(), "UPDATE recovery SET heartbeats = heartbeats - 4")
		must(t, err)
		must(t, readClock(t.Context(), s))
		must(t, readClock(t.Context(), other))
		for _, replica := range []*store.Store{s, other} {
			if r := replica.Noticed(time.Unix(1000, 0)); r.State != store.RecoverySuspected || !strings.Contains(r.Reason, "committed") {
				t.Errorf("it noticed %+v", r)
			}
		}
		if r, err := s.Recovery(t.Context()); err != nil || r.State != store.RecoverySuspected {
			t.Errorf("stored is %+v, %v", r, err)
		}
	})
}

// TestReplacedFileIsNoticed replaces the file of a SQLite database that is open.
func TestReplacedFileIsNoticed(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	s := storetest.Open(t, url)
	must(t, readClock(t.Context(), s))
	if r := s.Noticed(time.Unix(1000, 0)); r.State != store.RecoveryNormal {
		t.Fatalf("noticed %+v", r)
	}
	path := strings.TrimPrefix(url, "sqlite:")
	text, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path+".new", text, 0o600))
	must(t, os.Rename(path+".new", path))
	if r := s.Noticed(time.Unix(1000, 0)); r.State != store.RecoverySuspected || !strings.Contains(r.Reason, "replaced") {
		t.Errorf("noticed %+v", r)
	}
}

// TestAnotherClusterIsNoticed starts a service on PostgreSQL databases that are not the one of its last start.
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
			url := storetest.MigratedPostgres(t)
			s := storetest.Open(t, url)
			if r, err := s.NoticeRestore(t.Context(), time.Unix(1000, 0)); err != nil || r.State != store.RecoveryNormal {
				t.Fatalf("the first start: %+v, %v", r, err)
			}
			db := storetest.SQL(t, url)
			var known int
			must(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM recovery WHERE cluster <> '' AND database_oid > 0 AND wal_timeline > 0 AND wal_position > 0").Scan(&known))
			if known != 1 {
				t.Fatal("the first start stored no identity")
			}
			_, err := db.ExecContext(t.Context(), c.change)
			must(t, err)
			r, err := s.NoticeRestore(t.Context(), time.Unix(2000, 0))
			if err != nil || (r.State == store.RecoverySuspected) != (c.want != "") || !strings.Contains(r.Reason, c.want) {
				t.Errorf("the second start: %+v, %v; want %q", r, err, c.want)
			}
			must(t, s.Update(t.Context(), func(tx *store.Tx) error {
				if err := tx.SetRecovery(t.Context(), store.Recovery{State: store.RecoveryNormal, Since: time.Unix(3000, 0)}); err != nil {
					return err
				}
				return tx.AdoptDatabase(t.Context())
			}))
			if r, err := s.NoticeRestore(t.Context(), time.Unix(4000, 0)); err != nil || r.State != store.RecoveryNormal {
				t.Errorf("after it was accepted: %+v, %v", r, err)
			}
		})
	}
}
