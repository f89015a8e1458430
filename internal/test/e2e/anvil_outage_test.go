package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/anviltest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/webhook"
)

// TestExtraAnvilDatabaseOutage stops the database of a service for a while. The service answers 503. When
// the database is back, it recovers and reads the missed blocks.
func TestExtraAnvilDatabaseOutage(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	// Fsync makes committed rows survive the crash.
	cluster, err := dbtest.StartCluster(ctx, dbtest.Options{Fsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := newService(t, cluster.DSN("postgres"), anviltest.Options{BlockTime: time.Second})
	r := s.start()
	made := s.create(r, 3_000_000)
	s.awaitCommitment(made.OnChainInvoiceID, contracts.StatusOpen)
	s.awaitEvent(webhook.InvoiceCreated, made.ID)

	if err := cluster.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	s.awaitHealth(r, func(h health) bool { return !h.Ready && h.Database == "unreachable" })
	request := s.draft(4_000_000)
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range [][2]string{
		{http.MethodGet, "/api/invoices/" + made.ID}, {http.MethodGet, "/api/invoices"}, {http.MethodGet, "/api/payments"},
		{http.MethodPost, "/api/invoices"}, {http.MethodGet, "/checkout/" + made.ID},
	} {
		s.failsClosed(r, call[0], call[1], string(body))
	}
	if status, _ := s.get(r, "/healthz"); status != http.StatusOK {
		t.Errorf("/healthz answers %d without a database; want 200: the process itself is well", status)
	}
	again := client.IdempotencyKey("order-1")
	var refused *client.Error
	if _, err := s.api(r).CreateInvoice(t.Context(), request, again); !errors.As(err, &refused) {
		t.Errorf("a create without a database gives %v", err)
	}
	tx := s.payTransferAmount(made)
	s.chain.Mine(t, finality)

	if err := cluster.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	s.awaitHealth(r, func(h health) bool { return h.Ready })
	s.awaitPayment(r, made.ID, tx, apitypes.PaymentConfirmed)
	second, err := s.api(r).CreateInvoice(t.Context(), request, again)
	if err != nil {
		t.Fatal(err)
	}
	if repeated, err := s.api(r).CreateInvoice(t.Context(), request, again); err != nil || repeated.ID != second.ID {
		t.Errorf("the key makes %s, %v; it made %s", repeated.ID, err, second.ID)
	}
	wantTypes := map[string][]string{
		made.ID:   {webhook.InvoiceCreated, webhook.PaymentReceived, webhook.InvoicePaid},
		second.ID: {webhook.InvoiceCreated},
	}
	s.awaitEvents(wantTypes)
	s.awaitCommitment(made.OnChainInvoiceID, contracts.StatusClosed)
	s.awaitCommitment(second.OnChainInvoiceID, contracts.StatusOpen)
	if code := r.stop(t, syscall.SIGTERM, patience); code != 0 {
		t.Errorf("the service ended with %d", code)
	}
	s.expectEventsOnce(wantTypes)
}

// failsClosed fails the test unless a request is answered with a problem document without internal
// details.
func (s *service) failsClosed(r *replica, method, path, body string) {
	s.Helper()
	status, text := s.do(r, method, path, body)
	if status != http.StatusServiceUnavailable {
		s.Errorf("%s %s answers %d without a database; want 503", method, path, status)
	}
	for _, inside := range []string{"postgres", "sql", "connect", "127.0.0.1", "dial", "EOF", "closed"} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(inside)) {
			s.Errorf("%s %s shows %q: %s", method, path, inside, text)
		}
	}
}
