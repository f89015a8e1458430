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
	r, err := http.NewRequestWithContext(w.Context(), method, w.url(path), strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	got, err := w.http.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	text, err := io.ReadAll(got.Body)
	if err := errors.Join(err, got.Body.Close()); err != nil {
		w.Fatal(err)
	}
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
		if err := conn.QueryRowContext(w.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
			w.Fatal(err)
		}
		counts[table] = n
	}
	return counts
}

// refusal is an invalid request with its expected problem.
type refusal struct {
	name, method, path, body string
	headers                  []string
	status                   int
	code, field              string
}

// TestInvalidRequests sends every kind of invalid request. Each must have the status and
// code of the interface, and leave no row.
func TestInvalidRequests(t *testing.T) {
	t.Parallel()
	w, _ := startWorld(t, "--block-time", quiet)
	w.create(w.draft("1000000"))
	if a := w.post(w.body(), "Idempotency-Key", "taken"); a.status != http.StatusCreated {
		t.Fatalf("answered %d %s", a.status, a.body)
	}
	if err := await(within(w, patience), func() bool { return w.rows()["chains"] == 1 }); err != nil {
		t.Fatalf("the indexer has not begun: %v", err)
	}
	before := w.rows()
	listed := w.do(http.MethodGet, "/api/invoices", "").body
	for _, r := range append(w.badCreates(), append(w.badReads(), w.badNotices()...)...) {
		t.Run(r.name, func(t *testing.T) {
			a := w.do(r.method, r.path, r.body, r.headers...)
			p := decoded[apitypes.Problem](t, a, r.status)
			if string(p.Code) != r.code || p.Field != r.field {
				t.Errorf("code %s, field %q; want %s, %q", p.Code, p.Field, r.code, r.field)
			}
			if typ := a.header.Get("Content-Type"); typ != "application/problem+json" {
				t.Errorf("Content-Type %s", typ)
			}
			if diff := cmp.Diff(before, w.rows()); diff != "" {
				t.Errorf("it wrote rows:\n%s", diff)
			}
		})
	}
	if after := w.do(http.MethodGet, "/api/invoices", "").body; string(after) != string(listed) {
		t.Errorf("the list was\n%s\nand is\n%s", listed, after)
	}
}

func (w *world) badCreates() []refusal {
	whole := w.body()
	zeros := strings.Repeat("0", 78)
	fields := map[string][]string{ // changes by field, in addition to the changes made to every field
		"merchantId":      {`"a b"`, `"` + strings.Repeat("m", 65) + `"`, `"a/b"`},
		"merchantAddress": {`"0x0000000000000000000000000000000000000000"`, `"0x12"`, `"` + strings.Repeat("z", 42) + `"`, flipped(w.info.Load().Merchant.Address)},
		"amount":          {`"0"`, `"-5"`, `"007"`, `"1.5"`, `"1e6"`, `" 1"`, `"1` + zeros + `"`, `4900000`},
		"currency":        {`"DOGE"`, `"usdc"`},
		"chainKey":        {`"nowhere"`, `"base"`},
		"expiresAt":       {`"1800000000"`, fmt.Sprint(time.Now().Unix() - 1), fmt.Sprint(time.Now().Unix() + 367*24*3600), `1.5`, `-1`, `1e30`},
	}
	var all []refusal
	for field, texts := range fields {
		for i, text := range append(texts, "", "null", "true", "[]", "{}", `""`) {
			all = append(all, refusal{name: fmt.Sprintf("%s %d", field, i), body: w.body(field, text), status: 400, code: "invalid_field", field: field})
		}
	}
	for _, r := range []struct{ field, items string }{
		{"lineItems", "null"}, {"lineItems", `"x"`}, {"lineItems[0]", `[1]`}, {"lineItems[0].label", `[{"amount":"4900000"}]`},
		{"lineItems[0].amount", `[{"label":"x"}]`}, {"lineItems[0].amount", `[{"label":"x","amount":"-1"}]`},
		{"lineItems[1].label", `[{"label":"x","amount":"1"},{"label":"","amount":"4899999"}]`},
		{"lineItems[0].label", `[{"label":"` + strings.Repeat("x", 201) + `","amount":"4900000"}]`},
		{"lineItems", `[{"label":"x","amount":"4900001"}]`},
		{"lineItems", "[" + strings.TrimSuffix(strings.Repeat(`{"label":"x","amount":"1"},`, 101), ",") + "]"},
	} {
		all = append(all, refusal{name: "items " + r.items[:min(len(r.items), 30)], body: w.body("lineItems", r.items), status: 400, code: "invalid_field", field: r.field})
	}
	for name, body := range map[string]string{
		"empty": "", "no JSON": "hello", "an array": "[" + whole + "]", "null": "null", "truncated": whole[:len(whole)-1],
		"trailing data": whole + "{}", "duplicate member": strings.Replace(whole, "{", `{"amount":"1",`, 1),
		"bad UTF-8": strings.Replace(whole, "acme", "ac\xffme", 1), "too deep": strings.Replace(whole, "{", `{"x":`+strings.Repeat("[", 99)+strings.Repeat("]", 99)+",", 1),
	} {
		all = append(all, refusal{name: name, body: body, status: 400, code: "invalid_json"})
	}
	all = append(all,
		refusal{name: "too large", body: strings.Repeat(" ", 64<<10) + whole, status: 413, code: "body_too_large"},
		refusal{name: "key with another body", body: w.body("amount", `"4900001"`, "lineItems", ""), headers: []string{"Idempotency-Key", "taken"}, status: 422, code: "idempotency_mismatch"},
		refusal{name: "quoted key with another body", body: w.body("lineItems", ""), headers: []string{"Idempotency-Key", `"taken"`}, status: 422, code: "idempotency_mismatch"},
		refusal{name: "empty key", body: whole, headers: []string{"Idempotency-Key", `""`}, status: 400, code: "invalid_field", field: "Idempotency-Key"},
		refusal{name: "long key", body: whole, headers: []string{"Idempotency-Key", strings.Repeat("k", 256)}, status: 400, code: "invalid_field", field: "Idempotency-Key"},
	)
	for i := range all {
		all[i].method, all[i].path = http.MethodPost, "/api/invoices"
		all[i].headers = append(all[i].headers, "Content-Type", "application/json")
	}
	for _, typ := range []string{"text/plain", "application/x-www-form-urlencoded", "application/xml"} {
		all = append(all, refusal{name: typ, method: http.MethodPost, path: "/api/invoices", body: whole, headers: []string{"Content-Type", typ}, status: 415, code: "unsupported_media_type"})
	}
	return append(all, refusal{name: "no type", method: http.MethodPost, path: "/api/invoices", body: whole, status: 415, code: "unsupported_media_type"})
}

// flipped returns the JSON text of an address with a wrong checksum.
func flipped(address string) string {
	letters := []byte(address)
	for i := 2; i < len(letters); i++ {
		if letters[i] >= 'A' {
			letters[i] ^= 'a' - 'A'
			break
		}
	}
	return `"` + string(letters) + `"`
}

func (w *world) badReads() []refusal {
	var all []refusal
	for path, want := range map[string]refusal{
		"/api/invoices/inv_none":          {status: 404, code: "not_found"},
		"/api/invoices/%00":               {status: 404, code: "not_found"},
		"/api/invoices?status=PAID":       {status: 400, code: "invalid_status"},
		"/api/invoices?status=":           {status: 400, code: "invalid_status"},
		"/api/payments?chainKey=base":     {status: 400, code: "invalid_chain"},
		"/api/payments?chainKey=":         {status: 400, code: "invalid_chain"},
		"/api/invoices?limit=0":           {status: 400, code: "invalid_field", field: "limit"},
		"/api/invoices?limit=201":         {status: 400, code: "invalid_field", field: "limit"},
		"/api/payments?limit=x":           {status: 400, code: "invalid_field", field: "limit"},
		"/api/invoices?cursor=x":          {status: 400, code: "invalid_field", field: "cursor"},
		"/api/payments?include=confirmed": {status: 400, code: "invalid_field", field: "include"},
		"/api/nothing":                    {status: 404, code: "not_found"},
		"/api/":                           {status: 404, code: "not_found"},
		"/nothing":                        {status: 404, code: "not_found"},
	} {
		want.name, want.method, want.path = "GET "+path, http.MethodGet, path
		all = append(all, want)
	}
	for path, method := range map[string]string{
		"/api/invoices": http.MethodPut, "/api/invoices/inv_none": http.MethodPut, "/api/payments": http.MethodPost,
		"/api/webhooks/circle": http.MethodGet,
	} {
		all = append(all, refusal{name: method + " " + path, method: method, path: path, status: 405, code: "method_not_allowed"})
	}
	return all
}

func (w *world) badNotices() []refusal {
	secret, good := w.info.Load().Provider.WebhookSecret, w.notice("t-1", "1.00", "USD", "LOCAL")
	now := time.Now()
	sign := func(body string) string { return webhook.Sign(secret, now, []byte(body)) }
	var all []refusal
	for name, signature := range map[string]string{
		"missing": "", "malformed": "v1=abc", "not a number": "t=soon,v1=00", "of another secret": webhook.Sign("whsec_other", now, []byte(good)),
		"of another body": sign(good + " "), "stale": webhook.Sign(secret, now.Add(-302*time.Second), []byte(good)),
		"from the future": webhook.Sign(secret, now.Add(330*time.Second), []byte(good)),
	} {
		r := refusal{name: "signature " + name, body: good, status: 401, code: "invalid_signature"}
		if signature != "" {
			r.headers = []string{webhook.HeaderProviderSignature, signature}
		}
		all = append(all, r)
	}
	for name, body := range map[string]string{
		"empty": "", "no JSON": "{", "an array": "[]", "no type": strings.Replace(good, `"type":"transfers.created"`, `"kind":1`, 1),
		"no data": `{"type":"transfers.created"}`, "no id": strings.Replace(good, `"id":"t-1",`, "", 1),
		"no amount": strings.Replace(good, `"amount":"1.00",`, "", 1), "a number": strings.Replace(good, `"1.00"`, "1.00", 1),
		"too many decimals": strings.Replace(good, "1.00", "1.0000001", 1), "no address": strings.Replace(good, `"address"`, `"place"`, 1),
	} {
		all = append(all, refusal{name: "notice " + name, body: body, headers: []string{webhook.HeaderProviderSignature, sign(body)}, status: 400, code: "invalid_payload"})
	}
	for i := range all {
		all[i].path = "/api/webhooks/circle"
	}
	all = append(all, refusal{name: "another provider", path: "/api/webhooks/nobody", body: good,
		headers: []string{webhook.HeaderProviderSignature, sign(good)}, status: 404, code: "not_found"})
	for i := range all {
		all[i].method = http.MethodPost
		all[i].headers = append(all[i].headers, "Content-Type", "application/json")
	}
	return all
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
