package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/anviltest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/webhook"
)

// TestExtraPgBouncer runs two replicas through PgBouncer in transaction mode. Invoices are created with
// idempotency keys, paid, settled and announced, each once.
func TestExtraPgBouncer(t *testing.T) {
	t.Parallel()
	s := newService(t, dbtest.PgBouncer(t, dbtest.Postgres(t)), anviltest.Options{BlockTime: time.Second})
	replicas := []*replica{s.start(), s.start()}
	orders := s.takeOrders(replicas...)
	wantTypes := make(map[string][]string)
	for i := range 4 {
		made := s.create(replicas[i%2], 1_000_000+i)
		s.awaitPayment(replicas[(i+1)%2], made.ID, s.payTransferAmount(made), apitypes.PaymentConfirmed)
		s.awaitCommitment(made.OnChainInvoiceID, contracts.StatusClosed)
		wantTypes[made.ID] = []string{webhook.InvoiceCreated, webhook.PaymentReceived, webhook.InvoicePaid}
	}
	for id := range orders.stop() {
		wantTypes[id] = []string{webhook.InvoiceCreated}
	}
	if orders.refused > 0 {
		t.Errorf("%d creates were refused", orders.refused)
	}
	s.expectInvoices(replicas[0], wantTypes)
	s.awaitEvents(wantTypes)
	for _, r := range replicas {
		if code := r.stop(t, syscall.SIGTERM, patience); code != 0 {
			t.Errorf("a replica ended with %d", code)
		}
	}
	s.expectEventsOnce(wantTypes)
}
