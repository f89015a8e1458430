package server

import (
	"log/slog"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestRedeliveryIsAudited expects an audit entry for each redelivered event, and no entry for a request without effect.
func TestRedeliveryIsAudited(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		now := time.Unix(1_764_000_000, 0)
		dbtest.Schedule(t, store, "m", 0, 3, 1)
		me := webhooks.Deliverer{ID: "me"}
		expect.OK(t, webhooks.NewTables(store).RegisterWorker(t.Context(), me, now, now.Add(time.Second)))
		if n, _, err := webhooks.NewTables(store).FailOverdueDeliveries(t.Context(), webhooks.OverdueRequest{
			Worker: me, MerchantIDs: []string{"m"}, Unreachable: map[string]bool{"m": true}, Now: now, Limit: 9,
		}); err != nil || n["m"] != 3 {
			t.Fatalf("expired %v, %v", n, err)
		}
		schedule, err := db.OpenClock(t.Context(), db.ClockConfig{Store: store, Wall: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)})
		expect.OK(t, err)
		l := eventLog{webhooks.NewTables(store), auditLog{access.NewReader(store)}, nil, schedule, func() time.Time { return now }, make(chan struct{}, 1), func() {}}
		expect.OK(t, l.Redeliver(t.Context(), "evt_m_000001", time.Time{}))
		if err := l.Redeliver(t.Context(), "evt_m_000001", time.Time{}); err == nil {
			t.Error("a pending event is sent again")
		}
		for range 2 {
			if _, _, err := l.RedeliverMany(t.Context(), webhooks.RedeliverFilter{OnlyFailed: true}, time.Time{}, 9); err != nil {
				t.Fatal(err)
			}
		}
		entries, err := access.NewReader(store).AuditEntries(t.Context(), access.AuditFilter{Action: access.ActionEventRedeliver, Limit: 9})
		if err != nil || len(entries) != 2 {
			t.Fatalf("%+v, %v; want 2 entries", entries, err)
		}
		many, one := entries[0], entries[1]
		if one.MerchantID != "m" || one.Object != "evt_m_000001" || one.Before != `{"delivery":"`+string(webhooks.Failed)+`","attempts":0}` {
			t.Errorf("of one event: %+v", one)
		}
		if many.MerchantID != "" || many.After != `{"redelivered":2,"failedOnly":true}` || !many.At.Equal(now) {
			t.Errorf("of several: %+v", many)
		}
	})
}
