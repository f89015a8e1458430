package browsertest_test

import (
	"context"
	"flag"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// elapse advances the page's clocks by some seconds, as while a device sleeps.
func elapse(p *browsertest.Page, seconds int) {
	p.Eval(fmt.Sprintf(`void (() => {
		const ms = %d * 1000, clock = performance.now.bind(performance), date = Date.now;
		performance.now = () => clock() + ms;
		Date.now = () => date() + ms;
	})()`, seconds), nil)
}

// TestExtraLive checks that pages update without a reload, by streams or polls, also after faults.
func TestExtraLive(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	for name, test := range map[string]func(t *testing.T, w *browsertest.World, g *gate){
		"by the stream":                       byStream,
		"by polls where streams are refused":  byPolls,
		"by polls where streams are withheld": byPollsWithheld,
		"by the next stream after a cut":      afterCut,
		"after the device has slept":          afterSleep,
		"after the service was away":          afterOutage,
	} {
		t.Run(name, func(t *testing.T) { test(t, w, newGate(t, w)) })
	}
	t.Run("the rest as a new amount and code", func(t *testing.T) { restIsShown(t, w) })
	t.Run("the time left", func(t *testing.T) { timeLeft(t, w) })
	t.Run("without its script", func(t *testing.T) { scriptLost(t, w) })
}

// openAt opens the page of a new invoice through a gate.
func openAt(t *testing.T, w *browsertest.World, g *gate) (*browsertest.Page, apitypes.CreateInvoiceResponse) {
	t.Helper()
	inv := w.Invoice("4900000", nil)
	p := browsertest.Open(t, browsertest.Options{})
	p.Go(g.URL + "/checkout/" + inv.ID)
	p.Eval("void (window.mark = true)", nil) // lost if the page is loaded again
	g.awaitStream(t)
	return p, inv
}

// awaitPaid waits until a page shows a payment, and has not been loaded again.
func awaitPaid(p *browsertest.Page) {
	p.Await(counted + " && window.mark")
}

func byStream(t *testing.T, w *browsertest.World, g *gate) {
	p, inv := openAt(t, w, g)
	payPart(t, w, inv, price)
	p.Await(settled)
	awaitPaid(p)
	expect.Equal(t, g.polls.Load(), 0, "with a stream the page polls … times:")
}

func byPolls(t *testing.T, w *browsertest.World, g *gate) {
	g.refuse.Store(true)
	p, inv := openAt(t, w, g)
	payPart(t, w, inv, price)
	awaitPaid(p)
	if g.polls.Load() == 0 {
		t.Error("the page has not polled")
	}
}

// byPollsWithheld uses a proxy that buffers the messages of streams.
func byPollsWithheld(t *testing.T, w *browsertest.World, g *gate) {
	g.withhold.Store(true)
	p, inv := openAt(t, w, g)
	payPart(t, w, inv, price)
	const patience = 6
	elapse(p, patience)
	awaitPaid(p)
}

func afterCut(t *testing.T, w *browsertest.World, g *gate) {
	p, inv := openAt(t, w, g)
	g.cut()
	g.awaitStream(t)
	payPart(t, w, inv, price)
	awaitPaid(p)
}

// afterSleep lets a device sleep overnight. Afterwards its connection is gone without having been closed.
func afterSleep(t *testing.T, w *browsertest.World, g *gate) {
	g.withhold.Store(true)
	p, inv := openAt(t, w, g)
	payPart(t, w, inv, price)
	const night = 12 * 60 * 60
	elapse(p, night)
	awaitPaid(p)
}

func afterOutage(t *testing.T, w *browsertest.World, g *gate) {
	g.refuse.Store(true)
	p, inv := openAt(t, w, g)
	g.broken.Store(true)
	p.Await(`document.getElementById("checkout").classList.contains("offline")`)
	p.Axe(web)
	g.broken.Store(false)
	payPart(t, w, inv, price)
	awaitPaid(p)
	p.Await(`!document.getElementById("checkout").classList.contains("offline")`)
}

// scriptLost opens the page while its script does not load. It is loaded again later.
func scriptLost(t *testing.T, w *browsertest.World) {
	g := newGate(t, w)
	g.scriptless.Store(true)
	inv := w.Invoice("4900000", nil)
	p := browsertest.Open(t, browsertest.Options{Script: `{ const set = window.setTimeout; window.setTimeout = (f, ms, ...args) => set(f, ms === 60_000 ? 1000 : ms, ...args); }`})
	p.Go(g.URL + "/checkout/" + inv.ID)
	payPart(t, w, inv, price)
	p.Await(counted)
	g.scriptless.Store(false)
	p.Await(`document.documentElement.classList.contains("scripted")`)
}

// restIsShown pays a part, after which the page asks for the rest.
func restIsShown(t *testing.T, w *browsertest.World) {
	inv := w.Invoice("4900000", nil)
	p := browsertest.Open(t, browsertest.Options{})
	p.Go(w.CheckoutURL(inv.ID))
	const shown = `[document.querySelector("#send code").textContent, document.querySelector("#code-request ~ .qr path").getAttribute("d")]`
	var before, after [2]string
	p.Eval(shown, &before)
	payPart(t, w, inv, 2_000_000)
	p.Await(`document.getElementById("status").className === "state-partial"`)
	p.Eval(shown, &after)
	p.AwaitText("h1", "2.90 USDC still due")
	if !strings.HasPrefix(before[0], "4.9") || !strings.HasPrefix(after[0], "2.9") || before[1] == after[1] {
		t.Errorf("the amounts are %s and %s, and the code is the same: %t", before[0], after[0], before[1] == after[1])
	}
}

// timeLeft opens a page on a device with a wrong clock, and waits until the time is almost up.
func timeLeft(t *testing.T, w *browsertest.World) {
	const window = 15 * 60
	for _, wrong := range []int{-3600, 3600} {
		inv := w.Invoice("4900000", func(r *apitypes.CreateInvoiceRequest) { r.ExpiresAt = time.Now().Unix() + window })
		p := browsertest.Open(t, browsertest.Options{Script: fmt.Sprintf(`{ const now = Date.now; Date.now = () => now() + %d * 1000; }`, wrong)})
		p.Go(w.CheckoutURL(inv.ID))
		p.Await(`/^1[45]\smin/.test(document.getElementById("left").textContent) && document.getElementById("soon").hidden`)
		elapse(p, window-50)
		p.AwaitText("#soon", "Less than a minute left.")
	}
}

// gate is a proxy between pages and the service.
type gate struct {
	*httptest.Server
	polls    atomic.Int32  // requests for a status
	streams  chan struct{} // a token for each request for a stream
	refuse   atomic.Bool   // answer 503 to requests for streams
	withhold atomic.Bool   // do not send the events of streams
	broken   atomic.Bool   // answer 503 to all other requests
	// refusal, if not empty, is the reason given for refusing authorizations.
	refusal    atomic.Value
	deaf       atomic.Bool // answers no authorization
	scriptless atomic.Bool // lacks the page's script

	mu   sync.Mutex
	cuts []context.CancelFunc // of the streams so far
}

// newGate starts a gate to a world.
func newGate(t *testing.T, w *browsertest.World) *gate {
	t.Helper()
	target := expect.Must(url.Parse(w.Info.BaseURL))
	const many = 100
	g := &gate{streams: make(chan struct{}, many)}
	proxy := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}, // a stream was cut
	}
	g.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch name := path.Base(r.URL.Path); {
		case name == "events":
			g.stream(rw, r, proxy)
			return
		case name == "status":
			g.polls.Add(1)
		}
		reason, _ := g.refusal.Load().(string)
		switch {
		case g.broken.Load():
			rw.WriteHeader(http.StatusServiceUnavailable)
		case g.scriptless.Load() && strings.HasPrefix(path.Base(r.URL.Path), "checkout."):
			rw.WriteHeader(http.StatusNotFound)
		case g.deaf.Load() && path.Base(r.URL.Path) == "authorization":
			rw.WriteHeader(http.StatusServiceUnavailable)
		case reason != "" && path.Base(r.URL.Path) == "authorization":
			rw.Header().Set("Content-Type", "application/problem+json")
			rw.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprintf(rw, `{"code": "authorization_refused", "reason": %q}`, reason)
		default:
			proxy.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(func() {
		g.cut()
		g.Close()
	})
	return g
}

// stream passes a stream on until it is cut.
func (g *gate) stream(rw http.ResponseWriter, r *http.Request, proxy http.Handler) {
	ctx, cancel := context.WithCancel(r.Context())
	g.mu.Lock()
	g.cuts = append(g.cuts, cancel)
	g.mu.Unlock()
	g.streams <- struct{}{}
	switch {
	case g.refuse.Load():
		rw.WriteHeader(http.StatusServiceUnavailable)
	case g.withhold.Load():
		rw.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(rw).Flush()
		<-ctx.Done()
	default:
		proxy.ServeHTTP(rw, r.WithContext(ctx))
	}
}

// cut ends all streams.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, cancel := range g.cuts {
		cancel()
	}
}

// awaitStream waits until a page asks for a stream.
func (g *gate) awaitStream(t *testing.T) {
	t.Helper()
	select {
	case <-g.streams:
	case <-time.After(browsertest.Patience):
		t.Fatal("no page asks for a stream")
	}
}

// every makes the scripted payer try each fault in each way to pay.
var every = flag.Bool("every", false, "try each fault in each way to pay")

// order makes an invoice of a coffee bar, with a description and several items.
func order(r *apitypes.CreateInvoiceRequest) {
	r.Description = "Table 12, the terrace"
	r.LineItems = []apitypes.LineItem{{Label: "Flat white", Amount: "3400000"}, {Label: "Cinnamon bun", Amount: "1500000"}}
	r.ReturnURL, r.CancelURL = "https://cafe.example/thanks", "https://cafe.example/cart"
}

// payPart sends an amount in minor units that names the invoice, and waits until it is mined.
func payPart(t *testing.T, w *browsertest.World, inv apitypes.CreateInvoiceResponse, amount int64) {
	t.Helper()
	hash, err := w.Node.SendToken(t.Context(), w.Node.Keys.Payer, common.HexToAddress(w.Info.Merchant.Address), big.NewInt(amount), common.FromHex(inv.OnChainInvoiceID))
	if err == nil {
		_, err = w.Node.Mined(t.Context(), hash)
	}
	expect.OK(t, err)
}

// awaitState waits until a page has an element.
func awaitState(t *testing.T, w *browsertest.World, id, selector string) {
	t.Helper()
	t.Run("await", func(t *testing.T) {
		p := browsertest.Open(t, browsertest.Options{})
		p.Go(w.CheckoutURL(id))
		p.Await(fmt.Sprintf("document.querySelector(%q)", selector))
	})
}

// TestExtraLocal checks that times and numbers are written as usual in the page's language, and that a page
// without scripts shows them in UTC and with a decimal point.
func TestExtraLocal(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	inv := w.Invoice("4900000", order)
	for _, test := range []struct {
		noScript bool
		amount   string
		end      string // the displayed end of the time to pay contains this, as a layout in UTC
	}{{false, "4,90", " um "}, {true, "4.90", ", 15:04:05 UTC"}} {
		p := browsertest.Open(t, browsertest.Options{Language: "de", NoScript: test.noScript})
		p.Go(w.CheckoutURL(inv.ID))
		expect.Equal(t, p.Text("h1 data"), test.amount, "without scripts %v: the amount is", test.noScript)
		if got, want := p.Text("#time time"), time.Unix(w.Read(inv.ID).ExpiresAt, 0).UTC().Format(test.end); !strings.Contains(got, want) {
			t.Errorf("without scripts %v: the end is %q, want %q", test.noScript, got, want)
		}
	}
}

// TestExtraLanguages shows what a wallet will be asked in languages of both directions, on the
// narrowest phone. The browser asks for the language, or the page's address does.
func TestExtraLanguages(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	for language, network := range map[string]string{"ar": "شبكة اختبار محلية", "de": "Lokales Testnetz", "ja": "ローカルのテストネットワーク"} {
		t.Run(language, func(t *testing.T) { reviewIn(t, w, language, network) })
	}
}

func reviewIn(t *testing.T, w *browsertest.World, language, network string) {
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
	const narrow = 320
	o := browsertest.Options{Phone: true, Width: narrow, Language: language, Wallets: []*browsertest.Wallet{wallet}}
	address := w.CheckoutURL(w.Invoice("4900000", nil).ID)
	if language == "de" {
		o.Language, address = "en", address+"?lang=de"
	}
	p := browsertest.Open(t, o)
	p.Go(address)
	p.Await(`document.querySelector("#wallet-pay button")?.checkVisibility()`)
	p.Eval(`document.querySelector("#wallet-pay button").click()`, nil)
	p.Await(`document.querySelector("#wallet-pay dl") !== null`)
	p.AwaitText("#wallet-pay", network)
	var wide bool
	p.Eval("document.documentElement.scrollWidth > innerWidth", &wide)
	if wide {
		t.Error("the page scrolls to the side")
	}
	p.Axe(web)
	shot(p, "review-"+language)
	isClean(t, w, p)
}
