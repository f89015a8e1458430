package checkout

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/webtest"
)

func TestHostileTextIsEscaped(t *testing.T) {
	const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>`
	w := newWorld()
	w.invoice.MerchantID, w.invoice.Currency = hostile, hostile
	w.invoice.LineItems[0].Label = hostile
	page := w.page(t)
	expect.Equal(t, len(page.Named("img")), 0, "images came out of text:")
	for _, script := range page.Named("script") {
		if script.Attrs["type"] == "application/json" {
			continue // data
		}
		if script.Words() != "" && strings.Contains(string(reloader.Element), script.Words()) {
			continue
		}
		if script.Words() != "" || !strings.HasPrefix(script.Attrs["src"], "/checkout/static/") {
			t.Errorf("script %v %q is not the page's own", script.Attrs, script.Words())
		}
	}
	expect.Equal(t, page.Named("td")[0].Words(), hostile, "the label reads")
}

func TestPageKeepsItsOwnPolicy(t *testing.T) {
	w := newWorld()
	answer := w.ask(http.MethodGet, "/checkout/"+testID)
	policy := answer.Header().Get("Content-Security-Policy")
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Errorf("the policy lets anything in: %s", policy)
	}
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %s", policy, want)
		}
	}
	page := webtest.Parse(t, answer.Body.String())
	page.All(func(e *element) bool {
		for name, value := range e.Attrs {
			if name == "style" || strings.HasPrefix(name, "on") {
				t.Errorf("<%s> has an attribute %s, which the policy forbids", e.Name, name)
			}
			if strings.Contains(value, "//") {
				t.Errorf("<%s %s=%q> leads to another host", e.Name, name, value)
			}
		}
		return false
	})
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	w := newWorld()
	for _, path := range []string{"/checkout/" + testID, "/checkout/" + testID + "/status", "/checkout/inv_none"} {
		header := w.ask(http.MethodGet, path).Header()
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Referrer-Policy": "same-origin", "X-Robots-Tag": "noindex",
		} {
			expect.Equal(t, header.Get(name), want, "%s: %s is", path, name)
		}
	}
}

func TestWrongRequests(t *testing.T) {
	page := "/checkout/" + testID
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{http.MethodHead, page, 200, ""},
		{http.MethodHead, page + "/status", 200, ""},
		{http.MethodPost, page, 405, "GET, HEAD"},
		{http.MethodDelete, page + "/status", 405, "GET, HEAD"},
		{http.MethodPut, assets["icon.svg"].Path, 405, "GET, HEAD"},
		{http.MethodGet, "/checkout/inv_01jz8x4kq2v7r9m3t5n6p8w0yb", 404, ""},
		{http.MethodGet, "/checkout/inv_" + strings.Repeat("0", MaxID-4), 404, ""},
		{http.MethodGet, "/checkout/inv_none/status", 404, ""},
		{http.MethodPost, page + "/test-payment", 404, ""}, // no test wallet
	} {
		answer := newWorld().ask(c.method, c.path)
		if answer.Code != c.status || answer.Header().Get("Allow") != c.allow {
			t.Errorf("%s %s answers %d, Allow %q; want %d, %q", c.method, c.path, answer.Code, answer.Header().Get("Allow"), c.status, c.allow)
		}
		if c.status == http.StatusNotFound && c.method == http.MethodGet {
			if title := webtest.Parse(t, answer.Body.String()).Named("h1")[0].Words(); title == "" {
				t.Errorf("%s %s says nothing", c.method, c.path)
			}
		}
	}
}

// A malformed id is not looked up, because not every text is valid in a database.
func TestMalformedIDsAreNotLookedUp(t *testing.T) {
	w := newWorld()
	w.err = errors.New("the database was asked")
	for _, id := range []string{"inv_%00", "inv_%ff", "inv_A", "inv_a%2Fb", "x", "inv_" + strings.Repeat("a", MaxID-3)} {
		expect.Equal(t, w.ask(http.MethodGet, "/checkout/"+id).Code, http.StatusNotFound, "id %s: status", id)
	}
	if got := w.ask(http.MethodGet, "/checkout/inv_"+strings.Repeat("a", MaxID-4)).Code; got != http.StatusInternalServerError {
		t.Errorf("an id of %d bytes is not looked up", MaxID)
	}
}

func TestInternalErrorsAreHidden(t *testing.T) {
	for _, c := range []struct {
		set    func(*world)
		status int
	}{
		{func(w *world) { w.err = errors.New("pq: secret table") }, 500},
		{func(w *world) { w.err = context.DeadlineExceeded }, 503},
		{func(w *world) { w.chain.Key = "secret" }, 500},
		{func(w *world) { w.chain.Tokens = nil }, 500},
		{func(w *world) {
			w.wallet = func(context.Context, invoice.Invoice) (string, error) { return "", errors.New("secret key") }
		}, 502},
	} {
		w := newWorld()
		c.set(w)
		method, path := http.MethodGet, "/checkout/"+testID
		if w.wallet != nil {
			method, path = http.MethodPost, path+"/test-payment"
		}
		answer := w.ask(method, path)
		expect.Equal(t, answer.Code, c.status, "status")
		if later := answer.Header().Get("Retry-After"); (later != "") != (c.status == http.StatusServiceUnavailable) {
			t.Errorf("status %d: Retry-After is %q", c.status, later)
		}
		if strings.Contains(answer.Body.String(), "secret") || answer.Body.Len() == 0 {
			t.Errorf("the customer reads\n%s", answer.Body)
		}
	}
}

func TestAssetsAreCacheable(t *testing.T) {
	w := newWorld()
	w.others = []invoice.Payment{unattributed(4_890_123, defaultNow)}
	paths := []string{assets["embed.js"].Path} // which merchants' pages load
	links := newFakeLinks()
	links.profile.EmbedOrigins = []string{"https://shop.example"}
	framed := webtest.Parse(t, askLink(links.handler(new(bytes.Buffer)), cafeLink+"?embed=1", nil).Body.String())
	for _, page := range []*element{w.page(t), w.check(t, tx.String()), framed} {
		for _, e := range slices.Concat(page.Named("link"), page.Named("script"), page.Named("section")) {
			if path := e.Attrs["href"] + e.Attrs["src"] + e.Attrs["data-script"]; path != "" && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	for _, a := range assets { // only pages of links load some of them
		if !slices.Contains(paths, a.Path) {
			paths = append(paths, a.Path)
		}
	}
	if len(paths) != len(assets) {
		t.Errorf("the page loads %q, which are not all assets", paths)
	}
	for _, path := range paths {
		answer := w.ask(http.MethodGet, path)
		if answer.Code != http.StatusOK || answer.Body.Len() == 0 {
			t.Errorf("%s answers %d with %d bytes", path, answer.Code, answer.Body.Len())
		}
		if got := answer.Header().Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("%s has Cache-Control %q", path, got)
		}
	}
	if a, b := newAsset("a.css", []byte("1")), newAsset("a.css", []byte("2")); a.Path == b.Path {
		t.Errorf("two contents have one path, %s", a.Path)
	}
}

func TestTestPayment(t *testing.T) {
	var paid []string
	w := newWorld()
	w.wallet = func(_ context.Context, inv invoice.Invoice) (string, error) {
		paid = append(paid, inv.ID)
		return "0xfe", nil
	}
	form := w.page(t).Posts()
	if len(form) != 1 {
		t.Fatalf("the page has %d forms to pay with the test wallet, want 1", len(form))
	}
	post := func(header ...string) *httptest.ResponseRecorder {
		return w.ask(http.MethodPost, form[0].Attrs["action"], header...)
	}
	for _, foreign := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "http://evil.example"}, {"Origin", "null"},
	} {
		if got := post(foreign...).Code; got != http.StatusForbidden || len(paid) != 0 {
			t.Errorf("%v: status %d and %d payments, want 403 and none", foreign, got, len(paid))
		}
	}
	for i, own := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Origin", "http://pay.example"}} {
		answer := post(own...)
		if answer.Code != http.StatusSeeOther || answer.Header().Get("Location") != "/checkout/"+testID+"?lang=en" || len(paid) != i+1 {
			t.Errorf("%v: status %d to %q, %d payments", own, answer.Code, answer.Header().Get("Location"), len(paid))
		}
	}

	w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Pending)}
	if answer := post(); answer.Code != http.StatusSeeOther || len(paid) != 2 {
		t.Errorf("an invoice that has its money: status %d and %d payments, want 303 and no new one", answer.Code, len(paid))
	}
	expect.Equal(t, len(w.page(t).Posts()), 0, "an invoice that has its money shows … forms:")
	if got := w.ask(http.MethodGet, form[0].Attrs["action"]); got.Code != http.StatusMethodNotAllowed || got.Header().Get("Allow") != "POST" {
		t.Errorf("GET of the form's path answers %d", got.Code)
	}
}

func TestTestWalletIsNotOfferedByDefault(t *testing.T) {
	expect.Equal(t, len(newWorld().page(t).Posts()), 0, "the page has … forms:")
}

func TestChainThatWasNeverIndexed(t *testing.T) {
	w := newWorld()
	w.unread = true
	expect.Equal(t, w.status(t).State, waiting, "the state is")
}

// TestEveryPageIsClosed checks that no page for payers sets a cookie, has a policy that allows more
// than it needs, or loads anything from another host.
func TestEveryPageIsClosed(t *testing.T) {
	for _, scene := range Scenes() {
		answer := httptest.NewRecorder()
		scene.Handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://pay.example"+scene.Path, nil))
		header := answer.Header()
		expect.Len(t, header.Values("Set-Cookie"), 0, "%s: cookies", scene.Name)
		policy := header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			t.Errorf("%s: the policy is %q", scene.Name, policy)
		}
		if len(answer.Body.String()) == 0 {
			t.Errorf("%s: status %d without a page", scene.Name, answer.Code)
			continue
		}
		loads := webtest.Parse(t, answer.Body.String()).All(func(e *element) bool {
			return slices.Contains([]string{"script", "link", "img", "iframe", "source", "use", "object", "embed"}, e.Name)
		})
		for _, e := range loads {
			if from := e.Attrs["src"] + e.Attrs["href"] + e.Attrs["data"]; from != "" && (!strings.HasPrefix(from, "/") || strings.HasPrefix(from, "//")) {
				t.Errorf("%s: <%s> loads %s", scene.Name, e.Name, from)
			}
		}
	}
}

// TestPayIsOfferedForTheInvoicesRegistryAlone configures a registry that is not the
// invoice's, and terms that do not match its commitment.
func TestPayIsOfferedForTheInvoicesRegistryAlone(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *pageInput)
		offers bool
	}{
		"the invoice's":      {func(*pageInput) {}, true},
		"replaced":           {func(s *pageInput) { s.chain.Registry = invoice.Address{9} }, false},
		"configured later":   {func(s *pageInput) { s.invoice.Registry = invoice.Address{} }, false},
		"no longer there":    {func(s *pageInput) { s.chain.Registry = invoice.Address{} }, false},
		"another chain id":   {func(s *pageInput) { s.chain.ID++ }, false},
		"another commitment": {func(s *pageInput) { s.invoice.CommitmentID[0]++ }, false},
	} {
		s := pageInput{invoice: openInvoice(), chain: localChain(), now: invoice.Unix(defaultNow)}
		s.token, _ = s.chain.Token(s.invoice.Currency)
		test.change(&s)
		if p := s.payInFull(); (p.Call != nil) != test.offers {
			t.Errorf("%s: the page offers %+v", name, p.Call)
		}
	}
}

// TestPrograms expects that programs that pay by x402 are answered by its handler, and that people get
// the page, with a link for programs.
func TestPrograms(t *testing.T) {
	t.Parallel()
	w := newWorld()
	takes := true
	mux := handlerOf(New(Config{
		Reader: w, Chains: []chain.Chain{w.chain}, Now: w.defaultNow, Logger: slog.New(slog.DiscardHandler),
		X402: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "for programs: "+r.PathValue("id"))
		}),
		TakesX402: func(string) bool { return takes },
	}))
	ask := func(header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://pay.example/checkout/"+w.invoice.ID, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, r)
		return answer
	}
	const link = `<link rel="payment" type="application/json" href="/x402/invoices/` + testID + `" title="x402">`
	for _, header := range [][]string{nil, {"Accept", "*/*"}, {"Accept", "text/html,application/json"}} {
		answer := ask(header...)
		if !strings.Contains(answer.Body.String(), link) || strings.Join(answer.Header().Values("Vary"), " ") != "Accept PAYMENT-SIGNATURE Accept-Language Accept-Encoding" {
			t.Errorf("%q gets no page with a link: %v", header, answer.Header())
		}
	}
	for _, header := range [][]string{{"Accept", "application/json"}, {"Accept", "text/html", "PAYMENT-SIGNATURE", "e30="}} {
		expect.Equal(t, ask(header...).Body.String(), "for programs: "+testID, "%q gets", header)
	}
	if takes = false; strings.Contains(ask().Body.String(), link) {
		t.Error("the page has the link though the chain takes no payments by x402")
	}
}
