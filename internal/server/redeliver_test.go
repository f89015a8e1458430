package server

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/access/keyringtest"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestRedeliverToTerminals redelivers an event of a merchant without an endpoint. The request succeeds
// while a stream of deliveries gets the event, also one of another process, and is refused otherwise.
func TestRedeliverToTerminals(t *testing.T) {
	t.Parallel()
	for name, database := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := database(t)
			start := func() string {
				c, _ := scripted(t, "house", 7)
				url := startServer(t, Config{Database: conn, Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}}).url
				await(t, url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
				return url
			}
			here := start()
			there := here
			if name == "postgres" {
				there = start()
			}
			if a := create(t, here, "house"); a.status != http.StatusCreated {
				t.Fatalf("create: %d %s", a.status, a.body)
			}
			var list apitypes.EventList
			expect.OK(t, json.Unmarshal([]byte(ask(t, http.MethodGet, here+"/api/events", "").body), &list))
			event := list.Events[0]
			redeliver := func() answer {
				return ask(t, http.MethodPost, here+"/api/events/"+event.ID()+"/redeliver", "")
			}
			if a := redeliver(); a.status != http.StatusConflict || !strings.Contains(a.body, "quittance listen") {
				t.Errorf("while nobody listens: %d %s", a.status, a.body)
			}
			path := "/api/events/stream?include=deliveries&merchantId="
			other, typed := openStream(t, there+path+"another", "", ""), openStream(t, there+path+event.MerchantID+"&type=invoice.paid", "", "")
			if a := redeliver(); a.status != http.StatusConflict {
				t.Errorf("while others listen: %d %s", a.status, a.body)
			}
			s := openStream(t, there+path+event.MerchantID, "", "")
			if a := redeliver(); a.status != http.StatusOK {
				t.Fatalf("while a terminal listens: %d %s", a.status, a.body)
			}
			wantSame(t, s.next(), event)
			last := s.last
			s.close()
			if a := redeliver(); a.status != http.StatusOK && a.status != http.StatusConflict { // it may not be noticed yet
				t.Errorf("%d %s", a.status, a.body)
			}
			s = openStream(t, there+path+event.MerchantID, "", last) // as after a restart
			if a := redeliver(); a.status != http.StatusOK {
				t.Fatalf("while it listens again: %d %s", a.status, a.body)
			}
			wantSame(t, s.next(), event)
			for _, one := range []*stream{s, other, typed} {
				one.close()
			}
			for redeliver().status != http.StatusConflict {
				if !clock.Sleep(t.Context(), 20*time.Millisecond, nil) {
					t.Fatal("the terminals have left, and an event is redelivered to them")
				}
			}
			entries, err := access.NewReader(dbtest.Open(t, conn)).AuditEntries(t.Context(), access.AuditFilter{Action: access.ActionEventRedeliver, Limit: 100})
			if err != nil || len(entries) < 2 || entries[0].Object != event.ID() || entries[0].MerchantID != event.MerchantID {
				t.Errorf("the audit log has %+v, %v", entries, err)
			}
		})
	}
}

// wantSame wants a message with an event and its delivery.
func wantSame(t *testing.T, m message, want apitypes.EventRecord) {
	t.Helper()
	var got apitypes.EventRecord
	expect.OK(t, json.Unmarshal([]byte(m.data), &got))
	if string(got.Event) != string(want.Event) || (got.Delivery == nil) != (want.Delivery == nil) || got.Delivery != nil && got.Delivery.ID != want.Delivery.ID {
		t.Errorf("got %s, want %+v", m.data, want)
	}
}

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
			expect.Success(t)(l.RedeliverMany(t.Context(), webhooks.RedeliverFilter{OnlyFailed: true}, time.Time{}, 9))
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

// TestEventsWaitForAnEndpoint creates an invoice for a merchant without an
// endpoint. The event is shown as waiting, and is delivered once an endpoint is set.
func TestEventsWaitForAnEndpoint(t *testing.T) {
	receiver, arrived := newReceiver(t)
	c, _ := scripted(t, "house", 7)
	base := startServer(t, Config{
		Chains: []Chain{c}, Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {}}},
		Keyring: keyringtest.New(t), WebhookAllow: webhooks.Loopback(),
	}).url
	if a := create(t, base, "house"); a.status != http.StatusCreated {
		t.Fatalf("create: %d %s", a.status, a.body)
	}
	a := ask(t, http.MethodGet, base+"/api/events", "")
	if !strings.Contains(a.body, `"waitingFor":"endpoint"`) || strings.Contains(a.body, "nextAttemptAt") || !strings.Contains(a.body, `"attempts":0`) {
		t.Errorf("while it waits the events are %s", a.body)
	}
	if a := ask(t, http.MethodPut, base+"/api/merchants/m/webhook", `{"url":"`+receiver+`"}`); a.status != http.StatusOK && a.status != http.StatusCreated {
		t.Fatalf("set the endpoint: %d %s", a.status, a.body)
	}
	select {
	case typ := <-arrived:
		if typ != "invoice.created" {
			t.Errorf("received %s", typ)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("no event was delivered")
	}
	if a := ask(t, http.MethodGet, base+"/api/events", ""); strings.Contains(a.body, "waitingFor") {
		t.Errorf("afterwards the events are %s", a.body)
	}
}
