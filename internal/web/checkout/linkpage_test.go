package checkout

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
	"github.com/quittance/quittance/internal/test/webtest"
	"github.com/quittance/quittance/internal/web/webpage"
)

// fakeLinks is a fake with one link.
type fakeLinks struct {
	link    invoice.PaymentLink
	err     error // of Pay
	status  invoice.Status
	paid    []string // amounts and visits, of each call of Pay
	visits  map[string]string
	profile invoice.Merchant
	now     int64
	public  string
}

func newFakeLinks() *fakeLinks {
	return &fakeLinks{
		link: invoice.PaymentLink{ID: "lnk_1", MerchantID: "corner-cafe", Slug: "espresso", PaymentLinkTerms: invoice.PaymentLinkTerms{
			Title: "An <b>espresso</b>", Description: "At the bar", Amount: invoice.NewAmount(4_900_000), Currency: chain.USDC, ChainKey: chain.Local,
			Lifetime: time.Hour,
		}},
		status: invoice.Open, visits: make(map[string]string), now: defaultNow, public: "https://pay.example",
		profile: invoice.Merchant{ID: "corner-cafe", Name: "Corner Café", SupportContact: "help@cafe.example"},
	}
}

func (f *fakeLinks) Find(_ context.Context, merchantID, slug string) (invoice.PaymentLink, error) {
	if merchantID != f.link.MerchantID || slug != f.link.Slug {
		return invoice.PaymentLink{}, db.ErrNotFound
	}
	return f.link, nil
}

func (f *fakeLinks) OfInvoice(_ context.Context, inv invoice.Invoice) (invoice.PaymentLink, error) {
	if inv.Details.Metadata[invoice.MetadataPaymentLink] != f.link.ID {
		return invoice.PaymentLink{}, db.ErrNotFound
	}
	return f.link, nil
}

func (f *fakeLinks) Pay(_ context.Context, l invoice.PaymentLink, amount invoice.Amount, visit string) (invoice.Invoice, error) {
	f.paid = append(f.paid, amount.String()+" "+visit)
	key := amount.String() + visit
	if f.visits[key] == "" {
		f.visits[key] = fmt.Sprintf("inv_%d", len(f.visits)+1)
	}
	return invoice.Invoice{ID: f.visits[key], Status: f.status, MerchantID: l.MerchantID}, f.err
}

// Merchant, for the page.
func (f *fakeLinks) merchants() Merchants { return fakeProfiles{f.profile} }

// fakeProfiles has one merchant.
type fakeProfiles struct{ m invoice.Merchant }

func (f fakeProfiles) Find(context.Context, string) (invoice.Merchant, bool, error) {
	return f.m, true, nil
}

func (f fakeProfiles) LogoPNG(context.Context, string) ([]byte, error) {
	if f.m.Logo == nil {
		return nil, db.ErrNotFound
	}
	return []byte("png"), nil
}

func (f *fakeLinks) handler(log *bytes.Buffer) http.Handler {
	return handlerOf(New(Config{
		Reader: newWorld(), Merchants: f.merchants(), Chains: []chain.Chain{localChain()}, Links: f, PublicURL: f.public, Rand: rand.Reader,
		Now: func() time.Time { return time.Unix(f.now, 0) }, Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}))
}

// askLink sends a request for the link's page; with a form it is a POST.
func askLink(h http.Handler, path string, form url.Values, header ...string) *httptest.ResponseRecorder {
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	ctx := context.Background()
	if len(header) > 1 && header[0] == "client" {
		ctx, header = limits.NewContext(ctx, netip.MustParseAddr(header[1])), header[2:]
	}
	r := httptest.NewRequestWithContext(ctx, method, "http://pay.example/pay/"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	return answer
}

const cafeLink = "corner-cafe/espresso"

// visitOf returns the visit in a page's form.
func visitOf(t *testing.T, page *element) string {
	t.Helper()
	for _, input := range page.Named("input") {
		if input.Attrs["name"] == "visit" {
			return input.Attrs["value"]
		}
	}
	t.Fatal("the page has no visit")
	return ""
}

func TestLinkPage(t *testing.T) {
	t.Parallel()
	f := newFakeLinks()
	h := f.handler(new(bytes.Buffer))
	first := askLink(h, cafeLink, nil)
	page := webtest.Parse(t, first.Body.String())
	if words := page.Words(); first.Code != http.StatusOK || !strings.Contains(words, "An <b>espresso</b>") || !strings.Contains(words, "4.90 USDC") ||
		!strings.Contains(words, "Corner Café") || !strings.Contains(words, "At the bar") || strings.Contains(first.Body.String(), "<b>espresso") {
		t.Errorf("%d, the page reads %s", first.Code, words)
	}
	header := first.Header()
	if header.Get("Content-Security-Policy") != pagePolicy(linkView{}) || header.Get("X-Frame-Options") != "DENY" || header.Get("Cache-Control") != "no-store" ||
		header.Get("Set-Cookie") != "" || header.Get("X-Robots-Tag") != "noindex" {
		t.Errorf("its headers are %v", header)
	}
	expect.Len(t, f.paid, 0, "GET has made")
	again := webtest.Parse(t, askLink(h, cafeLink, nil).Body.String())
	if visitOf(t, page) == visitOf(t, again) {
		t.Error("two openings are one visit")
	}
	for _, unknown := range []string{"corner-cafe/tea", "nobody/espresso", "%00/%ff"} {
		if got := askLink(h, unknown, nil); got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), "This page does not exist") {
			t.Errorf("%s answers %d %s", unknown, got.Code, got.Body)
		}
	}
}

// TestLinkMakesOneInvoice presses the button twice in one opening of the page, and in another.
func TestLinkMakesOneInvoice(t *testing.T) {
	t.Parallel()
	f := newFakeLinks()
	h := f.handler(new(bytes.Buffer))
	form := url.Values{"visit": {visitOf(t, webtest.Parse(t, askLink(h, cafeLink, nil).Body.String()))}}
	for range 2 {
		if got := askLink(h, cafeLink, form); got.Code != http.StatusSeeOther || got.Header().Get("Location") != "/checkout/inv_1" {
			t.Fatalf("%d %s", got.Code, got.Header().Get("Location"))
		}
	}
	form.Set("visit", "another")
	form.Set("amount", "1") // the link's amount is fixed
	if got := askLink(h, cafeLink, form); got.Header().Get("Location") != "/checkout/inv_2" || f.paid[2] != "4900000 another" {
		t.Errorf("%d %s: %v", got.Code, got.Header().Get("Location"), f.paid)
	}
	f.status = invoice.Expired // the payer comes back later
	if got := askLink(h, cafeLink, form); got.Code != http.StatusSeeOther || got.Header().Get("Location") != "/pay/"+cafeLink {
		t.Errorf("an expired invoice: %d %s", got.Code, got.Header().Get("Location"))
	}
}

func TestLinkRefuses(t *testing.T) {
	t.Parallel()
	f := newFakeLinks()
	h := f.handler(new(bytes.Buffer))
	form := url.Values{"visit": {"v"}}
	for _, foreign := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "http://evil.example"}} {
		expect.Equal(t, askLink(h, cafeLink, form, foreign...).Code, http.StatusForbidden, "%v: status", foreign)
	}
	for name, bad := range map[string]url.Values{
		"no visit": {}, "a bad visit": {"visit": {"\x00"}}, "a long visit": {"visit": {strings.Repeat("a", MaxID+1)}}, "too long": {"visit": {strings.Repeat("a", MaxClaimForm)}},
	} {
		expect.Equal(t, askLink(h, cafeLink, bad).Code, http.StatusBadRequest, "%s: status", name)
	}
	expect.Len(t, f.paid, 0, "they have made")
	for _, c := range []struct {
		err    error
		status int
		says   string
	}{
		{ledger.ErrArchived, http.StatusGone, "no longer in use"},
		{ledger.ErrIdempotencyInProgress, http.StatusConflict, "is being prepared. Try again"},
		{&ledger.UnusableError{ID: "lnk_1", Reason: &invoice.FieldError{Field: "merchantAddress", Detail: "is secret"}}, http.StatusConflict, "cannot be used now"},
		{errors.New("secret"), http.StatusInternalServerError, "cannot be shown"},
	} {
		f.err = c.err
		if got := askLink(h, cafeLink, form); got.Code != c.status || !strings.Contains(got.Body.String(), c.says) || strings.Contains(got.Body.String(), "secret") {
			t.Errorf("%v: %d %s", c.err, got.Code, got.Body)
		}
	}
	f.link.Archived = true
	if got := askLink(h, cafeLink, nil); got.Code != http.StatusGone || !strings.Contains(got.Body.String(), "no longer in use") {
		t.Errorf("an archived link: %d %s", got.Code, got.Body)
	}
}

// TestFreeAmount types amounts.
func TestFreeAmount(t *testing.T) {
	t.Parallel()
	f := newFakeLinks()
	f.link.Amount, f.link.Minimum, f.link.Maximum = invoice.Amount{}, invoice.NewAmount(1_000_000), invoice.NewAmount(50_000_000)
	h := f.handler(new(bytes.Buffer))
	page := webtest.Parse(t, askLink(h, cafeLink+"?amount=12,5", nil).Body.String())
	if input := page.ID(t, "amount"); input.Attrs["value"] != "12,5" || !strings.Contains(page.Words(), "1.00 USDC to 50.00 USDC") {
		t.Errorf("the page has %v and reads %s", input.Attrs, page.Words())
	}
	for typed, want := range map[string]string{"12,5": "12500000 v", "1": "1000000 v", " 50.00 ": "50000000 v"} {
		f.paid = nil
		if got := askLink(h, cafeLink, url.Values{"visit": {"v"}, "amount": {typed}}); got.Code != http.StatusSeeOther || len(f.paid) != 1 || f.paid[0] != want {
			t.Errorf("%q: %d, made %v", typed, got.Code, f.paid)
		}
	}
	f.paid = nil
	for typed, says := range map[string]string{
		"": "Enter an amount in digits", "<b>": "&lt;b&gt;", "0": "more than 0", "0.99": "1.00 USDC or more", "50.01": "50.00 USDC at most",
		"1,234": "without thousands separators", "1.0000001": "at most 6 decimals", strings.Repeat("9", 79): "too large",
	} {
		got := askLink(h, cafeLink, url.Values{"visit": {"v"}, "amount": {typed}})
		next, found := strings.CutPrefix(got.Header().Get("Location"), "/pay/")
		if got.Code != http.StatusSeeOther || !found {
			t.Errorf("%q: %d %s", typed, got.Code, got.Header().Get("Location"))
		}
		if got = askLink(h, next, nil); got.Code != http.StatusOK || !strings.Contains(strings.ReplaceAll(got.Body.String(), "\u00a0", " "), says) {
			t.Errorf("%q: %d %s", typed, got.Code, got.Body)
		}
	}
	expect.Len(t, f.paid, 0, "they have made")
}

// TestLinkLimits reaches the limits of a client and of a link.
func TestLinkLimits(t *testing.T) {
	t.Parallel()
	press := func(h http.Handler, client string) *httptest.ResponseRecorder {
		return askLink(h, cafeLink, url.Values{"visit": {"v"}}, "client", client)
	}
	f := newFakeLinks()
	h := f.handler(new(bytes.Buffer))
	for range InvoicesOfClient {
		if got := press(h, "192.0.2.1").Code; got != http.StatusSeeOther {
			t.Fatalf("status %d", got)
		}
	}
	if got := press(h, "192.0.2.1"); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" || !strings.Contains(got.Body.String(), "Try again in a minute") {
		t.Errorf("beyond the client's limit: %d %v", got.Code, got.Header())
	}
	for i := InvoicesOfClient; i < InvoicesOfLink; i++ { // the rest of the quota is divided
		if got := press(h, fmt.Sprintf("192.0.2.%d", 2+i)).Code; got != http.StatusSeeOther {
			t.Fatalf("status %d", got)
		}
	}
	expect.Equal(t, press(h, "192.0.2.99").Code, http.StatusTooManyRequests, "beyond the link's limit:")
	f.now += 60
	expect.Equal(t, press(h, "192.0.2.1").Code, http.StatusSeeOther, "a minute later:")
}

// TestLinkLimitPerHour sends as many requests of one client as are allowed in a minute. They cannot take all transfer
// amounts of a price, because an invoice holds its amount for an hour after its expiry.
func TestLinkLimitPerHour(t *testing.T) {
	t.Parallel()
	f := newFakeLinks()
	h := f.handler(new(bytes.Buffer))
	press := func(client string) int {
		return askLink(h, cafeLink, url.Values{"visit": {"v"}}, "client", client).Code
	}
	for range InvoicesOfClientPerHour / InvoicesOfClient {
		for range InvoicesOfClient {
			if got := press("192.0.2.1"); got != http.StatusSeeOther {
				t.Fatalf("status %d", got)
			}
		}
		f.now += 60
	}
	made := len(f.paid)
	for range 2 * time.Hour / time.Minute {
		for range InvoicesOfClient {
			press("192.0.2.1")
		}
		f.now += 60
	}
	if n := len(f.paid) - made; n < 2*InvoicesOfClientPerHour || made+n > invoice.MaxSuffix/2 {
		t.Errorf("in two hours one client makes %d and %d invoices", made, n)
	}
	expect.Equal(t, press("192.0.2.2"), http.StatusSeeOther, "another client: status")
	for range InvoicesOfClient {
		if press("192.0.2.1") != http.StatusSeeOther {
			break // what came back is used up
		}
	}
	f.link.Lifetime = 24 * time.Hour
	made = len(f.paid)
	for range 25 * time.Hour / time.Minute {
		press("192.0.2.1")
		f.now += 60
	}
	if n := len(f.paid) - made; n < InvoicesOfClientPerHour || n > 3*InvoicesOfClientPerHour {
		t.Errorf("one client holds the amounts of %d invoices that can be paid for a day", n)
	}
	f.link.Lifetime, f.link.MerchantID = time.Hour, "tea-house"
	elsewhere := askLink(h, "tea-house/espresso", url.Values{"visit": {"v"}}, "client", "192.0.2.1").Code
	expect.Equal(t, elsewhere, http.StatusSeeOther, "the client at another merchant: status")
	f.link.MerchantID = "corner-cafe"
	f.now += 60
	for n := range InvoicesOfLink {
		press(fmt.Sprintf("198.51.100.%d", n))
	}
	for range 2 * InvoicesOfClientPerHour {
		if got := press("192.0.2.3"); got != http.StatusTooManyRequests {
			t.Fatalf("a client when others have used up the link's minute: status %d", got)
		}
	}
	f.now += 60
	for range InvoicesOfClient {
		expect.Equal(t, press("192.0.2.3"), http.StatusSeeOther, "the client in the next minute: status")
	}
	made = len(f.paid)
	for i := range 2 * InvoicesOfClientPerHour { // a home connection has many networks
		press(fmt.Sprintf("2001:db8:1:%x::1", i))
		f.now++
	}
	const returned = 10 // uses that the limit has back by then
	if n := len(f.paid) - made; n < InvoicesOfClientPerHour/2 || n > InvoicesOfClientPerHour+returned {
		t.Errorf("an IPv6 site makes %d invoices at once", n)
	}
}

func TestLinkCode(t *testing.T) {
	t.Parallel()
	f := newFakeLinks()
	h := f.handler(new(bytes.Buffer))
	want, err := webpage.NewQRCode("https://pay.example/pay/corner-cafe/espresso")
	expect.OK(t, err)
	got := askLink(h, cafeLink+"/qr", nil)
	if got.Code != http.StatusOK || got.Header().Get("Content-Type") != "image/svg+xml" || !strings.Contains(got.Body.String(), want.Path) {
		t.Errorf("%d %v %s", got.Code, got.Header(), got.Body)
	}
	expect.Equal(t, askLink(h, "corner-cafe/tea/qr", nil).Code, http.StatusNotFound, "of an unknown link:")
	f.public = ""
	if want, err = webpage.NewQRCode("http://pay.example/pay/corner-cafe/espresso"); err != nil {
		t.Fatal(err)
	}
	if got := askLink(f.handler(new(bytes.Buffer)), cafeLink+"/qr", nil); !strings.Contains(got.Body.String(), want.Path) {
		t.Error("without a public URL it is not that of the request")
	}
	expect.Equal(t, askLink(h, cafeLink+"/logo", nil).Code, http.StatusNotFound, "the logo of a merchant without one:")
	f.profile.Logo = &invoice.Logo{SHA256: "aa", Width: 30, Height: 20}
	h = f.handler(new(bytes.Buffer))
	if got := askLink(h, cafeLink+"/logo", nil); got.Code != http.StatusOK || got.Body.String() != "png" {
		t.Errorf("the logo: %d %s", got.Code, got.Body)
	}
	secure := httptest.NewRequestWithContext(limits.WithSecure(t.Context()), http.MethodGet, "http://pay.example/pay/"+cafeLink+"/qr", nil)
	answer := httptest.NewRecorder()
	f.handler(new(bytes.Buffer)).ServeHTTP(answer, secure)
	if want, err := webpage.NewQRCode("https://pay.example/pay/" + cafeLink); err != nil || !strings.Contains(answer.Body.String(), want.Path) {
		t.Errorf("behind a proxy with HTTPS the code is not that of https://pay.example: %v", err)
	}
}

// TestFrames expects that only the merchant's origins may frame its pages, and only on request.
func TestFrames(t *testing.T) {
	t.Parallel()
	f := newFakeLinks()
	const origins = "http://localhost:3000 https://shop.example"
	for _, c := range []struct {
		origins []string
		query   string
		want    string // in frame-ancestors
	}{
		{nil, "?embed=1", "'none'"},
		{strings.Fields(origins), "", "'none'"},
		{strings.Fields(origins), "?embed=0", "'none'"},
		{strings.Fields(origins), "?embed=1", origins},
	} {
		f.profile.EmbedOrigins = c.origins
		h := f.handler(new(bytes.Buffer))
		for _, path := range []string{"/pay/" + cafeLink, "/checkout/" + testID} {
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://pay.example"+path+c.query, nil))
			framed := c.want != "'none'"
			want := strings.TrimSuffix(pagePolicy(nil), "'none'") + c.want
			if got := answer.Header().Get("Content-Security-Policy"); answer.Code != http.StatusOK || got != want {
				t.Errorf("%s%s of %v: %d %q, want %q", path, c.query, c.origins, answer.Code, got, want)
			}
			if got := answer.Header().Get("X-Frame-Options"); (got == "") != framed {
				t.Errorf("%s%s of %v: X-Frame-Options %q", path, c.query, c.origins, got)
			}
			if page := answer.Body.String(); strings.Contains(page, string(styleSheets["frame.css"].Element)) != framed || strings.Contains(page, `data-embed="`+origins+`"`) != framed {
				t.Errorf("%s%s of %v has a frame's parts: %t", path, c.query, c.origins, !framed)
			}
		}
	}
	h := f.handler(new(bytes.Buffer))
	if got := askLink(h, cafeLink+"?embed=1", url.Values{"visit": {"v"}}).Header().Get("Location"); got != "/checkout/inv_1?embed=1" {
		t.Errorf("it goes on at %s", got)
	}
	if page := webtest.Parse(t, askLink(h, cafeLink+"?embed=1", nil).Body.String()); page.Posts()[0].Attrs["action"] != "/pay/"+cafeLink+"?embed=1" {
		t.Errorf("its form leads to %s", page.Posts()[0].Attrs["action"])
	}
}

func TestEmbedScript(t *testing.T) {
	t.Parallel()
	h := newFakeLinks().handler(new(bytes.Buffer))
	for path, cached := range map[string]string{"/embed.js": "public, max-age=3600", assets["embed.js"].Path: "public, max-age=31536000, immutable"} {
		got := httptest.NewRecorder()
		h.ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://pay.example"+path, nil))
		header := got.Header()
		if got.Code != http.StatusOK || header.Get("Cache-Control") != cached || header.Get("Access-Control-Allow-Origin") != "*" ||
			header.Get("Cross-Origin-Resource-Policy") != "cross-origin" || header.Get("Content-Type") != "text/javascript; charset=utf-8" {
			t.Errorf("%s: %d %v", path, got.Code, header)
		}
		for _, unwanted := range []string{"eval(", "new Function", "innerHTML", `"*"`, "import"} {
			if strings.Contains(got.Body.String(), unwanted) {
				t.Errorf("%s has %s", path, unwanted)
			}
		}
	}
}

// TestDocumentedStates expects docs/embedding.md to have every state of the page.
func TestDocumentedStates(t *testing.T) {
	docs := expect.Must(os.ReadFile(testdeps.Repo("docs/embedding.md")))
	for _, story := range outcomes {
		if !strings.Contains(string(docs), "`"+string(story.state)+"`") {
			t.Errorf("docs/embedding.md lacks the state %s", story.state)
		}
	}
}

// TestDocumentedEmbedScript expects docs/embedding.md to contain the path and the hash of the script.
func TestDocumentedEmbedScript(t *testing.T) {
	docs := expect.Must(os.ReadFile(testdeps.Repo("docs/embedding.md")))
	sum := sha512.Sum384(embedScript)
	script := assets["embed.js"].Path + `" integrity="sha384-` + base64.StdEncoding.EncodeToString(sum[:]) + `"`
	if !strings.Contains(string(docs), script) {
		t.Errorf("docs/embedding.md lacks %s", script)
	}
}

// TestLinkAgain expects the page of an expired invoice to lead back to its payment link,
// unless that is archived or money has arrived.
func TestLinkAgain(t *testing.T) {
	for _, test := range []struct {
		name string
		set  func(*world, *fakeLinks)
		want string
	}{
		{"expired", func(*world, *fakeLinks) {}, "/pay/corner-cafe/espresso"},
		{"a free amount", func(_ *world, f *fakeLinks) { f.link.Amount = invoice.Amount{} }, "/pay/corner-cafe/espresso?amount=4.90"},
		{"three decimals", func(w *world, f *fakeLinks) {
			f.link.Amount, w.invoice.Amount = invoice.Amount{}, invoice.NewAmount(12_345_000)
		}, "/pay/corner-cafe/espresso?amount=12.3450"},
		{"open", func(w *world, _ *fakeLinks) { w.invoice.Status = invoice.Open }, ""},
		{"void", func(w *world, _ *fakeLinks) { w.invoice.Status = invoice.Void }, ""},
		{"of no link", func(w *world, _ *fakeLinks) { w.invoice.Details.Metadata = nil }, ""},
		{"of a link that is archived", func(_ *world, f *fakeLinks) { f.link.Archived = true }, ""},
		{"paid too late", func(w *world, _ *fakeLinks) {
			w.payments = []invoice.Payment{payment(4_900_123, 11, expires+9, invoice.Confirmed)}
			w.settled()
		}, ""},
	} {
		w, f := newWorld(), newFakeLinks()
		w.invoice.Status, w.invoice.Details.Metadata = invoice.Expired, map[string]string{invoice.MetadataPaymentLink: f.link.ID}
		test.set(w, f)
		conf := w.config()
		conf.Links, conf.Rand, conf.Now = f, new(bytes.Reader), func() time.Time { return time.Unix(w.now, 0) }
		answer := httptest.NewRecorder()
		handlerOf(New(conf)).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://pay.example/checkout/"+testID, nil))
		links := webtest.Parse(t, answer.Body.String()).ID(t, "again").Named("a")
		got := ""
		if len(links) > 0 {
			got = links[0].Attrs["href"]
		}
		expect.Equal(t, got, test.want, "%s: it leads to", test.name)
	}
}
