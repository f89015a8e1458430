package browsertest_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestExtraFollow follows payments that the page cannot see. It never claims that nothing was paid.
func TestExtraFollow(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{NoGasless: true})
	payer := func(t *testing.T) *browsertest.Wallet {
		return browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, true))
	}
	t.Run("too little time", func(t *testing.T) { littleTime(t, w, payer(t)) })
	t.Run("the wallet uses another network", func(t *testing.T) { leavesNetwork(t, w, payer(t)) })
	t.Run("the payment is taken back", func(t *testing.T) { takenBack(t, w, payer(t)) })
	t.Run("the wallet is gone", func(t *testing.T) { walletGone(t, w, payer(t)) })
}

// claims is a script that records whether the page claims that nothing was paid.
const claims = `
window.told = false;
addEventListener("DOMContentLoaded", () => {
  const part = document.getElementById("wallet-pay");
  new MutationObserver(() => { told ||= part.textContent.includes("Nothing was paid"); }).observe(part, { childList: true, subtree: true });
});`

// brisk shortens the pauses between the page's looks.
const brisk = `{ const set = window.setTimeout; window.setTimeout = (f, ms, ...args) => set(f, ms > 900 && ms < 9000 ? 100 : ms, ...args); }`

// leavesNetwork has the wallet change its network while its transaction waits. The account has sent transactions there,
// and that network knows neither the transaction nor a transfer.
func leavesNetwork(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet) {
	var left atomic.Bool
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		switch c.Method {
		case "eth_sendTransaction": // no block contains it yet
			return common.HexToHash("0xdead").Hex(), true, nil
		case "eth_getTransactionReceipt":
			return nil, left.Load(), nil
		case "eth_getTransactionByHash":
			return map[string]string{}, !left.Load(), nil
		case "eth_getTransactionCount":
			return "0x5", left.Load(), nil
		case "eth_getLogs":
			return []string{}, left.Load(), nil
		}
		return nil, false, nil
	})
	p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{Script: claims + brisk}, wallet)
	p.Press("Pay with Fox")
	p.Press("Pay 4.90 USDC")
	p.AwaitText("#wallet-pay", "Please do not pay again")
	left.Store(true)
	wallet.SetChainID(1)
	looks := func(n int) { // until the page has looked as often, or claims that nothing was paid
		before := len(wallet.Calls("eth_getTransactionReceipt", "eth_chainId"))
		for range 400 {
			if p.Becomes("window.told", 50*time.Millisecond) {
				t.Fatal("the page said that nothing was paid")
			}
			if len(wallet.Calls("eth_getTransactionReceipt", "eth_chainId")) >= before+n {
				return
			}
		}
		t.Fatal("the page no longer looks")
	}
	looks(5)
	const settling = 30 // seconds, more than the page waits before it takes a transaction for replaced
	advance(t, w, settling)
	looks(5)
	p.AwaitText("#wallet-pay", "Fox does not use Local test chain")
	p.Axe(web)
	shot(p, "elsewhere")
	left.Store(false)
	wallet.SetChainID(w.Info.Chain.ChainID)
	p.Await(`!document.getElementById("wallet-pay").innerText.includes("does not use")`)
	p.AwaitText("#wallet-pay", "Please do not pay again")
}

// walletGone opens the page of a lost transaction in a tab without the wallet. After some time the tab offers the
// other ways to pay.
func walletGone(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet) {
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		return common.HexToHash("0xdead").Hex(), c.Method == "eth_sendTransaction", nil
	})
	inv := w.Invoice("4900000", nil)
	p := pay(t, w, inv, wallet)
	p.AwaitText("#wallet-pay", "Please do not pay again")
	other := p.OpenBeside(browsertest.Options{})
	other.Go(w.CheckoutURL(inv.ID))
	other.AwaitText("#wallet-pay", "Please do not pay again")
	other.Await(`!document.getElementById("send").checkVisibility()`)
	const giveUp = 601 // seconds
	advance(t, w, giveUp)
	other.Press("Nothing sent: pay now")
	other.AwaitText("#wallet-pay", "Your wallet is no longer in this browser.")
	other.Await(`document.getElementById("send").checkVisibility()`)
	shot(other, "wallet-gone")
}

// takenBack pays a part. Then the service no longer reports it, as after a reorg. The wallet is not asked again, since
// the network may carry out the transaction again.
func takenBack(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet) {
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		if c.Method != "eth_sendTransaction" {
			return nil, false, nil
		}
		hash, err := sendLess(wallet, c)
		return hash, true, err
	})
	p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{Script: `
{
  const get = window.fetch;
  window.fetch = async (...args) => {
    const answer = await get(...args);
    if (!window.dropped || !String(args[0]).includes("/wallet?")) return answer;
    return Response.json({ ...await answer.json(), payments: [] });
  };
}`}, wallet)
	p.Press("Pay with Fox")
	p.Press("Pay 4.90 USDC")
	p.AwaitText("#pay", "2.90")
	p.AwaitText("#wallet-pay", "Pay with Fox")
	p.Eval("void (window.dropped = true)", nil)
	p.Press("Pay with Fox")
	p.AwaitText("#wallet-pay", "Please do not pay again")
	p.Eval("void (window.dropped = false)", nil)
	p.Press("Pay with Fox")
	p.AwaitText("#wallet-pay", "You pay 2.90 USDC")
	expect.Equal(t, len(wallet.Calls("eth_sendTransaction")), 1, "the wallet was asked … times:")
}

// littleTime asks a wallet for a transaction that no block can contain in time.
func littleTime(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet) {
	const lifetime, left = 120, 30 // seconds
	p := open(t, w, w.Invoice("4900000", func(r *apitypes.CreateInvoiceRequest) {
		r.ExpiresAt = time.Now().Unix() + lifetime
	}), browsertest.Options{}, wallet)
	p.Press("Pay with Fox")
	p.AwaitText("#wallet-pay", "You pay 4.90 USDC")
	advance(t, w, lifetime-left)
	p.Press("Pay 4.90 USDC")
	p.AwaitText("#wallet-pay", "Too little time is left to pay this way.")
	expect.Equal(t, len(wallet.Calls("eth_sendTransaction")), 0, "the wallet was asked … times:")
}

// TestExtraUnsentSignature signs while the service does not take authorizations. The page does not claim that the payment
// is being sent.
func TestExtraUnsentSignature(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	g := newGate(t, w)
	g.deaf.Store(true)
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
	p := browsertest.Open(t, browsertest.Options{Wallets: []*browsertest.Wallet{wallet}})
	p.Go(g.URL + "/checkout/" + w.Invoice("4900000", nil).ID)
	p.Press("Pay with Fox")
	p.Press("Pay 4.90 USDC")
	p.AwaitText("#wallet-pay", "No connection.")
	p.Await(`!/Sent|do not pay again/.test(document.getElementById("wallet-pay").innerText)`)
	p.Await(`!document.getElementById("send").checkVisibility()`)
	p.Axe(web)
	shot(p, "unsent")
	g.deaf.Store(false)
	p.Await(counted)
	paidOnce(t, w, wallet)
}

// TestExtraCanceledSignature cancels while the page still reads from the node after the signature. The signature is
// dropped.
func TestExtraCanceledSignature(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
	held, reads := make(chan struct{}), make(chan struct{}, 1)
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		if c.Method == "eth_blockNumber" && len(wallet.Calls("eth_signTypedData_v4")) > 0 {
			reads <- struct{}{}
			<-held
		}
		return nil, false, nil
	})
	inv := w.Invoice("4900000", nil)
	p := pay(t, w, inv, wallet)
	<-reads
	p.Press("Cancel")
	p.AwaitText("#wallet-pay", "Pay with Fox")
	close(held)
	if p.Becomes(`localStorage.getItem("quittance:sent:`+inv.ID+`") !== null`, 2*time.Second) {
		t.Error("the signature was kept")
	}
	if got := w.Balance(wallet.Address().Hex()); got.Int64() != tokens {
		t.Errorf("the account has %s", got)
	}
}
