package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/webhook"
)

const madeSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// fakeEndpoints is a fake of webhooks.Directory: acme has an endpoint with all kinds of secrets, bean
// a configured one, and new has no endpoint.
type fakeEndpoints struct{ *backend }

func (h fakeEndpoints) View(ctx context.Context, id string) (webhooks.View, error) {
	if err := h.fail(ctx); err != nil {
		return webhooks.View{}, err
	}
	v := webhooks.View{MerchantID: id, URL: "https://" + id + ".example/", Breaker: webhooks.NewBreaker}
	switch id {
	case "acme":
		v.Optional = []invoice.EventType{invoice.EventUnattributed}
		v.ChangedAt, v.Breaker = time.Unix(now, 0), webhooks.Breaker{State: webhooks.BreakerOpen, Until: time.UnixMilli((now+30)*1000 + 999), Failing: time.Unix(now-60, 0), Failed: time.Unix(now-1, 0), Error: "answered 503"}
		v.Secrets = []webhooks.SecretRow{
			{Version: 3, State: webhooks.SecretStaged, CreatedAt: invoice.Unix(now), Sealed: []byte("sealed"), KeyID: "key"}, {Version: 2, State: webhooks.SecretActive, CreatedAt: invoice.Unix(now - 1), ReplacedAt: invoice.Unix(now - 1)},
			{Version: 1, State: webhooks.SecretRetiring, CreatedAt: invoice.Unix(now - 2), ValidUntil: invoice.Unix(now + 60)},
		}
	case "bean":
		v.Configured, v.Breaker = true, webhooks.Breaker{State: webhooks.BreakerGone, Until: time.Unix(now+3600, 0)}
	default:
		return v, webhooks.ErrNone
	}
	return v, nil
}

// may returns the error of changing a merchant's endpoint, if any.
func (h fakeEndpoints) may(ctx context.Context, id string) (webhooks.View, error) {
	v, err := h.View(ctx, id)
	if err == nil && v.Configured {
		err = webhooks.ErrConfigured
	}
	return v, err
}

func (h fakeEndpoints) Put(ctx context.Context, id string, set webhooks.Settings) (webhooks.View, string, error) {
	url, optional := set.URL, set.Optional
	h.headers = set.Headers
	if id == "new" {
		return webhooks.View{MerchantID: id, URL: url, Optional: optional, Breaker: webhooks.NewBreaker}, madeSecret, h.fail(ctx)
	}
	if url == "http://10.0.0.1/" {
		return webhooks.View{}, "", &invoice.FieldError{Field: "url", Detail: "cannot be used"}
	}
	if id == "keyless" {
		return webhooks.View{}, "", webhooks.ErrNoMasterKey
	}
	for i, typ := range optional {
		if typ != invoice.EventUnattributed {
			return webhooks.View{}, "", &invoice.FieldError{Field: fmt.Sprintf("optionalEvents[%d]", i), Detail: "must be payment.unattributed"}
		}
	}
	v, err := h.may(ctx, id)
	v.URL = url
	if optional != nil {
		v.Optional = optional
	}
	return v, "", err
}

func (h fakeEndpoints) PingMerchant(ctx context.Context, id string) (webhooks.Attempt, error) {
	_, err := h.View(ctx, id)
	return webhooks.Attempt{Number: 1, Started: time.Unix(now, 0), Duration: 7 * time.Millisecond, StatusCode: 500, Error: "answered 500, expected 2xx", Excerpt: "no"}, err
}

func (h fakeEndpoints) Stage(ctx context.Context, id string) (webhooks.View, string, error) {
	if id == "staged" {
		return webhooks.View{}, "", webhooks.ErrStaged
	}
	v, err := h.may(ctx, id)
	return v, madeSecret, err
}

func (h fakeEndpoints) Promote(ctx context.Context, id string) (webhooks.View, error) {
	switch id {
	case "deaf":
		return webhooks.View{}, fmt.Errorf("wrapped: %w", &webhooks.PingError{Answer: "answered 401, expected 2xx"})
	case "unstaged":
		return webhooks.View{}, webhooks.ErrNotStaged
	}
	return h.may(ctx, id)
}

func (h fakeEndpoints) Unstage(ctx context.Context, id string) error {
	if id == "unstaged" {
		return webhooks.ErrNotStaged
	}
	_, err := h.may(ctx, id)
	return err
}

var acme = apitypes.Webhook{
	MerchantID: "acme", URL: "https://acme.example/", ChangedAt: now, Health: apitypes.HealthPaused, PausedUntil: now + 30,
	FailingSince: now - 60, LastError: "answered 503", LastErrorAt: now - 1,
	OptionalEvents: []apitypes.EventType{apitypes.EventPaymentUnattributed},
	Secrets: []apitypes.WebhookSecret{
		{Version: 3, State: "staged", CreatedAt: now}, {Version: 2, State: "active", CreatedAt: now - 1, ReplacedAt: now - 1}, {Version: 1, State: "retiring", CreatedAt: now - 2, ValidUntil: now + 60},
	},
}

func TestWebhook(t *testing.T) {
	h := newAPI(t, new(backend))
	const path = "/api/merchants/acme/webhook"
	get := do(h, "GET", path, "")
	if diff := cmp.Diff(acme, decode[apitypes.WebhookResponse](t, get, http.StatusOK).Webhook); diff != "" || strings.Contains(get.Body.String(), "sealed\"") {
		t.Errorf("-want +got:\n%s", diff)
	}
	gone := decode[apitypes.WebhookResponse](t, do(h, "GET", "/api/merchants/bean/webhook", ""), http.StatusOK).Webhook
	if diff := cmp.Diff(apitypes.Webhook{MerchantID: "bean", URL: "https://bean.example/", Configured: true, Health: apitypes.HealthGone, PausedUntil: now + 3600, OptionalEvents: []apitypes.EventType{}, Secrets: []apitypes.WebhookSecret{}}, gone); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	put := decode[apitypes.WebhookResponse](t, do(h, "PUT", path, `{"url":"https://other.example/"}`), http.StatusOK).Webhook
	if put.URL != "https://other.example/" {
		t.Errorf("put: %+v", put)
	}
	created := decode[apitypes.WebhookSecretResponse](t, do(h, "PUT", "/api/merchants/new/webhook", `{"url":"https://new.example/"}`), http.StatusCreated)
	if diff := cmp.Diff(apitypes.WebhookSecretResponse{Secret: madeSecret, Webhook: apitypes.Webhook{
		MerchantID: "new", URL: "https://new.example/", Health: apitypes.HealthUnused, OptionalEvents: []apitypes.EventType{}, Secrets: []apitypes.WebhookSecret{},
	}}, created); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	staged := decode[apitypes.WebhookSecretResponse](t, do(h, "POST", path+"/secret", "", "Content-Type", ""), http.StatusCreated)
	if diff := cmp.Diff(apitypes.WebhookSecretResponse{Secret: madeSecret, Webhook: acme}, staged); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(acme, decode[apitypes.WebhookResponse](t, do(h, "POST", path+"/secret/promote", ""), http.StatusOK).Webhook); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if w := do(h, "DELETE", path+"/secret", ""); w.Code != http.StatusNoContent || w.Body.Len() != 0 {
		t.Errorf("DELETE is answered %d %s", w.Code, w.Body)
	}
	ping := decode[apitypes.PingResponse](t, do(h, "POST", path+"/ping", ""), http.StatusOK).Ping
	if diff := cmp.Diff(apitypes.Attempt{Number: 1, StartedAt: now, DurationMs: 7, StatusCode: 500, Error: "answered 500, expected 2xx", Excerpt: "no"}, ping); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWebhookOptionalEvents(t *testing.T) {
	h := newAPI(t, new(backend))
	const path = "/api/merchants/acme/webhook"
	asks := []apitypes.EventType{apitypes.EventPaymentUnattributed}
	for body, want := range map[string][]apitypes.EventType{
		`{"url":"https://acme.example/"}`:                                           asks, // kept
		`{"url":"https://acme.example/","optionalEvents":[]}`:                       {},
		`{"url":"https://acme.example/","optionalEvents":["payment.unattributed"]}`: asks,
	} {
		put := decode[apitypes.WebhookResponse](t, do(h, "PUT", path, body), http.StatusOK).Webhook
		expect.NoDiff(t, cmp.Diff(want, put.OptionalEvents), "%s", body)
	}
	for value, field := range map[string]string{
		`null`: "optionalEvents", `"payment.unattributed"`: "optionalEvents", `{}`: "optionalEvents",
		`["payment.lost"]`: "optionalEvents[0]", `["invoice.paid"]`: "optionalEvents[0]", `[""]`: "optionalEvents[0]",
		`[null]`: "optionalEvents[0]", `["payment.unattributed", 5]`: "optionalEvents[1]", `["payment.unattributed", "payment.lost"]`: "optionalEvents[1]",
	} {
		body := `{"url":"https://acme.example/","optionalEvents":` + value + `}`
		wantProblem(t, do(h, "PUT", path, body), http.StatusBadRequest, "invalid_field", field)
	}
}

func TestWebhookRefusals(t *testing.T) {
	h := newAPI(t, new(backend))
	const body = `{"url":"https://x.example/"}`
	for request, want := range map[[2]string]struct {
		status int
		code   string
	}{
		{"GET", "nobody/webhook"}: {404, "not_found"}, {"GET", "a%00b/webhook"}: {404, "not_found"}, {"GET", strings.Repeat("x", 65) + "/webhook"}: {404, "not_found"},
		{"PUT", "nobody/webhook"}: {404, "not_found"}, {"PUT", "bean/webhook"}: {409, "configured_endpoint"}, {"PUT", "keyless/webhook"}: {409, "no_master_key"},
		{"PUT", "a%00b/webhook"}:                    {404, "not_found"},
		{"POST", "nobody/webhook/ping"}:             {404, "not_found"},
		{"POST", "a%00b/webhook/ping"}:              {404, "not_found"},
		{"POST", "a%00b/webhook/secret"}:            {404, "not_found"},
		{"POST", "staged/webhook/secret"}:           {409, "secret_staged"},
		{"POST", "bean/webhook/secret"}:             {409, "configured_endpoint"},
		{"DELETE", "a%00b/webhook/secret"}:          {404, "not_found"},
		{"DELETE", "unstaged/webhook/secret"}:       {409, "no_staged_secret"},
		{"DELETE", "nobody/webhook/secret"}:         {404, "not_found"},
		{"POST", "a%00b/webhook/secret/promote"}:    {404, "not_found"},
		{"POST", "unstaged/webhook/secret/promote"}: {409, "no_staged_secret"},
		{"POST", "deaf/webhook/secret/promote"}:     {409, "ping_failed"},
	} {
		p := wantProblem(t, do(h, request[0], "/api/merchants/"+request[1], body), want.status, want.code, "")
		if want.code == "ping_failed" && p.Detail != "Nothing has changed: the endpoint did not take the ping: answered 401, expected 2xx." {
			t.Errorf("the detail is %q", p.Detail)
		}
	}
	const path = "/api/merchants/acme/webhook"
	for _, wrong := range []string{`{}`, `{"url":5}`, `{"url":null}`, `{"url":"http://10.0.0.1/"}`} {
		wantProblem(t, do(h, "PUT", path, wrong), http.StatusBadRequest, "invalid_field", "url")
	}
	wantProblem(t, do(h, "PUT", path, `["url"]`), http.StatusBadRequest, "invalid_json", "")
	wantProblem(t, do(h, "PUT", path, body, "Content-Type", "text/plain"), http.StatusUnsupportedMediaType, "unsupported_media_type", "")
	wantProblem(t, do(h, "PUT", path, `{"url":"`+strings.Repeat("x", api.MaxBody)+`"}`), http.StatusRequestEntityTooLarge, "body_too_large", "")
}

// TestWebhookHeaders sets headers in a request, and finds their names in the answer.
func TestWebhookHeaders(t *testing.T) {
	b := new(backend)
	h := newAPI(t, b)
	const path = "/api/merchants/acme/webhook"
	if w := do(h, "PUT", path, `{"url":"https://other.example/","headers":[{"name":"X-A","value":"a"},{"name":"X-B"}]}`); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if len(b.headers) != 2 || b.headers[0].Name != "X-A" || b.headers[0].Value == nil || *b.headers[0].Value != "a" || b.headers[1].Name != "X-B" || b.headers[1].Value != nil {
		t.Errorf("set %+v", b.headers)
	}
	if do(h, "PUT", path, `{"url":"https://other.example/","headers":[]}`); b.headers == nil || len(b.headers) != 0 {
		t.Errorf("removed, %v are set", b.headers)
	}
	if do(h, "PUT", path, `{"url":"https://other.example/"}`); b.headers != nil {
		t.Errorf("unchanged, %v are set", b.headers)
	}
	for body, field := range map[string]string{
		`"headers":{}`: "headers", `"headers":["X-A"]`: "headers[0]", `"headers":[{"value":"a"}]`: "headers[0].name",
		`"headers":[{"name":"X-A","value":1}]`: "headers[0].value", `"headers":[{"name":"X-A","value":null}]`: "headers[0].value",
	} {
		wantProblem(t, do(h, "PUT", path, `{"url":"https://other.example/",`+body+`}`), http.StatusBadRequest, "invalid_field", field)
	}
}

// notice returns a provider's notice. Arguments are JSON texts.
func notice(amount, currency, chain string) string {
	return fmt.Sprintf(`{"type":"transfers.created","data":{"id":"tr_1","amount":{"amount":%s,"currency":%s},`+
		`"destination":{"type":"blockchain","address":"0xabc","chain":%s}}}`, amount, currency, chain)
}

var goodNotice = notice(`"4.90"`, `"USD"`, `"BASE"`)

// notify sends a notice with a valid signature.
func notify(h http.Handler, body string, header ...string) *httptest.ResponseRecorder {
	header = append([]string{webhook.HeaderProviderSignature, webhook.Sign(secret, testClock(), []byte(body))}, header...)
	return do(h, "POST", "/api/webhooks/circle", body, header...)
}

// TestNoticesWhileASecretIsReplaced accepts notices that are signed with either secret, and refuses
// those with another secret or the empty one.
func TestNoticesWhileASecretIsReplaced(t *testing.T) {
	for _, c := range []struct {
		provider, signed string
		want             int
	}{
		{"rotating", secret, http.StatusOK},
		{"rotating", otherSecret, http.StatusOK},
		{"rotating", "a secret that was dropped", http.StatusUnauthorized},
		{"rotating", "", http.StatusUnauthorized},
		{"circle", otherSecret, http.StatusUnauthorized},
		{"circle", "", http.StatusUnauthorized},
	} {
		h := newAPI(t, new(backend))
		w := do(h, "POST", "/api/webhooks/"+c.provider, goodNotice, webhook.HeaderProviderSignature, webhook.Sign(c.signed, testClock(), []byte(goodNotice)))
		if w.Code != c.want {
			t.Errorf("%s, signed with %q: answered %d %s, want %d", c.provider, c.signed, w.Code, w.Body, c.want)
		}
	}
}

func TestReceiveNotice(t *testing.T) {
	want := invoice.Notice{
		Provider: "circle", Type: "transfers.created", TransferID: "tr_1", AmountText: "4.90", Amount: invoice.NewAmount(4_900_000),
		Currency: "USDC", ChainKey: "base", Destination: "0xabc", ProviderCurrency: "USD", ProviderChain: "BASE",
	}
	for name, test := range map[string]struct {
		body string
		want func(n *invoice.Notice)
	}{
		"known":           {goodNotice, func(*invoice.Notice) {}},
		"unknown members": {strings.Replace(goodNotice, "{", `{"version":2,"data2":null,`, 1), func(*invoice.Notice) {}},
		"smallest unit":   {notice(`"0.000001"`, `"USD"`, `"BASE"`), func(n *invoice.Notice) { n.AmountText, n.Amount = "0.000001", invoice.NewAmount(1) }},
		"beyond a float": {notice(`"9007199254740993.000001"`, `"USD"`, `"BASE"`), func(n *invoice.Notice) {
			n.AmountText, n.Amount = "9007199254740993.000001", amount("9007199254740993000001")
		}},
		"unknown chain":    {notice(`"4.90"`, `"USD"`, `"DOGE"`), func(n *invoice.Notice) { n.ProviderChain, n.ChainKey = "DOGE", "" }},
		"chain not in use": {notice(`"4.90"`, `"USD"`, `"ETH"`), func(n *invoice.Notice) { n.ProviderChain, n.ChainKey = "ETH", "" }},
		"unknown currency": {notice(`"4.90000000001"`, `"DOGE"`, `"BASE"`), func(n *invoice.Notice) {
			n.ProviderCurrency, n.Currency, n.AmountText, n.Amount = "DOGE", "", "4.90000000001", invoice.Amount{}
		}},
		"currency not in use": {notice(`"4.90"`, `"EUR"`, `"BASE"`), func(n *invoice.Notice) {
			n.ProviderCurrency, n.Currency, n.Amount = "EUR", "", invoice.Amount{}
		}},
		"currency the chain lacks": {notice(`"4.90"`, `"USD"`, `"LOCAL"`), func(n *invoice.Notice) {
			n.ProviderChain, n.ChainKey, n.Currency, n.Amount = "LOCAL", "local", "", invoice.Amount{}
		}},
		"both unknown": {notice(`"4.90"`, `"DOGE"`, `"DOGE"`), func(n *invoice.Notice) {
			n.ProviderChain, n.ChainKey, n.ProviderCurrency, n.Currency, n.Amount = "DOGE", "", "DOGE", "", invoice.Amount{}
		}},
		"longest texts": {strings.Replace(goodNotice, "tr_1", strings.Repeat("i", api.MaxNoticeText), 1), func(n *invoice.Notice) {
			n.TransferID = strings.Repeat("i", api.MaxNoticeText)
		}},
		"largest body": {strings.Repeat(" ", api.MaxBody-len(goodNotice)) + goodNotice, func(*invoice.Notice) {}},
	} {
		t.Run(name, func(t *testing.T) {
			var b backend
			want := want
			test.want(&want)
			w := notify(newAPI(t, &b), test.body)
			if w.Code != http.StatusOK || w.Body.String() != `{"ok":true}` {
				t.Errorf("answered %d %s", w.Code, w.Body)
			}
			expect.NoDiff(t, cmp.Diff([]invoice.Notice{want}, b.notices, cmp.Comparer(func(a, b invoice.Amount) bool { return a == b })), "received")
		})
	}
}

// TestProbesOfProviders makes the requests with which a provider checks the address of its notices:
// HEAD, and a notice without a transfer.
func TestProbesOfProviders(t *testing.T) {
	var b backend
	h := newAPI(t, &b)
	if w := do(h, "HEAD", "/api/webhooks/circle", ""); w.Code != http.StatusOK || w.Body.Len() > 0 {
		t.Errorf("HEAD is answered %d %s", w.Code, w.Body)
	}
	if w := do(h, "HEAD", "/api/webhooks/square", ""); w.Code != http.StatusNotFound {
		t.Errorf("HEAD for an unknown provider is answered %d", w.Code)
	}
	for _, body := range []string{`{"type":"webhooks.test"}`, `{"type":"webhooks.test","data":null}`, `{"data":{"id":"x"},"type":"webhooks.test"}`} {
		if w := notify(h, body); w.Code != http.StatusOK || w.Body.String() != `{"ok":true}` {
			t.Errorf("%s is answered %d %s", body, w.Code, w.Body)
		}
	}
	wantProblem(t, do(h, "POST", "/api/webhooks/circle", `{"type":"webhooks.test"}`, webhook.HeaderProviderSignature, "t=1,v1=00"), http.StatusUnauthorized, "invalid_signature", "")
	wantProblem(t, notify(h, `{"type":"webhooks.tests"}`), http.StatusBadRequest, "invalid_payload", "")
	if len(b.notices) > 0 {
		t.Errorf("stored %v", b.notices)
	}
}

func amount(s string) invoice.Amount {
	a, err := invoice.ParseAmount(s)
	if err != nil {
		panic(err)
	}
	return a
}

func TestReceiveNoticeRefusesSignatures(t *testing.T) {
	var b backend
	h := newAPI(t, &b)
	body := goodNotice
	good := webhook.Sign(secret, testClock(), []byte(body))
	for name, header := range map[string]string{
		"missing":      "",
		"malformed":    "v1=" + strings.Repeat("0", 64),
		"no digest":    "t=" + fmt.Sprint(now),
		"other secret": webhook.Sign("other", testClock(), []byte(body)),
		"other body":   webhook.Sign(secret, testClock(), []byte(body+" ")),
		"stale":        webhook.Sign(secret, testClock().Add(-301*time.Second), []byte(body)),
		"early":        webhook.Sign(secret, testClock().Add(301*time.Second), []byte(body)),
		"upper-case":   strings.ToUpper(good),
		"body alone":   strings.Replace(good, fmt.Sprint("t=", now), fmt.Sprint("t=", now+1), 1),
		"twice":        good + "," + good,
	} {
		t.Run(name, func(t *testing.T) {
			w := do(h, "POST", "/api/webhooks/circle", body, webhook.HeaderProviderSignature, header)
			wantProblem(t, w, http.StatusUnauthorized, "invalid_signature", "")
		})
	}
	// The signature is verified before the body and its type.
	wantProblem(t, do(h, "POST", "/api/webhooks/circle", "{", "Content-Type", "text/plain"), http.StatusUnauthorized, "invalid_signature", "")
	// A second header is not ignored.
	r := newRequest("POST", "/api/webhooks/circle", body)
	r.Header[webhook.HeaderProviderSignature] = []string{good, "t=1,v1=0"}
	wantProblem(t, send(h, r), http.StatusUnauthorized, "invalid_signature", "")
	if len(b.notices) != 0 {
		t.Errorf("%d notices were stored", len(b.notices))
	}
	for _, skew := range []time.Duration{-300 * time.Second, 300 * time.Second} {
		w := do(h, "POST", "/api/webhooks/circle", body, webhook.HeaderProviderSignature, webhook.Sign(secret, testClock().Add(skew), []byte(body)))
		if w.Code != http.StatusOK {
			t.Errorf("skew %v: answered %d %s", skew, w.Code, w.Body)
		}
	}
}

func TestReceiveNoticeRefusesPayloads(t *testing.T) {
	var b backend
	h := newAPI(t, &b)
	bodies := map[string]string{
		"empty": "", "text": "hello", "array": "[]", "null": "null", "trailing": goodNotice + "x", "empty object": "{}",
		"member twice":       strings.Replace(goodNotice, "{", `{"type":"x",`, 1),
		"data null":          `{"type":"x","data":null}`,
		"data a text":        `{"type":"x","data":"y"}`,
		"amount a number":    notice(`4.90`, `"USD"`, `"BASE"`),
		"too precise":        notice(`"4.9000000"`, `"USD"`, `"BASE"`),
		"precise elsewhere":  notice(`"4.9000000"`, `"USD"`, `"DOGE"`),
		"negative":           notice(`"-4.90"`, `"USD"`, `"BASE"`),
		"exponent":           notice(`"49e-1"`, `"USD"`, `"BASE"`),
		"comma":              notice(`"4,90"`, `"USD"`, `"BASE"`),
		"no digits":          notice(`"."`, `"USD"`, `"BASE"`),
		"overflow":           notice(`"1`+strings.Repeat("0", 78)+`"`, `"USD"`, `"BASE"`),
		"unknown, no number": notice(`"many"`, `"DOGE"`, `"BASE"`),
		"too long":           strings.Replace(goodNotice, "tr_1", strings.Repeat("i", api.MaxNoticeText+1), 1),
		"control character":  strings.Replace(goodNotice, "tr_1", `tr\u0000`, 1),
	}
	for _, text := range []string{`"type":"transfers.created",`, `"id":"tr_1",`, `"currency":"USD"`, `"type":"blockchain",`, `"address":"0xabc",`, `"chain":"BASE"`} {
		name, _, _ := strings.Cut(text, ":")
		end := ""
		if strings.HasSuffix(text, ",") {
			end = ","
		}
		bodies[text+" absent"] = strings.Replace(goodNotice, text, `"x":1`+end, 1)
		for _, value := range []string{"null", `""`, "1", "{}", "[]"} {
			bodies[text+" "+value] = strings.Replace(goodNotice, text, name+":"+value+end, 1)
		}
	}
	for _, part := range []string{`"amount":{`, `"destination":{`} {
		bodies[part+" absent"] = strings.Replace(goodNotice, part, `"x":{`, 1)
		bodies[part+" array"] = strings.NewReplacer(part, part[:len(part)-1]+"[{", "}", "}]").Replace(goodNotice)
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			wantProblem(t, notify(h, body), http.StatusBadRequest, "invalid_payload", "")
		})
	}
	for i := range len(goodNotice) {
		wantProblem(t, notify(h, goodNotice[:i]), http.StatusBadRequest, "invalid_payload", "")
	}
	wantProblem(t, notify(h, goodNotice+strings.Repeat(" ", api.MaxBody+1-len(goodNotice))), http.StatusRequestEntityTooLarge, "body_too_large", "")
	wantProblem(t, notify(h, goodNotice, "Content-Type", "text/plain"), http.StatusUnsupportedMediaType, "unsupported_media_type", "")
	wantProblem(t, do(h, "POST", "/api/webhooks/nobody", goodNotice), http.StatusNotFound, "not_found", "")
	if len(b.notices) != 0 {
		t.Errorf("%d notices were stored", len(b.notices))
	}
}
