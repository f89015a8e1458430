package browsertest_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// payWithoutScripts has the payer send the amount that the page shows, from any wallet.
func payWithoutScripts(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet, o browsertest.Options, _ string) {
	o.NoScript, o.Wallets = true, nil
	inv := w.Invoice("4900000", nil)
	p := browsertest.Open(t, o)
	p.Go(w.CheckoutURL(inv.ID))
	amount := askedAmount(t, p)
	to := common.HexToAddress(p.Text("#send .address code"))
	expect.Success(t)(wallet.Send(t.Context(), common.HexToAddress(w.Info.Chain.Token), contracts.NewTestUSDC().PackTransfer(to, amount)))
	awaitState(t, w, inv.ID, "#status.state-paid")
	p.Reload()
	p.AwaitText("#status", "Thank you.")
	if got := w.Read(inv.ID); got.AmountPaid != amount.String() || got.Exception != "" {
		t.Errorf("the invoice has %s, %s", got.AmountPaid, got.Exception)
	}
}

// payNextDay leaves the page open overnight, and then pays.
func payNextDay(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet, o browsertest.Options, _ string) {
	const night = 12 * 60 * 60
	inv := w.Invoice("4900000", func(r *apitypes.CreateInvoiceRequest) { r.ExpiresAt = time.Now().Unix() + 2*night })
	p := browsertest.Open(t, o)
	p.Go(w.CheckoutURL(inv.ID))
	p.Press("Pay with Fox")
	p.AwaitText("#wallet-pay", "You pay 4.90 USDC")
	advance(t, w, night)
	elapse(p, night)
	walk(t, []*browsertest.Page{p}, false)
	paidOnce(t, w, wallet)
}

// payTooLate has the payer confirm in the wallet after the time to pay. The page offers the merchant's
// page, and asks for no payment.
func payTooLate(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet, o browsertest.Options, pays string) {
	inv := w.Invoice("4900000", func(r *apitypes.CreateInvoiceRequest) {
		order(r)
		r.ExpiresAt = time.Now().Unix() + 62
	})
	opened, confirmed := make(chan struct{}), make(chan struct{})
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		if c.Method == pays {
			close(opened)
			<-confirmed
		}
		return nil, false, nil
	})
	p := browsertest.Open(t, o)
	p.Go(w.CheckoutURL(inv.ID))
	p.Press("Pay with Fox")
	p.Press("Pay 4.90 USDC")
	<-opened
	const late = 120
	advance(t, w, late)
	p.AwaitText("#wallet-pay", "Refuse the request in Fox")
	p.Eval("void (performance.now = ((now) => () => now.call(performance) + 120_000)(performance.now))", nil)
	close(confirmed)
	sends := pays == "eth_sendTransaction"
	if sends {
		p.AwaitText("#status", "Paid too late")
		paidOnce(t, w, wallet)
	} else {
		p.AwaitText("#wallet-pay", "Nothing was paid.")
		if got := w.Balance(wallet.Address().Hex()); got.Int64() != tokens {
			t.Errorf("the account has %s", got)
		}
	}
	p.Await(`document.getElementById("status").className === "state-expired" && document.querySelector("#back a") && !document.querySelector("#pay > *")`)
	if n := len(wallet.Calls("eth_signTypedData_v4", "eth_sendTransaction")); n != 1 {
		t.Errorf("the wallet was asked %d times", n)
	}
}
