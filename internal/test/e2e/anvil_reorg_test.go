package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/anviltest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/webhook"
)

// TestExtraAnvilReorg orphans a pending payment, and then one that was final.
func TestExtraAnvilReorg(t *testing.T) {
	t.Parallel()
	s := newService(t, dbtest.MigratedPostgres(t), anviltest.Options{})
	r := s.start()
	made := s.create(r, 5_000_000)
	s.awaitCommitment(made.OnChainInvoiceID, contracts.StatusOpen)

	lost := s.payTransferAmount(made)
	s.awaitPayment(r, made.ID, lost, apitypes.PaymentPending)
	s.awaitEvent(webhook.PaymentReceived, made.ID)
	s.chain.Reorg(t, 1)
	s.awaitPayment(r, made.ID, lost, apitypes.PaymentOrphaned)
	s.chain.Mine(t, finality+1) // so that the orphaned transaction does not become final
	s.awaitIndexed(r)
	if inv := s.invoice(r, made.ID); inv.Status != apitypes.StatusOpen || inv.AmountPaid != "" && inv.AmountPaid != "0" {
		t.Fatalf("after its payment was reorged out the invoice is %+v", inv)
	}

	// The same transaction would be the same payment.
	kept := s.transfer(s.payer, s.till.Address, made.Invoice.TransferAmount, "--gas-limit", "100001")
	if kept == lost {
		t.Fatal("the payment was sent again as the same transaction")
	}
	s.chain.Mine(t, finality)
	s.awaitPayment(r, made.ID, kept, apitypes.PaymentConfirmed)
	s.awaitPayment(r, made.ID, lost, apitypes.PaymentOrphaned)
	s.awaitEvent(webhook.InvoicePaid, made.ID)
	inv := s.invoice(r, made.ID)
	if inv.Status != apitypes.StatusPaid || inv.SettledTxHash != kept || inv.AmountPaid != made.Invoice.TransferAmount || inv.Exception != "" {
		t.Errorf("after it was paid again the invoice is %+v", inv)
	}
	s.awaitCommitment(made.OnChainInvoiceID, contracts.StatusClosed)
	s.awaitIndexed(r)
	wantTypes := map[string][]string{made.ID: {
		webhook.InvoiceCreated, webhook.PaymentReceived, webhook.PaymentReceived, webhook.InvoicePaid,
	}}

	// A reorg can orphan the service's own transactions as well. They are sent
	// again after a while.
	second := s.create(r, 6_000_000)
	wantTypes[second.ID] = []string{webhook.InvoiceCreated}
	s.awaitEvent(webhook.InvoiceCreated, second.ID)
	s.awaitCommitment(second.OnChainInvoiceID, contracts.StatusOpen)
	replaced := s.chain.Height(t)
	s.chain.Reorg(t, 1)
	if is := s.statusUpTo(replaced, second.OnChainInvoiceID); is != contracts.StatusNone { // a later block may open it
		t.Fatalf("the reorg left the commitment %s", is)
	}
	s.awaitCommitment(second.OnChainInvoiceID, contracts.StatusOpen)

	// After a reorg of a finalized block the chain stops and reports why.
	payments := s.payments(r)
	s.chain.Reorg(t, 3*finality)
	s.awaitHalt(r)
	s.awaitLog(r, "level=ERROR", "chain halted")
	if _, text := s.get(r, "/metrics"); !strings.Contains(text, `quittance_chain_halted{chain="anvil"} 1`) {
		t.Error("the metrics do not show that the chain is halted")
	}
	same := func(when string) {
		t.Helper()
		if diff := cmp.Diff(inv, s.invoice(r, made.ID)); diff != "" {
			t.Errorf("%s the paid invoice has changed:\n%s", when, diff)
		}
		if diff := cmp.Diff(payments, s.payments(r)); diff != "" {
			t.Errorf("%s payments have changed:\n%s", when, diff)
		}
	}
	same("by the halt")
	r.kill()
	r = s.begin()
	s.awaitHalt(r)
	same("by a restart")
	s.expectEventsOnce(wantTypes)
}

// awaitHalt waits until a replica's chain has stopped because a final block
// was replaced.
func (s *service) awaitHalt(r *replica) {
	s.Helper()
	s.awaitHealth(r, func(h health) bool {
		return !h.Ready && h.Database == "ok" && strings.Contains(h.Chains[0].Error, "was final as")
	})
}

// awaitIndexed waits until a replica has read all blocks and confirmed the final ones.
func (s *service) awaitIndexed(r *replica) {
	s.Helper()
	head := s.chain.Height(s)
	s.awaitHealth(r, func(h health) bool {
		return h.Chains[0].Indexed >= head && h.Chains[0].Confirmed+finality >= head
	})
}
