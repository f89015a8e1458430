package server

import (
	"net/http"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestServeMoved moves the database of a service to PostgreSQL. The service continues there, with the same timeline.
func TestServeMoved(t *testing.T) {
	t.Parallel()
	chain, _ := scripted(t, "house", 5)
	from, to := dbtest.Migrated(t), dbtest.Postgres(t)
	config := Config{Database: from, Chains: []Chain{chain}, Merchants: Merchants{AcceptAll: true}}
	r := startServer(t, config)
	var made struct{ Invoice struct{ ID string } }
	unmarshal(t, create(t, r.url, "house").body, &made)
	var before struct{ NextCursor string }
	unmarshal(t, ask(t, http.MethodGet, r.url+"/api/events?merchantId=m&after=start", "").body, &before)
	r.stop()
	expect.OK(t, <-r.ended)
	if _, err := db.Move(t.Context(), from, to, time.Now(), func(db.MovedTable) {}); err != nil {
		t.Fatal(err)
	}
	config.Database = to
	r = startServer(t, config)
	if a := ask(t, http.MethodGet, r.url+"/api/invoices/"+made.Invoice.ID, ""); a.status != http.StatusOK {
		t.Errorf("the invoice: %d %s", a.status, a.body)
	}
	if a := ask(t, http.MethodGet, r.url+"/api/events?merchantId=m&after="+before.NextCursor, ""); a.status != http.StatusOK {
		t.Errorf("the cursor of before: %d %s", a.status, a.body)
	}
	if a := create(t, r.url, "house"); a.status != http.StatusCreated {
		t.Errorf("a create: %d %s", a.status, a.body)
	}
}
