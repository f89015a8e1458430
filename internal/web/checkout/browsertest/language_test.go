package browsertest_test

import (
	"testing"

	"github.com/quittance/quittance/internal/test/browsertest"
)

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
