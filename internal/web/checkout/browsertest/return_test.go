package browsertest_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/browsertest"
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
		if _, err := w.Node.SendToken(t.Context(), w.Node.Keys.Payer, common.HexToAddress(inv.Invoice.MerchantAddress), big.NewInt(price), common.FromHex(inv.OnChainInvoiceID)); err != nil {
			t.Fatal(err)
		}
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
	if _, err := w.Node.SendToken(t.Context(), w.Node.Keys.Payer, common.HexToAddress(inv.Invoice.MerchantAddress), big.NewInt(price), common.FromHex(inv.OnChainInvoiceID)); err != nil {
		t.Fatal(err)
	}
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
