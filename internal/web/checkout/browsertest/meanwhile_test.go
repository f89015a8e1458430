package browsertest_test

import (
	"testing"

	"github.com/quittance/quittance/internal/test/browsertest"
)

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
