package db_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
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
