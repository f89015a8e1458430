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
