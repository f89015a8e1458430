package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/webhook"
)

// quiet is a block time so long that no block is sealed during a test.
const quiet = "10m"

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request; headers are pairs of a name and a value.
func (w *world) do(method, path, body string, headers ...string) answer {
	w.Helper()
	r := expect.Must(http.NewRequestWithContext(w.Context(), method, w.url(path), strings.NewReader(body)))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	got, err := w.http.Do(r)
	expect.OK(w, err)
	text, err := io.ReadAll(got.Body)
	expect.OK(w, errors.Join(err, got.Body.Close()))
	return answer{got.StatusCode, got.Header, text}
}

// post posts a body to create an invoice.
func (w *world) post(body string, headers ...string) answer {
	w.Helper()
	return w.do(http.MethodPost, "/api/invoices", body, append([]string{"Content-Type", "application/json"}, headers...)...)
}

// decoded decodes a response, which must have a status.
func decoded[T any](tb testing.TB, a answer, status int) (v T) {
	tb.Helper()
	if a.status != status {
		tb.Fatalf("answered %d, want %d: %s", a.status, status, a.body)
	}
	if err := json.Unmarshal(a.body, &v); err != nil {
		tb.Fatalf("%v: %s", err, a.body)
	}
	return v
}

// members returns the members of a valid create request, as JSON texts.
func (w *world) members() map[string]string {
	info := w.info.Load()
	return map[string]string{
		"merchantId": `"acme"`, "merchantAddress": `"` + info.Merchant.Address + `"`, "amount": `"4900000"`,
		"currency": `"USDC"`, "chainKey": `"local"`, "expiresAt": fmt.Sprint(time.Now().Unix() + 3600),
		"lineItems": `[{"label":"Two espressos","amount":"4000000"},{"label":"Tip","amount":"900000"}]`,
	}
}

// body returns a create request with changes: pairs of a member's name and its JSON text,
// which is empty to leave the member out.
func (w *world) body(changes ...string) string {
	all := w.members()
	for i := 0; i < len(changes); i += 2 {
		all[changes[i]] = changes[i+1]
	}
	var parts []string
	for name, text := range all {
		if text != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", name, text))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// rows counts the rows of the database's tables.
func (w *world) rows() map[string]int {
	w.Helper()
	conn := dbtest.SQL(w, "sqlite:"+w.dir+"/quittance.db")
	counts := make(map[string]int)
	for _, table := range []string{
		"merchants", "settlement_addresses", "invoices", "idempotency_keys", "chains", "payments", "refunds", "events",
		"deliveries", "attempts", "notices", "intents",
	} {
		var n int
		expect.OK(w, conn.QueryRowContext(w.Context(), "SELECT count(*) FROM "+table).Scan(&n))
		counts[table] = n
	}
	return counts
}

// refusal is an invalid request with its expected problem.
type refusal struct {
	method, path, body string
	headers            []string
	status             int
	code, field        string
}

// TestInvalidRequests sends an invalid request of each kind. Each must have the status and code of the interface, and
// leave no row. The tests of internal/web/api send every variant.
func TestInvalidRequests(t *testing.T) {
	t.Parallel()
	w, _ := startWorld(t, "--block-time", quiet)
	if a := w.post(w.body(), "Idempotency-Key", "taken"); a.status != http.StatusCreated {
		t.Fatalf("answered %d %s", a.status, a.body)
	}
	if err := await(within(w, patience), func() bool { return w.rows()["chains"] == 1 }); err != nil {
		t.Fatalf("the indexer has not begun: %v", err)
	}
	before := w.rows()
	listed := w.do(http.MethodGet, "/api/invoices", "").body
	const get, post, put, invoices, notices = http.MethodGet, http.MethodPost, http.MethodPut, "/api/invoices", "/api/webhooks/circle"
	whole, notice := w.body(), w.notice("t-1", "1.00", "USD", "LOCAL")
	json := []string{"Content-Type", "application/json"}
	signed := func(secret, body string) []string {
		return []string{"Content-Type", "application/json", webhook.HeaderProviderSignature, webhook.Sign(secret, time.Now(), []byte(body))}
	}
	secret := w.info.Load().Provider.WebhookSecret
	for name, r := range map[string]refusal{
		"a field":              {post, invoices, w.body("merchantId", `"a b"`), json, 400, "invalid_field", "merchantId"},
		"a line item":          {post, invoices, w.body("lineItems", `[{"label":"x"}]`), json, 400, "invalid_field", "lineItems[0].amount"},
		"no JSON":              {post, invoices, "hello", json, 400, "invalid_json", ""},
		"a member twice":       {post, invoices, strings.Replace(whole, "{", `{"amount":"1",`, 1), json, 400, "invalid_json", ""},
		"too large":            {post, invoices, strings.Repeat(" ", 64<<10) + whole, json, 413, "body_too_large", ""},
		"key of another body":  {post, invoices, w.body("lineItems", ""), append([]string{"Idempotency-Key", `"taken"`}, json...), 422, "idempotency_mismatch", ""},
		"long key":             {post, invoices, whole, append([]string{"Idempotency-Key", strings.Repeat("k", 256)}, json...), 400, "invalid_field", "Idempotency-Key"},
		"another type":         {post, invoices, whole, []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type", ""},
		"no type":              {post, invoices, whole, nil, 415, "unsupported_media_type", ""},
		"no invoice":           {get, invoices + "/inv_none", "", nil, 404, "not_found", ""},
		"a status":             {get, invoices + "?status=PAID", "", nil, 400, "invalid_status", ""},
		"a chain":              {get, "/api/payments?chainKey=base", "", nil, 400, "invalid_chain", ""},
		"a parameter":          {get, invoices + "?limit=201", "", nil, 400, "invalid_field", "limit"},
		"no route":             {get, "/api/nothing", "", nil, 404, "not_found", ""},
		"another method":       {put, invoices, "", nil, 405, "method_not_allowed", ""},
		"notice, no signature": {post, notices, notice, json, 401, "invalid_signature", ""},
		"notice, a signature":  {post, notices, notice, signed("whsec_other", notice), 401, "invalid_signature", ""},
		"notice, a payload":    {post, notices, "[]", signed(secret, "[]"), 400, "invalid_payload", ""},
		"notice, a provider":   {post, "/api/webhooks/nobody", notice, signed(secret, notice), 404, "not_found", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := w.do(r.method, r.path, r.body, r.headers...)
			p := decoded[apitypes.Problem](t, a, r.status)
			if string(p.Code) != r.code || p.Field != r.field {
				t.Errorf("code %s, field %q; want %s, %q", p.Code, p.Field, r.code, r.field)
			}
			if typ := a.header.Get("Content-Type"); typ != "application/problem+json" {
				t.Errorf("Content-Type %s", typ)
			}
		})
	}
	if diff := cmp.Diff(before, w.rows()); diff != "" {
		t.Errorf("they wrote rows:\n%s", diff)
	}
	if after := w.do(http.MethodGet, "/api/invoices", "").body; string(after) != string(listed) {
		t.Errorf("the list was\n%s\nand is\n%s", listed, after)
	}
}

// notice returns a provider's notice of a transfer to the demo merchant.
func (w *world) notice(id, amount, currency, chain string) string {
	return fmt.Sprintf(`{"type":"transfers.created","data":{"id":%q,"amount":{"amount":%q,"currency":%q},`+
		`"destination":{"type":"blockchain","address":%q,"chain":%q}}}`, id, amount, currency, w.info.Load().Merchant.Address, chain)
}

// TestValidRequests checks the responses to valid requests.
func TestValidRequests(t *testing.T) {
	t.Parallel()
	w, _ := startWorld(t, "--block-time", quiet)

	t.Run("create", func(t *testing.T) {
		a := w.post(strings.Replace(w.body(), "{", `{"unknown":[1],`, 1))
		made := decoded[apitypes.CreateInvoiceResponse](t, a, http.StatusCreated)
		inv := made.Invoice
		if !strings.HasPrefix(made.ID, "inv_") || inv.ID != made.ID || made.CheckoutURL != "/checkout/"+made.ID ||
			a.header.Get("Location") != "/api/invoices/"+made.ID {
			t.Errorf("the names of the invoice do not agree: %s, Location %s", a.body, a.header.Get("Location"))
		}
		if inv.Status != apitypes.StatusOpen || inv.Amount != "4900000" || len(inv.LineItems) != 2 || inv.CreatedAt == 0 ||
			inv.MerchantAddress != w.info.Load().Merchant.Address || inv.SettledAt != 0 || inv.AmountPaid != "0" {
			t.Errorf("the invoice is %s", a.body)
		}
		suffix := units(t, inv.TransferAmount).Int64() - 4_900_000
		if suffix < 1 || suffix > 999 {
			t.Errorf("the transfer amount is %s", inv.TransferAmount)
		}
		fetched := decoded[apitypes.InvoiceResponse](t, w.do(http.MethodGet, "/api/invoices/"+made.ID, ""), http.StatusOK)
		if diff := cmp.Diff(inv, fetched.Invoice); diff != "" {
			t.Errorf("fetched (-created +fetched):\n%s", diff)
		}
		if page := w.do(http.MethodGet, made.CheckoutURL, ""); page.status != http.StatusOK || !strings.Contains(string(page.body), "4.90") {
			t.Errorf("the checkout page answers %d:\n%s", page.status, page.body)
		}
	})

	t.Run("idempotency", func(t *testing.T) {
		body, rows := w.body("merchantId", `"keyed"`), w.rows()
		first := decoded[apitypes.CreateInvoiceResponse](t, w.post(body, "Idempotency-Key", "abc"), http.StatusCreated)
		again := decoded[apitypes.CreateInvoiceResponse](t, w.post(" "+body, "Idempotency-Key", `"abc"`), http.StatusCreated)
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("the second answer differs:\n%s", diff)
		}
		other := decoded[apitypes.Problem](t,
			w.post(strings.Replace(body, "keyed", "other", 1), "Idempotency-Key", "abc"), http.StatusUnprocessableEntity)
		if other.Code != apitypes.CodeIdempotencyMismatch {
			t.Errorf("the key with another merchant's request: %s", other.Code)
		}
		if made := w.rows()["invoices"] - rows["invoices"]; made != 1 {
			t.Errorf("%d invoices were made, want 1", made)
		}
	})

	t.Run("lists", func(t *testing.T) {
		var want []string // newest first
		for range 5 {
			made := decoded[apitypes.CreateInvoiceResponse](t, w.post(w.body("merchantId", `"lister"`)), http.StatusCreated)
			want = append([]string{made.ID}, want...)
		}
		var got []string
		pages := 0
		for cursor := ""; pages == 0 || cursor != ""; pages++ {
			path := "/api/invoices?merchantId=lister&status=open&limit=2"
			if cursor != "" {
				path += "&cursor=" + cursor
			}
			page := decoded[apitypes.InvoiceList](t, w.do(http.MethodGet, path, ""), http.StatusOK)
			for _, inv := range page.Invoices {
				got = append(got, inv.ID)
			}
			cursor = page.NextCursor
		}
		if diff := cmp.Diff(want, got); diff != "" || pages != 3 {
			t.Errorf("in %d pages (-want +got):\n%s", pages, diff)
		}
		for _, status := range []string{"draft", "paid", "expired", "void"} {
			page := decoded[apitypes.InvoiceList](t, w.do(http.MethodGet, "/api/invoices?status="+status, ""), http.StatusOK)
			if len(page.Invoices) != 0 {
				t.Errorf("%d invoices are %s", len(page.Invoices), status)
			}
		}
		for _, query := range []string{"", "?merchantId=lister", "?chainKey=local", "?merchantId=lister&chainKey=local&include=pending"} {
			page := decoded[apitypes.PaymentList](t, w.do(http.MethodGet, "/api/payments"+query, ""), http.StatusOK)
			if page.Payments == nil || len(page.Payments) != 0 || page.NextCursor != "" {
				t.Errorf("payments%s: %+v", query, page)
			}
		}
	})

	t.Run("a merchant never seen before", func(t *testing.T) {
		rows := w.rows()
		want := maps.Clone(rows)
		want["merchants"]++
		want["settlement_addresses"]++
		want["invoices"]++
		want["events"]++
		want["intents"]++
		decoded[apitypes.CreateInvoiceResponse](t, w.post(w.body("merchantId", `"Never.seen_before-1"`)), http.StatusCreated)
		if diff := cmp.Diff(want, w.rows()); diff != "" {
			t.Errorf("rows:\n%s", diff)
		}
	})
}
