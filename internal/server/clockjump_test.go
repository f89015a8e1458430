package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/keyringtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// oneRoundLog is a log that stops the cleaner after its first round.
type oneRoundLog struct {
	webhooks.Tables
	end context.CancelFunc
}

func (l oneRoundLog) DropRetiredSecrets(ctx context.Context, now time.Time) (int64, error) {
	defer l.end()
	return l.Tables.DropRetiredSecrets(ctx, now)
}

// built returns a server that is built but does not run.
func built(t *testing.T, cfg Config) *Server {
	t.Helper()
	cfg.Logger, cfg.Rand = slog.New(slog.DiscardHandler), rand.Reader
	s, err := newServer(cfg)
	expect.OK(t, err)
	if s.store, err = db.Open(t.Context(), cfg.Database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { expect.NoError(t, s.store.Close()) })
	expect.OK(t, s.build(t.Context()))
	t.Cleanup(func() {
		for _, run := range s.chains {
			run.pool.Close()
		}
	})
	for _, run := range s.chains { // as the indexer does before it reads
		expect.OK(t, run.pool.Nodes()[0].Ready(t.Context()))
	}
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
		Database: dbtest.Migrated(t), Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true},
		KeepEvents: 24 * time.Hour, KeepAttempts: 24 * time.Hour, Now: now,
	}
	request := ledger.CreateRequest{Once: ledger.Once{Key: "k"}, Draft: invoice.Draft{
		MerchantID: "m", Merchant: invoice.Address{1}, Amount: invoice.NewAmount(5_000_000), Currency: "USDC", ChainKey: "house",
		ExpiresAt: invoice.Unix(now().Add(30 * 24 * time.Hour).Unix()),
	}}
	s := built(t, cfg)
	made, err := s.settle.Create(t.Context(), request)
	expect.OK(t, err)
	other := request
	other.Key = "other" // the newest event is always kept
	expect.Success(t)(s.settle.Create(t.Context(), other))
	jump.Store(int64(48 * time.Hour))
	for when, s := range map[string]*Server{"while it runs": s, "between two runs": built(t, cfg)} {
		expect.OK(t, s.settle.DeleteOldKeys(t.Context()))
		if again, err := s.settle.Create(t.Context(), request); err != nil || again.ID != made.ID {
			t.Errorf("%s: the key made %s, and now %s, %v", when, made.ID, again.ID, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cleaner := s.cleaner(oneRoundLog{webhooks.NewTables(s.store), cancel})
		cleaner.Run(ctx)
		if left, err := webhooks.NewReader(s.store).Events(t.Context(), webhooks.EventFilter{InvoiceID: made.ID, Limit: 2}); err != nil || len(left) != 1 {
			t.Errorf("%s: %d events of the invoice are left, %v", when, len(left), err)
		}
	}
}

// TestServiceOffAtNight runs a service for three hours a day. Retention still deletes old rows,
// although the schedule's clock, which counts an hour of each night, falls behind by weeks.
func TestServiceOffAtNight(t *testing.T) {
	t.Parallel()
	const (
		days = 24
		day  = 24 * time.Hour
		// most is the highest age of a remaining row: the retention, and the nights of the last 48 hours of
		// the schedule.
		most = 2*day + 48/4*day + day
	)
	began := time.Now().Add(-time.Hour).Truncate(time.Second)
	var passed atomic.Int64
	now := func() time.Time { return began.Add(time.Duration(passed.Load())) }
	c, _ := scripted(t, "house", 7)
	cfg := Config{
		Database: dbtest.Migrated(t), Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true},
		KeepEvents: 2 * day, KeepAttempts: 2 * day, Now: now, Access: Access{Mode: access.Test, Open: true},
		Keyring: access.NewKeyring(keyringtest.Key(t)),
	}
	conn := dbtest.SQL(t, cfg.Database)
	insert := func(statement string, args ...any) {
		t.Helper()
		expect.Success(t)(conn.ExecContext(t.Context(), statement, args...))
	}
	start := func() *Server {
		s := built(t, cfg)
		expect.OK(t, s.buildAccess())
		s.requests = access.NewRequestLog(access.RequestLogConfig{Store: access.NewTables(s.store), IDs: s.ids, Now: now, Logger: s.cfg.Logger})
		return s
	}
	s := start()
	open := func() { // as a process that starts, and counts up to an hour
		expect.Success(t)(db.OpenClock(t.Context(), db.ClockConfig{Store: s.store, Wall: now, Logger: s.cfg.Logger}))
	}
	for n := range days {
		passed.Store(int64(n) * int64(day))
		open()
		expect.Success(t)(s.settle.Create(t.Context(), ledger.CreateRequest{Draft: invoice.Draft{
			MerchantID: "m", Merchant: invoice.Address{1}, Amount: invoice.NewAmount(5_000_000), Currency: "USDC", ChainKey: "house",
			ExpiresAt: invoice.Unix(now().Add(30 * day).Unix()),
		}}))
		insert("INSERT INTO endpoint_secrets VALUES ('m', $1, 'x', $2, 'retiring', 1, $3, NULL)", n+1, cfg.Keyring.KeyID(), now().Add(day).Unix())
		insert("INSERT INTO sign_in_links (token_hash, key_id, expires_at) VALUES ($1, 'key', $2)", fmt.Sprintf("%064d", n), now().Add(day).Unix())
		s.requests.Add(access.LoggedRequest{MerchantID: "m", At: now(), Method: "GET", Status: 200})
		s.requests.Flush(t.Context())
		for range 3 {
			passed.Add(int64(time.Hour))
			open()
		}
	}
	insert("DELETE FROM deliveries")
	ctx, cancel := context.WithCancel(t.Context())
	last := start()
	last.cleaner(oneRoundLog{webhooks.NewTables(last.store), cancel}).Run(ctx)
	last.maintain(t.Context())
	for table, oldest := range map[string]time.Duration{
		"events": most, "endpoint_secrets": most, "sign_in_links": most, "api_requests": most - 2*day + access.Lifetime,
	} {
		var left int
		expect.OK(t, conn.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&left))
		if left < 2 || left > int(oldest/day) {
			t.Errorf("of %s, one a day for %d days, %d are left, want those of the last %d days at most", table, days, left, oldest/day)
		}
	}
}
