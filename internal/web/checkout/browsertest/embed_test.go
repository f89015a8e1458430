package browsertest_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// shop is a merchant's page of another origin than the service's.
type shop struct {
	*browsertest.World
	origin string
	link   apitypes.PaymentLink
}

// button is a page with a link to a payment page, and with the policy that docs/embedding.md has.
const button = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src {service}; frame-src {service}">
<title>The corner bar</title>
<script src="{service}/embed.js" defer></script>
</head>
<body>
<main><h1>The corner bar</h1><p><a href="{href}" data-quittance>Pay for an espresso</a></p></main>
</body>
</html>`

// bare is a page that makes the frame without the script.
const bare = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>A frame</title></head>
<body><iframe src="{href}?embed=1" title="Payment"></iframe></body></html>`

// records keeps the events and messages that the page gets.
const records = `
window.told = [];
for (const name of ["ready", "state", "return", "close"]) {
  addEventListener("quittance:" + name, ({ detail }) => told.push({ type: name, invoice: detail.invoice, state: detail.state }));
}
window.posted = [];
addEventListener("message", ({ origin, data }) => posted.push({ origin, ...data }));
`

// openShop starts a shop. Its merchant lists the shop's origin, unless others are given.
func openShop(t *testing.T, page string, change func(*apitypes.CreatePaymentLinkRequest), origins ...string) *shop {
	t.Helper()
	s := &shop{World: browsertest.Start(t, browsertest.WorldOptions{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, strings.NewReplacer("{service}", s.Info.BaseURL, "{href}", s.link.URL).Replace(page))
	}))
	t.Cleanup(server.Close)
	s.origin = strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	if len(origins) == 0 {
		origins = []string{s.origin}
	}
	for i, origin := range origins {
		origins[i] = strings.ReplaceAll(origin, "{shop}", s.origin)
	}
	expect.Success(t)(s.Client.CreateMerchant(t.Context(), apitypes.CreateMerchantRequest{
		ID: "bar", Name: "Corner Bar", DefaultAddresses: map[string]apitypes.Address{s.Info.Chain.ChainKey: s.Info.Merchant.Address},
		ReturnHosts: []string{"localhost"}, EmbedOrigins: origins,
	}))
	request := apitypes.CreatePaymentLinkRequest{
		MerchantID: "bar", Slug: "espresso", Title: "An espresso", Amount: "4900000", Currency: "USDC", ChainKey: s.Info.Chain.ChainKey,
		ReturnURL: s.origin + "/?thanks",
	}
	if change != nil {
		change(&request)
	}
	var err error
	if s.link, err = s.Client.CreatePaymentLink(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	return s
}

// open opens the shop's page.
func (s *shop) open(t *testing.T, o browsertest.Options) *browsertest.Page {
	t.Helper()
	o.Script = records
	p := browsertest.Open(t, o)
	p.Go(s.origin)
	return p
}

// invoices returns the invoices of the link.
func (s *shop) invoices(t *testing.T) (all []apitypes.Invoice) {
	t.Helper()
	for inv, err := range s.Client.Invoices(t.Context(), invoicesOf(s.link.ID)) {
		expect.OK(t, err)
		all = append(all, inv)
	}
	return all
}

// tabIntoFrame moves the focus from the button of an open dialog to the first element in the frame,
// which must match a selector.
func (s *shop) tabIntoFrame(p *browsertest.Page, first string) {
	p.Keys(kb.Tab)
	p.Await(`document.activeElement.matches("dialog button")`)
	p.Keys(kb.Tab)
	s.awaitFocus(p, first)
}

// awaitFocus waits until an element of the frame that matches a selector has the focus. The frame runs in a separate
// process and gets keys only then, although the page's activeElement is the frame earlier.
func (s *shop) awaitFocus(p *browsertest.Page, selector string) {
	p.Frame(s.Info.BaseURL).Await(`document.hasFocus() && document.activeElement.matches(` + quoted(selector) + `)`)
}

// TestExtraEmbed pays in a dialog of a shop's page, using only the keyboard except for the transfer.
func TestExtraEmbed(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]browsertest.Options{"desktop": {}, "phone": {Phone: true, Dark: true}} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, button, nil)
			p := s.open(t, o)
			p.Keys(kb.Tab + kb.Enter) // the link
			p.Await(`told.some((m) => m.type === "ready" && !m.invoice) && document.querySelector("dialog[open] iframe").clientHeight < 640`)
			shot(p, "embed-link-"+name)
			p.Axe(web)
			expect.Equal(t, len(s.invoices(t)), 0, "the opened dialog has made … invoices:")
			s.tabIntoFrame(p, "button[type=submit]")
			p.Keys(kb.Enter)
			p.Await(`told.some((m) => m.type === "state" && m.state === "waiting")`)
			made := s.invoices(t)
			if len(made) != 1 {
				t.Fatalf("the button has made %d invoices", len(made))
			}
			shot(p, "embed-checkout-"+name)

			p.Frame(s.Info.BaseURL).Await(`document.hasFocus()`)
			p.Keys(kb.Escape)
			p.Await(`told.at(-1).type === "close" && !document.querySelector("dialog") && document.activeElement.matches("a[data-quittance]")`)
			p.Keys(kb.Enter) // opens the same invoice
			p.Await(`told.at(-1).type === "state" && document.querySelector("dialog[open]")`)
			frame := p.Frame(s.Info.BaseURL)
			frame.Await(`document.querySelector(".tab").getBoundingClientRect().top < document.querySelector("header").getBoundingClientRect().top`)
			frame.Eval(`scrollTo(0, document.body.scrollHeight)`, nil)
			frame.Await(`document.getElementById("status").getBoundingClientRect().bottom < 0`)
			amount, ok := new(big.Int).SetString(made[0].TransferAmount, 10)
			if !ok {
				t.Fatalf("the transfer amount is %q", made[0].TransferAmount)
			}
			hash, err := s.Node.SendToken(t.Context(), s.Node.Keys.Payer, common.HexToAddress(made[0].MerchantAddress), amount, nil)
			expect.OK(t, err)
			expect.Success(t)(s.Node.Mined(t.Context(), hash))
			p.Await(`told.at(-1).state === "paid"`)
			frame.Await(`document.getElementById("status").getBoundingClientRect().top >= 0`)
			shot(p, "embed-paid-"+name)
			var invoices []string
			p.Eval(`told.filter((m) => m.type === "state").map((m) => m.invoice)`, &invoices)
			for _, id := range invoices {
				if id != made[0].ID {
					t.Errorf("it was told of %q, want %s alone", id, made[0].ID)
				}
			}
			var origins []string
			p.Eval(`[...new Set(posted.map((m) => m.origin))]`, &origins)
			if diff := cmp.Diff([]string{s.Info.BaseURL}, origins); diff != "" {
				t.Errorf("messages came from (-want +got)\n%s", diff)
			}
			expect.Len(t, p.Errors(), 0, "the page reports")
			expect.Equal(t, len(s.invoices(t)), 1, "there are … invoices:")
			s.tabIntoFrame(p, ".tab a")
			p.Keys(kb.Tab)
			s.awaitFocus(p, "#receipt a")
			p.Keys(kb.Tab)
			s.awaitFocus(p, "#back a")
			p.Keys(kb.Enter)
			p.Await(`location.search === "?thanks"`)
		})
	}
}

// TestExtraEmbedWhereFramingIsRefused expects the link to be followed instead.
func TestExtraEmbedWhereFramingIsRefused(t *testing.T) {
	t.Parallel()
	s := openShop(t, button, nil, "https://shop.example")
	p := s.open(t, browsertest.Options{})
	p.Press("Pay for an espresso")
	p.Await(`location.href === ` + quoted(s.link.URL))
	p.AwaitText("h1", "An espresso")
}

// TestExtraFrameMessages uses a page that makes the frame without the script: the frame answers hello only
// from its parent, and posts no message to other origins.
func TestExtraFrameMessages(t *testing.T) {
	t.Parallel()
	s := openShop(t, bare, nil, "{shop}", "https://shop.example")
	p := s.open(t, browsertest.Options{})
	p.Await(`posted.some((m) => m.type === "ready") && posted.some((m) => m.type === "height" && m.height > 100)`)
	p.Eval(`(() => {
		posted.length = 0;
		const frame = document.querySelector("iframe").contentWindow;
		const send = (message) => frame.postMessage(message, `+quoted(s.Info.BaseURL)+`);
		for (const message of [null, 1, "hello", {}, { type: "hello" }, { quittance: 2, type: "hello" }, { quittance: 1, type: "state", state: "paid" }]) send(message);
		const other = document.createElement("iframe"); // of the page's origin, but not the parent
		other.srcdoc = "<p>other</p>";
		document.body.append(other);
		other.contentWindow.eval("parent.frames[0].postMessage({ quittance: 1, type: 'hello' }, '*')");
		send({ quittance: 1, type: "hello" });
	})()`, nil)
	p.Await(`posted.some((m) => m.type === "ready") && posted.at(-1).type === "height"`)
	var types []string
	p.Eval(`posted.map((m) => m.type).filter((type) => type !== "height")`, &types) // its height may change
	if diff := cmp.Diff([]string{"ready"}, types); diff != "" {
		t.Errorf("to one hello it answers (-want +got)\n%s", diff)
	}
}

// TestExtraFrameIsRefused expects that a shop outside the merchant's list gets no frame.
func TestExtraFrameIsRefused(t *testing.T) {
	t.Parallel()
	s := openShop(t, bare, nil, "https://shop.example")
	p := s.open(t, browsertest.Options{})
	p.Await(`document.querySelector("iframe")`)
	var posted []json.RawMessage
	if p.Eval(`posted`, &posted); len(posted) != 0 {
		t.Errorf("it was told %s", posted)
	}
	if errs := strings.Join(p.Errors(), "\n"); !strings.Contains(errs, "frame-ancestors") {
		t.Errorf("the page reports %s", errs)
	}
}

// TestExtraLinkPages looks at the page of a link in every state.
func TestExtraLinkPages(t *testing.T) {
	t.Parallel()
	s := openShop(t, bare, func(r *apitypes.CreatePaymentLinkRequest) {
		r.Amount, r.MinAmount, r.MaxAmount, r.Description = "", "1000000", "50000000", "For everybody behind the bar, shared at the end of the week"
	})
	for name, o := range map[string]browsertest.Options{"desktop": {}, "dark": {Dark: true}, "phone": {Phone: true}, "narrow": {Width: 320}} {
		t.Run(name, func(t *testing.T) {
			p := browsertest.Open(t, o)
			p.Go(s.link.URL + "?amount=0,5")
			p.Axe(web)
			shot(p, "link-"+name)
			p.Follow("Pay")
			p.AwaitText(".problem", "1.00 USDC or more")
			p.Axe(web)
			shot(p, "link-problem-"+name)
			var wide bool
			if p.Eval(`document.documentElement.scrollWidth > innerWidth`, &wide); wide {
				t.Error("the page scrolls sideways")
			}
			p.Eval(`void (document.getElementById("amount").value = "12,5")`, nil)
			p.Press("Pay")
			p.AwaitPath("/checkout/")
			p.AwaitText("h1", "12.50")
			p.Back()
			p.Await(`document.querySelector("form")?.action === ` + quoted(s.link.URL))
			expect.Len(t, p.Errors(), 0, "the page reports")
		})
	}
}

// quoted returns a text as a JavaScript string.
func quoted(text string) string { return fmt.Sprintf("%q", text) }

// invoicesOf selects the invoices of a payment link.
func invoicesOf(linkID string) client.InvoiceFilter {
	return client.InvoiceFilter{Metadata: map[string]string{"paymentLink": linkID}}
}
