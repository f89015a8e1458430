package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// TestIntegrationPaymentInUse attributes and dismisses a payment that is being sent back: both are refused, and the answer
// names the refund.
func TestIntegrationPaymentInUse(t *testing.T) {
	store := dbtest.Open(t, dbtest.SQLite(t))
	s := newIntegration(t, store)
	genesis := invoice.Header{Number: 100, Hash: invoice.Hash{1}, Time: invoice.Unix(now)}
	must(t, s.service.Start(t.Context(), "base", genesis, 101))
	created, inv := s.createInvoice(t, store)
	at := invoice.Header{Number: 101, Hash: invoice.Hash{2}, Parent: genesis.Hash, Time: invoice.Unix(now + 1)}
	transfer := invoice.Transfer{ // of another amount
		ChainKey: "base", TxHash: invoice.Hash{3}, Token: inv.Token, Currency: "USDC", From: invoice.Address{0xbb}, To: inv.Merchant,
		Position: invoice.Position{BlockNumber: 101, BlockHash: at.Hash, BlockTime: at.Time}, Amount: invoice.NewAmount(4_000_000),
	}
	s.observe(t, at, transfer)
	payment := invoice.TransferID(invoice.PrefixPayment, "base", transfer.TxHash, 0)
	items := decode[apitypes.InboxList](t, do(s.handler, "GET", "/api/inbox?kind=unattributed", ""), http.StatusOK).Items
	if len(items) != 1 || items[0].Payment == nil || items[0].Payment.ID != payment {
		t.Fatalf("the inbox has %+v", items)
	}
	refund := decode[apitypes.RefundResponse](t, do(s.handler, "POST", "/api/payments/"+payment+"/refunds", `{"amount":"1"}`), http.StatusCreated).Refund
	attribute := "/api/payments/" + payment + "/attribution"
	bodies := map[string]string{
		attribute: fmt.Sprintf(`{"invoiceId":%q,"by":"Maria"}`, created.ID),
		"/api/inbox/decisions": fmt.Sprintf(`{"kind":"unattributed","objectId":%q,"version":%q,"decision":"dismissed","reason":"Not ours"}`,
			payment, items[0].Version),
	}
	for path, body := range bodies {
		p := wantProblem(t, do(s.handler, "POST", path, body), http.StatusConflict, "payment_in_use", "")
		if !strings.Contains(p.Detail, payment) || !strings.Contains(p.Detail, refund.ID) {
			t.Errorf("%s while it is being sent back: %q", path, p.Detail)
		}
	}
	if w := do(s.handler, "POST", "/api/refunds/"+refund.ID+"/cancel", ""); w.Code != http.StatusOK {
		t.Fatalf("cancel: %d %s", w.Code, w.Body)
	}
	if w := do(s.handler, "POST", attribute, bodies[attribute]); w.Code != http.StatusOK {
		t.Errorf("attributed after the refund was canceled: %d %s", w.Code, w.Body)
	}
}
