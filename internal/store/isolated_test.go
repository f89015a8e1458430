package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestMarkIsolated marks only copies, and never lets one that ran in isolation become the live database.
func TestMarkIsolated(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Helper()
		set := func(state store.RecoveryState, reason string) error {
			return s.Update(t.Context(), func(tx *store.Tx) error {
				return tx.SetRecovery(t.Context(), store.Recovery{State: state, Reason: reason, Since: time.Unix(1000, 0)})
			})
		}
		for _, state := range []store.RecoveryState{store.RecoverySuspected, store.RecoveryUnderWay, store.RecoveryNormal} {
			must(t, set(state, strings.TrimPrefix("a nonce", map[bool]string{true: "a nonce"}[state == store.RecoveryNormal])))
			if err := s.MarkIsolated(t.Context(), false, time.Unix(2000, 0)); !errors.Is(err, store.ErrNoCopy) {
				t.Errorf("in state %s: %v", state, err)
			}
		}
		if r, err := s.Recovery(t.Context()); err != nil || r.State != store.RecoveryNormal || !r.Isolated.IsZero() {
			t.Errorf("a refused mark left %+v, %v", r, err)
		}
		must(t, s.MarkIsolated(t.Context(), true, time.Unix(3000, 0)))
		must(t, s.MarkIsolated(t.Context(), false, time.Unix(4000, 0)))
		r, err := s.Recovery(t.Context())
		must(t, err)
		if r.State != store.RecoveryBackup || !r.Isolated.Equal(time.Unix(3000, 0)) || !errors.Is(r.Err(), store.ErrMarkedCopy) {
			t.Errorf("the copy is %+v: %v", r, r.Err())
		}
		for _, state := range []store.RecoveryState{store.RecoveryUnderWay, store.RecoveryBackup} {
			if err := set(state, "recover"); !errors.Is(err, store.ErrIsolated) {
				t.Errorf("to %s: %v", state, err)
			}
		}
		if err := set(store.RecoveryNormal, ""); !errors.Is(err, store.ErrIsolated) {
			t.Errorf("to normal: %v", err)
		}
	})
}

// TestIsolateBackup marks a copy that Backup made.
func TestIsolateBackup(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/copy.db"
	must(t, store.Backup(t.Context(), storetest.Migrated(t), path, time.Unix(1000, 0)))
	s := storetest.Open(t, "sqlite:"+path)
	must(t, s.MarkIsolated(t.Context(), false, time.Unix(2000, 0)))
	r, err := s.Recovery(t.Context())
	if err != nil || !r.Since.Equal(time.Unix(1000, 0)) || !strings.Contains(r.Reason, "quittance backup") || !errors.Is(r.Err(), store.ErrIsolated) {
		t.Errorf("the mark is %+v, %v", r, err)
	}
	err = s.Update(t.Context(), func(tx *store.Tx) error {
		return tx.UnmarkCopy(t.Context(), func(string) bool { return true }, time.Unix(3000, 0))
	})
	if !errors.Is(err, store.ErrIsolated) {
		t.Errorf("a copy became live: %v", err)
	}
}
