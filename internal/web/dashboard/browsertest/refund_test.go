package browsertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// sale is a development world with a merchant who refunds by a wallet.
type sale struct {
	*browsertest.World
	t *testing.T
}

func newSale(t *testing.T) sale {
	t.Helper()
	s := sale{browsertest.Start(t, browsertest.WorldOptions{}), t}
	s.Fund(common.HexToAddress(s.Info.Merchant.Address), 0, true)
	return s
}

// refund prepares a refund of 1.50 USDC of a payment of 4.90 USDC.
func (s sale) refund() apitypes.RefundRecord {
	s.t.Helper()
	inv := s.Invoice("4900000", nil)
	expect.Success(s.t)(s.Node.SendToken(s.t.Context(), s.Node.Keys.Payer, common.HexToAddress(inv.Invoice.MerchantAddress), big.NewInt(4_900_000), common.FromHex(inv.OnChainInvoiceID)))
	s.await("a payment", func() bool { return s.Read(inv.Invoice.ID).Status == apitypes.StatusPaid })
	for p, err := range s.Client.InvoicePayments(s.t.Context(), inv.Invoice.ID) {
		expect.OK(s.t, err)
		made, err := s.Client.PrepareRefund(s.t.Context(), p.ID, apitypes.PrepareRefundRequest{Amount: "1500000"})
		expect.OK(s.t, err)
		return made.Refund
	}
	s.t.Fatal("the invoice has no payment")
	return apitypes.RefundRecord{}
}

// read returns the current state of a refund.
func (s sale) read(id string) apitypes.RefundResponse {
	s.t.Helper()
	r, err := s.Client.Refund(s.t.Context(), id, false)
	expect.OK(s.t, err)
	return r
}

// fox returns a wallet with the merchant's account.
func (s sale) fox() *browsertest.Wallet {
	return browsertest.NewWallet(s.t, s.World, "Fox", s.Node.Keys.Merchant)
}

// open signs a person in and opens the page of a refund.
func (s sale) open(name, refund string, wallets ...*browsertest.Wallet) *browsertest.Page {
	s.t.Helper()
	key, _, err := s.Client.CreateKey(s.t.Context(), apitypes.CreateKeyRequest{Name: name, MerchantID: s.Info.Merchant.ID, Scopes: []string{access.PresetFinance}})
	expect.OK(s.t, err)
	link, _, err := s.Client.CreateSignInLink(s.t.Context(), key.ID)
	expect.OK(s.t, err)
	p := browsertest.Open(s.t, browsertest.Options{Wallets: wallets})
	p.Go(link)
	p.Follow("Sign in")
	p.Go(s.Info.BaseURL + "/dashboard/refunds/" + refund)
	return p
}

// await polls until ok returns true.
func (s sale) await(what string, ok func() bool) {
	s.t.Helper()
	limit := time.NewTimer(browsertest.Patience)
	defer limit.Stop()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for !ok() {
		select {
		case <-poll.C:
		case <-limit.C:
			s.t.Fatalf("no %s after %v", what, browsertest.Patience)
		}
	}
}

// sends returns how often a wallet was asked to send.
func sends(w *browsertest.Wallet) int { return len(w.Calls("eth_sendTransaction")) }

// arrived waits until a refund is confirmed, and fails the test unless the payer got it exactly once.
func (s sale) arrived(p *browsertest.Page, refund apitypes.RefundRecord, before *big.Int) {
	s.t.Helper()
	p.AwaitText("main", "Confirmed")
	got := new(big.Int).Sub(s.Balance(refund.To), before)
	if got.Int64() != 1_500_000 {
		s.t.Errorf("the payer got %s, want 1500000", got)
	}
}

// TestExtraRefundByWallet sends refunds by a wallet in the browser.
func TestExtraRefundByWallet(t *testing.T) {
	t.Parallel()
	s := newSale(t)
	t.Run("sent and seen", func(t *testing.T) {
		s.t = t
		r, fox := s.refund(), s.fox()
		before := s.Balance(r.To)
		fox.SetChainID(1)
		p := s.open("maria", r.ID, fox)
		p.Press("Sign with Fox")
		p.AwaitText("#wallet", "Fox will send 1.50 USDC")
		p.Eval(`void (() => { const b = [...document.querySelectorAll("#wallet button")].find((b) => b.innerText.startsWith("Send")); b.click(); b.click(); b.dispatchEvent(new MouseEvent("click")); })()`, nil)
		s.arrived(p, r, before)
		if sends(fox) != 1 || len(fox.Calls("wallet_switchEthereumChain")) == 0 {
			t.Errorf("the wallet was asked %d times, and to change the network %v", sends(fox), fox.Calls("wallet_switchEthereumChain"))
		}
		got := s.read(r.ID)
		if len(got.Submissions) != 1 || got.Submissions[0].By != "maria" || got.Submissions[0].TxHash != got.Refund.TxHash || got.Refund.TxHash == "" {
			t.Errorf("the refund is %+v", got)
		}
		if errors := p.Errors(); len(errors) > 0 {
			t.Errorf("the page reports %q", errors)
		}
	})
	t.Run("refused, then sent", func(t *testing.T) {
		s.t = t
		r, fox := s.refund(), s.fox()
		before := s.Balance(r.To)
		fox.Refuse("eth_sendTransaction", browsertest.ErrRejected)
		p := s.open("maria", r.ID, fox)
		p.Press("Sign with Fox")
		p.Press("Send 1.50 USDC")
		p.AwaitText("#wallet", "You refused in Fox. Nothing was sent.")
		if all := s.read(r.ID).Submissions; len(all) != 1 || all[0].WithdrawnBy != "maria" {
			t.Errorf("the submissions are %+v", all)
		}
		fox.Answer(nil)
		p.Press("Try again")
		p.Press("Send 1.50 USDC")
		s.arrived(p, r, before)
	})
	t.Run("what does not fit", func(t *testing.T) { s.t = t; s.wantRefused() })
	t.Run("already known", func(t *testing.T) {
		s.t = t
		r, fox := s.refund(), s.fox()
		before := s.Balance(r.To)
		fox.Answer(func(c browsertest.Call) (any, bool, error) {
			if c.Method != "eth_sendTransaction" {
				return nil, false, nil
			}
			if _, err := fox.Perform(context.WithoutCancel(t.Context()), c); err != nil {
				t.Error(err)
			}
			return nil, true, &browsertest.RPCError{Code: -32000, Message: "already known"}
		})
		p := s.open("maria", r.ID, fox)
		p.Press("Sign with Fox")
		p.Press("Send 1.50 USDC")
		s.arrived(p, r, before)
		if sends(fox) != 1 {
			t.Errorf("the wallet was asked %d times", sends(fox))
		}
	})
}

// wantRefused uses wallets that cannot send a refund: another account, a network that they lack, and too little money.
func (s sale) wantRefused() {
	r, fox := s.refund(), s.fox()
	other := browsertest.NewWallet(s.t, s.World, "Owl", s.NewAccount(5_000_000, true))
	p := s.open("maria", r.ID, fox, other)
	p.Press("Sign with Owl")
	p.AwaitText("#wallet", "Choose "+r.From+" there, or sign elsewhere.")
	fox.SetChainID(1)
	fox.Answer(func(c browsertest.Call) (any, bool, error) {
		return nil, strings.HasPrefix(c.Method, "wallet_"), &browsertest.RPCError{Code: 4902, Message: "Unrecognized chain"}
	})
	p.Press("Sign with a wallet of this browser")
	p.Press("Sign with Fox")
	p.AwaitText("#wallet", fmt.Sprintf("Change Fox to Local test chain (chain id %d)", s.Info.Chain.ChainID))
	fox.SetChainID(s.Info.Chain.ChainID)
	fox.Answer(func(c browsertest.Call) (any, bool, error) {
		return hexutil.Encode(common.LeftPadBytes(big.NewInt(1_000_000).Bytes(), 32)), c.Method == "eth_call", nil
	})
	p.Press("Try again")
	p.AwaitText("#wallet", "The account has 1.00 USDC: 0.50 USDC is missing.")
	if sends(fox)+sends(other) > 0 || len(s.read(r.ID).Submissions) > 0 {
		s.t.Error("a wallet that cannot send was asked to")
	}
}

// TestExtraRefundWhileTheWalletHangs reloads the page, opens another tab, and has another person open it
// while a wallet does not answer.
func TestExtraRefundWhileTheWalletHangs(t *testing.T) {
	t.Parallel()
	s := newSale(t)
	r, fox, owl := s.refund(), s.fox(), browsertest.NewWallet(t, s.World, "Owl", s.Node.Keys.Merchant)
	before := s.Balance(r.To)
	fox.Refuse("eth_sendTransaction", browsertest.ErrNoAnswer)
	maria, juan := s.open("maria", r.ID, fox), s.open("juan", r.ID, owl)
	juan.Press("Sign with Owl")
	juan.AwaitText("#wallet", "Owl will send")
	maria.Press("Sign with Fox")
	maria.Press("Send 1.50 USDC")
	s.await("a request", func() bool { return sends(fox) == 1 })

	juan.Press("Send 1.50 USDC")
	juan.AwaitText("#wallet", "maria has been sending this refund since")
	juan.Press("Try again")
	juan.AwaitText("#submission", "maria has been sending this refund since")
	juan.Press("Mark as unsent")
	juan.AwaitText("main .error", "For 10 minutes, only maria can withdraw that")

	tab := maria.OpenBeside(browsertest.Options{Wallets: []*browsertest.Wallet{fox}})
	tab.Go(s.Info.BaseURL + "/dashboard/refunds/" + r.ID)
	maria.Reload()
	for _, p := range []*browsertest.Page{maria, tab} {
		p.AwaitText("#submission", "No transaction is known.")
		var offered bool
		if p.Eval(`document.getElementById("wallet") !== null`, &offered); offered {
			t.Error("a wallet is offered while one is asked")
		}
	}
	if sends(fox) != 1 || sends(owl) != 0 {
		t.Errorf("the wallets were asked %d and %d times", sends(fox), sends(owl))
	}

	fox.Answer(nil)
	maria.Press("Mark as unsent")
	maria.Press("Sign with Fox")
	maria.Press("Send 1.50 USDC")
	s.arrived(maria, r, before)
	tab.AwaitText("main", "Confirmed")
	if got := s.read(r.ID).Submissions; len(got) != 2 || got[1].WithdrawnBy != "maria" {
		t.Errorf("the submissions are %+v", got)
	}
}

// TestExtraRefundIsRecordedLater keeps a transaction that the service did not record across a reload.
func TestExtraRefundIsRecordedLater(t *testing.T) {
	t.Parallel()
	s := newSale(t)
	r, fox := s.refund(), s.fox()
	const hash = "0x0700000000000000000000000000000000000000000000000000000000000000"
	fox.Answer(func(c browsertest.Call) (any, bool, error) { return hash, c.Method == "eth_sendTransaction", nil })
	p := s.open("maria", r.ID, fox)
	p.Eval(`void (() => { const real = fetch; let n = 0; window.fetch = (url, init) => !String(url).includes("/transaction") ? real(url, init)
		: n++ % 2 ? Promise.reject(new TypeError("offline")) : Promise.resolve(Response.json({ detail: "The database takes no writes." }, { status: 503 })); })()`, nil)
	p.Press("Sign with Fox")
	p.Press("Send 1.50 USDC")
	p.AwaitText("#wallet", "but the service does not answer")
	if got := s.read(r.ID).Submissions; len(got) != 1 || got[0].TxHash != "" {
		t.Errorf("the submissions are %+v", got)
	}
	p.Reload()
	p.AwaitText("#submission", hash)
	text, err := json.Marshal(s.read(r.ID).Submissions)
	if err != nil || !strings.Contains(string(text), hash) {
		t.Errorf("the submissions are %s, %v", text, err)
	}
	p.Press("Mark as unsent")
	p.AwaitText("main .error", "If no node has that, it can be withdrawn after 10 minutes.")
}
