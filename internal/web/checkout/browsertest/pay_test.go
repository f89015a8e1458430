package browsertest_test

import (
	"encoding/json"
	"flag"
	"math/big"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/contracts/hostile"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// price is the amount of the tests' invoices, in minor units.
const price = 4_900_000

// tokens is the balance of accounts unless a test chooses another.
const tokens = 20_000_000

// shots is the folder that the tests write screenshots to; if empty, they write no screenshots.
var shots = flag.String("shots", "", "write screenshots to this `folder`")

// web is the folder of the page's scripts and npm packages.
const web = "../web"

func shot(p *browsertest.Page, name string) {
	if *shots != "" {
		p.Screenshot(filepath.Join(*shots, name+".png"))
	}
}

// counted is the condition that the page shows that the payment has arrived.
const counted = `["state-seen", "state-paid"].includes(document.getElementById("status").className)`

func deposit(r *apitypes.CreateInvoiceRequest) { r.Collection = apitypes.CollectionDeposit }

// TestExtraGasless pays with signatures that the service submits.
func TestExtraGasless(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	for _, device := range []browsertest.Options{{}, {Phone: true, Dark: true}} {
		name := "desktop"
		if device.Phone {
			name = "phone"
		}
		t.Run(name, func(t *testing.T) { payGasless(t, w, name, device) })
	}
	t.Run("deposit", func(t *testing.T) {
		inv, wallet := w.Invoice("4900000", deposit), browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
		p := pay(t, w, inv, wallet)
		p.Await(counted)
		if got := w.Balance(wallet.Address().Hex()); got.Int64() != tokens-price {
			t.Errorf("the payer has %s", got)
		}
	})
	t.Run("the rest", func(t *testing.T) {
		inv, wallet := w.Invoice("4900000", nil), browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
		expect.Success(t)(w.Node.SendToken(t.Context(), w.Node.Keys.Payer, common.HexToAddress(inv.Invoice.MerchantAddress), big.NewInt(2_000_000), common.FromHex(inv.OnChainInvoiceID)))
		p := open(t, w, inv, browsertest.Options{}, wallet)
		p.Await(`document.getElementById("status").className === "state-partial"`)
		p.Press("Pay with Fox")
		p.Press("Pay 2.90 USDC")
		p.Await(counted)
		if got := w.Balance(wallet.Address().Hex()); got.Int64() != tokens-2_900_000 {
			t.Errorf("the payer has %s", got)
		}
	})
	t.Run("contract accounts", func(t *testing.T) { payFromContracts(t, w) })
	t.Run("two wallets", func(t *testing.T) {
		inv := w.Invoice("4900000", nil)
		fox, owl := browsertest.NewWallet(t, w, "Fox", w.NewAccount(0, false)), browsertest.NewWallet(t, w, "Owl", w.NewAccount(tokens, false))
		p := open(t, w, inv, browsertest.Options{}, fox, owl)
		p.AwaitText("#wallet-pay", "Pay with Owl")
		p.Await(`document.querySelectorAll("#wallet-pay button img[src^='data:image/']").length === 2`)
		p.Axe(web)
		shot(p, "wallets")
		p.Press("Pay with Fox")
		p.AwaitText("#wallet-pay", "4.90 USDC is missing")
		shot(p, "short")
		p.Press("Use another wallet")
		p.Press("Pay with Owl")
		p.Press("Pay 4.90 USDC")
		p.Await(counted)
		if n := len(fox.Calls("eth_signTypedData_v4", "eth_sendTransaction")); n != 0 {
			t.Errorf("the other wallet was asked %d times to pay", n)
		}
	})
	t.Run("window.ethereum", func(t *testing.T) {
		wallet := browsertest.NewWallet(t, w, "", w.NewAccount(tokens, false))
		wallet.Injected = true
		inv := w.Invoice("4900000", nil)
		p := open(t, w, inv, browsertest.Options{}, wallet)
		p.Press("Pay with your wallet")
		p.Press("Pay 4.90 USDC")
		p.Await(counted)
	})
}

// TestExtraPayWithOneOfSimilarWallets installs two wallets with the same domain name, one without a name,
// and one that is window.ethereum and does not announce itself. Each is offered and pays.
func TestExtraPayWithOneOfSimilarWallets(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	for i, press := range []string{"Pay with Fox", "Pay with Fox (2)", "Pay with Plain", "Pay with your wallet"} {
		var all []*browsertest.Wallet
		for _, name := range []string{"Fox", "Fox", "Plain", "Old"} {
			all = append(all, browsertest.NewWallet(t, w, name, w.NewAccount(tokens, false)))
		}
		all[2].RDNS, all[3].Injected = "", true
		p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{}, all...)
		p.Await(`document.querySelectorAll("#wallet-pay .wallets button").length === 4`)
		if i == 0 {
			shot(p, "similar wallets")
		}
		p.Press(press)
		p.Press("Pay 4.90 USDC")
		p.Await(counted)
		for j, wallet := range all {
			if n := len(wallet.Calls("eth_signTypedData_v4", "eth_sendTransaction")); (n > 0) != (i == j) {
				t.Errorf("after %q, wallet %d was asked %d times to pay", press, j, n)
			}
		}
	}
}

// open opens an invoice's page with wallets.
func open(t *testing.T, w *browsertest.World, inv apitypes.CreateInvoiceResponse, o browsertest.Options, wallets ...*browsertest.Wallet) *browsertest.Page {
	t.Helper()
	o.Wallets = wallets
	p := browsertest.Open(t, o)
	p.Go(w.CheckoutURL(inv.ID))
	return p
}

// pay opens an invoice's page, and pays with the wallet Fox.
func pay(t *testing.T, w *browsertest.World, inv apitypes.CreateInvoiceResponse, wallet *browsertest.Wallet) *browsertest.Page {
	t.Helper()
	p := open(t, w, inv, browsertest.Options{}, wallet)
	p.Press("Pay with Fox")
	p.Press("Pay 4.90 USDC")
	return p
}

// Limits of the bytes that the page transfers.
const (
	maxBefore = 60_000 // before the wallet's part is asked for
	maxAfter  = 120_000
)

// payGasless pays, and checks what the page transfers and shows.
func payGasless(t *testing.T, w *browsertest.World, name string, device browsertest.Options) {
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
	inv := w.Invoice("4900000", nil)
	p := open(t, w, inv, device, wallet)
	p.AwaitText("#wallet-pay", "Pay with Fox")
	before := p.Transferred()
	shot(p, "offer-"+name)
	p.Axe(web)
	p.Press("Pay with Fox")
	p.AwaitText("#wallet-pay", "The signature allows only this transfer")
	after := p.Transferred()
	t.Logf("transferred: %d bytes before the wallet's part, %d bytes with it", before, after)
	if before > maxBefore || after > maxAfter {
		t.Errorf("the page transfers %d and %d bytes, want at most %d and %d", before, after, maxBefore, maxAfter)
	}
	shot(p, "review-"+name)
	p.Axe(web)
	p.Press("Pay 4.90 USDC")
	p.Await(counted)
	p.Await(`document.getElementById("wallet-pay").hidden`)
	p.Await(`document.getElementById("status").className === "state-paid"`)
	if got := w.Read(inv.ID); got.AmountPaid != "4900000" {
		t.Errorf("paid is %s", got.AmountPaid)
	}
	if made := wallet.Calls("eth_sendTransaction"); len(made) != 0 {
		t.Errorf("the wallet was asked for a transaction")
	}
	isClean(t, w, p)
}

// isClean checks that a page makes requests only to the service, sets no cookie, and has no error.
func isClean(t *testing.T, w *browsertest.World, p *browsertest.Page) {
	t.Helper()
	for _, r := range p.Requests() {
		if u, err := url.Parse(r.URL); err != nil || u.Scheme != "data" && !strings.HasPrefix(r.URL, w.Info.BaseURL+"/") {
			t.Errorf("the page requests %s", r.URL)
		}
	}
	var cookies string
	p.Eval("document.cookie", &cookies)
	expect.Equal(t, cookies, "", "cookies:")
	if faults := p.Errors(); len(faults) != 0 {
		t.Errorf("the page has errors:\n%s", strings.Join(faults, "\n"))
	}
}

// payFromContracts pays from contract accounts that sign as contracts do: one that is deployed, and one that is not.
func payFromContracts(t *testing.T, w *browsertest.World) {
	factory := deploy(t, w, common.FromHex(hostile.SmartAccountFactoryMetaData.Bin))
	for _, deployed := range []bool{false, true} {
		key := w.NewAccount(0, false)
		owner := crypto.PubkeyToAddress(key.PublicKey)
		code := append(common.FromHex(hostile.SmartAccountMetaData.Bin), hostile.NewSmartAccount().PackConstructor(owner)...)
		account := &browsertest.ContractAccount{Address: crypto.CreateAddress2(factory, [32]byte{}, crypto.Keccak256(code))}
		deployment := hostile.NewSmartAccountFactory().PackDeploy(owner)
		account.Sign = func(signature []byte) []byte { return append([]byte{0}, signature...) }
		if deployed {
			hash, err := w.Node.SendWithGas(t.Context(), w.Node.Keys.Payer, factory, deployment, 2_000_000)
			if err == nil {
				_, err = w.Node.Mined(t.Context(), hash)
			}
			expect.OK(t, err)
		} else {
			account.Sign = func(signature []byte) []byte {
				wrapped, err := contracts.WrapSignature(factory, deployment, append([]byte{0}, signature...))
				if err != nil {
					panic(err)
				}
				return wrapped
			}
		}
		w.Fund(account.Address, tokens, false)
		wallet := browsertest.NewWallet(t, w, "Fox", key)
		wallet.SetAccount(account)
		inv := w.Invoice("4900000", nil)
		p := pay(t, w, inv, wallet)
		p.Await(counted)
		if got := w.Balance(account.Address.Hex()); got.Int64() != tokens-price {
			t.Errorf("deployed %v: the account has %s", deployed, got)
		}
	}
}

// deploy deploys a contract.
func deploy(t *testing.T, w *browsertest.World, code []byte) common.Address {
	t.Helper()
	hash, err := w.Node.Create(t.Context(), w.Node.Keys.Payer, code)
	expect.OK(t, err)
	receipt, err := w.Node.Mined(t.Context(), hash)
	if err != nil || receipt.ContractAddress == (common.Address{}) {
		t.Fatalf("deploy: %v", err)
	}
	return receipt.ContractAddress
}

// TestExtraOwnGas pays by transactions of the payer.
func TestExtraOwnGas(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{NoGasless: true})
	t.Run("transfer", func(t *testing.T) {
		wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, true))
		inv := w.Invoice("4900000", nil)
		p := open(t, w, inv, browsertest.Options{Phone: true}, wallet)
		p.Press("Pay with Fox")
		p.AwaitText("#wallet-pay", "asks you to confirm a transfer")
		p.AwaitText("#wallet-pay", "ETH")
		shot(p, "review-transfer")
		p.Press("Pay 4.90 USDC")
		p.Await(counted)
		payments := paymentsOf(t, w, inv.ID)
		if len(payments) != 1 || payments[0].Attribution.Method != apitypes.ByCalldata {
			t.Errorf("the payments are %+v", payments)
		}
		reported := false
		for entry, err := range w.Client.InvoiceTimeline(t.Context(), inv.ID) {
			reported = reported || entry.Kind == "payment.sent" && entry.TxHash == payments[0].TxHash
			expect.NoError(t, err)
		}
		if !reported {
			t.Error("the timeline lacks what the wallet sent")
		}
		isClean(t, w, p)
	})
	t.Run("deposit", func(t *testing.T) {
		wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, true))
		inv := w.Invoice("4900000", deposit)
		p := pay(t, w, inv, wallet)
		p.Await(counted)
	})
	t.Run("permit", func(t *testing.T) {
		wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, true))
		// The wallet of a contract account that takes one call at a time.
		wallet.Answer(func(c browsertest.Call) (any, bool, error) { return "0x6001", c.Method == "eth_getCode", nil })
		inv := w.Invoice("4900000", nil)
		p := open(t, w, inv, browsertest.Options{}, wallet)
		p.Press("Pay with Fox")
		p.AwaitText("#wallet-pay", "Fox asks twice")
		shot(p, "review-permit")
		p.Press("Pay 4.90 USDC")
		p.Await(counted)
		payments := paymentsOf(t, w, inv.ID)
		if len(payments) != 1 || payments[0].Attribution.Method != apitypes.ByRegistry {
			t.Errorf("the payments are %+v", payments)
		}
	})
	t.Run("allowed before", func(t *testing.T) {
		key := w.NewAccount(tokens, true)
		wallet := browsertest.NewWallet(t, w, "Fox", key)
		wallet.Answer(func(c browsertest.Call) (any, bool, error) { return "0x6001", c.Method == "eth_getCode", nil })
		hash, err := w.Node.Approve(t.Context(), key, w.Node.Registry, big.NewInt(price))
		if err == nil {
			_, err = w.Node.Mined(t.Context(), hash)
		}
		expect.OK(t, err)
		p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{}, wallet)
		p.Press("Pay with Fox")
		p.AwaitText("#wallet-pay", "Fox asks you to let the contract")
		p.Press("Pay 4.90 USDC")
		p.Await(counted)
		paidOnce(t, w, wallet)
		expect.Equal(t, len(wallet.Calls("eth_signTypedData_v4")), 0, "the wallet was asked for … signatures:")
	})
	t.Run("several calls at once", func(t *testing.T) { payByCalls(t, w) })
	t.Run("no coins", func(t *testing.T) {
		wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
		p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{}, wallet)
		p.Press("Pay with Fox")
		p.AwaitText("#wallet-pay", "the network fee is about")
		w.Fund(wallet.Address(), 0, true)
		p.Press("Try again")
		p.Press("Pay 4.90 USDC")
		p.Await(counted)
	})
	t.Run("fees for data", func(t *testing.T) { payDataFees(t, w) })
}

// payDataFees pays on a network that charges for data in addition to its nodes' estimate. The page names no amount.
func payDataFees(t *testing.T, w *browsertest.World) {
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		return "0x6001", c.Method == "eth_getCode" && strings.Contains(string(c.Params[0]), "0x420000000000000000000000000000000000000F"), nil
	})
	p := open(t, w, w.Invoice("4900000", nil), browsertest.Options{}, wallet)
	p.Press("Pay with Fox")
	p.AwaitText("#wallet-pay", "has 0 ETH, too little for the network fee")
	w.Fund(wallet.Address(), 0, true)
	p.Press("Try again")
	p.AwaitText("#wallet-pay", "A little ETH")
	p.Press("Pay 4.90 USDC")
	p.Await(counted)
}

// executor is the code of an account that makes the call in its calldata, which is an address and the
// call's data. It reverts if that call does.
const executor = "601436038060146000376000600082600060006000356060" +
	"1c5af160235760006000fd5b00"

// payByCalls pays from a contract account. Its wallet takes several calls at once.
func payByCalls(t *testing.T, w *browsertest.World) {
	address := deploy(t, w, common.FromHex("6025600c60003960256000f3"+executor)) // returns the 0x25 bytes after 0x0c
	w.Fund(address, tokens, false)
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(0, true))
	wallet.SetAccount(&browsertest.ContractAccount{
		Address: address,
		Sign:    func(signature []byte) []byte { return signature },
		Execute: func(to common.Address, data []byte) []byte { return append(to.Bytes(), data...) },
	})
	inv := w.Invoice("4900000", nil)
	p := open(t, w, inv, browsertest.Options{}, wallet)
	p.Press("Pay with Fox")
	p.AwaitText("#wallet-pay", "Fox asks you to let the contract")
	p.Press("Pay 4.90 USDC")
	p.Await(counted)
	made := wallet.Calls("wallet_sendCalls")
	if len(made) != 1 {
		t.Fatalf("the wallet was asked %d times", len(made))
	}
	var batch struct{ Calls []json.RawMessage }
	if err := json.Unmarshal(made[0].Params[0], &batch); err != nil || len(batch.Calls) != 2 {
		t.Errorf("the calls are %s, %v", made[0].Params[0], err)
	}
	if got := w.Balance(address.Hex()); got.Int64() != tokens-price {
		t.Errorf("the account has %s", got)
	}
}

// paymentsOf returns the payments of an invoice.
func paymentsOf(t *testing.T, w *browsertest.World, id string) (all []apitypes.Payment) {
	t.Helper()
	for p, err := range w.Client.Payments(t.Context(), client.PaymentFilter{InvoiceID: id, IncludePending: true}) {
		expect.OK(t, err)
		all = append(all, p)
	}
	return all
}
