package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// contracts are a chain's contracts that keep what they get.
var contracts = chain.Chain{
	Registry: invoice.Address{0xf1}, DepositFactory: invoice.Address{0xf2}, AuthorizationRelay: invoice.Address{0xf3},
	Tokens: []chain.Token{
		{Currency: chain.USDC, Address: invoice.Address{0xcc}, Decimals: 6}, {Currency: "EURC", Address: invoice.Address{0xcd}, Decimals: 6},
	},
}

// unattributed returns the API of a service with contracts, and a final payment of 4,000,000 that no rule attributes.
// Invoices are created by made.
func unattributed(t *testing.T, store *db.DB) (s integration, payment string, made func(merchantAddress, members string) apitypes.Invoice) {
	t.Helper()
	local, _ := chain.Lookup(chain.Local)
	local.Registry, local.DepositFactory, local.AuthorizationRelay, local.Tokens = contracts.Registry, contracts.DepositFactory, contracts.AuthorizationRelay, contracts.Tokens
	s = newIntegration(t, store, local)
	genesis := invoice.Header{Number: 100, Hash: invoice.Hash{1}, Time: invoice.Unix(now)}
	must(t, s.service.Start(t.Context(), chain.Local, genesis, 101))
	made = func(merchantAddress, members string) apitypes.Invoice {
		t.Helper()
		w := do(s.handler, "POST", "/api/invoices", fmt.Sprintf(`{"merchantId":"acme","merchantAddress":%q,"amount":"4900000","currency":"USDC","chainKey":"local","expiresAt":%d%s}`,
			merchantAddress, now+3600, members))
		return decode[apitypes.CreateInvoiceResponse](t, w, http.StatusCreated).Invoice
	}
	to, err := chain.ParseAddress(made(address, "").MerchantAddress)
	must(t, err)
	at := invoice.Header{Number: 101, Hash: invoice.Hash{2}, Parent: genesis.Hash, Time: invoice.Unix(now + 1)}
	transfer := invoice.Transfer{
		ChainKey: chain.Local, TxHash: invoice.Hash{3}, Token: contracts.Tokens[0].Address, Currency: "USDC", From: invoice.Address{0xbb}, To: to,
		Position: invoice.Position{BlockNumber: 101, BlockHash: at.Hash, BlockTime: at.Time}, Amount: invoice.NewAmount(4_000_000),
	}
	must(t, s.service.Observe(t.Context(), chain.Local, []ledger.Block{{Header: at, Transfers: []invoice.Transfer{transfer}}}))
	_, revision, err := s.service.Pending(t.Context(), chain.Local, at.Number)
	must(t, err)
	_, err = s.service.Confirm(t.Context(), chain.Local, at, revision, 0)
	must(t, err)
	return s, invoice.TransferID(invoice.PrefixPayment, chain.Local, transfer.TxHash, 0), made
}

// TestIntegrationPaymentInUse attributes and dismisses a payment that is being sent back: both are refused, and the answer
// names the refund.
func TestIntegrationPaymentInUse(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		s, payment, made := unattributed(t, store)
		items := decode[apitypes.InboxList](t, do(s.handler, "GET", "/api/inbox?kind=unattributed", ""), http.StatusOK).Items
		if len(items) != 1 || items[0].Payment == nil || items[0].Payment.ID != payment {
			t.Fatalf("the inbox has %+v", items)
		}
		refund := decode[apitypes.RefundResponse](t, do(s.handler, "POST", "/api/payments/"+payment+"/refunds", `{"amount":"1"}`), http.StatusCreated).Refund
		attribute := func() (path, body string) {
			return "/api/payments/" + payment + "/attribution", fmt.Sprintf(`{"invoiceId":%q,"by":"Maria"}`, made(address, "").ID)
		}
		dismiss := func() (path, body string) {
			return "/api/inbox/decisions", fmt.Sprintf(`{"kind":"unattributed","objectId":%q,"version":%q,"decision":"dismissed","reason":"Not ours"}`, payment, items[0].Version)
		}
		for name, act := range map[string]func() (path, body string){"attributed": attribute, "dismissed": dismiss} {
			path, body := act()
			p := wantProblem(t, do(s.handler, "POST", path, body), http.StatusConflict, "payment_in_use", "")
			if !strings.Contains(p.Detail, payment) || !strings.Contains(p.Detail, refund.ID) {
				t.Errorf("%s while it is being sent back: %q", name, p.Detail)
			}
		}
		if w := do(s.handler, "POST", "/api/refunds/"+refund.ID+"/cancel", ""); w.Code != http.StatusOK {
			t.Fatalf("cancel: %d %s", w.Code, w.Body)
		}
		path, body := attribute()
		if w := do(s.handler, "POST", path, body); w.Code != http.StatusOK {
			t.Errorf("attributed after the refund was canceled: %d %s", w.Code, w.Body)
		}
	})
}

// TestIntegrationRefundToAReceiver prepares refunds to addresses that receive payments, or keep what they get.
func TestIntegrationRefundToAReceiver(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		s, payment, made := unattributed(t, store)
		another := chain.Checksum(invoice.Address{0xee})
		made(another, "")
		for name, to := range map[string]string{
			"settlement address": another, "settlement address itself": address, "deposit address": made(address, `,"collection":"deposit"`).DepositAddress,
			"registry": chain.Checksum(contracts.Registry), "factory": chain.Checksum(contracts.DepositFactory), "relay": chain.Checksum(contracts.AuthorizationRelay),
			"token": chain.Checksum(contracts.Tokens[0].Address), "another token": chain.Checksum(contracts.Tokens[1].Address),
		} {
			if to == "" {
				t.Fatalf("there is no %s", name)
			}
			w := do(s.handler, "POST", "/api/payments/"+payment+"/refunds", fmt.Sprintf(`{"amount":"1","to":%q}`, to))
			if w.Code != http.StatusBadRequest {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
				continue
			}
			wantProblem(t, w, http.StatusBadRequest, "invalid_field", "to")
		}
		if list := decode[apitypes.RefundList](t, do(s.handler, "GET", "/api/refunds", ""), http.StatusOK); len(list.Refunds) != 0 {
			t.Errorf("prepared: %+v", list.Refunds)
		}
	})
}
