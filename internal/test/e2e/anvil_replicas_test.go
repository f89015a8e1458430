package e2e

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/anviltest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/webhook"
)

// outlastLeases is longer than the leases of a killed replica last.
const outlastLeases = 75 * time.Second

// TestExtraAnvilReplicas runs two replicas on one database, and kills and restarts one of them while they
// work. No payment is lost and no work is done twice.
func TestExtraAnvilReplicas(t *testing.T) {
	t.Parallel()
	s := newService(t, dbtest.Postgres(t), anviltest.Options{BlockTime: time.Second})
	s.patience = outlastLeases
	before := s.nonce()
	replicas := []*replica{s.start(), s.start()} // the first one holds the lease of the chain's writer

	const invoices, killed, restarted = 12, 4, 8
	wantTypes := make(map[string][]string)
	paid := make(map[string]apitypes.CreateInvoiceResponse) // by transaction
	for i := range invoices {
		switch i {
		case killed:
			replicas[0].kill()
		case restarted:
			replicas[0] = s.start()
		}
		by := replicas[i%2]
		if i >= killed && i < restarted {
			by = replicas[1]
		}
		made := s.create(by, (i+1)*10_000)
		wantTypes[made.ID] = []string{webhook.InvoiceCreated, webhook.PaymentReceived, webhook.InvoicePaid}
		paid[s.payTransferAmount(made)] = made
	}
	s.awaitEvents(wantTypes)
	for _, made := range paid {
		s.awaitCommitment(made.OnChainInvoiceID, contracts.StatusClosed)
	}
	for _, r := range replicas {
		payments := s.payments(r)
		if len(payments) != invoices {
			t.Errorf("there are %d payments; want %d", len(payments), invoices)
		}
		for _, p := range payments {
			if p.Status != apitypes.PaymentConfirmed || p.InvoiceID != paid[p.TxHash].ID {
				t.Errorf("transaction %s paid invoice %s; the payment is %+v", p.TxHash, paid[p.TxHash].ID, p)
			}
		}
	}
	for tx, made := range paid {
		first, second := s.invoice(replicas[0], made.ID), s.invoice(replicas[1], made.ID)
		if first.Status != apitypes.StatusPaid || first.SettledTxHash != tx || first.Exception != "" {
			t.Errorf("after transaction %s the invoice is %+v", tx, first)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("the replicas differ:\n%s", diff)
		}
	}
	// A transaction that both replicas sent would have no effect.
	if sent, useful := s.nonce()-before, s.registryTransactions(); sent != useful {
		t.Errorf("%d transactions were sent to the registry, of which %d changed something", sent, useful)
	}
	s.expectEventsOnce(wantTypes)
}

// nonce returns how many transactions the operator has sent.
func (s *service) nonce() int {
	s.Helper()
	n, err := strconv.Atoi(s.chain.Cast(s, "nonce", s.admin.Address))
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// registryTransactions returns the number of transactions that opened or closed
// commitments.
func (s *service) registryTransactions() int {
	s.Helper()
	changed := make(map[string]bool)
	for _, event := range []string{"Opened(bytes32)", "Closed(bytes32)"} {
		text := s.chain.Cast(s, "logs", "--json", "--from-block", "0", "--address", s.registry, event)
		var logs []struct {
			TxHash string `json:"transactionHash"`
		}
		if err := json.Unmarshal([]byte(text), &logs); err != nil {
			s.Fatalf("cast logs printed no logs: %v\n%s", err, text)
		}
		for _, l := range logs {
			changed[l.TxHash] = true
		}
	}
	return len(changed)
}
