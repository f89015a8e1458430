package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// pageStream is a stream of an open checkout page.
type pageStream struct {
	t     *testing.T
	lines *bufio.Scanner
}

// openPage opens the stream of an invoice's page.
func openPage(t *testing.T, base, id string) *pageStream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/checkout/"+id+"/events", nil)
	expect.OK(t, err)
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	expect.OK(t, err)
	t.Cleanup(func() {
		cancel()
		_ = response.Body.Close() // it was cancelled
	})
	header := response.Header
	if response.StatusCode != http.StatusOK || header.Get("Content-Type") != "text/event-stream" || header.Get("Cache-Control") != "no-store" || header.Get("X-Request-Id") == "" {
		t.Fatalf("answered %s with %v", response.Status, header)
	}
	return &pageStream{t: t, lines: bufio.NewScanner(response.Body)}
}

// next returns the state of the next event, or the error that ended the stream.
func (s *pageStream) next() (state string, err error) {
	for s.lines.Scan() {
		if data, ok := strings.CutPrefix(s.lines.Text(), "data: "); ok {
			var status struct{ State string }
			err := json.Unmarshal([]byte(data), &status)
			return status.State, err
		}
	}
	if s.lines.Err() != nil {
		return "", s.lines.Err()
	}
	return "", io.EOF
}

// want reads events up to one of a state.
func (s *pageStream) want(state string) {
	s.t.Helper()
	for {
		got, err := s.next()
		if err != nil {
			s.t.Fatalf("the stream ended before %s: %v", state, err)
		}
		if got == state {
			return
		}
	}
}

// TestOpenPages follows an invoice that its merchant makes void, and stops the service.
func TestOpenPages(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, "house", 7)
	s := startServer(t, Config{Database: dbtest.Migrated(t), Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}})
	await(t, s.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	var made struct{ ID string }
	created := ask(t, http.MethodPost, s.url+"/api/invoices", fmt.Sprintf(`{"merchantId":"acme","merchantAddress":"0x1111111111111111111111111111111111111111",
		"amount":"1000000","currency":"USDC","chainKey":"house","expiresAt":%d}`, time.Now().Unix()+3600))
	if err := json.Unmarshal([]byte(created.body), &made); err != nil || created.status != http.StatusCreated {
		t.Fatalf("create: %d, %v: %s", created.status, err, created.body)
	}
	first, second := openPage(t, s.url, made.ID), openPage(t, s.url, made.ID)
	first.want("waiting")
	second.want("waiting")
	if metrics := ask(t, http.MethodGet, s.url+"/metrics", "").body; !strings.Contains(metrics, "\nquittance_checkout_streams 2\n") {
		t.Error("the metrics lack the two streams")
	}
	if a := ask(t, http.MethodPost, s.url+"/api/invoices/"+made.ID+"/void", ""); a.status != http.StatusOK {
		t.Fatalf("void: %d: %s", a.status, a.body)
	}
	first.want("void")
	second.want("void")
	s.stop()
	for _, stream := range []*pageStream{first, second} {
		for {
			if _, err := stream.next(); err != nil {
				break // it has ended
			}
		}
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}
