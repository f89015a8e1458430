package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/web/api"
)

// attribution returns the body of an attribution, with more appended to its members.
func attribution(invoiceID, by, more string) string {
	return fmt.Sprintf(`{"invoiceId":%q,"by":%q%s}`, invoiceID, by, more)
}

func TestAttribute(t *testing.T) {
	b := newListBackend(5)
	h := newAPI(t, b)
	id := invoice.PrefixPayment + number(4)
	path := "/api/payments/" + id + "/attribution"
	for _, body := range []string{
		attribution(invoiceID(1), "Mar\u00eda", ""),
		attribution(invoiceID(1), strings.Repeat("m", invoice.MaxLabel), `,"note":"two parts","unknown":[1]`),
	} {
		p := decode[apitypes.PaymentResponse](t, do(h, "POST", path, body), http.StatusOK).Payment
		if p.ID != id || p.InvoiceID != invoiceID(1) || p.Attribution == nil || p.Attribution.Method != apitypes.ByHand || p.Attribution.At != now {
			t.Errorf("%s: answered %+v", body, p)
		}
	}
	want := []ledger.ManualAttribution{
		{PaymentID: id, InvoiceID: invoiceID(1), By: "Mar\u00eda"},
		{PaymentID: id, InvoiceID: invoiceID(1), By: strings.Repeat("m", invoice.MaxLabel), Note: "two parts"},
	}
	if diff := cmp.Diff(want, b.hands); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, none := range []string{number(5), number(4) + "%00", ""} {
		got := do(h, "POST", "/api/payments/"+invoice.PrefixPayment+none+"/attribution", attribution(invoiceID(1), "m", ""))
		wantProblem(t, got, http.StatusNotFound, "not_found", "")
	}
}

func TestAttributeRefusesBodies(t *testing.T) {
	b := newListBackend(5)
	h := newAPI(t, b)
	path := "/api/payments/" + invoice.PrefixPayment + number(4) + "/attribution"
	for name, test := range map[string]struct{ body, field string }{
		"empty":             {"{}", "invoiceId"},
		"no invoice":        {`{"by":"m"}`, "invoiceId"},
		"invoice, a number": {`{"by":"m","invoiceId":1}`, "invoiceId"},
		"invoice, null":     {`{"by":"m","invoiceId":null}`, "invoiceId"},
		"a payment":         {attribution("pay_1", "m", ""), "invoiceId"},
		"a strange invoice": {`{"by":"m","invoiceId":"inv_\u0000"}`, "invoiceId"},
		"nobody":            {`{"invoiceId":"inv_1"}`, "by"},
		"nobody's name":     {attribution("inv_1", "", ""), "by"},
		"a long name":       {attribution("inv_1", strings.Repeat("m", invoice.MaxLabel+1), ""), "by"},
		"two lines":         {`{"invoiceId":"inv_1","by":"m\nn"}`, "by"},
		"turned":            {`{"invoiceId":"inv_1","by":"m\u202en"}`, "by"},
		"an empty note":     {attribution("inv_1", "m", `,"note":""`), "note"},
		"note, null":        {attribution("inv_1", "m", `,"note":null`), "note"},
		"a long note":       {attribution("inv_1", "m", `,"note":"`+strings.Repeat("n", invoice.MaxLabel+1)+`"`), "note"},
	} {
		t.Run(name, func(t *testing.T) {
			wantProblem(t, do(h, "POST", path, test.body), http.StatusBadRequest, "invalid_field", test.field)
		})
	}
	wantProblem(t, do(h, "POST", path, "[]"), http.StatusBadRequest, "invalid_json", "")
	wantProblem(t, do(h, "POST", path, strings.Repeat(" ", api.MaxBody)+"{}"), http.StatusRequestEntityTooLarge, "body_too_large", "")
	wantProblem(t, do(h, "POST", path, "{}", "Content-Type", "text/plain"), http.StatusUnsupportedMediaType, "unsupported_media_type", "")
	if len(b.hands) > 0 {
		t.Errorf("it was done nevertheless: %+v", b.hands)
	}
}

// Errors of the ledger have a code, and are not retryable.
func TestAttributeRefusals(t *testing.T) {
	for code, test := range map[string]struct {
		err    error
		status int
		field  string
	}{
		"already_attributed": {ledger.ErrAttributed, http.StatusConflict, ""},
		"payment_orphaned":   {ledger.ErrOrphaned, http.StatusConflict, ""},
		"payment_undecided":  {ledger.ErrUndecided, http.StatusConflict, ""},
		"invalid_field":      {&invoice.FieldError{Field: "invoiceId", Detail: "is of another chain"}, http.StatusBadRequest, "invoiceId"},
	} {
		h := newAPI(t, &backend{err: fmt.Errorf("deep inside: %w", test.err)})
		w := do(h, "POST", "/api/payments/pay_1/attribution", attribution("inv_1", "m", ""))
		wantProblem(t, w, test.status, code, test.field)
		if got := w.Header().Get("Retry-After"); got != "" {
			t.Errorf("%s: Retry-After: %s", code, got)
		}
	}
}

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
