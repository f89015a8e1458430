package browsertest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestExtraNotPaidTwice uses wallets with misleading answers, and payers who press every button that they can.
func TestExtraNotPaidTwice(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{NoGasless: true})
	payer := func(t *testing.T) *browsertest.Wallet {
		return browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, true))
	}
	t.Run("an answer that is no hash", func(t *testing.T) { answerWithoutHash(t, w, payer(t)) })
	t.Run("both requests are confirmed", func(t *testing.T) { bothConfirmed(t, w, payer(t)) })
	t.Run("a hash of a contract account's wallet", func(t *testing.T) { hashOfContract(t, w, payer(t)) })
	t.Run("a lost transaction of another wallet", func(t *testing.T) { lostOfOther(t, w) })
	t.Run("paid from elsewhere meanwhile", func(t *testing.T) { paidMeanwhile(t, w, payer(t)) })
}

// answerWithoutHash has the wallet send, and answer with an object.
func answerWithoutHash(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet) {
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		if c.Method != "eth_sendTransaction" {
			return nil, false, nil
		}
		_, err := wallet.Perform(t.Context(), c)
		return map[string]bool{"success": true}, true, err
	})
	w.Node.Hold(time.Minute)
	p := pay(t, w, w.Invoice("4900000", nil), wallet)
	p.AwaitText("#wallet-pay", "Did Fox send it?")
	p.Press("Nothing sent: pay now")
	p.AwaitText("#wallet-pay", "an unfinished transaction")
	w.Node.Hold(0)
	p.Await(counted)
	p.Await(`document.getElementById("wallet-pay").hidden`)
	paidOnce(t, w, wallet)
	if faults := p.Errors(); len(faults) != 0 {
		t.Errorf("the page has errors: %q", faults)
	}
}

// bothConfirmed has a payer press "Nothing was sent" while the wallet still shows its request, and
// confirm that request and the next one. Both have the same nonce.
func bothConfirmed(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet) {
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		if c.Method != "eth_sendTransaction" {
			return nil, false, nil
		}
		asked := wallet.Calls("eth_sendTransaction")
		if len(asked) == 1 {
			return nil, true, browsertest.ErrNoAnswer
		}
		if _, err := wallet.Perform(t.Context(), asked[0]); err != nil {
			return nil, true, err
		}
		hash, err := wallet.Perform(t.Context(), c)
		if err != nil { // as wallets pass on errors of nodes
			err = &browsertest.RPCError{Code: -32000, Message: err.Error()}
		}
		return hash, true, err
	})
	p := pay(t, w, w.Invoice("4900000", nil), wallet)
	p.AwaitCall(wallet, "eth_sendTransaction")
	p.Reload()
	p.Press("Nothing sent: pay now")
	p.Press("Pay 4.90 USDC")
	p.Await(counted)
	p.Await(`document.getElementById("wallet-pay").hidden`)
	paidOnce(t, w, wallet)
}

// hashOfContract has the wallet of a contract account answer with a hash that no block will contain,
// as wallets that collect signatures do.
func hashOfContract(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet) {
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		switch c.Method {
		case "eth_getCode":
			return "0x6001", true, nil
		case "eth_getTransactionCount": // contracts send no transactions
			return "0x1", true, nil
		case "eth_sendTransaction":
			_, err := wallet.Perform(t.Context(), c)
			return common.HexToHash("0xdead").Hex(), true, err
		}
		return nil, false, nil
	})
	p := pay(t, w, w.Invoice("4900000", nil), wallet)
	p.Await(counted)
	p.Await(`document.getElementById("wallet-pay").hidden`)
	paidOnce(t, w, wallet)
}

// lostOfOther has a payer give up a transaction that was lost, and pay with another wallet, which has
// another account and nonce.
func lostOfOther(t *testing.T, w *browsertest.World) {
	fox, owl := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, true)), browsertest.NewWallet(t, w, "Owl", w.NewAccount(tokens, true))
	hash, err := owl.Send(t.Context(), owl.Address(), nil)
	if err == nil {
		_, err = w.Node.Mined(t.Context(), hash)
	}
	expect.OK(t, err)
	fox.Answer(func(c browsertest.Call) (any, bool, error) {
		return common.HexToHash("0xdead").Hex(), c.Method == "eth_sendTransaction", nil
	})
	p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{}, fox, owl)
	p.Press("Pay with Fox")
	p.Press("Pay 4.90 USDC")
	p.AwaitText("#wallet-pay", "Please do not pay again")
	const giveUp = 601 // seconds
	advance(t, w, giveUp)
	p.Press("Nothing sent: pay now")
	p.AwaitText("#wallet-pay", "You pay 4.90 USDC")
	p.Press("Use another wallet")
	p.Press("Pay with Owl")
	p.Press("Pay 4.90 USDC")
	p.Await(counted)
	paidOnce(t, w, owl)
	for _, c := range owl.Calls("eth_sendTransaction") {
		if strings.Contains(string(c.Params[0]), "nonce") {
			t.Errorf("Owl was asked for %s", c.Params[0])
		}
	}
}

// paidMeanwhile has another account pay while the wallet's window is open. The page asks the payer to
// refuse the request, and shows no further message once that is done.
func paidMeanwhile(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet) {
	opened, answered := make(chan struct{}), make(chan struct{})
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		if c.Method != "eth_sendTransaction" {
			return nil, false, nil
		}
		close(opened)
		<-answered
		return nil, true, browsertest.ErrRejected
	})
	inv := w.Invoice("4900000", nil)
	p := pay(t, w, inv, wallet)
	<-opened
	payPart(t, w, inv, price)
	p.AwaitText("#wallet-pay", "Refuse the request in Fox, so that you do not pay twice")
	p.Axe(web)
	shot(p, "paid-meanwhile")
	close(answered)
	p.Await(`document.getElementById("wallet-pay").hidden`)
	p.Await(settled)
}
