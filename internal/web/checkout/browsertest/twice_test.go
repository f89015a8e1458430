package browsertest_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"sync/atomic"
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
	t.Run("paid from elsewhere meanwhile", func(t *testing.T) { paidMeanwhile(t, w) })
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
	expect.Len(t, p.Errors(), 0, "the page has errors:")
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

// paidMeanwhile has another account pay while the window of the second wallet is open. The page asks the payer to
// refuse the request, and shows no further message once that is done.
func paidMeanwhile(t *testing.T, w *browsertest.World) {
	fox, wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, true)), browsertest.NewWallet(t, w, "Owl", w.NewAccount(tokens, true))
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
	p := open(t, w, inv, browsertest.Options{}, fox, wallet)
	p.Press("Pay with Fox")
	p.AwaitText("#wallet-pay", "You pay 4.90 USDC")
	p.Press("Use another wallet")
	p.Press("Pay with Owl")
	p.Press("Pay 4.90 USDC")
	<-opened
	payPart(t, w, inv, price)
	const warned = `document.getElementById("wallet-pay").innerText.includes("Refuse the request in Owl, so that you do not pay twice")`
	p.Await(warned)
	if p.Becomes("!("+warned+")", 2*time.Second) {
		t.Errorf("the warning was replaced by %q", p.Text("#wallet-pay"))
	}
	p.Axe(web)
	shot(p, "paid-meanwhile")
	close(answered)
	p.Await(`document.getElementById("wallet-pay").hidden`)
	p.Await(settled)
}

// TestExtraNotSentTwice makes the page lose track of a payment in every way.
func TestExtraNotSentTwice(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{NoGasless: true})
	payer := func(t *testing.T) *browsertest.Wallet {
		return browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, true))
	}
	t.Run("another invoice of the same price", func(t *testing.T) { otherInvoice(t, w, payer(t)) })
	t.Run("an error after it was sent", func(t *testing.T) { errorAfterSending(t, w, payer(t)) })
	t.Run("payments cannot be seen", func(t *testing.T) { blindMeanwhile(t, w) })
	t.Run("a record that is not ours", func(t *testing.T) {
		inv := w.Invoice("4900000", nil)
		p := open(t, w, inv, browsertest.Options{Script: `localStorage.setItem("quittance:sent:` + inv.ID + `", '{"version":1,"hash":7}')`}, payer(t))
		p.AwaitText("#wallet-pay", "Pay with Fox")
	})
	for name, script := range map[string]string{
		"refused": `Object.defineProperty(window, "localStorage", { get() { throw new DOMException("denied", "SecurityError"); } })`,
		"full":    `Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); }`,
	} {
		t.Run("storage that is "+name, func(t *testing.T) {
			wallet := payer(t)
			p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{Script: script}, wallet)
			p.Press("Pay with Fox")
			p.AwaitText("#wallet-pay", "Allow this page to store data")
			p.Await(`document.getElementById("send").checkVisibility()`) // the next step
			expect.Equal(t, len(wallet.Calls("eth_signTypedData_v4", "eth_sendTransaction")), 0, "the wallet was asked … times:")
		})
	}
	t.Run("sped up, and a node is behind", func(t *testing.T) { spedUp(t, w, payer(t)) })
	t.Run("a lost transaction", func(t *testing.T) { lostTransaction(t, w, payer(t)) })
}

// errorAfterSending has the wallet send the transaction, and answer with an error, as if it had not.
func errorAfterSending(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet) {
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		if c.Method != "eth_sendTransaction" {
			return nil, false, nil
		}
		if _, err := wallet.Perform(t.Context(), c); err != nil {
			return nil, true, err
		}
		return nil, true, &browsertest.RPCError{Code: -32000, Message: "insufficient funds for gas * price + value"}
	})
	w.Node.Hold(time.Minute)
	p := pay(t, w, w.Invoice("4900000", nil), wallet)
	p.AwaitText("#wallet-pay", "Did Fox send it?")
	w.Node.Hold(0)
	p.Await(counted)
	paidOnce(t, w, wallet)
}

// otherInvoice has the wallet not answer for one invoice, and pay another one with the same amount.
// The page of the first does not take that payment for its own.
func otherInvoice(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet) {
	wallet.Refuse("eth_sendTransaction", browsertest.ErrNoAnswer)
	inv, other := w.Invoice("4900000", nil), w.Invoice("4900000", nil)
	p := pay(t, w, inv, wallet)
	p.AwaitText("#wallet-pay", "Confirm in Fox")
	call := p.AwaitCall(wallet, "eth_sendTransaction")
	call.Params[0] = json.RawMessage(strings.ReplaceAll(string(call.Params[0]), strings.TrimPrefix(inv.OnChainInvoiceID, "0x"), strings.TrimPrefix(other.OnChainInvoiceID, "0x")))
	hash, err := wallet.Perform(t.Context(), call)
	expect.OK(t, err)
	expect.Success(t)(w.Node.Mined(t.Context(), hash.(common.Hash)))
	p.Reload()
	p.AwaitText("#wallet-pay", "Did Fox send it?")
	wallet.Answer(nil)
	p.Press("Nothing sent: pay now")
	p.Press("Pay 4.90 USDC")
	p.Await(counted)
}

// blindMeanwhile pays a part, and has the wallet not answer for the rest. Then the service reports
// that no amount is due, as it does while it cannot see payments.
func blindMeanwhile(t *testing.T, w *browsertest.World) {
	key := w.NewAccount(tokens, true)
	wallet := browsertest.NewWallet(t, w, "Fox", key)
	inv := w.Invoice("4900000", nil)
	expect.Success(t)(w.Node.SendToken(t.Context(), key, common.HexToAddress(inv.Invoice.MerchantAddress), big.NewInt(2_000_000), common.FromHex(inv.OnChainInvoiceID)))
	wallet.Refuse("eth_sendTransaction", browsertest.ErrNoAnswer)
	p := open(t, w, inv, browsertest.Options{Script: blinded}, wallet)
	p.Await(`document.getElementById("status").className === "state-partial"`)
	p.Press("Pay with Fox")
	p.Press("Pay 2.90 USDC")
	p.AwaitCall(wallet, "eth_sendTransaction")
	p.Eval(`void sessionStorage.setItem("blind", "1")`, nil)
	p.Reload()
	p.Await(`window.answered >= 2`)
	p.AwaitText("#wallet-pay", "Did Fox send it?")
}

// blinded has the service report that no amount is due once the session has the item blind.
const blinded = `
window.answered = 0;
{
  const get = window.fetch;
  window.fetch = async (...args) => {
    const answer = await get(...args);
    if (!String(args[0]).includes("/wallet?") || !sessionStorage.getItem("blind")) return answer;
    const invoice = await answer.json();
    answered++;
    return Response.json({ ...invoice, due: "0" });
  };
}`

// spedUp has the wallet replace its transaction by a faster one, which is mined. The node that is
// asked for transfers lacks the block at first. The page must not report that the payment failed.
func spedUp(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet) {
	var asked atomic.Int32
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		switch {
		case c.Method == "eth_sendTransaction":
			hash, err := wallet.Perform(t.Context(), c)
			if err == nil {
				_, err = w.Node.Mined(t.Context(), hash.(common.Hash))
			}
			return common.HexToHash("0xdead").Hex(), true, err // the hash of the slow one
		case c.Method == "eth_getLogs" && asked.Add(1) == 1:
			return []string{}, true, nil
		}
		return nil, false, nil
	})
	p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{Script: unseen}, wallet)
	p.Press("Pay with Fox")
	p.Press("Pay 4.90 USDC")
	p.AwaitText("#wallet-pay", "The network has your payment")
	var told bool
	if p.Eval("window.told", &told); told {
		t.Error("the page said that nothing was paid")
	}
	paidOnce(t, w, wallet)
}

// unseen has the service see no payment, and records whether the page claims that nothing was paid.
const unseen = claims + `
{
  const get = window.fetch;
  window.fetch = async (...args) => {
    const answer = await get(...args);
    if (!String(args[0]).includes("/wallet?")) return answer;
    const invoice = await answer.json();
    return Response.json({ ...invoice, due: invoice.amount, payments: [] });
  };
}`

// lostTransaction has the wallet return the hash of a transaction that does not exist. After some time
// the payer can send it again with the same nonce, so that only one of the two can be mined.
func lostTransaction(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet) {
	var asked atomic.Int32
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		return common.HexToHash("0xdead").Hex(), c.Method == "eth_sendTransaction" && asked.Add(1) == 1, nil
	})
	inv := w.Invoice("4900000", nil)
	p := pay(t, w, inv, wallet)
	p.AwaitText("#wallet-pay", "Please do not pay again")
	const giveUp = 600 // seconds after which an unknown transaction may be sent again
	advance(t, w, giveUp+1)
	p.Press("Nothing sent: pay now")
	p.Press("Pay 4.90 USDC")
	p.Await(counted)
	paidOnce(t, w, wallet)
	calls := wallet.Calls("eth_sendTransaction")
	if last := string(calls[len(calls)-1].Params[0]); len(calls) != 2 || !strings.Contains(last, `"nonce":"0x0"`) {
		t.Errorf("the wallet was asked %d times, last for %s", len(calls), last)
	}
}

// TestExtraAuthorizationSubmittedByOthers makes the service refuse a nonce that the token has seen. The page does not
// claim that nothing was paid, because another party may have submitted the authorization.
func TestExtraAuthorizationSubmittedByOthers(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
	p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{Script: `
window.refused = 0;
{
  const get = window.fetch;
  window.fetch = async (...args) => {
    if (!String(args[0]).includes("/authorization") || refused > 1) return get(...args);
    refused++;
    return Response.json({ reason: "nonce_used" }, { status: 422 });
  };
}`}, wallet)
	p.Press("Pay with Fox")
	p.Press("Pay 4.90 USDC")
	p.Await(`window.refused > 0`)
	p.AwaitText("#wallet-pay", "Please do not pay again")
	p.Await(counted)
	paidOnce(t, w, wallet)
}
