package dashboard_test

import (
	"encoding/csv"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// desk is a person at a browser.
type desk struct {
	*person
	*browsertest.Page
}

// at opens a browser for a person who is signed in.
func (p *person) at(t *testing.T) desk {
	t.Helper()
	d := desk{p, browsertest.Open(t, browsertest.Options{})}
	d.SetCookies(p.url, p.Jar)
	return d
}

// open opens a page of the dashboard.
func (d desk) open(path string) { d.Go(d.url + path) }

// fill types a text into the field that a selector finds.
func (d desk) fill(selector, text string) {
	d.Eval(fmt.Sprintf("void (document.querySelector(%q).value = %q)", selector, text), nil)
}

// isQuiet fails the test if the pages reported an error.
func (d desk) isQuiet(t *testing.T) {
	t.Helper()
	if got := d.Errors(); len(got) > 0 {
		t.Errorf("the pages report %q", got)
	}
}

// TestExtraFindLostPayment signs in, finds a payment without an invoice by its transaction, and attributes it.
func TestExtraFindLostPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.invoice("acme", nil)
	lost := w.payment("4700000")
	finance := w.person("acme", access.Finance)
	d := desk{finance, browsertest.Open(t, browsertest.Options{})}
	d.open("/dashboard/payments?show=unattributed")
	d.AwaitText("h1", "Sign in")
	d.fill("[name=key]", finance.key)
	d.Follow("Sign in")
	d.AwaitText("h1", "Payments")
	d.Eval(`document.querySelector("[type=search]").focus()`, nil)
	d.Keys(lost.TxHash + kb.Enter)
	d.Await(`location.pathname !== "/dashboard/payments" && document.readyState === "complete"`)
	if d.Text("h1") == "Search" {
		d.Eval(`void document.querySelector("main a[href^='/dashboard/payments/']").click()`, nil)
	}
	d.AwaitPath("/dashboard/payments/" + lost.ID)
	d.AwaitText("main", "0.20 USDC too little.")
	d.Follow("Attribute…")
	d.AwaitText("h1", "Attribute this payment?")
	d.fill("[name=reason]", "She called")
	d.Follow("Attribute")
	d.AwaitText("main", "Takes effect in")
	d.Follow("Undo")
	d.AwaitText("main", "0.20 USDC too little.")
	d.Follow("Attribute…")
	d.fill("[name=reason]", "She called")
	d.Follow("Attribute")
	d.AwaitText("main", "Takes effect in")
	w.forward(invoice.AttributionDelay)
	d.AwaitText("main", "by hand · maria")
	if got := w.read(made.ID); got.AmountPaid != "4700000" {
		t.Errorf("the invoice has %s paid", got.AmountPaid)
	}
	d.isQuiet(t)
}

// TestExtraSlowNetwork opens the first page at 400 ms and 50 kB/s, without anything in the cache. Before its first paint
// it loads the style sheet only. The time is logged but not checked, because it depends on the machine's load.
func TestExtraSlowNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.invoice("acme", nil)
	finance := w.person("acme", access.Finance)
	finance.at(t).open("/dashboard")
	for name, device := range map[string]browsertest.Options{"desktop": {}, "phone": {Phone: true}} {
		device.Latency, device.BytesPerSecond = 400*time.Millisecond, 50_000
		d := desk{finance, browsertest.Open(t, device)}
		d.SetCookies(finance.url, finance.Jar)
		d.open("/dashboard")
		d.AwaitText("h1", "Home")
		t.Logf("%s: largest contentful paint after %s, %d bytes", name, d.LargestPaint(), d.Transferred())
		var delays []string
		d.Eval(`performance.getEntriesByType("resource").filter((r) => r.renderBlockingStatus === "blocking").map((r) => new URL(r.name).pathname)`, &delays)
		if len(delays) != 1 || !strings.HasSuffix(delays[0], ".css") {
			t.Errorf("%s: the first paint waits for %q", name, delays)
		}
	}
}

// TestExtraFilters expects the filters of a list folded on a phone, and open in a wide window.
// A row's values follow their labels on a phone.
func TestExtraFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.invoice("acme", nil)
	finance := w.person("acme", access.Finance)
	for name, c := range map[string]struct {
		device browsertest.Options
		path   string
		want   bool
	}{
		"desktop": {path: "/dashboard/invoices", want: true}, "phone": {browsertest.Options{Phone: true}, "/dashboard/invoices", false},
		"phone, filtered": {browsertest.Options{Phone: true}, "/dashboard/invoices?status=open", true},
		"events":          {browsertest.Options{Phone: true}, "/dashboard/events", false}, "requests": {browsertest.Options{Phone: true}, "/dashboard/requests", false},
		"events, filtered": {browsertest.Options{Phone: true}, "/dashboard/events?delivery=none", true},
	} {
		finance.at(t).open(c.path)
		d := desk{finance, browsertest.Open(t, c.device)}
		d.SetCookies(finance.url, finance.Jar)
		d.open(c.path)
		var shown bool
		d.Eval(`document.querySelector("form.filters").checkVisibility({ contentVisibilityAuto: true })`, &shown)
		if shown != c.want {
			t.Errorf("%s: filters are shown: %t", name, shown)
		}
		var apart int
		d.Eval(`[...document.querySelectorAll("tr > [data-label]")].filter((e) => innerWidth < 640 && getComputedStyle(e).textAlign !== "start").length`, &apart)
		if apart != 0 {
			t.Errorf("%s: %d values are not next to their labels", name, apart)
		}
	}
}

// TestExtraConflictInBrowser dismisses a payment as two people. The second one sees who did it first, and why.
func TestExtraConflictInBrowser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.invoice("acme", nil)
	w.payment("4700000")
	first, second := w.named("acme", "Maria", access.Finance).at(t), w.named("acme", "Nadia", access.Admin).at(t)
	for _, d := range []desk{first, second} {
		d.open("/dashboard/inbox")
		d.AwaitText("main", "4.70 USDC")
	}
	for _, d := range []desk{first, second} {
		d.fill("[name=reason]", "A transfer of our own")
		d.Follow("Dismiss")
	}
	first.AwaitText("main", "A transfer of our own")
	second.AwaitText("[role=alert]", "Maria has dismissed this at")
	first.isQuiet(t)
	second.isQuiet(t)
}

// TestExtraRevokedSession ends the session of a browser from another one.
func TestExtraRevokedSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nadia, owner := w.named("acme", "Nadia", access.Support).at(t), w.named("acme", "Maria", access.Admin).at(t)
	nadia.open("/dashboard/payments")
	owner.open("/dashboard/keys/" + nadia.id)
	owner.Eval(`document.querySelectorAll("details").forEach((d) => { d.open = true; })`, nil)
	owner.Eval(fmt.Sprintf("document.querySelector(\"form[action^='/dashboard/keys/%s/revoke'] button\").click()", nadia.id), nil)
	owner.AwaitText("main", "Revoked")
	nadia.Follow("Events")
	nadia.AwaitText("h1", "Sign in")
	nadia.Await(`location.search === "?next=%2Fdashboard%2Fevents%3FmerchantId%3Dacme"`)
	owner.isQuiet(t)
}

// TestExtraSupportSeesNoKeys tries to read keys and secrets as a support person.
func TestExtraSupportSeesNoKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	support := w.person("acme", access.Support).at(t)
	support.open("/dashboard")
	var links []string
	if support.Eval(`[...document.links].map((a) => a.pathname)`, &links); slices.Contains(links, "/dashboard/keys") {
		t.Error("there is a link to the keys")
	}
	for _, path := range []string{"/dashboard/keys", "/dashboard/keys/" + w.operator.id, "/dashboard/keys/new?for=person"} {
		support.open(path)
		support.AwaitText("h1", "Your key does not allow this")
	}
	support.open("/dashboard/webhook")
	if text := support.Text("main"); strings.Contains(text, "whsec_") || strings.Contains(text, "Create a secret") {
		t.Errorf("the webhook's page reads %s", text)
	}
	support.isQuiet(t)
}

// TestExtraDoubleClick clicks twice on what shows a secret once: the answer to the first click stays.
func TestExtraDoubleClick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.person("acme", access.Admin).at(t)
	owner.open("/dashboard/keys/" + w.person("acme", access.Read).id)
	owner.Eval(`void (() => { const b = document.querySelector("form[action*='/rotate'] button"); b.click(); b.click(); })()`, nil)
	owner.AwaitText("main", "The key is shown only now.")
	owner.isQuiet(t)
}

// TestExtraRedeliver sends an event again. The receiver accepts it the second time.
func TestExtraRedeliver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.invoice("acme", nil)
	support := w.person("acme", access.Support).at(t)
	w.await("delivered event", func() bool {
		return strings.Contains(support.get("/dashboard/events?delivery=delivered&invoiceId="+made.ID).Words(), "invoice.created")
	})
	support.open("/dashboard/events?invoiceId=" + made.ID)
	support.Eval(`void document.querySelector("main a[href^='/dashboard/events/evt_']").click()`, nil)
	support.AwaitText("main", "Delivery attempt 1")
	support.Follow("Send it again")
	w.await("second attempt", func() bool {
		support.Reload()
		return strings.Contains(support.Text("main"), "Delivery attempt 2")
	})
	support.isQuiet(t)
}

// TestExtraExportAddsUp adds up the payments of the export, less the refunds. The sum must be the one that
// the first page shows as settled this month, exactly in its title.
func TestExtraExportAddsUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, amount := range []string{"4900000", "12340000", "99000001"} {
		w.paid(member{"amount": amount})
	}
	d := w.person("acme", access.Read).at(t)
	d.open("/dashboard")
	d.AwaitText("main", "This month")
	var shown, text string
	d.Eval(`[...document.querySelectorAll(".card")].find((c) => c.innerText.startsWith("This month")).querySelector(".figure data").title`, &shown)
	d.Eval(`fetch("/dashboard/payments.csv?show=counted").then((r) => r.text())`, &text)
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff"))).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatalf("the export has %d rows: %v", len(rows), err)
	}
	column := slices.Index(rows[0], "amount")
	if column < 0 {
		t.Fatalf("the export has the columns %q", rows[0])
	}
	sum := new(big.Rat)
	for _, row := range rows[1:] {
		amount, ok := new(big.Rat).SetString(row[column])
		if !ok {
			t.Fatalf("an amount is %q", row[column])
		}
		sum.Add(sum, amount)
	}
	month, ok := new(big.Rat).SetString(shown)
	if !ok || month.Mul(month, big.NewRat(1_000_000, 1)).Cmp(sum) != 0 {
		t.Errorf("the first page says %q, the export adds up to %s minor units", shown, sum.FloatString(0))
	}
	d.isQuiet(t)
}

// TestExtraRotateInBrowser replaces the endpoint's secret in the page's two steps while events arrive. The
// receiver uses the secrets that the page has shown, and verifies each event.
func TestExtraRotateInBrowser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var lock sync.Mutex
	var secrets []string
	verified, refused := 0, 0
	endpoint := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		expect.NoError(t, err)
		lock.Lock()
		defer lock.Unlock()
		if slices.ContainsFunc(secrets, func(s string) bool { return signedWith(t, s, r.Header, body) }) {
			verified++
			return
		}
		refused++
		rw.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(endpoint.Close)
	owner := w.person("acme", access.Admin).at(t)
	owner.post("/dashboard/webhook", url.Values{"url": {endpoint.URL}}).want(t, http.StatusOK)
	rotate := func() {
		owner.open("/dashboard/webhook")
		owner.Follow("Create a secret")
		secret := owner.Text(".secret")
		lock.Lock()
		secrets = append(secrets, secret)
		refused = 0 // before the receiver had a secret
		lock.Unlock()
		w.invoice("acme", nil)
		owner.Follow("Use the new secret")
		owner.AwaitText("main", "Retiring")
	}
	arrived := func(n int) {
		t.Helper()
		for range n {
			w.invoice("acme", nil)
		}
		w.await("events", func() bool { lock.Lock(); defer lock.Unlock(); return verified >= n })
	}
	rotate()
	arrived(5)
	lock.Lock()
	verified, refused = 0, 0
	lock.Unlock()
	rotate()
	arrived(10)
	lock.Lock()
	defer lock.Unlock()
	if refused > 0 {
		t.Errorf("%d events had no good signature", refused)
	}
	owner.isQuiet(t)
}
