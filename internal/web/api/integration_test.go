package api_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
)

// integration is the API on the real service and database, with a client.
type integration struct {
	*client.Client
	service *ledger.Service
	handler http.Handler
	nodes   *nodes
}

type merchants struct{}

func (merchants) WantsEvents(context.Context, db.Querier, string) (bool, error) { return true, nil }

func (merchants) Find(_ context.Context, id string) (m invoice.Merchant, known bool, err error) {
	switch id {
	case "collector":
		m.Collection = invoice.Deposit
	case "lenient":
		m.Tolerance = invoice.Tolerance{BasisPoints: 100}
	case "bounded":
		m.DefaultAddresses = map[string]invoice.Address{"base": {7}}
		m.Allowed = []invoice.AllowedAddress{{ChainKey: "base", Address: invoice.Address{7}}}
	}
	return m, id != "other", nil
}

// newIntegration returns the API of a service with the chain base, which has no contract, and others.
func newIntegration(t *testing.T, s *db.DB, others ...chain.Chain) integration {
	t.Helper()
	return newIntegrationAt(t, s, testClock, others...)
}

// newIntegrationAt returns what newIntegration returns, with a clock.
func newIntegrationAt(t *testing.T, s *db.DB, testClock func() time.Time, others ...chain.Chain) integration {
	t.Helper()
	base, _ := chain.Lookup("base")
	chains := append([]chain.Chain{base}, others...)
	service := ledger.New(ledger.Config{
		Store: s, Chains: chains, Merchants: merchants{}, Now: testClock, Rand: rand.Reader,
	})
	asked := new(nodes)
	handler := apitest.Check(t, api.New(api.Config{
		Ledger: service, Reader: api.NewReader(s), Nodes: asked, Chains: chains, Now: testClock, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Providers: []api.Provider{{Name: "circle", Secret: secret, Chains: map[string]string{"BASE": "base"}, Currencies: map[string]string{"USD": "USDC"}}},
	}).Handler())
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	httpClient := server.Client()
	httpClient.Transport = apitest.Transport(t, httpClient.Transport)
	c := expect.Must(client.New(server.URL, client.WithHTTPClient(httpClient), client.WithRetries(0)))
	return integration{c, service, handler, asked}
}

func (s integration) ids(t *testing.T, f client.InvoiceFilter) []string {
	t.Helper()
	ids := []string{}
	for inv, err := range s.Invoices(t.Context(), f) {
		expect.OK(t, err)
		ids = append(ids, inv.ID)
	}
	return ids
}

var asked = apitypes.CreateInvoiceRequest{
	MerchantID: "acme", MerchantAddress: address, Amount: "4900000", Currency: "USDC", ChainKey: "base", ExpiresAt: now + 3600,
	LineItems: []apitypes.LineItem{{Label: "caf\u00e9 \u200f \U0001f600 <&>", Amount: "4900000"}},
}

// wantProblemCode fails the test unless err has the code.
func wantProblemCode(t *testing.T, err error, code apitypes.ErrorCode, field string) {
	t.Helper()
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code != code || refused.Field != field {
		t.Errorf("got %v, want %s %q", err, code, field)
	}
}

func TestIntegrationCreate(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		s, ctx := newIntegration(t, store), t.Context()

		unknown := asked
		unknown.MerchantID = "other"
		_, err := s.CreateInvoice(ctx, unknown)
		wantProblemCode(t, err, apitypes.CodeInvalidField, "merchantId")
		elsewhere := asked
		elsewhere.ChainKey = "ethereum"
		_, err = s.CreateInvoice(ctx, elsewhere, client.IdempotencyKey("k"))
		wantProblemCode(t, err, apitypes.CodeInvalidField, "chainKey")
		if ids := s.ids(t, client.InvoiceFilter{}); len(ids) != 0 {
			t.Errorf("refused, and yet there are %v", ids)
		}

		first, err := s.CreateInvoice(ctx, asked, client.IdempotencyKey("k"))
		expect.OK(t, err)
		again, err := s.CreateInvoice(ctx, asked, client.IdempotencyKey(`"k"`))
		if diff := cmp.Diff(first, again); err != nil || diff != "" {
			t.Errorf("repeated: %v (-first +again):\n%s", err, diff)
		}
		body := expect.Must(json.Marshal(asked))
		w := do(s.handler, "POST", "/api/invoices", string(body), "Idempotency-Key", "k")
		if replayed := w.Header().Get("Idempotency-Replayed"); w.Code != http.StatusCreated || replayed != "true" {
			t.Errorf("repeated: %d with Idempotency-Replayed %q, want true", w.Code, replayed)
		}
		other := asked
		other.Amount, other.LineItems = "1", nil
		_, err = s.CreateInvoice(ctx, other, client.IdempotencyKey("k"))
		wantProblemCode(t, err, apitypes.CodeIdempotencyMismatch, "")
		other.MerchantID = "bean"
		_, err = s.CreateInvoice(ctx, other, client.IdempotencyKey("k"))
		wantProblemCode(t, err, apitypes.CodeIdempotencyMismatch, "")
		second, err := s.CreateInvoice(ctx, other, client.IdempotencyKey("l"))
		if err != nil || second.ID == first.ID {
			t.Errorf("another key: %s, %v", second.ID, err)
		}
		fetched, err := s.Invoice(ctx, first.ID)
		if diff := cmp.Diff(first.Invoice, fetched); err != nil || diff != "" {
			t.Errorf("%v (-created +fetched):\n%s", err, diff)
		}
		expect.NoDiff(t, cmp.Diff([]string{second.ID, first.ID}, s.ids(t, client.InvoiceFilter{})), "list")
	})
}

// createInvoice creates the invoice that is asked for, and returns it as stored, too.
func (s integration) createInvoice(t *testing.T, store *db.DB) (apitypes.CreateInvoiceResponse, invoice.Invoice) {
	t.Helper()
	created, err := s.CreateInvoice(t.Context(), asked)
	expect.OK(t, err)
	inv, err := ledger.NewReader(store).Invoice(t.Context(), created.ID)
	expect.OK(t, err)
	return created, inv
}

// An unattributed payment is listed on request, and can be attributed manually.
func TestIntegrationAttribution(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		s, ctx := newIntegration(t, store), t.Context()
		created, inv := s.createInvoice(t, store)
		other := asked
		other.MerchantAddress = "0x1111111111111111111111111111111111111111"
		elsewhere, err := s.CreateInvoice(ctx, other)
		expect.OK(t, err)
		twin, err := s.CreateInvoice(ctx, asked)
		expect.OK(t, err)
		genesis := invoice.Header{Number: 1, Hash: invoice.Hash{1}, Time: invoice.Unix(now)}
		block := ledger.Block{Header: invoice.Header{Number: 2, Hash: invoice.Hash{2}, Parent: genesis.Hash, Time: invoice.Unix(now + 10)}}
		block.Transfers = []invoice.Transfer{{ // two invoices have this amount
			Position: invoice.Position{BlockNumber: 2, BlockHash: block.Hash, BlockTime: block.Time},
			ChainKey: "base", TxHash: invoice.Hash{3}, Token: inv.Token, Currency: "USDC", From: invoice.Address{4}, To: inv.Merchant, Amount: inv.Amount,
		}}
		expect.OK(t, errors.Join(s.service.Start(ctx, "base", genesis, genesis.Number+1), s.service.Observe(ctx, "base", []ledger.Block{block})))
		for filter, want := range map[client.PaymentFilter]string{
			{}:                          "",
			{IncludePending: true}:      "",
			{IncludeUnattributed: true}: "",
			{IncludePending: true, IncludeUnattributed: true}:                     " pending;",
			{IncludePending: true, IncludeUnattributed: true, MerchantID: "acme"}: " pending;",
			{IncludePending: true, IncludeUnattributed: true, MerchantID: "bean"}: "",
		} {
			if got := s.payments(t, filter); got != want {
				t.Errorf("%+v lists %q, want %q", filter, got, want)
			}
		}
		expect.OK(t, confirm(ctx, s.service, block.Header))
		if got := s.payments(t, client.PaymentFilter{IncludeUnattributed: true}); got != " confirmed;" {
			t.Errorf("confirmed: %s", got)
		}
		var id string
		for p, err := range s.Payments(ctx, client.PaymentFilter{IncludeUnattributed: true}) {
			if id = p.ID; err != nil || p.Attribution != nil {
				t.Fatalf("%+v, %v", p, err)
			}
		}
		by := apitypes.AttributePaymentRequest{InvoiceID: created.ID, By: "Mar\u00eda \U0001f600", Note: "she wrote"}
		for _, wrong := range []string{invoice.PrefixInvoice + strings.Repeat("0", 26), elsewhere.ID} {
			request := by
			request.InvoiceID = wrong
			_, err = s.AttributePayment(ctx, id, request)
			wantProblemCode(t, err, apitypes.CodeInvalidField, "invoiceId")
		}
		_, err = s.AttributePayment(ctx, invoice.PrefixPayment+strings.Repeat("0", 26), by)
		wantProblemCode(t, err, apitypes.CodeNotFound, "")
		want := &apitypes.Attribution{Method: apitypes.ByHand, By: by.By, At: now}
		for range 2 { // a repetition has no effect
			p, err := s.AttributePayment(ctx, id, by)
			if diff := cmp.Diff(want, p.Attribution); err != nil || diff != "" || p.InvoiceID != created.ID {
				t.Errorf("%+v, %v", p, err)
			}
		}
		by.InvoiceID = twin.ID
		_, err = s.AttributePayment(ctx, id, by)
		wantProblemCode(t, err, apitypes.CodeAlreadyAttributed, "")
		p, err := s.Payment(ctx, id)
		want.Note = by.Note
		if diff := cmp.Diff(want, p.Attribution); err != nil || diff != "" || p.Status != apitypes.PaymentConfirmed {
			t.Errorf("%+v, %v", p, err)
		}
		paid, err := s.Invoice(ctx, created.ID)
		if err != nil || paid.Status != apitypes.StatusPaid || paid.SettledAt != now+10 || paid.AmountPaid != "4900000" {
			t.Errorf("%+v, %v", paid, err)
		}
		if got := s.payments(t, client.PaymentFilter{}); got != created.ID+" ;" {
			t.Errorf("at last: %s", got)
		}
	})
}

// An invoice settles to its merchant's default address if it names no address, and never to an address
// that the merchant does not allow.
func TestIntegrationMerchantAddress(t *testing.T) {
	store := dbtest.Open(t, dbtest.SQLite(t))
	s, ctx := newIntegration(t, store), t.Context()
	const own = "0x0700000000000000000000000000000000000000"
	request := asked
	request.MerchantID, request.MerchantAddress = "bounded", ""
	for _, address := range []string{"", own} {
		request.MerchantAddress = address
		created, err := s.CreateInvoice(ctx, request, client.IdempotencyKey("key"+address))
		if err != nil || created.Invoice.MerchantAddress != own {
			t.Errorf("to %q: %q, %v", address, created.Invoice.MerchantAddress, err)
		}
	}
	again := request
	again.MerchantAddress = ""
	if created, err := s.CreateInvoice(ctx, again, client.IdempotencyKey("key")); err != nil || created.Invoice.MerchantAddress != own {
		t.Errorf("repeated: %q, %v", created.Invoice.MerchantAddress, err)
	}
	elsewhere, none := request, asked
	elsewhere.MerchantAddress, none.MerchantAddress = asked.MerchantAddress, ""
	for name, r := range map[string]apitypes.CreateInvoiceRequest{"to another address": elsewhere, "without an address": none} {
		_, err := s.CreateInvoice(ctx, r)
		if problem := (*client.Error)(nil); !errors.As(err, &problem) || problem.Code != apitypes.CodeInvalidField || problem.Field != "merchantAddress" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func (s integration) payments(t *testing.T, f client.PaymentFilter) string {
	t.Helper()
	var text strings.Builder
	for p, err := range s.Payments(t.Context(), f) {
		expect.OK(t, err)
		fmt.Fprintf(&text, "%s %s;", p.InvoiceID, p.Status)
	}
	return text.String()
}

// confirm confirms the pending payments of the chain base up to a height.
func confirm(ctx context.Context, service *ledger.Service, line invoice.Header) error {
	_, revision, err := service.Pending(ctx, "base", line.Number)
	if err != nil {
		return err
	}
	_, err = service.Confirm(ctx, "base", line, revision, 0)
	return err
}

// TestIntegrationNotices stores notices with texts as long as they may be, of characters of four bytes, and one twice.
func TestIntegrationNotices(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		s := newIntegration(t, store)
		longest := strings.Repeat("\U0001f600", api.MaxNoticeText/4)
		for _, body := range []string{goodNotice, goodNotice, strings.NewReplacer("tr_1", longest, "transfers.created", longest, "0xabc", longest).Replace(goodNotice)} {
			if w := notify(s.handler, body); w.Code != http.StatusOK {
				t.Errorf("%s: answered %d %s", body, w.Code, w.Body)
			}
		}
	})
}

// TestIntegrationCollection creates invoices and drafts with a way of collection, and changes it in drafts.
func TestIntegrationCollection(t *testing.T) {
	store := dbtest.Open(t, dbtest.SQLite(t))
	local, _ := chain.Lookup(chain.Local)
	local.Tokens = []chain.Token{{Currency: chain.USDC, Address: invoice.Address{0xcc}, Decimals: 6}}
	local.DepositFactory = invoice.Address{0xfa}
	s := newIntegration(t, store, local)
	create := func(merchant, chainKey, members string) *httptest.ResponseRecorder {
		return do(s.handler, "POST", "/api/invoices", fmt.Sprintf(`{"merchantId":%q,"merchantAddress":%q,"amount":"4900000","currency":"USDC","chainKey":%q,"expiresAt":%d%s}`,
			merchant, address, chainKey, now+3600, members))
	}
	const deposit, direct, draft = `,"collection":"deposit"`, `,"collection":"direct"`, `,"draft":true`
	for name, c := range map[string]struct{ merchant, chainKey, members string }{
		"another value":                      {"acme", "local", `,"collection":"escrow"`},
		"an empty value":                     {"acme", "local", `,"collection":""`},
		"a number":                           {"acme", "local", `,"collection":1`},
		"another value in a draft":           {"acme", "local", `,"collection":"escrow"` + draft},
		"a chain without factory":            {"acme", "base", deposit},
		"a draft on such a chain":            {"acme", "base", deposit + draft},
		"the merchant's default on such one": {"collector", "base", ""},
	} {
		t.Run(name, func(t *testing.T) {
			wantProblem(t, create(c.merchant, c.chainKey, c.members), http.StatusBadRequest, "invalid_field", "collection")
		})
	}
	for name, c := range map[string]struct {
		merchant, chainKey, members string
		want                        apitypes.Collection
	}{
		"nothing":                             {"acme", "local", "", ""},
		"deposit":                             {"acme", "local", deposit, apitypes.CollectionDeposit},
		"the merchant's default":              {"collector", "local", "", apitypes.CollectionDeposit},
		"direct against the default":          {"collector", "local", direct, ""},
		"direct on a chain without factory":   {"collector", "base", direct, ""},
		"a draft":                             {"acme", "local", deposit + draft, apitypes.CollectionDeposit},
		"a draft with the merchant's default": {"collector", "local", draft, apitypes.CollectionDeposit},
	} {
		t.Run(name, func(t *testing.T) {
			inv := decode[apitypes.CreateInvoiceResponse](t, create(c.merchant, c.chainKey, c.members), http.StatusCreated).Invoice
			check := func(open bool) {
				t.Helper()
				deposits := c.want == apitypes.CollectionDeposit // direct is left out
				if inv.Collection != c.want || (inv.DepositAddress != "") != (deposits && open) || (inv.TransferAmount != "") != (!deposits && open) {
					t.Errorf("it is collected as %q, at %q, by the amount %q", inv.Collection, inv.DepositAddress, inv.TransferAmount)
				}
			}
			check(inv.Status == apitypes.StatusOpen)
			if inv.Status == apitypes.StatusDraft {
				inv = decode[apitypes.InvoiceResponse](t, do(s.handler, "POST", "/api/invoices/"+inv.ID+"/finalize", ""), http.StatusOK).Invoice
				check(true)
			}
		})
	}

	made := decode[apitypes.CreateInvoiceResponse](t, create("acme", "local", draft), http.StatusCreated)
	path := "/api/invoices/" + made.ID
	patch := func(body string) apitypes.Invoice {
		t.Helper()
		return decode[apitypes.InvoiceResponse](t, do(s.handler, "PATCH", path, body, "Content-Type", "application/json"), http.StatusOK).Invoice
	}
	if got := patch(`{"collection":"deposit"}`); got.Collection != apitypes.CollectionDeposit || got.DepositAddress != "" {
		t.Errorf("the changed draft is %+v", got)
	}
	wantProblem(t, do(s.handler, "PATCH", path, `{"collection":"escrow"}`, "Content-Type", "application/json"), http.StatusBadRequest, "invalid_field", "collection")
	wantProblem(t, do(s.handler, "PATCH", path, `{"chainKey":"base"}`, "Content-Type", "application/json"), http.StatusBadRequest, "invalid_field", "collection")
	opened := decode[apitypes.InvoiceResponse](t, do(s.handler, "POST", path+"/finalize", ""), http.StatusOK).Invoice
	if got := patch(`{"collection":"deposit"}`); got.DepositAddress == "" || got.DepositAddress != opened.DepositAddress {
		t.Errorf("it was opened at %q and is at %q", opened.DepositAddress, got.DepositAddress)
	}
	wantProblem(t, do(s.handler, "PATCH", path, `{"collection":"direct"}`, "Content-Type", "application/json"), http.StatusConflict, "invoice_not_draft", "")
}

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
