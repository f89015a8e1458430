package db_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
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
