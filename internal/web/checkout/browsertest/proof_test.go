package browsertest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/browsertest"
)

// TestExtraProof computes an invoice's on-chain id in the browser, and compares it with the
// registry's through the payer's wallet.
func TestExtraProof(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	inv := w.Invoice("4900000", nil)
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(0, false))
	p := open(t, w, inv, browsertest.Options{}, wallet)
	p.Press("Check it on the chain")
	p.Press("Check it in this browser")
	p.AwaitText("#proof", "The terms above give this on-chain id")
	p.AwaitText("#proof", "The registry computes the same")
	if n := strings.Count(p.Text("#proof"), inv.OnChainInvoiceID); n != 3 {
		t.Errorf("the id is shown %d times, want 3:\n%s", n, p.Text("#proof"))
	}
	p.Axe(web)
	shot(p, "proof")
	if n := len(wallet.Calls("eth_requestAccounts", "personal_sign", "eth_sendTransaction")); n != 0 {
		t.Errorf("the wallet was asked %d times", n)
	}
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
