package server

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// oneRoundLog is a log that stops the cleaner after its first round.
type oneRoundLog struct {
	*store.Store
	end context.CancelFunc
}

func (l oneRoundLog) DropRetiredSecrets(ctx context.Context, now time.Time) (int64, error) {
	defer l.end()
	return l.Store.DropRetiredSecrets(ctx, now)
}

// built returns a server with its components, which does not run.
func built(t *testing.T, cfg Config) *Server {
	t.Helper()
	cfg.Logger, cfg.Rand = slog.New(slog.DiscardHandler), rand.Reader
	s, err := newServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if s.store, err = store.Open(t.Context(), cfg.Database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, run := range s.chains {
			run.pool.Close()
		}
	})
	return s
}

// TestClockJumpRemovesNothing sets the machine's clock two days forward, while the
// service runs and between two runs. Rows with a retention of a day are kept.
func TestClockJumpRemovesNothing(t *testing.T) {
	t.Parallel()
	var jump atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }
	c, _ := scripted(t, "house", 7)
	cfg := Config{
		Database: storetest.Migrated(t), Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true},
		KeepEvents: 24 * time.Hour, KeepAttempts: 24 * time.Hour, Now: now,
	}
	request := settle.CreateRequest{IdempotencyKey: "k", Draft: invoice.Draft{
		MerchantID: "m", Merchant: invoice.Address{1}, Amount: invoice.NewAmount(5_000_000), Currency: "USDC", ChainKey: "house",
		ExpiresAt: invoice.Unix(now().Add(30 * 24 * time.Hour).Unix()),
	}}
	s := built(t, cfg)
	made, err := s.settle.Create(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	other := request
	other.IdempotencyKey = "other" // the newest event is always kept
	if _, err := s.settle.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	jump.Store(int64(48 * time.Hour))
	for when, s := range map[string]*Server{"while it runs": s, "between two runs": built(t, cfg)} {
		if err := s.settle.DeleteOldKeys(t.Context()); err != nil {
			t.Fatal(err)
		}
		if again, err := s.settle.Create(t.Context(), request); err != nil || again.ID != made.ID {
			t.Errorf("%s: the key made %s, and now %s, %v", when, made.ID, again.ID, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cleaner := s.cleaner(oneRoundLog{s.store, cancel})
		cleaner.Run(ctx)
		if left, err := s.store.Events(t.Context(), store.EventFilter{InvoiceID: made.ID, Limit: 2}); err != nil || len(left) != 1 {
			t.Errorf("%s: %d events of the invoice are left, %v", when, len(left), err)
		}
	}
}
