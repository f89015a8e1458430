package store_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestRecoveryStates walks through the states of a database. Evidence never replaces another state.
func TestRecoveryStates(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Helper()
		state := func(want store.RecoveryState, reason string) {
			t.Helper()
			if r, err := s.Recovery(t.Context()); err != nil || r.State != want || r.Reason != reason || (r.Err() == nil) != (want == store.RecoveryNormal) {
				t.Errorf("the state is %+v, %v; want %s %q", r, err, want, reason)
			}
		}
		suspect := func(reason string) {
			t.Helper()
			must(t, s.Update(t.Context(), func(tx *store.Tx) error { return tx.SuspectRestore(t.Context(), reason, time.Unix(1000, 0)) }))
		}
		set := func(r store.Recovery) {
			t.Helper()
			must(t, s.Update(t.Context(), func(tx *store.Tx) error { return tx.SetRecovery(t.Context(), r) }))
		}
		state(store.RecoveryNormal, "")
		suspect("a nonce")
		state(store.RecoverySuspected, "a nonce")
		suspect("another")
		state(store.RecoverySuspected, "a nonce")
		set(store.Recovery{State: store.RecoveryUnderWay, Reason: "a nonce", Since: time.Unix(2000, 0)})
		suspect("another")
		state(store.RecoveryUnderWay, "a nonce")
		set(store.Recovery{State: store.RecoveryNormal, Since: time.Unix(3000, 0)})
		state(store.RecoveryNormal, "")
	})
}

// TestBackupIsMarked requires that a copy records what it is, and that the database itself stays as it was.
func TestBackupIsMarked(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	url := storetest.SQLite(t)
	storetest.Open(t, url)
	path := filepath.Join(t.TempDir(), "copy.db")
	must(t, store.Backup(t.Context(), url, path, at))
	r, err := storetest.Open(t, "sqlite:"+path).Recovery(t.Context())
	must(t, err)
	if r.State != store.RecoveryBackup || !r.Since.Equal(at) || !strings.Contains(r.Err().Error(), "quittance recover --config FILE") {
		t.Errorf("the copy is %+v: %v", r, r.Err())
	}
	if r, err := storetest.Open(t, url).Recovery(t.Context()); err != nil || r.State != store.RecoveryNormal {
		t.Errorf("the database is %+v, %v", r, err)
	}
}
