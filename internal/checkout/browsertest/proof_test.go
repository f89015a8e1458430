package browsertest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/checkout/browsertest"
)

// TestProof computes an invoice's on-chain id in the browser, and compares it with the
// registry's through the payer's wallet.
func TestProof(t *testing.T) {
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

// TestSlowNetwork measures the largest contentful paint at 400 ms and 50 kB/s.
func TestSlowNetwork(t *testing.T) {
	w := browsertest.Start(t, browsertest.WorldOptions{})
	inv := w.Invoice("4900000", nil)
	warm := open(t, w, inv, browsertest.Options{})
	warm.AwaitText("h1", "4.90")
	p := open(t, w, inv, browsertest.Options{Latency: 400 * time.Millisecond, BytesPerSecond: 50_000})
	p.AwaitText("h1", "4.90")
	t.Logf("largest contentful paint after %s, %d bytes", p.LargestPaint(), p.Transferred())
	const limit = 3 * time.Second // on a busy machine
	if got := p.LargestPaint(); got > limit {
		t.Errorf("the largest contentful paint comes after %s", got)
	}
}
