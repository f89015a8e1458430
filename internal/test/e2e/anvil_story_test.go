package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/anviltest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/webhook"
)

// TestExtraAnvil runs quittance serve on PostgreSQL and anvil. Invoices are paid by cast in
// every way, so the node and the wallet share no code with the service.
func TestExtraAnvil(t *testing.T) {
	t.Parallel()
	s := newService(t, dbtest.Postgres(t))
	r := s.start()

	// The expected events of each invoice, and its status in the registry.
	wantTypes := make(map[string][]string)
	registered := make(map[string]contracts.Status)
	settled := []string{webhook.InvoiceCreated, webhook.PaymentReceived, webhook.InvoicePaid}
	var paid []apitypes.Invoice
	var txs []string
	for i, pay := range []func(apitypes.CreateInvoiceResponse) string{
		s.payTransferAmount, s.payBareAmount, s.payTagged, s.payRegistry, s.payAuthorized,
	} {
		made := s.create(r, (i+1)*1_000_000)
		s.sendNotice(r, made)
		paid, txs = append(paid, made.Invoice), append(txs, pay(made))
		wantTypes[made.ID], registered[made.OnChainInvoiceID] = settled, contracts.StatusClosed
		if i == 3 {
			registered[made.OnChainInvoiceID] = contracts.StatusPaid
		}
	}
	for i, made := range paid {
		s.awaitPayment(r, made.ID, txs[i], apitypes.PaymentConfirmed)
		if inv := s.invoice(r, made.ID); inv.Status != apitypes.StatusPaid || inv.SettledTxHash != txs[i] || inv.Exception != "" {
			t.Errorf("after transaction %s the invoice is %+v", txs[i], inv)
		}
	}

	// The last one is refunded in two parts, neither of which is the amount of another invoice.
	back := paid[len(paid)-1]
	wantTypes[back.ID] = append(wantTypes[back.ID][:3:3], webhook.PaymentRefunded, webhook.PaymentRefunded)
	s.transfer(s.till, s.payer.Address, "1500000")
	s.transfer(s.till, s.payer.Address, "3500000")

	// One invoice is not paid, and expires by the chain's time, which is advanced.
	request := s.draft(9_000_000)
	request.ExpiresAt = s.chainTime() + 600
	unpaid, err := s.api(r).CreateInvoice(t.Context(), request)
	expect.OK(t, err)
	wantTypes[unpaid.ID] = []string{webhook.InvoiceCreated, webhook.InvoiceExpired}
	registered[unpaid.OnChainInvoiceID] = contracts.StatusClosed
	s.awaitCommitment(unpaid.OnChainInvoiceID, contracts.StatusOpen)
	if inv := s.invoice(r, unpaid.ID); inv.Status != apitypes.StatusOpen {
		t.Errorf("before its time the unpaid invoice is %s", inv.Status)
	}
	s.chain.Cast(t, "rpc", "evm_increaseTime", "601")
	s.awaitEvent(webhook.InvoiceExpired, unpaid.ID)

	s.awaitEvents(wantTypes)
	for id, status := range registered {
		s.awaitCommitment(id, status)
	}
	if err := await(within(t, patience), func() bool { return s.invoice(r, back.ID).AmountRefunded == back.Amount }); err != nil {
		t.Errorf("the refunded invoice is %+v", s.invoice(r, back.ID))
	}
	if code := r.stop(t, syscall.SIGTERM, patience); code != 0 {
		t.Errorf("the service ended with %d", code)
	}
	s.expectEventsOnce(wantTypes)
}

// sendNotice sends a valid transfer notice, which settles no invoice, and a forged one.
func (s *service) sendNotice(r *replica, made apitypes.CreateInvoiceResponse) {
	s.Helper()
	notice := fmt.Sprintf(`{"type":"transfers.created","data":{"id":"transfer of %s","amount":{"amount":"%s.00","currency":"USD"},
		"destination":{"type":"blockchain","address":"%s","chain":"ANVIL"}}}`, made.ID, strings.TrimSuffix(made.Invoice.Amount, "000000"), s.till.Address)
	for secret, want := range map[string]int{providerSecret: http.StatusOK, shopSecret: http.StatusUnauthorized} {
		signature := webhook.Sign(secret, time.Now(), []byte(notice))
		if status, text := s.do(r, http.MethodPost, "/api/webhooks/circle", notice, webhook.HeaderProviderSignature, signature); status != want {
			s.Errorf("a notice signed with %s was answered %d: %s", secret, status, text)
		}
	}
	if inv := s.invoice(r, made.ID); inv.Status != apitypes.StatusOpen {
		s.Errorf("a notice alone made the invoice %s", inv.Status)
	}
}

// payTransferAmount pays the transfer amount, as from any wallet or exchange.
func (s *service) payTransferAmount(made apitypes.CreateInvoiceResponse) string {
	if made.Invoice.TransferAmount == made.Invoice.Amount {
		s.Errorf("the transfer amount %s does not tell the invoice from others", made.Invoice.TransferAmount)
	}
	return s.transfer(s.payer, s.till.Address, made.Invoice.TransferAmount)
}

// payBareAmount pays the amount without the suffix.
func (s *service) payBareAmount(made apitypes.CreateInvoiceResponse) string {
	return s.transfer(s.payer, s.till.Address, made.Invoice.Amount)
}

// payTagged pays with the commitment's id behind the calldata.
func (s *service) payTagged(made apitypes.CreateInvoiceResponse) string {
	data := s.chain.Cast(s, "calldata", "transfer(address,uint256)", s.till.Address, made.Invoice.Amount)
	return s.chain.Send(s, s.payer, s.token, data+strings.TrimPrefix(made.OnChainInvoiceID, "0x")).TxHash
}

// payRegistry pays through the registry.
func (s *service) payRegistry(made apitypes.CreateInvoiceResponse) string {
	s.chain.Send(s, s.payer, s.token, "approve(address,uint256)", s.registry, made.Invoice.Amount)
	return s.payTerms(made)
}

// payTerms pays through the registry, with terms built only from the invoice. The payer must have
// approved the registry.
func (s *service) payTerms(made apitypes.CreateInvoiceResponse) string {
	const terms = "(address,address,uint256,uint64,bytes32)"
	inv := made.Invoice
	tuple := fmt.Sprintf("(%s,%s,%s,%d,%s)", inv.MerchantAddress, s.token, inv.Amount, inv.ExpiresAt, s.chain.Cast(s, "keccak", inv.ID))
	if id := s.chain.Cast(s, "call", s.registry, "idOf("+terms+")(bytes32)", tuple); id != made.OnChainInvoiceID {
		s.Errorf("the registry computes the id %s; the service said %s", id, made.OnChainInvoiceID)
	}
	return s.chain.Send(s, s.payer, s.registry, "pay("+terms+")", tuple).TxHash
}

// payAuthorized pays by an EIP-3009 authorization that the payer signs and another account submits.
func (s *service) payAuthorized(made apitypes.CreateInvoiceResponse) string {
	inv, before := made.Invoice, s.chainTime()+3600
	typed := fmt.Sprintf(`{
		"types": {
			"EIP712Domain": [{"name":"name","type":"string"},{"name":"version","type":"string"},
				{"name":"chainId","type":"uint256"},{"name":"verifyingContract","type":"address"}],
			"TransferWithAuthorization": [{"name":"from","type":"address"},{"name":"to","type":"address"},
				{"name":"value","type":"uint256"},{"name":"validAfter","type":"uint256"},
				{"name":"validBefore","type":"uint256"},{"name":"nonce","type":"bytes32"}]
		},
		"primaryType": "TransferWithAuthorization",
		"domain": {"name":"USD Coin","version":"2","chainId":%d,"verifyingContract":"%s"},
		"message": {"from":"%s","to":"%s","value":"%s","validAfter":"0","validBefore":"%d","nonce":"%s"}
	}`, anviltest.ChainID, s.token, s.payer.Address, s.till.Address, inv.Amount, before, made.OnChainInvoiceID)
	signature := s.chain.Cast(s, "wallet", "sign", "--private-key", s.payer.Key, "--data", typed)
	return s.chain.Send(s, s.relay, s.token,
		"transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)",
		s.payer.Address, s.till.Address, inv.Amount, "0", fmt.Sprint(before), made.OnChainInvoiceID, signature).TxHash
}
