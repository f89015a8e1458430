package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
)

const address = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed" // an example of ERC-55

// members of a valid request. Values are JSON texts.
var members = map[string]string{
	"merchantId":      `"acme"`,
	"merchantAddress": `"` + address + `"`,
	"amount":          `"4900000"`,
	"currency":        `"USDC"`,
	"chainKey":        `"base"`,
	"lineItems":       `[{"label":"Two espressos","amount":"4000000"},{"label":"Tip","amount":"900000"}]`,
	"expiresAt":       fmt.Sprint(now + 3600),
}

// request returns a request with changed members. changes alternates names and JSON
// texts; an empty text removes the member.
func request(changes ...string) string {
	all := maps.Clone(members)
	for i := 0; i < len(changes); i += 2 {
		all[changes[i]] = changes[i+1]
	}
	var parts []string
	for _, name := range []string{"merchantId", "merchantAddress", "amount", "currency", "chainKey", "lineItems", "expiresAt"} {
		if all[name] != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", name, all[name]))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func TestCreate(t *testing.T) {
	var b backend
	w := do(newAPI(t, &b), "POST", "/api/invoices", request(), "Content-Type", "application/json; charset=UTF-8")
	got := decode[apitypes.CreateInvoiceResponse](t, w, http.StatusCreated)
	want := apitypes.CreateInvoiceResponse{
		ID:               invoiceID(0),
		OnChainInvoiceID: "0x" + strings.Repeat("0", 63) + "1",
		CheckoutURL:      "/checkout/" + invoiceID(0),
		Invoice: apitypes.Invoice{
			ID: invoiceID(0), MerchantID: "acme", MerchantAddress: address, Amount: "4900000", Currency: "USDC",
			ChainKey: "base", Status: apitypes.StatusOpen, CreatedAt: now, ExpiresAt: now + 3600,
			LineItems:  []apitypes.LineItem{{Label: "Two espressos", Amount: "4000000"}, {Label: "Tip", Amount: "900000"}},
			AmountPaid: "0", AmountRefunded: "0",
		},
	}
	expect.NoDiff(t, cmp.Diff(want, got), "answer")
	if got, want := w.Header().Get("Location"), "/api/invoices/"+invoiceID(0); got != want {
		t.Errorf("Location = %s, want %s", got, want)
	}
	again := do(newAPI(t, &b), "GET", w.Header().Get("Location"), "")
	if diff := cmp.Diff(want.Invoice, decode[apitypes.InvoiceResponse](t, again, http.StatusOK).Invoice); diff != "" {
		t.Errorf("fetched (-created +fetched):\n%s", diff)
	}
}

// Variants that are accepted.
func TestCreateAccepts(t *testing.T) {
	for name, body := range map[string]string{
		"no line items":           request("lineItems", ""),
		"empty line items":        request("lineItems", "[]"),
		"unknown members":         strings.Replace(request(), "{", `{"merchantid":1,"note":{"a":[null,1.5e3]},"MerchantId":"x",`, 1),
		"lower-case address":      request("merchantAddress", `"`+strings.ToLower(address)+`"`),
		"escaped letters":         request("merchantId", `"\u0061cm\u0065"`),
		"white space":             " \r\n\t" + request() + "\n",
		"largest amount":          request("amount", `"`+invoice.MaxAmount.String()+`"`, "lineItems", ""),
		"longest merchant id":     request("merchantId", `"`+strings.Repeat("m", 64)+`"`),
		"latest expiry":           request("expiresAt", fmt.Sprint(now+int64(invoice.MaxLifetime/time.Second))),
		"soonest expiry":          request("expiresAt", fmt.Sprint(now+1)),
		"longest label":           request("amount", `"1"`, "lineItems", `[{"label":"`+strings.Repeat("é", 200)+`","amount":"1"}]`),
		"a hundred line items":    request("amount", `"100"`, "lineItems", "["+strings.Repeat(`{"label":"x","amount":"1"},`, 99)+`{"label":"x","amount":"1"}]`),
		"largest body":            strings.Repeat(" ", api.MaxBody-len(request())) + request(),
		"deepest nesting":         strings.Replace(request(), "{", `{"x":`+strings.Repeat("[", api.MaxDepth-1)+strings.Repeat("]", api.MaxDepth-1)+",", 1),
		"surrogate pair":          request("lineItems", `[{"label":"\ud83d\ude00","amount":"4900000"}]`),
		"two surrogate pairs":     request("lineItems", `[{"label":"\uD83D\uDE00\ud83d\ude00","amount":"4900000"}]`),
		"no escape of surrogates": request("lineItems", `[{"label":"\\ud800","amount":"4900000"}]`),
		"escapes beside others":   request("lineItems", `[{"label":"\\\u0061\"\/\ud83d\ude00\ud7ff\ue000","amount":"4900000"}]`),
		"right-to-left label":     request("lineItems", `[{"label":"\u05e9\u200f","amount":"4900000"}]`),
		"same name on two levels": strings.Replace(request(), "{", `{"x":{"amount":1,"x":2},`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			var b backend
			if w := do(newAPI(t, &b), "POST", "/api/invoices", body); w.Code != http.StatusCreated || len(b.requests) != 1 {
				t.Errorf("answered %d %s", w.Code, w.Body)
			}
		})
	}
}

func TestCreateRefusesFields(t *testing.T) {
	texts := map[string]string{"null": "null", "a number": "1", "a boolean": "true", "an array": "[]", "an object": "{}", "empty": `""`}
	type test struct{ name, field, body string }
	var tests []test
	add := func(field, name string, changes ...string) {
		tests = append(tests, test{field + " " + name, field, request(changes...)})
	}
	for _, field := range []string{"merchantId", "merchantAddress", "amount", "currency", "chainKey"} {
		add(field, "absent", field, "")
		for name, text := range texts {
			add(field, name, field, text)
		}
		add(field, "with a blank", field, strings.Replace(members[field], `"`, `" `, 1))
		add(field, "with NUL", field, strings.Replace(members[field], `"`, `"\u0000`, 1))
	}
	add("merchantId", "too long", "merchantId", `"`+strings.Repeat("m", 65)+`"`)
	add("merchantId", "of other letters", "merchantId", `"Müller"`)
	add("merchantAddress", "zero", "merchantAddress", `"0x0000000000000000000000000000000000000000"`)
	add("merchantAddress", "with a bad checksum", "merchantAddress", `"0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"`)
	add("merchantAddress", "too short", "merchantAddress", `"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe"`)
	add("merchantAddress", "too long", "merchantAddress", `"`+address+`0"`)
	add("merchantAddress", "without 0x", "merchantAddress", `"`+address[2:]+`"`)
	add("merchantAddress", "not hex", "merchantAddress", `"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeg"`)
	for name, amount := range map[string]string{
		"zero": "0", "negative": "-1", "with a sign": "+1", "with leading zero": "01", "decimal": "1.0", "with exponent": "1e6",
		"overflowing": invoice.MaxAmount.String()[:77] + "6", "too long": "1" + strings.Repeat("0", 78), "in hex": "0x10",
		"in other digits": "١", "with separator": "1,000",
	} {
		add("amount", name, "amount", `"`+amount+`"`, "lineItems", "")
		add("lineItems[0].amount", name, "lineItems", `[{"label":"x","amount":"`+amount+`"}]`)
	}
	add("currency", "unknown", "currency", `"DOGE"`)
	add("currency", "in lower case", "currency", `"usdc"`)
	add("chainKey", "unknown", "chainKey", `"dogechain"`)
	for name, text := range map[string]string{"null": "null", "a number": "1", "a string": `"x"`, "an object": "{}", "a boolean": "false"} {
		add("lineItems", name, "lineItems", text)
	}
	add("lineItems", "not adding up", "lineItems", `[{"label":"x","amount":"4899999"}]`)
	add("lineItems", "too many", "amount", `"101"`, "lineItems", "["+strings.Repeat(`{"label":"x","amount":"1"},`, 100)+`{"label":"x","amount":"1"}]`)
	add("lineItems", "overflowing", "lineItems", `[{"label":"x","amount":"`+invoice.MaxAmount.String()+`"},{"label":"x","amount":"1"}]`)
	for name, text := range map[string]string{"null": "null", "a string": `"x"`, "a number": "1", "an array": "[]"} {
		add("lineItems[1]", name, "lineItems", `[{"label":"x","amount":"1"},`+text+`]`)
		add("lineItems[0].label", name, "lineItems", `[{"label":`+strings.ReplaceAll(text, `"x"`, `""`)+`,"amount":"4900000"}]`)
		add("lineItems[0].amount", name, "lineItems", `[{"label":"x","amount":`+text+`}]`)
	}
	add("lineItems[0].label", "absent", "lineItems", `[{"amount":"4900000"}]`)
	add("lineItems[0].label", "too long", "lineItems", `[{"label":"`+strings.Repeat("x", 201)+`","amount":"4900000"}]`)
	for name, label := range map[string]string{"control": `\u0000`, "escaped line break": `\n`, "C1 control": "\u0085", "override": "\u202e", "escaped isolate": `\u2066`} {
		add("lineItems[0].label", "with "+name, "lineItems", `[{"label":"x`+label+`","amount":"4900000"}]`)
	}
	add("lineItems[0].amount", "absent", "lineItems", `[{"label":"x"}]`)
	for name, text := range map[string]string{
		"null": "null", "a string": `"1764003600"`, "a boolean": "true", "an array": "[]", "an object": "{}", "absent": "",
		"zero": "0", "negative": "-1", "now": fmt.Sprint(now), "too late": fmt.Sprint(now + int64(invoice.MaxLifetime/time.Second) + 1), "last": fmt.Sprint(math.MaxInt64),
		"milliseconds": fmt.Sprint((now + 3600) * 1000), "with exponent": "1764003600e0", "with fraction": "1764003600.0",
		"overflowing": "9223372036854775808", "wrapping round": "18446744075473555216", "very long": strings.Repeat("9", 1000),
	} {
		add("expiresAt", name, "expiresAt", text)
	}
	var b backend
	h := newAPI(t, &b)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := wantProblem(t, do(h, "POST", "/api/invoices", test.body), http.StatusBadRequest, "invalid_field", test.field)
			if !strings.Contains(p.Detail, test.field) {
				t.Errorf("detail %q does not name the field", p.Detail)
			}
			if len(p.Detail) > 300 {
				t.Errorf("detail echoes %d characters", len(p.Detail))
			}
		})
	}
	// The first member in the interface's order is reported.
	wantProblem(t, do(h, "POST", "/api/invoices", "{}"), http.StatusBadRequest, "invalid_field", "merchantId")
	wantProblem(t, do(h, "POST", "/api/invoices", request("chainKey", "", "amount", "7")), http.StatusBadRequest, "invalid_field", "amount")
	// A merchant's key, which may leave merchantId out, must not send another text.
	acme := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(access.WithPrincipal(r.Context(), access.Principal{KeyID: "key_1", MerchantID: "acme", Scopes: access.Standard})))
	})
	for _, id := range []string{`""`, `"Müller"`} {
		wantProblem(t, do(acme, "POST", "/api/invoices", request("merchantId", id)), http.StatusBadRequest, "invalid_field", "merchantId")
	}
	if len(b.requests) != 0 {
		t.Errorf("%d invoices were created", len(b.requests))
	}
}

func TestCreateRefusesBodies(t *testing.T) {
	whole := request()
	type answer struct {
		status int
		code   string
	}
	invalid := answer{http.StatusBadRequest, "invalid_json"}
	var b backend
	h := newAPI(t, &b)
	for name, test := range map[string]struct {
		body string
		want answer
	}{
		"empty":                {"", invalid},
		"blank":                {" \n", invalid},
		"text":                 {"hello", invalid},
		"array":                {"[" + whole + "]", invalid},
		"null":                 {"null", invalid},
		"string":               {`"x"`, invalid},
		"number":               {"1", invalid},
		"trailing comma":       {whole[:len(whole)-1] + ",}", invalid},
		"trailing text":        {whole + "x", invalid},
		"two objects":          {whole + whole, invalid},
		"comment":              {whole + "// all", invalid},
		"single quotes":        {strings.ReplaceAll(whole, `"`, `'`), invalid},
		"byte order mark":      {"\ufeff" + whole, invalid},
		"not UTF-8":            {strings.Replace(whole, "Tip", "T\xffp", 1), invalid},
		"NaN":                  {request("expiresAt", "NaN"), invalid},
		"number with zero":     {request("expiresAt", "01"), invalid},
		"control character":    {strings.Replace(whole, "Tip", "T\x01p", 1), invalid},
		"high surrogate":       {strings.Replace(whole, "Tip", `Tip\ud800`, 1), invalid},
		"low surrogate":        {strings.Replace(whole, "Tip", `Tip\uDC00`, 1), invalid},
		"surrogates reversed":  {strings.Replace(whole, "Tip", `\ude00\ud83d`, 1), invalid},
		"two high surrogates":  {strings.Replace(whole, "Tip", `\ud83d\ud83d`, 1), invalid},
		"three surrogates":     {strings.Replace(whole, "Tip", `\ud83d\ude00\ude00`, 1), invalid},
		"surrogate and letter": {strings.Replace(whole, "Tip", `\ud83d\u0041`, 1), invalid},
		"surrogate after \\":   {strings.Replace(whole, "Tip", `\\\ud800`, 1), invalid},
		"surrogate before \\u": {strings.Replace(whole, "Tip", `\ud83d\\ude00`, 1), invalid},
		"surrogate in a name":  {strings.Replace(whole, "{", `{"\udfff":1,`, 1), invalid},
		"surrogate elsewhere":  {strings.Replace(whole, "{", `{"x":[{"y":"\uDBFF"}],`, 1), invalid},
		"member twice":         {strings.Replace(whole, "{", `{"amount":"4900000",`, 1), invalid},
		"member twice escaped": {strings.Replace(whole, "{", `{"\u0061mount":"4900000",`, 1), invalid},
		"unknown member twice": {strings.Replace(whole, "{", `{"x":1,"x":1,`, 1), invalid},
		"inner member twice":   {strings.Replace(whole, `{"label"`, `{"label":"x","label"`, 1), invalid},
		"deep member twice":    {strings.Replace(whole, "{", `{"x":[[{"y":1,"y":1}]],`, 1), invalid},
		"nested too deep":      {strings.Replace(whole, "{", `{"x":`+strings.Repeat("[", api.MaxDepth)+strings.Repeat("]", api.MaxDepth)+",", 1), invalid},
		"abyss":                {strings.Repeat("[", api.MaxBody), invalid},
		"too large":            {strings.Repeat(" ", api.MaxBody+1-len(whole)) + whole, answer{http.StatusRequestEntityTooLarge, "body_too_large"}},
		"much too large":       {strings.Repeat(whole, 10_000), answer{http.StatusRequestEntityTooLarge, "body_too_large"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantProblem(t, do(h, "POST", "/api/invoices", test.body), test.want.status, test.want.code, "")
		})
	}
	for i := range len(whole) {
		wantProblem(t, do(h, "POST", "/api/invoices", whole[:i]), http.StatusBadRequest, "invalid_json", "")
	}
	if len(b.requests) != 0 {
		t.Errorf("%d invoices were created", len(b.requests))
	}
}

func TestMediaTypes(t *testing.T) {
	var b backend
	h := newAPI(t, &b)
	for _, header := range [][]string{
		{"Content-Type", ""},
		{"Content-Type", "text/plain"},
		{"Content-Type", "application/x-www-form-urlencoded"},
		{"Content-Type", "application/jsonx"},
		{"Content-Type", "application/json; charset=latin1"},
		{"Content-Type", "application/json; charset"},
		{"Content-Encoding", "gzip"},
	} {
		w := do(h, "POST", "/api/invoices", request(), header...)
		wantProblem(t, w, http.StatusUnsupportedMediaType, "unsupported_media_type", "")
	}
	for _, twice := range []struct {
		name   string
		values []string
	}{
		{"Content-Type", []string{"application/json", "application/json"}},
		{"Content-Type", []string{"application/json", "text/plain"}},
		{"Content-Type", []string{`application/json; x="a`, `b"`}}, // valid if joined
		{"Content-Encoding", []string{"identity", "gzip"}},
	} {
		r := newRequest("POST", "/api/invoices", request())
		r.Header[twice.name] = twice.values
		wantProblem(t, send(h, r), http.StatusUnsupportedMediaType, "unsupported_media_type", "")
	}
	if len(b.requests) != 0 {
		t.Errorf("%d invoices were created", len(b.requests))
	}
	for _, charset := range []string{"utf-8", "UTF-8", "utf8", "UTF8", `"utf8"`} {
		if w := do(h, "POST", "/api/invoices", request(), "Content-Type", "application/json; charset="+charset); w.Code != http.StatusCreated {
			t.Errorf("%s: answered %d %s", charset, w.Code, w.Body)
		}
	}
}

func TestIdempotencyKey(t *testing.T) {
	long := strings.Repeat("k", api.MaxIdempotencyKey)
	for header, want := range map[string]string{
		"abc":                "abc",
		`"abc"`:              "abc",
		`"a\"b\\c"`:          `a"b\c`,
		`a"b`:                `a"b`,
		long:                 long,
		`"` + long + `"`:     long,
		"!~":                 "!~",
		long + "k":           "",
		`"` + long + `k"`:    "",
		`""`:                 "",
		`"`:                  "",
		`"abc`:               "",
		`"abc"d`:             "",
		`"abc";v=1`:          "",
		`"a\bc"`:             "",
		`"abc\`:              "",
		"a b":                "",
		`"a b"`:              "",
		"caf\u00e9":          "",
		"tab\tin the middle": "",
	} {
		t.Run(header, func(t *testing.T) {
			var b backend
			w := do(newAPI(t, &b), "POST", "/api/invoices", request(), "Idempotency-Key", header)
			if want == "" {
				wantProblem(t, w, http.StatusBadRequest, "invalid_field", "Idempotency-Key")
				return
			}
			if w.Code != http.StatusCreated || b.requests[0].Key != want || b.requests[0].Scope != "" {
				t.Errorf("answered %d %s, asked for %+v; want key %q", w.Code, w.Body, b.requests, want)
			}
		})
	}
	for _, values := range [][]string{{"a", "a"}, {""}} {
		r := newRequest("POST", "/api/invoices", request())
		r.Header["Idempotency-Key"] = values
		wantProblem(t, send(newAPI(t, new(backend)), r), http.StatusBadRequest, "invalid_field", "Idempotency-Key")
	}
}

func TestIdempotencyErrors(t *testing.T) {
	h := newAPI(t, &backend{err: fmt.Errorf("wrapped: %w", ledger.ErrIdempotencyMismatch)})
	wantProblem(t, do(h, "POST", "/api/invoices", request(), "Idempotency-Key", "k"), http.StatusUnprocessableEntity, "idempotency_mismatch", "")
	h = newAPI(t, &backend{err: fmt.Errorf("wrapped: %w", &ledger.DraftDeletedError{InvoiceID: invoiceID(0)})})
	deleted := do(h, "POST", "/api/invoices", request(), "Idempotency-Key", "k")
	wantProblem(t, deleted, http.StatusConflict, "draft_deleted", "")
	if got := decode[apitypes.Problem](t, deleted, http.StatusConflict).InvoiceID; got != invoiceID(0) {
		t.Errorf("it names %q", got)
	}
	h = newAPI(t, &backend{err: fmt.Errorf("wrapped: %w", ledger.ErrIdempotencyInProgress)})
	w := do(h, "POST", "/api/invoices", request(), "Idempotency-Key", "k")
	wantProblem(t, w, http.StatusConflict, "idempotency_in_progress", "")
	if w.Header().Get("Retry-After") != "1" {
		t.Error("no Retry-After")
	}
}

// TestIncompleteBody sends bodies that end with a connection error. The response names
// the problem, and does not contain the service's address.
func TestIncompleteBody(t *testing.T) {
	var b backend
	h := newAPI(t, &b)
	at := &net.TCPAddr{IP: net.IPv4(10, 9, 8, 7), Port: 8080}
	for want, err := range map[string]error{
		"it did not arrive in time": &net.OpError{Op: "read", Net: "tcp", Source: at, Addr: at, Err: os.ErrDeadlineExceeded},
		"it broke off":              &net.OpError{Op: "read", Net: "tcp", Source: at, Addr: at, Err: errors.New("connection reset by peer")},
		"or its transfer encoding":  errors.New("invalid byte in chunk length"),
	} {
		for path, code := range map[string]string{"/api/invoices": "invalid_json", "/api/webhooks/circle": "invalid_payload"} {
			r := newRequest("POST", path, "")
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"am`), iotest.ErrReader(err)))
			w := send(h, r)
			wantProblem(t, w, http.StatusBadRequest, code, "")
			if body := w.Body.String(); !strings.Contains(body, want) || strings.Contains(body, "10.9.8.7") {
				t.Errorf("%s: %s; want %q and no address", path, body, want)
			}
		}
	}
}

// TestDeclaredLength sends a Content-Length that is too large. It is rejected before the body is read.
func TestDeclaredLength(t *testing.T) {
	var b backend
	h := newAPI(t, &b)
	for _, path := range []string{"/api/invoices", "/api/webhooks/circle"} {
		r := newRequest("POST", path, "")
		r.ContentLength = 99_999_999_999
		r.Body = io.NopCloser(iotest.ErrReader(errors.New("the body was read")))
		w := send(h, r)
		wantProblem(t, w, http.StatusRequestEntityTooLarge, "body_too_large", "")
		if w.Header().Get("Connection") != "close" {
			t.Errorf("%s: the connection is kept, so its body is read all the same", path)
		}
	}
}

// TestIntegrationMisspelt misspells keys, currencies and members, and expects errors that name the mistake.
func TestIntegrationMisspelt(t *testing.T) {
	local, _ := chain.Lookup(chain.Local)
	store := dbtest.Open(t, dbtest.SQLite(t))
	s := newIntegration(t, store, local)
	post := func(body string, header ...string) (status int, field, detail, ignored string) {
		w := do(s.handler, "POST", "/api/invoices", body, header...)
		if w.Code == http.StatusCreated {
			return w.Code, "", "", w.Header().Get("Quittance-Ignored-Members")
		}
		p := decode[problem](t, w, http.StatusBadRequest)
		return w.Code, p.Field, p.Detail, w.Header().Get("Quittance-Ignored-Members")
	}
	const noDefault = "merchantAddress is required: the merchant has no default address on this chain."
	strict := []string{"Prefer", `respond-async, handling="strict"; foo=1`}
	for name, test := range map[string]struct {
		body          string
		header        []string
		field, detail string // of the error; none if field is empty
	}{
		"chain":        {request("merchantAddress", "", "chainKey", `"bases"`), nil, "chainKey", `chainKey is "bases", which is not a chain of this service; did you mean base?`},
		"other chain":  {request("merchantAddress", "", "chainKey", `"ethereum"`), nil, "chainKey", `chainKey is "ethereum", which is not a chain of this service; want base, local.`},
		"currency":     {request("merchantAddress", "", "currency", `"usdc"`), nil, "currency", `currency is "usdc", which is not a currency of the chain base; did you mean USDC?`},
		"address":      {request("merchantAddress", ""), nil, "merchantAddress", noDefault},
		"member":       {strings.Replace(request(), "merchantAddress", "merchantAdress", 1), nil, "merchantAddress", noDefault + ` Ignored because they are unknown: "merchantAdress" (did you mean merchantAddress?).`},
		"strange":      {strings.Replace(request(), `"merchantAddress"`, `"ÄÖ\n"`, 1), nil, "merchantAddress", noDefault + ` Ignored because they are unknown: "\u00c4\u00d6\n".`},
		"other member": {strings.Replace(request(), `"amount"`, `"customer":{"mail":"a@b.example"},"amount"`, 1), nil, "", ""},
		"strict":       {strings.Replace(request(), `"merchantId"`, `"referencee":"7","merchantId"`, 1), strict, "referencee", "referencee is not a member of this request; did you mean reference?"},
		"strict below": {strings.Replace(request(), `"label"`, `"lable":"x","label"`, 1), strict, "lineItems[0].lable", "lineItems[0].lable is not a member of this request; did you mean lineItems[0].label?"},
		"strict, fine": {strings.Replace(request(), `"merchantId"`, `"metadata":{"any":"x"},"merchantId"`, 1), strict, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, field, detail, _ := post(test.body, test.header...)
			if field != test.field || detail != test.detail {
				t.Errorf("answered %d %s: %s", status, field, detail)
			}
		})
	}
	if _, _, _, ignored := post(strings.Replace(request(), `"merchantId"`, `"referencee":"7","merchantId"`, 1)); ignored != `"referencee" (did you mean reference?)` {
		t.Errorf("ignored %s", ignored)
	}
	w := do(s.handler, "POST", "/api/invoices", request(), strict...)
	if got := w.Header().Get("Preference-Applied"); got != "handling=strict" || w.Code != http.StatusCreated {
		t.Errorf("answered %d, preference %q", w.Code, got)
	}
}

// with returns a request with further members. Values are JSON texts.
func with(members string) string { return strings.Replace(request(), "{", "{"+members+",", 1) }

func TestDetails(t *testing.T) {
	var b backend
	h := newAPI(t, &b)
	w := do(h, "POST", "/api/invoices", with(`"reference":"order-1","uniqueReference":true,"metadata":{"cart":"8821","note":"a\nb","empty":""},`+
		`"customer":{"id":"cus_1","email":"ada@example.com","name":"ignored"},"description":"Two espressos",`+
		`"returnUrl":"https://shop.example/thanks","cancelUrl":"https://shop.example/cart"`))
	want := apitypes.Invoice{
		Reference: "order-1", UniqueReference: true, Metadata: apitypes.Metadata{"cart": "8821", "note": "a\nb", "empty": ""},
		Customer: &apitypes.Customer{ID: "cus_1", Email: "ada@example.com"}, Description: "Two espressos",
		ReturnURL: "https://shop.example/thanks", CancelURL: "https://shop.example/cart",
	}
	check := func(got apitypes.Invoice) {
		t.Helper()
		got = apitypes.Invoice{
			Reference: got.Reference, UniqueReference: got.UniqueReference, Metadata: got.Metadata, Customer: got.Customer,
			Description: got.Description, ReturnURL: got.ReturnURL, CancelURL: got.CancelURL,
		}
		expect.NoDiff(t, cmp.Diff(want, got), "answer")
	}
	check(decode[apitypes.CreateInvoiceResponse](t, w, http.StatusCreated).Invoice)
	check(decode[apitypes.InvoiceResponse](t, do(h, "GET", w.Header().Get("Location"), ""), http.StatusOK).Invoice)
	check(decode[apitypes.InvoiceList](t, do(h, "GET", "/api/invoices", ""), http.StatusOK).Invoices[0])

	for name, members := range map[string]string{
		"nothing": `"metadata":{},"customer":{}`, "not unique": `"uniqueReference":false`,
	} {
		w := do(h, "POST", "/api/invoices", with(members))
		if w.Code != http.StatusCreated || strings.Contains(w.Body.String(), "metadata") || strings.Contains(w.Body.String(), "customer") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestCreateRefusesDetails(t *testing.T) {
	var pairs []string
	for i := range 51 {
		pairs = append(pairs, fmt.Sprintf(`"k%d":"v"`, i))
	}
	var b backend
	h := newAPI(t, &b)
	for field, values := range map[string][]string{
		"reference":       {"1", "null", `""`, `"` + strings.Repeat("x", 201) + `"`, `"a\u0000"`},
		"uniqueReference": {"1", "null", `"true"`, "true"}, // the last needs a reference
		"description":     {"1", "null", `""`, `"` + strings.Repeat("x", 501) + `"`, `"a\u202e"`},
		"customer":        {"1", "null", `"cus_1"`, "[]"},
		"metadata":        {"1", "null", `"x"`, "[]", "{" + strings.Join(pairs, ",") + "}", `{"":"x"}`, `{"a[b]":"x"}`, `{"` + strings.Repeat("k", 41) + `":"x"}`},
		"returnUrl":       {"1", "null", `""`, `"http://shop.example"`, `"/thanks"`, `"https://shop.example@evil.example/"`, `"https://evil.example\\@shop.example/"`},
		"cancelUrl":       {"1", "null", `""`, `"javascript:alert(1)"`, `"https://shop.example/#x"`},
	} {
		for _, value := range values {
			t.Run(field+" "+value[:min(len(value), 30)], func(t *testing.T) {
				p := wantProblem(t, do(h, "POST", "/api/invoices", with(`"`+field+`":`+value)), http.StatusBadRequest, "invalid_field", field)
				if len(p.Detail) > 300 {
					t.Errorf("detail echoes %d characters", len(p.Detail))
				}
				if value == "null" && !strings.HasSuffix(p.Detail, "it is null.") {
					t.Errorf("detail is %q", p.Detail)
				}
			})
		}
	}
	for members, field := range map[string]string{
		`"customer":{"id":1}`:                                    "customer.id",
		`"customer":{"id":""}`:                                   "customer.id",
		`"customer":{"email":"x"}`:                               "customer.email",
		`"customer":{"email":null}`:                              "customer.email",
		`"metadata":{"cart":1}`:                                  "metadata[cart]",
		`"metadata":{"cart":null}`:                               "metadata[cart]",
		`"metadata":{"cart":["a"]}`:                              "metadata[cart]",
		`"metadata":{"cart":"\u0000"}`:                           "metadata[cart]",
		`"metadata":{"cart":"` + strings.Repeat("x", 501) + `"}`: "metadata[cart]",
	} {
		wantProblem(t, do(h, "POST", "/api/invoices", with(members)), http.StatusBadRequest, "invalid_field", field)
	}
	if len(b.requests) != 0 {
		t.Errorf("%d invoices were created", len(b.requests))
	}
}

func TestReferenceTaken(t *testing.T) {
	b := backend{err: fmt.Errorf("wrapped: %w", &ledger.ReferenceTakenError{InvoiceID: invoiceID(7)})}
	w := do(newAPI(t, &b), "POST", "/api/invoices", request())
	wantProblem(t, w, http.StatusConflict, "reference_taken", "")
	if p := decode[apitypes.Problem](t, w, http.StatusConflict); p.InvoiceID != invoiceID(7) {
		t.Errorf("the problem names %q", p.InvoiceID)
	}
}

func TestChangeInvoice(t *testing.T) {
	var b backend
	h := newAPI(t, &b)
	path := do(h, "POST", "/api/invoices", request()).Header().Get("Location")
	w := do(h, "PATCH", path, `{"merchantAddress":"`+address+`","amount":"7","currency":"EURC","chainKey":"arc","lineItems":[],"expiresAt":1764003601,
		"reference":null,"uniqueReference":false,"metadata":{"a":"1","b":null},"customer":{"id":"c","email":null},"description":"d","returnUrl":null}`,
		"Content-Type", "application/json")
	if got := decode[apitypes.InvoiceResponse](t, w, http.StatusOK).Invoice.ID; got != invoiceID(0) {
		t.Errorf("answered with %s", got)
	}
	text := func(s string) *string { return &s }
	c := b.changes[0]
	if number := c.Amount.String(); number != "7" || c.Merchant.IsZero() || *c.Currency != "EURC" || *c.ChainKey != "arc" || len(*c.LineItems) != 0 || c.ExpiresAt.Unix() != 1764003601 {
		t.Errorf("changes %+v", c)
	}
	want := invoice.DetailsChange{
		Reference: text(""), UniqueReference: new(bool), Metadata: map[string]*string{"a": text("1"), "b": nil},
		CustomerID: text("c"), CustomerEmail: text(""), Description: text("d"), ReturnURL: text(""),
	}
	expect.NoDiff(t, cmp.Diff(want, c.Details), "details")
	do(h, "PATCH", path, `{"metadata":null,"customer":null}`, "Content-Type", "application/json")
	want = invoice.DetailsChange{NoMetadata: true, CustomerID: text(""), CustomerEmail: text("")}
	expect.NoDiff(t, cmp.Diff(want, b.changes[1].Details), "removed")
	for field, body := range map[string]string{
		"amount": `{"amount":null}`, "expiresAt": `{"expiresAt":"1"}`, "lineItems": `{"lineItems":null}`,
		"reference": `{"reference":""}`, "customer": `{"customer":[]}`, "customer.id": `{"customer":{"id":1}}`, "metadata[a]": `{"metadata":{"a":1}}`,
		"uniqueReference": `{"uniqueReference":null}`, "currency": `{"currency":1}`, "chainKey": `{"chainKey":1}`, "merchantAddress": `{"merchantAddress":"0x1"}`,
	} {
		wantProblem(t, do(h, "PATCH", path, body, "Content-Type", "application/json"), http.StatusBadRequest, "invalid_field", field)
	}
	wantProblem(t, do(h, "PATCH", path, "{}", "Content-Type", "application/json", "If-Match", `"1"`), http.StatusBadRequest, "invalid_field", "If-Match")
	if w := do(h, "PATCH", path, "{}", "Content-Type", "application/json", "If-Match", "*"); w.Code != http.StatusOK {
		t.Errorf("If-Match: * is answered %d", w.Code)
	}
	if len(b.changes) != 3 {
		t.Errorf("%d changes were made, want 3", len(b.changes))
	}
	wantProblem(t, do(h, "PATCH", path, `[]`, "Content-Type", "application/json"), http.StatusBadRequest, "invalid_json", "")
}

// TestFixedMembers sends an invoice back as it is, and with members that cannot be changed.
func TestFixedMembers(t *testing.T) {
	b := newListBackend(1) // paid
	h := newAPI(t, b)
	path := "/api/invoices/" + invoiceID(0)
	patch := func(body string) *httptest.ResponseRecorder {
		return do(h, "PATCH", path, body, "Content-Type", "application/json")
	}
	whole := expect.Must(json.Marshal(decode[map[string]any](t, do(h, "GET", path, ""), http.StatusOK)["invoice"]))
	for _, same := range []string{string(whole), `{"status":"paid","draft":false,"exception":null,"unknown":1}`} {
		if w := patch(same); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", same, w.Code, w.Body)
		}
	}
	for field, value := range map[string]string{
		"id": `"` + invoiceID(1) + `"`, "merchantId": `"bean"`, "status": `"void"`, "createdAt": "1", "transferAmount": `"8"`, "amountRemaining": `"1"`,
		"remainingTransferAmount": `"1"`, "settledTxHash": "null", "settledAt": "1", "tolerance": `"1"`, "exception": `"late"`, "amountPaid": `"7"`,
		"amountRefunded": `"7"`, "draft": "true",
	} {
		wantProblem(t, patch(fmt.Sprintf(`{%q:%s}`, field, value)), http.StatusBadRequest, "invalid_field", field)
	}
	if len(b.changes) != 2 {
		t.Errorf("%d changes were made, want 2", len(b.changes))
	}
	wantProblem(t, do(h, "PATCH", "/api/invoices/"+invoiceID(7), `{"status":"void"}`, "Content-Type", "application/json"), http.StatusNotFound, "not_found", "")
}

func TestDraftMember(t *testing.T) {
	var b backend
	h := newAPI(t, &b)
	if w := do(h, "POST", "/api/invoices", with(`"draft":true`)); w.Code != http.StatusCreated || !b.requests[0].Draft.Unissued {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	wantProblem(t, do(h, "POST", "/api/invoices", with(`"draft":"yes"`)), http.StatusBadRequest, "invalid_field", "draft")
}

func TestFinalizeVoidAndDelete(t *testing.T) {
	var b backend
	h := newAPI(t, &b)
	path := do(h, "POST", "/api/invoices", request()).Header().Get("Location")
	finalized := decode[apitypes.CreateInvoiceResponse](t, do(h, "POST", path+"/finalize", ""), http.StatusOK)
	if finalized.ID != invoiceID(0) || finalized.OnChainInvoiceID == "" || finalized.CheckoutURL == "" || finalized.Invoice.ID != finalized.ID {
		t.Errorf("finalize answered %+v", finalized)
	}
	if got := decode[apitypes.InvoiceResponse](t, do(h, "POST", path+"/void", ""), http.StatusOK); got.Invoice.ID != finalized.ID {
		t.Errorf("void answered %+v", got)
	}
	if w := do(h, "DELETE", path, ""); w.Code != http.StatusNoContent || w.Body.Len() != 0 {
		t.Errorf("delete answered %d %s", w.Code, w.Body)
	}
	for _, route := range []string{"POST /api/invoices/inv_x/finalize", "POST /api/invoices/inv_x/void", "DELETE /api/invoices/inv_x", "PATCH /api/invoices/inv_x"} {
		method, path, _ := strings.Cut(route, " ")
		wantProblem(t, do(h, method, path, "{}", "Content-Type", "application/json"), http.StatusNotFound, "not_found", "")
	}
	for _, test := range []struct {
		err                error
		method, path, code string
	}{
		{ledger.ErrNotDraft, "DELETE", path, "invoice_not_draft"},
		{ledger.ErrNotDraft, "PATCH", path, "invoice_not_draft"},
		{ledger.ErrVoid, "POST", path + "/finalize", "invoice_final"},
		{invoice.ErrFinal, "POST", path + "/void", "invoice_final"},
		{invoice.ErrCovered, "POST", path + "/void", "payment_seen"},
		{ledger.ErrUnread, "POST", path + "/void", "chain_behind"},
	} {
		b.err = fmt.Errorf("wrapped: %w", test.err)
		wantProblem(t, do(h, test.method, test.path, "{}", "Content-Type", "application/json"), http.StatusConflict, test.code, "")
	}
}
