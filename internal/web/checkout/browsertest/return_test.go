package browsertest_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// fast makes a second of the countdown take a tenth.
const fast = `{ const interval = window.setInterval; window.setInterval = (f, ms, ...args) => interval(f, ms === 1000 ? 100 : ms, ...args); }`

// TestExtraReturn pays while the page is open, and follows the countdown to the shop or stops it.
func TestExtraReturn(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	shop := w.Info.BaseURL + "/docs"
	paid := func(t *testing.T, o browsertest.Options) (*browsertest.Page, string) {
		t.Helper()
		inv := w.Invoice("4900000", func(r *apitypes.CreateInvoiceRequest) { r.ReturnURL = shop })
		o.Script = fast
		p := open(t, w, inv, o)
		p.Await(`document.getElementById("status").className === "state-waiting"`)
		expect.Success(t)(w.Node.SendToken(t.Context(), w.Node.Keys.Payer, common.HexToAddress(inv.Invoice.MerchantAddress), big.NewInt(price), common.FromHex(inv.OnChainInvoiceID)))
		p.Await(`document.getElementById("return")?.querySelector("button")`)
		return p, inv.ID
	}
	t.Run("at the end", func(t *testing.T) {
		p, _ := paid(t, browsertest.Options{})
		p.AwaitText("#return", "You are taken to")
		shot(p, "return")
		p.AwaitPath("/docs")
	})
	for name, stop := range map[string]string{
		"by its button": `document.querySelector("#return button").click()`,
		"by a key":      `document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape", bubbles: true}))`,
		"by a touch":    `document.querySelector("h1").dispatchEvent(new PointerEvent("pointerdown", {bubbles: true}))`,
	} {
		t.Run("stopped "+name, func(t *testing.T) {
			p, id := paid(t, browsertest.Options{Phone: true})
			p.Eval(stop, nil)
			p.AwaitText("#return", "You stay on this page.")
			if name == "by its button" { // the others show the same
				p.Axe(web)
			}
			p.Eval(`new Promise((done) => setTimeout(done, 2500))`, nil) // longer than the countdown
			var path string
			if p.Eval("location.pathname", &path); path != "/checkout/"+id {
				t.Errorf("the page went to %s", path)
			}
			p.Reload()
			p.Await(`document.getElementById("status").className === "state-paid"`)
			p.Await(`document.getElementById("return") === null`)
		})
	}
}

// TestExtraReceipt opens the receipt of a paid invoice in several languages and sizes.
func TestExtraReceipt(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	inv := w.Invoice("4900000", order)
	expect.Success(t)(w.Node.SendToken(t.Context(), w.Node.Keys.Payer, common.HexToAddress(inv.Invoice.MerchantAddress), big.NewInt(price), common.FromHex(inv.OnChainInvoiceID)))
	awaitState(t, w, inv.ID, "#status.state-paid")
	for _, o := range []browsertest.Options{{}, {Width: 320, Language: "de"}, {Phone: true, Dark: true, Language: "ar"}} {
		t.Run("in "+o.Language, func(t *testing.T) {
			p := browsertest.Open(t, o)
			p.Go(w.CheckoutURL(inv.ID) + "/receipt")
			p.Await(`document.querySelector(".receipt .state-paid")`)
			p.Axe(web)
			shot(p, "receipt-"+o.Language)
			var wide bool
			if p.Eval("document.documentElement.scrollWidth > document.documentElement.clientWidth", &wide); wide {
				t.Error("the receipt scrolls sideways")
			}
		})
	}
}

// TestExtraLinkMakesOneInvoice presses the button, goes back and presses it again, and reloads the
// page and presses it a third time. Another opening of the link makes another invoice.
func TestExtraLinkMakesOneInvoice(t *testing.T) {
	t.Parallel()
	s := openShop(t, bare, nil)
	p := browsertest.Open(t, browsertest.Options{})
	p.Go(s.link.URL)
	pressed := func() (invoice string) {
		t.Helper()
		p.Await(`document.readyState === "complete" && document.querySelector("form[method=post] button")?.disabled === false`)
		p.Press("Pay")
		p.AwaitPath("/checkout/")
		p.Eval(`location.pathname`, &invoice)
		return invoice
	}
	first := pressed()
	p.Back()
	p.AwaitPath("/pay/")
	expect.Equal(t, pressed(), first, "after a step back the button leads to")
	p.Back()
	p.AwaitPath("/pay/")
	p.Reload()
	expect.Equal(t, pressed(), first, "after a reload the button leads to")
	p.Go(s.link.URL)
	if other := pressed(); other == first {
		t.Error("another opening of the link leads to the same invoice")
	}
}

// TestExtraCopy copies the amount and the address, and selects the text if the page may not copy.
func TestExtraCopy(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	inv := w.Invoice("4900000", nil)
	p := browsertest.Open(t, browsertest.Options{})
	p.Go(w.CheckoutURL(inv.ID))
	var values []string
	p.Eval(`[...document.querySelectorAll("#send [data-copy]")].map((b) => b.dataset.copy)`, &values)
	if len(values) != 3 {
		t.Fatalf("%q can be copied, want the amount, the address and the network", values)
	}
	p.Eval(`void Object.defineProperty(navigator, "clipboard", { configurable: true, value: { writeText: async (text) => { window.copied = text; } } })`, nil)
	p.Eval(`document.querySelector("#send [data-copy]").click()`, nil)
	p.Await(`window.copied === ` + quoted(values[0]) + ` && document.querySelector("#send [data-copy]").textContent === "Copied"`)
	p.AwaitText("#notice", "Copied")
	p.Await(`document.querySelector("#send [data-copy]").textContent === "Copy"`)

	p.Eval(`void Object.defineProperty(navigator, "clipboard", { value: undefined })`, nil)
	p.Eval(`document.querySelectorAll("#send [data-copy]")[1].click()`, nil)
	p.Await(`getSelection().toString() === ` + quoted(values[1]) + ` && document.querySelectorAll("#send [data-copy]")[1].textContent === "Selected"`)
}

// TestExtraWithoutScripts sends by hand the payment that a page without scripts asks for.
func TestExtraWithoutScripts(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	inv := w.Invoice("4900000", nil)
	p := browsertest.Open(t, browsertest.Options{NoScript: true, Phone: true})
	p.Go(w.CheckoutURL(inv.ID))
	p.Await(`[...document.querySelectorAll(".values dt")].every((name) => name.getBoundingClientRect().width > 150)`) // one line
	expect.Success(t)(w.Node.SendToken(t.Context(), w.Node.Keys.Payer, common.HexToAddress(p.Text("#send .address code")), askedAmount(t, p), nil))
	awaitState(t, w, inv.ID, "#status.state-paid")
	p.Await(`document.querySelector("noscript meta[http-equiv=refresh]")`)
	p.Reload()
	p.AwaitText("#status", "Thank you.")
}

// askedAmount returns the amount of a plain transfer that the page asks for, in minor units.
func askedAmount(t *testing.T, p *browsertest.Page) *big.Int {
	t.Helper()
	amount, err := invoice.ParseDecimal(p.Text("#send code"), 6)
	expect.OK(t, err)
	bytes := amount.Bytes()
	return new(big.Int).SetBytes(bytes[:])
}
