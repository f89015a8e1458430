package browsertest_test

import (
	"bytes"
	"image"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestExtraHeaviestPage opens and pays an invoice of the most and longest items, of a merchant with
// the heaviest logo, in the language of the longest texts.
func TestExtraHeaviestPage(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	setLogo(t, w)
	random := rand.New(rand.NewPCG(1, 2))
	words := func(n int) string { // that do not compress well
		var text strings.Builder
		for text.Len() < n {
			text.WriteByte("abcdefghijklmnopqrstuvwxyz "[random.IntN(27)])
		}
		return strings.TrimSpace(text.String())
	}
	inv := w.Invoice("10000000", func(r *apitypes.CreateInvoiceRequest) {
		r.MerchantID, r.Description, r.LineItems = "bar", words(500), nil
		for range 100 {
			r.LineItems = append(r.LineItems, apitypes.LineItem{Label: words(100), Amount: "100000"})
		}
	})
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
	p := open(t, w, inv, browsertest.Options{Language: "ja"}, wallet)
	p.Await(`document.querySelector(".logo").complete && document.querySelector("#wallet-pay button")?.checkVisibility()`)
	before := p.Transferred()
	p.Eval(`document.querySelector("#wallet-pay button").click()`, nil)
	p.Await(`document.querySelector("#wallet-pay dl")`)
	after := p.Transferred()
	t.Logf("transferred: %d bytes before the wallet's part, %d bytes with it", before, after)
	if before > maxBefore || after > maxAfter {
		t.Errorf("the page transfers %d and %d bytes, want at most %d and %d", before, after, maxBefore, maxAfter)
	}
}

// setLogo creates the merchant "bar" with a logo that is as large as the service takes.
func setLogo(t *testing.T, w *browsertest.World) {
	t.Helper()
	if _, err := w.Client.CreateMerchant(t.Context(), apitypes.CreateMerchantRequest{
		ID: "bar", Name: "Corner Bar", DefaultAddresses: map[string]apitypes.Address{w.Info.Chain.ChainKey: w.Info.Merchant.Address},
	}); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	const height = 430
	picture := image.NewGray(image.Rect(0, 0, access.MaxLogoBytes/height*98/100, height))
	for i := range picture.Pix {
		picture.Pix[i] = byte(random.Uint32())
	}
	var logo bytes.Buffer
	expect.OK(t, png.Encode(&logo, picture))
	if _, err := w.Client.SetMerchantLogo(t.Context(), "bar", logo.Bytes()); err != nil {
		t.Fatal(err)
	}
}
