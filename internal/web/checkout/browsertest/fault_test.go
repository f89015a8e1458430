package browsertest_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestExtraFaults makes wallets fail in every way before a payment: the page explains the failure, pays
// nothing, and the next try pays.
func TestExtraFaults(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	for i, test := range []struct {
		name   string
		method string
		err    error
		says   string
	}{
		{"no connection", "eth_requestAccounts", browsertest.ErrRejected, "You refused in your wallet."},
		{"another request", "eth_requestAccounts", browsertest.ErrPending, "another request"},
		{"no signature", "eth_signTypedData_v4", browsertest.ErrRejected, "You refused in your wallet."},
		{"disconnected while it signs", "eth_signTypedData_v4", browsertest.ErrDisconnected, "does not answer"},
		{"an error of its own", "eth_signTypedData_v4", &browsertest.RPCError{Code: -32603, Message: "keyring is locked"}, "Your wallet reports: keyring is locked"},
	} {
		t.Run(test.name, func(t *testing.T) {
			wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
			wallet.Refuse(test.method, test.err)
			p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{}, wallet)
			p.Press("Pay with Fox")
			if test.method != "eth_requestAccounts" {
				p.Press("Pay 4.90 USDC")
			}
			p.AwaitText("#wallet-pay", test.says)
			if i == 0 { // the others differ only in the text
				p.Axe(web)
			}
			payAgain(t, w, p, wallet)
		})
	}
	t.Run("another chain", func(t *testing.T) {
		wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
		wallet.SetChainID(1)
		p := pay(t, w, w.Invoice("4900000", nil), wallet)
		p.Await(counted)
		if len(wallet.Calls("wallet_switchEthereumChain")) == 0 {
			t.Error("the wallet was not asked to switch")
		}
	})
	t.Run("a chain that it lacks", func(t *testing.T) {
		wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
		wallet.SetChainID(1)
		wallet.Refuse("wallet_switchEthereumChain", &browsertest.RPCError{Code: 4902, Message: "Unrecognized chain ID."})
		p := pay(t, w, w.Invoice("4900000", nil), wallet)
		p.Await(counted)
		if len(wallet.Calls("wallet_addEthereumChain")) == 0 {
			t.Error("the wallet was not asked to add the chain")
		}
	})
	t.Run("a false chain id", func(t *testing.T) { falseChain(t, w) })
	t.Run("another account meanwhile", func(t *testing.T) {
		first, second := w.NewAccount(tokens, false), w.NewAccount(tokens, false)
		wallet := browsertest.NewWallet(t, w, "Fox", first)
		p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{}, wallet)
		p.Press("Pay with Fox")
		p.AwaitText("#wallet-pay", "From your account")
		wallet.SetKeys(second) // without an event
		p.Press("Pay 4.90 USDC")
		p.AwaitText("#wallet-pay", "now uses another account")
		p.Press("Try again")
		p.AwaitText("#wallet-pay", "From your account")
		wallet.SetKeys(first)
		p.Emit(0, "accountsChanged", []string{crypto.PubkeyToAddress(first.PublicKey).Hex()})
		p.AwaitText("#wallet-pay", crypto.PubkeyToAddress(first.PublicKey).Hex()[:8])
		p.Press("Pay 4.90 USDC")
		p.Await(counted)
	})
	for name, seconds := range map[string]int{"slow": -3600, "fast": 3600} {
		t.Run("a clock that is an hour "+name, func(t *testing.T) {
			wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
			o := browsertest.Options{Script: fmt.Sprintf(`{ const now = Date.now; Date.now = () => now() + %d * 1000; }`, seconds)}
			p := open(t, w, w.Invoice("4900000", nil), o, wallet)
			p.Press("Pay with Fox")
			p.Press("Pay 4.90 USDC")
			p.Await(counted)
		})
	}
	t.Run("no answer", func(t *testing.T) {
		wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
		wallet.Refuse("eth_signTypedData_v4", browsertest.ErrNoAnswer)
		p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{Script: quicker}, wallet)
		p.Press("Pay with Fox")
		p.Press("Pay 4.90 USDC")
		p.AwaitText("#wallet-pay", "has not answered yet")
		p.Await(`!document.getElementById("send").checkVisibility()`)
		wallet.Answer(nil)
		p.Press("Cancel")
		p.Press("Pay with Fox")
		p.Await(`document.getElementById("send").checkVisibility()`)
		p.Press("Pay 4.90 USDC")
		p.Await(counted)
		paidOnce(t, w, wallet)
	})
}

// quicker shortens the page's timers of more than ten seconds to a second, except the one that reloads a page without
// its script.
const quicker = `{ const set = window.setTimeout; window.setTimeout = (f, ms, ...args) => set(f, ms > 10_000 && ms < 60_000 ? 1000 : ms, ...args); }`

// paidOnce checks that the wallet's account paid one invoice.
func paidOnce(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet) {
	t.Helper()
	if got := w.Balance(wallet.Address().Hex()); got.Int64() != tokens-price {
		t.Errorf("the account has %s, want %d", got, tokens-price)
	}
}

// falseChain pays with a wallet that reports the right chain id but is connected to another chain.
func falseChain(t *testing.T, w *browsertest.World) {
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		return map[string]string{"hash": common.HexToHash("0x1").Hex()}, c.Method == "eth_getBlockByNumber", nil
	})
	p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{}, wallet)
	p.Press("Pay with Fox")
	p.AwaitText("#wallet-pay", "is on another network")
	shot(p, "false-chain")
	expect.Equal(t, len(wallet.Calls("eth_signTypedData_v4", "eth_sendTransaction")), 0, "the wallet was asked … times:")
}

// TestExtraSent checks what the page stores about transactions.
func TestExtraSent(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{NoGasless: true})
	payer := func(t *testing.T) *browsertest.Wallet {
		return browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, true))
	}
	t.Run("before the block, a reload and another tab", func(t *testing.T) {
		wallet := payer(t)
		inv := w.Invoice("4900000", nil)
		o := browsertest.Options{Wallets: []*browsertest.Wallet{wallet}}
		first := browsertest.Open(t, o)
		first.Go(w.CheckoutURL(inv.ID))
		second := first.OpenBeside(o)
		second.Go(w.CheckoutURL(inv.ID))
		second.AwaitText("#wallet-pay", "Pay with Fox")
		const long = time.Minute
		w.Node.Hold(long)
		first.Press("Pay with Fox")
		first.Press("Pay 4.90 USDC")
		first.AwaitText("#wallet-pay", "Please do not pay again")
		first.AwaitText("#wallet-pay", "Transaction")
		shot(first, "sent")
		first.Axe(web)
		second.AwaitText("#wallet-pay", "Please do not pay again")
		first.Reload()
		first.AwaitText("#wallet-pay", "Please do not pay again")
		first.Await(`getComputedStyle(document.getElementById("pay")).display === "none"`)
		w.Node.Hold(0)
		first.Await(counted)
		second.Await(counted)
		first.Await(`document.getElementById("wallet-pay").hidden`)
		paidOnce(t, w, wallet)
		expect.Equal(t, len(wallet.Calls("eth_sendTransaction")), 1, "the wallet was asked … times:")
	})
	t.Run("two tabs ask", func(t *testing.T) {
		wallet := payer(t)
		inv := w.Invoice("4900000", nil)
		o := browsertest.Options{Wallets: []*browsertest.Wallet{wallet}}
		first := browsertest.Open(t, o)
		first.Go(w.CheckoutURL(inv.ID))
		second := first.OpenBeside(o)
		second.Go(w.CheckoutURL(inv.ID))
		for _, p := range []*browsertest.Page{first, second} {
			p.Press("Pay with Fox")
			p.AwaitText("#wallet-pay", "You pay 4.90 USDC")
		}
		first.Press("Pay 4.90 USDC")
		first.Await(counted)
		second.Await(counted)
		paidOnce(t, w, wallet)
	})
	t.Run("pressed twice", func(t *testing.T) {
		wallet := payer(t)
		p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{}, wallet)
		for _, text := range []string{"Pay with Fox", "Pay 4.90 USDC"} {
			p.AwaitText("#wallet-pay", text)
			p.Eval(fmt.Sprintf(`(() => {
				const button = [...document.querySelectorAll("#wallet-pay button")].find((b) => b.innerText.replaceAll("\u00a0", " ").trim() === %q);
				button.click();
				button.click();
				button.dispatchEvent(new MouseEvent("click", { bubbles: true }));
			})()`, text), nil)
		}
		p.Await(counted)
		paidOnce(t, w, wallet)
		expect.Equal(t, len(wallet.Calls("eth_sendTransaction")), 1, "the wallet was asked … times:")
	})
	t.Run("reloaded before the answer", func(t *testing.T) { reloadedBeforeAnswer(t, w, payer(t), true) })
	t.Run("canceled", func(t *testing.T) { reloadedBeforeAnswer(t, w, payer(t), false) })
	t.Run("replaced by nothing", func(t *testing.T) {
		wallet := payer(t)
		lost := common.HexToHash("0xdead")
		var asked atomic.Int32
		wallet.Answer(func(c browsertest.Call) (any, bool, error) {
			if c.Method != "eth_sendTransaction" || asked.Add(1) > 1 {
				return nil, false, nil
			}
			_, err := wallet.Send(t.Context(), wallet.Address(), nil) // another one with its nonce
			return lost.Hex(), true, err
		})
		p := pay(t, w, w.Invoice("4900000", nil), wallet)
		p.AwaitText("#wallet-pay", "canceled or replaced in your wallet")
		shot(p, "replaced")
		p.Press("Try again")
		p.Press("Pay 4.90 USDC")
		p.Await(counted)
		paidOnce(t, w, wallet)
	})
	t.Run("fails in its block", func(t *testing.T) {
		wallet := payer(t)
		var asked atomic.Int32
		wallet.Answer(func(c browsertest.Call) (any, bool, error) {
			if c.Method != "eth_sendTransaction" || asked.Add(1) > 1 {
				return nil, false, nil
			}
			hash, err := wallet.Send(t.Context(), common.HexToAddress(w.Info.Chain.Token), []byte{1, 2, 3, 4})
			return hash.Hex(), true, err
		})
		p := pay(t, w, w.Invoice("4900000", nil), wallet)
		p.AwaitText("#wallet-pay", "The network refused the payment")
		p.Press("Try again")
		p.Press("Pay 4.90 USDC")
		p.Await(counted)
		paidOnce(t, w, wallet)
	})
	t.Run("sends less", func(t *testing.T) { sendsLess(t, w, payer(t)) })
}

// reloadedBeforeAnswer reloads the page while the wallet's window is open, and the payer confirms in it.
// Or the payer cancels on the page and pays again.
func reloadedBeforeAnswer(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet, confirms bool) {
	wallet.Refuse("eth_sendTransaction", browsertest.ErrNoAnswer)
	p := pay(t, w, w.Invoice("4900000", nil), wallet)
	p.AwaitText("#wallet-pay", "Confirm in Fox")
	call := p.AwaitCall(wallet, "eth_sendTransaction")
	wallet.Answer(nil)
	if confirms {
		p.Reload()
	} else {
		p.Press("Cancel")
	}
	p.AwaitText("#wallet-pay", "Did Fox send it?")
	shot(p, "asked")
	if confirms {
		expect.Success(t)(wallet.Perform(t.Context(), call))
		p.Await(counted)
		p.Await(`document.getElementById("wallet-pay").hidden`)
	} else {
		p.Press("Nothing sent: pay now")
		p.Press("Pay 4.90 USDC")
		p.Await(counted)
	}
	paidOnce(t, w, wallet)
}

// sendsLess pays with a wallet that sends less than it was asked to. The page asks for the rest.
func sendsLess(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet) {
	var asked atomic.Int32
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		if c.Method != "eth_sendTransaction" || asked.Add(1) > 1 {
			return nil, false, nil
		}
		hash, err := sendLess(wallet, c)
		return hash, true, err
	})
	p := pay(t, w, w.Invoice("4900000", nil), wallet)
	p.Await(`document.getElementById("status").className === "state-partial"`)
	p.Press("Pay with Fox")
	p.Press("Pay 2.90 USDC")
	p.Await(counted)
	paidOnce(t, w, wallet)
}

// TestExtraExpiry lets an invoice expire while the wallet's window is open.
func TestExtraExpiry(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
	inv := w.Invoice("4900000", func(r *apitypes.CreateInvoiceRequest) { r.ExpiresAt = time.Now().Unix() + 62 })
	opened, confirmed := make(chan struct{}), make(chan struct{})
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		if c.Method == "eth_signTypedData_v4" {
			close(opened)
			<-confirmed
		}
		return nil, false, nil
	})
	p := pay(t, w, inv, wallet)
	<-opened
	advance(t, w, 120)
	p.AwaitText("#wallet-pay", "Refuse the request in Fox")
	p.Axe(web)
	// The browser's clock keeps running; the page's clock is the service's plus the elapsed time.
	p.Eval("void (performance.now = ((now) => () => now.call(performance) + 120_000)(performance.now))", nil)
	close(confirmed)
	p.AwaitText("#wallet-pay", "The time to pay has ended.")
	shot(p, "expired")
	if got := w.Balance(wallet.Address().Hex()); got.Int64() != tokens {
		t.Errorf("the account has %s", got)
	}
}

// TestExtraOverNight opens a page, and pays on the next day, after the invoice has expired.
func TestExtraOverNight(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
	p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{}, wallet)
	p.Press("Pay with Fox")
	p.AwaitText("#wallet-pay", "You pay 4.90 USDC")
	advance(t, w, 12*60*60)
	p.Step("#wallet-pay", []string{"Pay 4.90 USDC"}, "false") // whether or not the page shows that it has expired
	p.Await(`document.getElementById("status").className === "state-expired"`)
	// The last message can be dismissed, and then the page offers no further step.
	p.Await(`(() => {
		const part = document.getElementById("wallet-pay");
		[...part.querySelectorAll("button")].find((b) => b.textContent === "Try again")?.click();
		return part.hidden;
	})()`)
	expect.Equal(t, len(wallet.Calls("eth_signTypedData_v4", "eth_sendTransaction")), 0, "the wallet was asked … times:")
}

// TestExtraFaultsMeanwhile makes wallets change or stop answering while the page waits for the payer.
func TestExtraFaultsMeanwhile(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	review := func(t *testing.T, wallets ...*browsertest.Wallet) *browsertest.Page {
		t.Helper()
		p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{Script: quicker}, wallets...)
		p.Press("Pay with Fox")
		return p
	}
	t.Run("another network", func(t *testing.T) {
		wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
		p := review(t, wallet)
		p.AwaitText("#wallet-pay", "From your account")
		wallet.SetChainID(1)
		p.Emit(0, "chainChanged", "0x1")
		p.Press("Pay 4.90 USDC")
		p.Await(counted)
		if len(wallet.Calls("wallet_switchEthereumChain")) == 0 {
			t.Error("the wallet was not asked to switch back")
		}
		paidOnce(t, w, wallet)
	})
	t.Run("the connection ends", func(t *testing.T) {
		wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
		p := review(t, wallet)
		p.AwaitText("#wallet-pay", "From your account")
		wallet.Refuse("eth_requestAccounts", browsertest.ErrDisconnected)
		p.Emit(0, "disconnect", browsertest.ErrDisconnected)
		p.AwaitText("#wallet-pay", "does not answer")
		payAgain(t, w, p, wallet)
	})
	t.Run("it refuses the network", func(t *testing.T) {
		wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
		wallet.SetChainID(1)
		wallet.Refuse("wallet_switchEthereumChain", browsertest.ErrRejected)
		p := review(t, wallet)
		p.AwaitText("#wallet-pay", "Fox does not use Local test chain.")
		payAgain(t, w, p, wallet)
	})
	t.Run("the service no longer pays the fee", func(t *testing.T) {
		g := newGate(t, w)
		g.refusal.Store("budget_exhausted")
		wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, true))
		p := browsertest.Open(t, browsertest.Options{Wallets: []*browsertest.Wallet{wallet}})
		p.Go(g.URL + "/checkout/" + w.Invoice("4900000", nil).ID)
		p.Press("Pay with Fox")
		p.Press("Pay 4.90 USDC")
		p.AwaitText("#wallet-pay", "Try again to pay it yourself.")
		p.Press("Try again")
		p.AwaitText("#wallet-pay", "ETH")
		p.Press("Pay 4.90 USDC")
		p.Await(counted)
		paidOnce(t, w, wallet)
	})
	t.Run("a node that does not answer", func(t *testing.T) {
		wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
		wallet.Refuse("eth_call", browsertest.ErrNoAnswer)
		p := review(t, wallet)
		p.AwaitText("#wallet-pay", "Your wallet does not answer.")
		payAgain(t, w, p, wallet)
	})
	t.Run("one wallet that never connects", func(t *testing.T) {
		fox, owl := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false)), browsertest.NewWallet(t, w, "Owl", w.NewAccount(tokens, false))
		fox.Refuse("eth_requestAccounts", browsertest.ErrNoAnswer)
		p := review(t, fox, owl)
		p.AwaitText("#wallet-pay", "connect to this page")
		p.Press("Use another wallet")
		p.Press("Pay with Owl")
		p.Press("Pay 4.90 USDC")
		p.Await(counted)
		paidOnce(t, w, owl)
	})
}

// payAgain pays after a problem that a wallet has had.
func payAgain(t *testing.T, w *browsertest.World, p *browsertest.Page, wallet *browsertest.Wallet) {
	t.Helper()
	wallet.Answer(nil)
	p.Press("Try again")
	p.Press("Pay 4.90 USDC")
	p.Await(counted)
	paidOnce(t, w, wallet)
}
