package browsertest_test

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// ask enters a hash under "I have paid".
func ask(p *browsertest.Page, hash string) {
	p.Eval(fmt.Sprintf(`void (document.querySelector(".asking").open = true, document.getElementById("tx").value = %q)`, hash), nil)
	p.Press("Check payment")
}

// TestExtraAsk asks about a payment on the invoice's page, which answers there.
func TestExtraAsk(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	inv := w.Invoice("4900000", nil)
	send := func(amount int64, data []byte) string {
		hash, err := w.Node.SendToken(t.Context(), w.Node.Keys.Payer, common.HexToAddress(inv.Invoice.MerchantAddress), big.NewInt(amount), data)
		expect.OK(t, err)
		return hash.Hex()
	}
	const tooLittle = 4_100_003
	g := newGate(t, w)
	// The page asks again after some seconds.
	p := browsertest.Open(t, browsertest.Options{Script: `{ const set = window.setTimeout; window.setTimeout = (f, ms, ...args) => set(f, ms > 3000 ? 300 : ms, ...args); }`})
	p.Go(g.URL + "/checkout/" + inv.ID)
	p.Eval("void (window.mark = true)", nil)
	short := send(tooLittle, nil)
	awaitStored(t, w, common.HexToHash(short))
	p.Await(`document.querySelector(".asking[open]")`)
	p.AwaitText("#status", "has received a different amount")

	ask(p, "hello")
	p.AwaitText("#answer", "This is not a transaction hash")
	p.Axe(web)
	begun := time.Now()
	ask(p, short)
	p.AwaitText("#answer", "too little")
	t.Logf("answered after %v", time.Since(begun))
	p.AwaitText(`#answer a:not([href^="mailto:"])`, "Is this your payment?")
	p.Axe(web)
	shot(p, "answer")

	w.Node.Hold(time.Minute)
	late := send(price, common.FromHex(inv.OnChainInvoiceID))
	ask(p, late)
	p.AwaitText("#answer", "Sent, but not carried out yet")
	w.Node.Hold(0)
	p.AwaitText("#answer", "Your payment is counted") // without a reload
	p.Await(settled + " && window.mark")

	g.broken.Store(true)
	ask(p, short)
	p.Await(`location.pathname.endsWith("/check")`) // the browser shows what it gets
}
