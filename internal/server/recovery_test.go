package server

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestRunRefusesBackup starts the service on a backup that nobody has recovered.
func TestRunRefusesBackup(t *testing.T) {
	t.Parallel()
	url := storetest.Migrated(t)
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := store.Backup(t.Context(), url, path, time.Now()); err != nil {
		t.Fatal(err)
	}
	err := Run(t.Context(), Config{
		Listeners: listenOn(t, Address{}), Database: "sqlite:" + path, Access: Access{Mode: access.Test, Open: true}, Now: time.Now,
		Logger: slog.New(slog.DiscardHandler), Ready: func(string) { t.Error("it serves") },
	})
	var restored store.RestoredError
	if !errors.As(err, &restored) || restored.Recovery.State != store.RecoveryBackup || errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}
