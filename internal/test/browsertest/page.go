package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/quittance/quittance/internal/test/expect"
)

// Patience bounds a wait for a page.
const Patience = 2 * time.Minute

// Options describe a page. The zero value is a desktop in light colours and English.
type Options struct {
	Phone    bool   // 390 × 844 instead of 1200 × 900
	Width    int    // instead of that
	Dark     bool   // prefers dark colours
	Print    bool   // as it is printed
	Language string // of Accept-Language; empty: en
	NoScript bool
	// Latency and BytesPerSecond throttle the network.
	Latency        time.Duration
	BytesPerSecond float64
	Wallets        []*Wallet
	// Script runs in each document before its own scripts.
	Script string
}

// Page is an open page.
type Page struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	errors   []string
	requests []Request
	sent     map[network.RequestID]int // index in requests
}

// Request is a request of a page.
type Request struct {
	URL   string
	Bytes int64 // transferred for it, with headers
}

// Open opens an empty page with separate storage, and closes it when the test ends.
func Open(t testing.TB, o Options) *Page {
	t.Helper()
	return open(chromium(t), t, o, chromedp.WithNewBrowserContext())
}

// OpenBeside opens a page that shares its storage with p, as another tab does.
func (p *Page) OpenBeside(o Options) *Page {
	p.t.Helper()
	return open(p.ctx, p.t, o)
}

func open(parent context.Context, t testing.TB, o Options, options ...chromedp.ContextOption) *Page {
	t.Helper()
	ctx, closePage := chromedp.NewContext(parent, options...)
	t.Cleanup(closePage)
	p := &Page{t: t, ctx: ctx, sent: make(map[network.RequestID]int)}
	if err := chromedp.Listen(ctx, p.record); err != nil { // opens the page, for as long as ctx
		t.Fatal(err)
	}
	call(p, network.Enable, network.EnableParams{})
	call(p, log.Enable, cdp.Empty{})
	call(p, runtime.Enable, cdp.Empty{})
	p.Emulate(o)
	if o.Script != "" {
		p.onNewDocument(o.Script)
	}
	for i, w := range o.Wallets {
		p.inject(w, i)
	}
	return p
}

// Emulate sets the device, the colours, the language and the network of the options.
func (p *Page) Emulate(o Options) {
	p.t.Helper()
	width, height := 1200, 900
	if o.Phone {
		width, height = 390, 844
	}
	if o.Width > 0 {
		width = o.Width
	}
	colours, language, media := "light", "en", ""
	if o.Print {
		media = "print"
	}
	if o.Dark {
		colours = "dark"
	}
	if o.Language != "" {
		language = o.Language
	}
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(width), Height: int64(height), DeviceScaleFactor: 1, Mobile: o.Phone})
	call(p, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: o.Phone}) // a coarse pointer
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: media, Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: colours}, {Name: "prefers-reduced-motion", Value: "reduce"}, // colours change at once
	}})
	call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: o.NoScript})
	call(p, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": language}})
	if o.Latency > 0 || o.BytesPerSecond > 0 {
		call(p, emulateNetwork, networkParams{EmulateNetworkConditionsByRuleParams: network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{{
			Latency: float64(o.Latency.Milliseconds()), DownloadThroughput: o.BytesPerSecond, UploadThroughput: o.BytesPerSecond,
		}}}})
	}
}

// networkParams are the parameters of emulateNetwork.
type networkParams struct {
	network.EmulateNetworkConditionsByRuleParams

	Offline bool `json:"offline"` // Chromium 148 requires it; newer ones have it in each rule
}

var emulateNetwork = cdp.Command[networkParams, network.EmulateNetworkConditionsByRuleResult]{Method: network.CommandEmulateNetworkConditionsByRule}

// onNewDocument runs a script in each document before its own scripts.
func (p *Page) onNewDocument(script string) {
	p.t.Helper()
	call(p, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// call sends a command to the page.
func call[P, R any](p *Page, command cdp.Command[P, R], params P) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, command, params); err != nil {
		p.t.Fatalf("browsertest: %s: %v", command.Method, err)
	}
}

// run runs an action on the page.
func run[T any](p *Page, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	if err != nil {
		p.t.Fatalf("browsertest: %v", err)
	}
	return result
}

// record records errors and requests of the page.
func (p *Page) record(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.errors = append(p.errors, (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			p.errors = append(p.errors, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		p.sent[e.RequestID] = len(p.requests)
		p.requests = append(p.requests, Request{URL: e.Request.URL})
	case *network.EventLoadingFinished:
		if i, ok := p.sent[e.RequestID]; ok {
			p.requests[i].Bytes = int64(e.EncodedDataLength)
		}
	}
}

// Errors returns the exceptions and violations of the policy so far.
func (p *Page) Errors() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.errors...)
}

// Requests returns the requests of the page so far.
func (p *Page) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Request(nil), p.requests...)
}

// Transferred returns the bytes that were transferred so far.
func (p *Page) Transferred() (n int64) {
	for _, r := range p.Requests() {
		n += r.Bytes
	}
	return n
}

// Go opens a URL, and waits until it is loaded.
func (p *Page) Go(url string) {
	p.t.Helper()
	run(p, chromedp.Navigate(url))
}

// SetCookies gives the page the cookies that a jar has for a URL.
func (p *Page) SetCookies(of string, jar http.CookieJar) {
	p.t.Helper()
	u := expect.Must(url.Parse(of))
	for _, c := range jar.Cookies(u) {
		call(p, network.SetCookie, network.SetCookieParams{URL: of, Name: c.Name, Value: c.Value})
	}
}

// Reload loads the page again.
func (p *Page) Reload() {
	p.t.Helper()
	run(p, chromedp.Reload())
}

// Back goes back in the page's history, after the page has answered: a page of the browser's cache may
// replace it immediately.
func (p *Page) Back() {
	p.t.Helper()
	p.Eval(`void setTimeout(() => history.back())`, nil)
}

// Eval evaluates an expression, which may be a promise, into a value; into may be nil.
func (p *Page) Eval(expression string, into any) {
	p.t.Helper()
	text := run(p, chromedp.Evaluate[string]("Promise.resolve("+expression+").then((v) => JSON.stringify(v ?? null))", chromedp.EvalAwaitPromise))
	if into == nil {
		return
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		p.t.Fatalf("browsertest: %s: %v", expression, err)
	}
}

// Await waits until an expression is true.
func (p *Page) Await(expression string) {
	p.t.Helper()
	if done, err := p.becomes(expression, Patience); !done {
		p.t.Fatalf("browsertest: not true: %s (%v); the page reads\n%s\n%s", expression, err, p.Text("body"), strings.Join(p.Errors(), "\n"))
	}
}

// Becomes reports whether an expression becomes true within a time.
func (p *Page) Becomes(expression string, within time.Duration) bool {
	done, _ := p.becomes(expression, within)
	return done
}

func (p *Page) becomes(expression string, within time.Duration) (done bool, err error) {
	return p.poll(within, func() (done bool) {
		// While a document is replaced, its expression fails.
		done, err = chromedp.Run(p.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		return err == nil && done
	}), err
}

// AwaitCall waits until the page has asked a wallet for a method, and returns the first such call.
func (p *Page) AwaitCall(w *Wallet, method string) Call {
	p.t.Helper()
	if !p.poll(Patience, func() bool { return len(w.Calls(method)) != 0 }) {
		p.t.Fatalf("browsertest: %s was not asked for %s; the page reads\n%s\n%s", w.Name, method, p.Text("body"), strings.Join(p.Errors(), "\n"))
	}
	return w.Calls(method)[0]
}

// poll calls f until it returns true, and reports whether it did within a time.
func (p *Page) poll(within time.Duration, f func() bool) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}

// pollInterval is how often poll calls its function.
const pollInterval = 50 * time.Millisecond

// AwaitPath waits until a page with a path that begins with a prefix has loaded.
func (p *Page) AwaitPath(prefix string) {
	p.t.Helper()
	p.Await(fmt.Sprintf("location.pathname.startsWith(%q) && document.readyState === 'complete'", prefix))
}

// AwaitText waits until the text of an element contains words.
func (p *Page) AwaitText(selector, words string) {
	p.t.Helper()
	p.Await(fmt.Sprintf("document.querySelector(%q)?.innerText.replaceAll('\\u00a0', ' ').includes(%q)", selector, words))
}

// Text returns the visible text of an element, with plain spaces, or "".
func (p *Page) Text(selector string) (text string) {
	p.t.Helper()
	p.Eval(fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector), &text)
	return strings.ReplaceAll(text, "\u00a0", " ")
}

// Press waits for a button or link with this text, and presses it.
func (p *Page) Press(text string) {
	p.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('button, a, summary')].find((b) => b.checkVisibility() && !b.disabled && b.innerText.replaceAll('\\u00a0', ' ').trim() === %q)", text)
	p.Await(find + " !== undefined")
	p.Eval("void "+find+".click()", nil)
}

// Follow presses a button or link with this text, and waits until the next page is loaded, which may
// look the same as the previous one.
func (p *Page) Follow(text string) {
	p.t.Helper()
	p.Eval("void (window.left = true)", nil)
	p.Press(text)
	p.Await("!window.left && document.readyState === 'complete'")
}

// Screenshot writes an image of the whole page to a file.
func (p *Page) Screenshot(file string) {
	p.t.Helper()
	const best = 100
	image := run(p, chromedp.FullScreenshot(best))
	expect.OK(p.t, os.WriteFile(file, image, 0o600))
}

// printed is the number of pages in a PDF of chromium's.
var printed = regexp.MustCompile(`/Type /Pages\s+/Count (\d+)`)

// PrintedPages returns the number of pages of the printed page, on paper as narrow as A4 and as low as Letter.
func (p *Page) PrintedPages() int {
	p.t.Helper()
	const width, height = 8.27, 11 // inches
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	made, err := chromedp.Call(ctx, cdppage.PrintToPDF, cdppage.PrintToPDFParams{PaperWidth: width, PaperHeight: height})
	if err != nil {
		p.t.Fatalf("browsertest: print: %v", err)
	}
	count := printed.FindSubmatch(made.Data)
	if count == nil {
		p.t.Fatalf("browsertest: a PDF of %d bytes says nothing of its pages", len(made.Data))
	}
	n := expect.Must(strconv.Atoi(string(count[1])))
	return n
}

// LargestPaint returns the time of the largest contentful paint so far.
func (p *Page) LargestPaint() time.Duration {
	p.t.Helper()
	var ms float64
	p.Eval(`new Promise((done) => new PerformanceObserver((list) => done(list.getEntries().at(-1).startTime))
		.observe({ type: "largest-contentful-paint", buffered: true }))`, &ms)
	return time.Duration(ms * float64(time.Millisecond))
}

// Step presses the first button of a list that a part of the page has, and reports whether a condition was true before.
func (p *Page) Step(selector string, buttons []string, until string) (done bool) {
	p.t.Helper()
	names := expect.Must(json.Marshal(buttons))
	p.Eval(fmt.Sprintf(`(() => {
		if (%s) return true;
		const all = [...document.querySelectorAll(%q + " button")].filter((b) => b.checkVisibility() && !b.disabled);
		const text = (b) => b.innerText.replaceAll("\u00a0", " ").trim();
		for (const name of %s) {
			const found = all.find((b) => text(b) === name);
			if (found) { found.click(); break; }
		}
		return false;
	})()`, until, selector, names), &done)
	return done
}
