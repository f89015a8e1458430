package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
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
