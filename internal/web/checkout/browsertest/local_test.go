package browsertest_test

import (
	"flag"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

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
		if got := p.Text("h1 data"); got != test.amount {
			t.Errorf("without scripts %v: the amount is %q, want %q", test.noScript, got, test.amount)
		}
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
