package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// TestStopLosesNoRequest stops a server under load from clients with and without
// keep-alive. Each request is answered, or its connection is refused.
func TestStopLosesNoRequest(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, "house", 7)
	s := startServer(t, Config{Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}, StopDelay: 300 * time.Millisecond})
	await(t, s.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	const clients, warm = 32, 500
	var answered, closing, afterwards atomic.Int64
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() {
			transport := &http.Transport{DisableKeepAlives: i%2 == 1, MaxIdleConnsPerHost: 1}
			defer transport.CloseIdleConnections()
			for {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/api/invoices", strings.NewReader("{}"))
				if err != nil {
					t.Error(err)
					return
				}
				r.GetBody = nil // the transport cannot repeat it
				r.Header.Set("Content-Type", "application/json")
				response, err := transport.RoundTrip(r)
				if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
					return // refused
				}
				if err != nil {
					t.Errorf("after %d answers a request was lost: %v", answered.Load(), err)
					return
				}
				_, err = io.Copy(io.Discard, response.Body)
				if err = errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != http.StatusBadRequest {
					t.Errorf("answered %s, %v", response.Status, err)
				}
				if response.Close && i%2 == 0 {
					closing.Add(1)
				}
				if answered.Add(1) == warm {
					s.stop()
				}
				if answered.Load() > warm {
					afterwards.Add(1)
				}
			}
		})
	}
	group.Wait()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	if closing.Load() == 0 {
		t.Error("no kept-alive connection was closed with its response")
	}
	t.Logf("%d requests were answered, %d of them after the stop", answered.Load(), afterwards.Load())
}

// TestStopFailsReadinessFirst asks for the health of a stopping service, and sends it another request, which
// the log of requests then has.
func TestStopFailsReadinessFirst(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, "house", 7)
	database := dbtest.Migrated(t)
	s := startServer(t, Config{Chains: []Chain{c}, Database: database, StopDelay: 3 * time.Second})
	await(t, s.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	s.stop()
	await(t, s.url, "the end of readiness", func(status int, h health) bool {
		return status == http.StatusServiceUnavailable && h.Stopping && !h.Ready
	})
	if a := ask(t, http.MethodGet, s.url+"/healthz", ""); a.status != http.StatusOK {
		t.Errorf("/healthz answers %d while it stops", a.status)
	}
	if a := ask(t, http.MethodGet, s.url+"/api/invoices/inv_last", ""); a.status != http.StatusNotFound {
		t.Errorf("an unknown invoice is answered with %d while the service stops", a.status)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	logged, err := access.NewReader(dbtest.Open(t, database)).Requests(t.Context(), access.RequestFilter{Limit: 10})
	if err != nil || len(logged) != 1 || logged[0].Path != "/api/invoices/inv_last" {
		t.Errorf("the log of requests has %+v, %v", logged, err)
	}
}
