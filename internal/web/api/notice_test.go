package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/webhook"
)

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
