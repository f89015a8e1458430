package db_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

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
