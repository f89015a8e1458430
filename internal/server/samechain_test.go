package server

import (
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestDuplicateChainDoesNotStart configures two keys with one chain id.
func TestDuplicateChainDoesNotStart(t *testing.T) {
	first, _ := scripted(t, "house", 7)
	second, _ := scripted(t, "home", 7)
	listener, err := Listen(t.Context(), Address{Listen: "127.0.0.1:0"})
	expect.OK(t, err)
	err = Run(t.Context(), Config{
		Listeners: []*Listener{listener}, Database: dbtest.Migrated(t), Chains: []Chain{first, second},
		Merchants: Merchants{AcceptAll: true}, Now: time.Now, Rand: rand.Reader, Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil || !strings.Contains(err.Error(), "house and home have one chain id, 7") {
		t.Errorf("got %v, want an error that names both keys", err)
	}
}
