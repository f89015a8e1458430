package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// noticed opens a database, as a start of the service does, and returns the state that it finds.
func noticed(t *testing.T, url string) store.Recovery {
	t.Helper()
	r, err := storetest.Open(t, url).NoticeRestore(t.Context(), time.Unix(1000, 0))
	must(t, err)
	return r
}

// TestPromotionIsNoRestore promotes a synchronous standby of a primary that was killed, twice. Nothing is lost, so
// the service starts.
func TestPromotionIsNoRestore(t *testing.T) {
	t.Parallel()
	primary := startCluster(t)
	standby, err := storetest.StartStandby(t.Context(), primary)
	must(t, err)
	t.Cleanup(func() { must(t, standby.Stop()) })
	for _, id := range []string{"inv_1", "inv_2"} {
		s := storetest.Open(t, primary.DSN("postgres"))
		if r, err := s.NoticeRestore(t.Context(), time.Unix(1000, 0)); err != nil || r.State != store.RecoveryNormal {
			t.Fatalf("the primary: %+v, %v", r, err)
		}
		insert(t, s, sample(id, "m"))
		must(t, primary.KillNine())
		must(t, standby.Promote(t.Context()))
		if r := noticed(t, standby.DSN("postgres")); r.State != store.RecoveryNormal {
			t.Errorf("the promoted standby: %+v", r)
		}
		if !has(t, storetest.Open(t, standby.DSN("postgres")), id) {
			t.Errorf("%s is lost", id)
		}
		primary, standby = standby, primary
		must(t, standby.Follow(t.Context(), primary))
	}
}

// TestPointInTimeRecoveryIsNoticed recovers a database to a point in time, which loses an invoice.
func TestPointInTimeRecoveryIsNoticed(t *testing.T) {
	t.Parallel()
	c, err := storetest.StartCluster(t.Context(), storetest.Options{Archive: true})
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	s := storetest.Open(t, c.DSN("postgres"))
	if r, err := s.NoticeRestore(t.Context(), time.Unix(1000, 0)); err != nil || r.State != store.RecoveryNormal {
		t.Fatalf("the first start: %+v, %v", r, err)
	}
	backup, err := c.BaseBackup(t.Context())
	must(t, err)
	insert(t, s, sample("inv_kept", "m"))
	must(t, c.RestorePoint(t.Context(), "before"))
	insert(t, s, sample("inv_lost", "m"))
	must(t, c.RestorePoint(t.Context(), "after"))
	must(t, c.KillNine())

	was, err := backup.RecoverTo(t.Context(), "recovery_target_name=before")
	must(t, err)
	t.Cleanup(func() { must(t, was.Stop()) })
	r := noticed(t, was.DSN("postgres"))
	if r.State != store.RecoverySuspected || !strings.Contains(r.Reason, "recovery_target_name = before") {
		t.Errorf("noticed %+v", r)
	}
	recovered := storetest.Open(t, was.DSN("postgres"))
	if !has(t, recovered, "inv_kept") || has(t, recovered, "inv_lost") {
		t.Error("the recovery did not lose what came after its target, and nothing else")
	}
}
