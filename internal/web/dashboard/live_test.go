package dashboard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/dashboard"
)

// stream opens a stream of a page, and returns a channel with the data of its messages, which
// is closed when the stream ends.
func (p *person) stream(query string) <-chan string {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	r := expect.Must(http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/dashboard/live"+query, nil))
	client := http.Client{Transport: &http.Transport{}, Jar: p.Jar}
	resp, err := client.Do(r) //nolint:bodyclose // the clean-up closes it
	expect.OK(p.t, err)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" {
		p.t.Fatalf("the stream is answered %d %v", resp.StatusCode, resp.Header)
	}
	messages, ended := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(ended)
		defer close(messages)
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				messages <- data
			}
		}
	}()
	p.t.Cleanup(func() {
		cancel()
		<-ended
		expect.NoError(p.t, resp.Body.Close())
		client.CloseIdleConnections()
	})
	return messages
}

// awaitVersion waits for a version other than those before.
func (w *world) awaitVersion(messages <-chan string, known ...string) string {
	w.t.Helper()
	got := ""
	w.await("message", func() bool {
		select {
		case data, ok := <-messages:
			if !ok {
				w.t.Fatal("the stream ended")
			}
			got = data
		default:
		}
		return got != "" && !slices.Contains(known, got)
	})
	return got
}

// TestLive sends open pages a message for each change.
func TestLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	messages := w.person("acme", access.Read).stream("")
	version := w.awaitVersion(messages)
	for range 3 { // the first number may be about an earlier change
		w.invoice("acme", member{})
		version = w.awaitVersion(messages, version)
	}
}

// TestLiveEnds ends streams with their session and their key, and limits the streams of a person.
func TestLiveEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria, other := w.person("acme", access.Read), w.person("acme", access.Read)
	session, key := maria.stream(""), other.stream("")
	ended := func(messages <-chan string) func() bool {
		return func() bool {
			select {
			case _, ok := <-messages:
				return !ok
			default:
				return false
			}
		}
	}
	maria.post("/dashboard/sign-out", url.Values{})
	w.await("end of the stream of a session that was ended", ended(session))
	w.operator.api("DELETE", "/api/keys/"+other.id, nil, nil)
	w.await("end of the stream of a key that was revoked", ended(key))
	if got := other.get("/dashboard/live"); !strings.HasPrefix(got.path, "/dashboard/sign-in") {
		t.Errorf("a revoked key's stream leads to %s", got.path)
	}
	maker, holder := w.person("acme", access.Admin), w.person("acme", access.Read)
	var link struct{ Path string }
	maker.api("POST", "/api/sign-in-links", map[string]string{"keyId": holder.id}, &link)
	_, token, _ := strings.Cut(link.Path, "link=")
	guest := w.guest()
	guest.post("/dashboard/sign-in", url.Values{"link": {token}}).want(t, http.StatusOK)
	entered := guest.stream("")
	w.operator.api("DELETE", "/api/keys/"+maker.id, nil, nil)
	w.await("end of the stream of a session whose link a revoked key made", ended(entered))
	many := w.person("acme", access.Read)
	for range dashboard.StreamsOfKey {
		many.stream("")
	}
	many.get("/dashboard/live").want(t, http.StatusTooManyRequests)
	w.person("acme", access.Read).stream("")
}

// TestSuggestions suggests the search's results, as JSON.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.invoice("acme", member{"reference": "<b>order</b> 7"})
	acme := w.person("acme", access.Read)
	for query, want := range map[string]string{
		"<b>order</b> 7": made.ID, made.ID: made.ID, "ref_00000000000000000000000000": "/dashboard/refunds/ref_00000000000000000000000000", "nothing": "[]", "": "[]", "0x12": "[]",
	} {
		got := acme.get("/dashboard/search/suggestions?" + url.Values{"q": {query}}.Encode())
		if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/json" || !strings.Contains(got.body, want) {
			t.Errorf("%q is answered %d %s", query, got.status, got.body)
		}
	}
	if got := w.person("globex", access.Read).get("/dashboard/search/suggestions?q=" + made.ID); got.body != "[]" {
		t.Errorf("another merchant is shown %s", got.body)
	}
}

// TestOpenPageIsNoUse expects a session to end for lack of use although an open page reads itself again.
func TestOpenPageIsNoUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refresh := func(p *person) answer {
		p.t.Helper()
		r := expect.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/dashboard/invoices", nil))
		r.Header.Set("Quittance-Refresh", "1")
		resp, err := p.Do(r)
		expect.OK(t, err)
		expect.OK(t, resp.Body.Close())
		return answer{status: resp.StatusCode, path: resp.Request.URL.Path}
	}
	away, present := w.person("acme", access.Read), w.person("acme", access.Read)
	w.forward(7 * time.Hour)
	if got := refresh(away); got.status != http.StatusOK || got.path != "/dashboard/invoices" {
		t.Errorf("the open page leads to %s, which answers %d", got.path, got.status)
	}
	present.get("/dashboard/invoices").want(t, http.StatusOK)
	w.forward(6 * time.Hour)
	if got := refresh(away); got.path != "/dashboard/sign-in" {
		t.Errorf("the page that was left open leads to %s, which answers %d", got.path, got.status)
	}
	present.get("/dashboard/invoices").want(t, http.StatusOK, "Nothing was found.")
}

// browser opens the person's browser at a page.
func (p *person) browser(path string) *browsertest.Page {
	p.t.Helper()
	page := browsertest.Open(p.t, browsertest.Options{})
	page.SetCookies(p.url, p.Jar)
	page.Go(p.url + path)
	page.Await(`document.documentElement.classList.contains("scripted")`)
	return page
}

// slash presses the key that leads to the search. The browser's protocol would also type it, although
// the page prevents that.
func slash(page *browsertest.Page) {
	page.Eval(`document.dispatchEvent(new KeyboardEvent("keydown", { key: "/" })), 0`, nil)
}

// TestExtraKeyboard searches, lists the keys, moves in a list, opens its rows and the palette, and creates an invoice by keys. While a person
// types, and with a modifier, the keys have no such effect.
func TestExtraKeyboard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.invoice("acme", member{})
	second := w.invoice("acme", member{})
	page := w.person("acme", access.Finance).browser("/dashboard/invoices")
	page.Keys("j")
	page.Await(`document.activeElement.pathname === "/dashboard/invoices/` + second.ID + `"`)
	page.Keys("jj")
	page.Await(`document.activeElement.pathname === "/dashboard/invoices/` + first.ID + `"`)
	page.Keys("k")
	page.Await(`document.activeElement.pathname === "/dashboard/invoices/` + second.ID + `"`)
	page.Keys("?")
	page.Await(`document.querySelector("#keys").open`)
	page.Keys("?")
	page.Await(`!document.querySelector("#keys").open`)
	slash(page)
	page.Await(`document.activeElement.name === "q"`)
	page.Keys("j?/gh")
	page.Await(`document.activeElement.value === "j?/gh" && !document.querySelector("#keys").open && location.pathname === "/dashboard/invoices"`)
	page.Eval(`document.activeElement.blur(), document.dispatchEvent(new KeyboardEvent("keydown", { key: "j", ctrlKey: true })), 0`, nil)
	page.Await(`document.activeElement === document.body`)
	page.Keys("gp")
	page.AwaitPath("/dashboard/payments")
	page.Go(w.url + "/dashboard/invoices")
	page.Keys("j\r")
	page.AwaitPath("/dashboard/invoices/" + second.ID)
	page.Await(`document.documentElement.classList.contains("scripted")`)
	page.Eval(`document.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true })), 0`, nil)
	page.Await(`document.querySelector("#palette").open && document.querySelectorAll("#choices li").length > 5`)
	page.Axe("../checkout/web")
	page.Keys("custom")
	page.Await(`document.querySelectorAll("#choices li").length === 1`)
	page.Keys("\r")
	page.AwaitPath("/dashboard/customers")
	page.Await(`document.documentElement.classList.contains("scripted")`)
	page.Keys("c")
	page.AwaitPath("/dashboard/invoices/new")
	if errs := page.Errors(); len(errs) > 0 {
		t.Errorf("the page has errors: %v", errs)
	}
}

// TestExtraSuggestionsInBrowser suggests invoices while a person types. The arrows choose one. Without a
// choice, the search finds the same.
func TestExtraSuggestionsInBrowser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.invoice("acme", member{"reference": "<b>7</b>"})
	page := w.person("acme", access.Read).browser("/dashboard")
	slash(page)
	page.Keys("<b>7</b>")
	page.AwaitText("#suggestions li", "Open · <b>7</b>")
	page.Await(`document.querySelector("header [role=combobox]").ariaExpanded === "true"`)
	page.Eval(`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true })), 0`, nil)
	page.Await(`document.querySelector("header [role=combobox]").getAttribute("aria-activedescendant") === "suggestions-0" && document.querySelector("#suggestions-0").ariaSelected === "true"`)
	page.Axe("../checkout/web")
	page.Keys("\r")
	page.AwaitPath("/dashboard/invoices/" + made.ID)
	slash(page)
	page.Keys("nothing like that\r")
	page.AwaitPath("/dashboard/search")
}

// TestExtraLiveInBrowser updates the rows of a list, and the page of an invoice, while they are open. The
// focus, opened parts and typed text stay.
func TestExtraLiveInBrowser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.invoice("acme", member{})
	acme := w.person("acme", access.Admin)
	page := acme.browser("/dashboard/invoices")
	page.Keys("j")
	page.Eval(`document.querySelector("[name=reference]").value = "half", window.row = document.activeElement.closest("tr"), 0`, nil)
	second := w.invoice("acme", member{})
	page.Await(`document.querySelector("tbody a").pathname === "/dashboard/invoices/` + second.ID + `"`)
	page.Await(`document.activeElement.pathname === "/dashboard/invoices/` + first.ID + `" && document.activeElement.closest("tr") === window.row && document.querySelector("[name=reference]").value === "half"`)

	page.Go(w.url + "/dashboard/invoices/" + first.ID)
	page.Eval(`document.querySelector("main details").open = true, document.querySelector("main details button").focus(), window.details = document.querySelector("main details"), 0`, nil)
	w.guest().get("/checkout/" + first.ID)
	w.transfer(w.read(first.ID).TransferAmount)
	page.Await(`document.querySelector("main .badge").textContent === "Paid"`)
	page.Await(`document.querySelector(".timeline").textContent.includes("Page first opened")`)
	if errs := page.Errors(); len(errs) > 0 {
		t.Errorf("the page has errors: %v", errs)
	}
}

// TestExtraLivePages updates the pages of customers, links, events and refunds, and the count of the inbox,
// while they are open.
func TestExtraLivePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.person("acme", access.Admin)
	page := acme.browser("/dashboard/events")
	buyer := func(id string) member { return member{"customer": member{"id": id}} }
	w.invoice("acme", buyer("c-1"))
	page.Await(`document.querySelectorAll("tbody .delivery-delivered").length === 1`)
	page.Go(w.url + "/dashboard/customers")
	w.invoice("acme", buyer("c-2"))
	page.Await(`document.querySelectorAll("tbody tr").length === 2`)
	page.Go(w.url + "/dashboard/customers/customer?customer=c-1")
	w.invoice("acme", buyer("c-1"))
	page.Await(`document.querySelectorAll("tbody tr td:nth-child(3)").length >= 2 && document.querySelector("main").textContent.includes("(2)")`)

	var link apitypes.PaymentLinkResponse
	acme.api("POST", "/api/payment-links", member{"title": "Coffee", "amount": "1000000", "currency": "USDC", "chainKey": house, "merchantAddress": acmePays.String()}, &link)
	page.Go(w.url + "/dashboard/links/" + link.Link.ID)
	page.Await(`document.querySelector("main .badge.active")`)
	acme.api("PATCH", "/api/payment-links/"+link.Link.ID, member{"archived": true}, nil)
	page.Await(`document.querySelector("main .badge.void")`)

	w.paid(nil)
	var payments apitypes.PaymentList
	acme.api("GET", "/api/payments", nil, &payments)
	var refund apitypes.RefundResponse
	acme.api("POST", "/api/payments/"+payments.Payments[0].ID+"/refunds", member{"to": "ask_payer"}, &refund)
	page.Go(w.url + "/dashboard/refunds/" + refund.Refund.ID)
	page.Await(`document.querySelector("main .badge.awaiting_address") && document.querySelector("[data-changed]").hidden`)
	acme.api("POST", "/api/refunds/"+refund.Refund.ID+"/cancel", member{}, nil)
	page.Await(`document.querySelector("main .badge.canceled") && !document.querySelector("[data-changed]").hidden`)

	page.Go(w.url + "/dashboard/payments")
	page.Await(`!document.querySelector("nav .count")`)
	w.payment("4700000")
	page.Await(`document.querySelector("nav .count")?.textContent === "1"`)
	if errs := page.Errors(); len(errs) > 0 {
		t.Errorf("the page has errors: %v", errs)
	}
}

// TestExtraEventPageMoves shows each attempt of a delivery on the open page of its event.
func TestExtraEventPageMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.status <- 503
	w.invoice("acme", nil)
	acme := w.person("acme", access.Admin)
	var list apitypes.EventList
	w.await("event", func() bool { acme.api("GET", "/api/events", nil, &list); return len(list.Events) == 1 })
	row := struct{ ID string }{}
	expect.OK(t, json.Unmarshal(list.Events[0].Event, &row))
	page := acme.browser("/dashboard/events/" + row.ID)
	page.Await(`document.querySelectorAll(".timeline li").length === 1`)
	w.forward(time.Minute)
	page.Await(`document.querySelectorAll(".timeline li").length === 2 && document.querySelector("main .badge.delivery-delivered")`)
}
