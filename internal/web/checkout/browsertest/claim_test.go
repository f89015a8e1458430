package browsertest_test

import (
	"context"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestExtraClaim claims a payment by a signature of the wallet, with one wallet in the browser and with two.
func TestExtraClaim(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	for _, second := range []bool{false, true} {
		wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, true))
		o := browsertest.Options{Wallets: []*browsertest.Wallet{wallet}}
		sign := "Sign with your wallet"
		if second {
			o.Wallets = append(o.Wallets, browsertest.NewWallet(t, w, "Owl", w.NewAccount(0, false)))
			sign = "Sign with Fox"
		}
		inv := w.Invoice("4900000", nil)
		const tooLittle = 4_100_003
		data := contracts.NewTestUSDC().PackTransfer(common.HexToAddress(inv.Invoice.MerchantAddress), big.NewInt(tooLittle))
		hash, err := wallet.Send(t.Context(), common.HexToAddress(w.Info.Chain.Token), data)
		if err == nil {
			_, err = w.Node.Mined(t.Context(), hash)
		}
		expect.OK(t, err)
		awaitStored(t, w, hash)
		p := browsertest.Open(t, o)
		p.Go(w.CheckoutURL(inv.ID) + "/check?tx=" + hash.Hex())
		p.Press(sign)
		p.AwaitText("#verdict", "4.100003 USDC")
		p.Await(`document.getElementById("claim") === null`)
		if got := paymentsOf(t, w, inv.ID); len(got) != 1 {
			t.Errorf("the invoice has %d payments", len(got))
		}
		isClean(t, w, p)
	}
}

// awaitStored waits until the service has read a payment without an invoice.
func awaitStored(t *testing.T, w *browsertest.World, hash common.Hash) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), browsertest.Patience)
	defer cancel()
	const pause = 50 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		filter := client.PaymentFilter{TxHash: hash.Hex(), IncludePending: true, IncludeUnattributed: true}
		for _, err := range w.Client.Payments(ctx, filter) {
			expect.OK(t, err)
			return
		}
		<-tick.C
	}
}

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
