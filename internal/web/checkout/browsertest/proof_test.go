package browsertest_test

import (
	"bytes"
	"image"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestExtraProof computes an invoice's on-chain id in the browser, and compares it with the
// registry's through the payer's wallet.
func TestExtraProof(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	inv := w.Invoice("4900000", nil)
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(0, false))
	p := open(t, w, inv, browsertest.Options{}, wallet)
	p.Press("On-chain record")
	p.Press("Check here")
	p.AwaitText("#proof", "Computed there")
	if n := strings.Count(p.Text("#proof"), inv.OnChainInvoiceID); n != 3 {
		t.Errorf("the id is shown %d times, want 3:\n%s", n, p.Text("#proof"))
	}
	if n := strings.Count(p.Text("#proof"), "The ids match."); n != 2 {
		t.Errorf("%d ids match, want the browser's and the registry's", n)
	}
	p.Axe(web)
	shot(p, "proof")
	if n := len(wallet.Calls("eth_requestAccounts", "personal_sign", "eth_sendTransaction")); n != 0 {
		t.Errorf("the wallet was asked %d times", n)
	}
	wallet.SetChainID(1)
	wallet.Refuse("wallet_switchEthereumChain", browsertest.ErrRejected)
	p.Reload()
	p.Press("On-chain record")
	p.Press("Check here")
	p.AwaitText("#proof", "Fox does not use Local test chain. Choose that network (chain id 1337) in your wallet.")
	isClean(t, w, p)
}

// TestExtraSlowNetwork opens the page at 400 ms and 50 kB/s. Its largest contentful paint needs only the
// document. The time is logged but not checked, because it depends on the machine's load.
func TestExtraSlowNetwork(t *testing.T) {
	w := browsertest.Start(t, browsertest.WorldOptions{})
	inv := w.Invoice("4900000", nil)
	warm := open(t, w, inv, browsertest.Options{})
	warm.AwaitText("h1", "4.90")
	for name, device := range map[string]browsertest.Options{"desktop": {}, "phone": {Phone: true}} {
		t.Run(name, func(t *testing.T) {
			device.Latency, device.BytesPerSecond = 400*time.Millisecond, 50_000
			p := open(t, w, inv, device)
			p.AwaitText("h1", "4.90")
			t.Logf("largest contentful paint after %s, %d bytes", p.LargestPaint(), p.Transferred())
			var delays []string
			p.Eval(`performance.getEntriesByType("resource").filter((r) => r.renderBlockingStatus === "blocking").map((r) => r.name)`, &delays)
			if len(delays) != 0 {
				t.Errorf("the first paint waits for %s", delays)
			}
			const most = 13_300 // as in TestFirstPaintNeedsNoOtherRequest, with headers
			if got := p.Requests()[0].Bytes; got > most {
				t.Errorf("the document takes %d bytes", got)
			}
		})
	}
}

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
	expect.Success(t)(w.Client.CreateMerchant(t.Context(), apitypes.CreateMerchantRequest{
		ID: "bar", Name: "Corner Bar", DefaultAddresses: map[string]apitypes.Address{w.Info.Chain.ChainKey: w.Info.Merchant.Address},
	}))
	random := rand.New(rand.NewPCG(1, 2))
	const height = 430
	picture := image.NewGray(image.Rect(0, 0, access.MaxLogoBytes/height*98/100, height))
	for i := range picture.Pix {
		picture.Pix[i] = byte(random.Uint32())
	}
	var logo bytes.Buffer
	expect.OK(t, png.Encode(&logo, picture))
	expect.Success(t)(w.Client.SetMerchantLogo(t.Context(), "bar", logo.Bytes()))
}
