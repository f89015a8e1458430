package browsertest_test

import (
	"testing"

	"github.com/quittance/quittance/internal/checkout/browsertest"
)

// TestLanguages shows what a wallet will be asked in languages of both directions, on the
// narrowest phone.
func TestLanguages(t *testing.T) {
	w := browsertest.Start(t, browsertest.WorldOptions{})
	for _, language := range []string{"ar", "de", "ja"} {
		t.Run(language, func(t *testing.T) { reviewIn(t, w, language) })
	}
}

func reviewIn(t *testing.T, w *browsertest.World, language string) {
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
	const narrow = 320
	p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{Phone: true, Width: narrow, Language: language}, wallet)
	p.Await(`document.querySelector("#wallet-pay button")?.checkVisibility()`)
	p.Eval(`document.querySelector("#wallet-pay button").click()`, nil)
	p.Await(`document.querySelector("#wallet-pay dl") !== null`)
	var wide bool
	p.Eval("document.documentElement.scrollWidth > innerWidth", &wide)
	if wide {
		t.Error("the page scrolls to the side")
	}
	p.Axe(web)
	shot(p, "review-"+language)
	isClean(t, w, p)
}
