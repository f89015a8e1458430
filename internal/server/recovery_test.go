package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/alerttest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestRunRefusesBackup starts the service on a backup without a recovery.
func TestRunRefusesBackup(t *testing.T) {
	t.Parallel()
	url := dbtest.Migrated(t)
	path := filepath.Join(t.TempDir(), "copy.db")
	expect.OK(t, db.Backup(t.Context(), url, path, time.Now()))
	err := Run(t.Context(), Config{
		Listeners: listenOn(t, Address{}), Database: "sqlite:" + path, Access: Access{Mode: access.Test, Open: true}, Now: time.Now,
		Logger: slog.New(slog.DiscardHandler), Ready: func(string) { t.Error("it serves") },
	})
	var restored db.RestoredError
	if !errors.As(err, &restored) || restored.Recovery.State != db.RecoveryBackup || errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := OpenImporter(t.Context(), recoverConfig("sqlite:"+path, Chain{})); !errors.As(err, &restored) {
		t.Errorf("an import before the recovery: %v", err)
	}
}

// TestExtraRestoredWhileRunning sets the database back under a service that runs. It stops its work,
// answers 503 with the reason, and does not start again.
func TestExtraRestoredWhileRunning(t *testing.T) {
	t.Parallel()
	url := dbtest.Migrated(t)
	advanced := make(chan struct{}, 1)
	config, _, _ := scriptedChain(t, "house", 7)
	run := startServer(t, Config{Database: url, Chains: []Chain{config}, TestClock: &TestClock{Real: time.Now, Advanced: advanced}})
	await(t, run.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	if _, err := dbtest.SQL(t, url).ExecContext(t.Context(), "UPDATE recovery SET heartbeats = -1"); err != nil {
		t.Fatal(err)
	}
	advanced <- struct{}{} // a clock reading
	h := await(t, run.url, "the restore", func(status int, h health) bool { return status == http.StatusServiceUnavailable && h.Restored != "" })
	if !strings.Contains(h.Restored, "committed") {
		t.Errorf("the reason is %q", h.Restored)
	}
	if a := create(t, run.url, "house"); a.status != http.StatusServiceUnavailable {
		t.Errorf("create: %d %s", a.status, a.body)
	}
	alerttest.Fire(t, metricsOf(t, run.url, "quittance_database_restored 1", "quittance_ready 0"), "QuittanceDatabaseRestored", "QuittanceNotReady", "QuittanceChainHeadStuck")
	run.stop()
	if err := <-run.ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	err := Run(t.Context(), Config{
		Listeners: listenOn(t, Address{}), Database: url, Access: Access{Mode: access.Test, Open: true}, Now: time.Now,
		Logger: slog.New(slog.DiscardHandler), Ready: func(string) { t.Error("it serves") },
	})
	var restored db.RestoredError
	if !errors.As(err, &restored) || restored.Recovery.State != db.RecoverySuspected {
		t.Errorf("it ended with %v", err)
	}
}
