package browsertest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math/big"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// payments is the number of invoices that the scripted payer pays in a full run.
const payments = 40

// payerFault is a fault in one payment by the scripted payer. It answers the n-th request of a kind to the wallet.
type payerFault struct {
	name   string
	full   bool // only a full run makes it, because another test does
	method func(wallet *browsertest.Wallet, c browsertest.Call, n int) (any, bool, error)
	reload bool   // the payer reloads the page once it waits
	tab    bool   // the payer has another tab open
	script string // runs in the page first
	other  bool   // the payer has another wallet, without money
	slow   bool   // the network has 400 ms and 50 kB/s
	// play, if set, plays another story, in a separate world.
	play func(t *testing.T, w *browsertest.World, wallet *browsertest.Wallet, o browsertest.Options, pays string)
}

// once answers the first request of a method with an error.
func once(method string, err error) func(*browsertest.Wallet, browsertest.Call, int) (any, bool, error) {
	return func(_ *browsertest.Wallet, c browsertest.Call, n int) (any, bool, error) {
		return nil, c.Method == method && n == 1, err
	}
}

// payerFaults returns the faults. pays is the method of the wallet that pays.
func payerFaults(pays string) []payerFault {
	return []payerFault{
		{name: "none", full: true},
		{name: "refuses to connect", full: true, method: once("eth_requestAccounts", browsertest.ErrRejected)},
		{name: "has another request", full: true, method: once("eth_requestAccounts", browsertest.ErrPending)},
		{name: "refuses to pay", method: once(pays, browsertest.ErrRejected)},
		{name: "disconnects while it pays", full: true, method: once(pays, browsertest.ErrDisconnected)},
		{name: "has an error while it pays", method: once(pays, &browsertest.RPCError{Code: -32603, Message: "internal error"})},
		{name: "never answers", method: once(pays, browsertest.ErrNoAnswer), reload: true},
		{name: "is on another chain", full: true, method: func(wallet *browsertest.Wallet, c browsertest.Call, n int) (any, bool, error) {
			if c.Method == "eth_requestAccounts" && n == 1 {
				wallet.SetChainID(1)
			}
			return nil, false, nil
		}},
		{name: "lies about its chain", method: func(_ *browsertest.Wallet, c browsertest.Call, n int) (any, bool, error) {
			return map[string]string{"hash": common.HexToHash("0x1").Hex()}, c.Method == "eth_getBlockByNumber" && n == 1, nil
		}},
		{name: "loses its answer", full: true, method: func(wallet *browsertest.Wallet, c browsertest.Call, n int) (any, bool, error) {
			if c.Method != pays || n > 1 {
				return nil, false, nil
			}
			if _, err := wallet.Perform(context.Background(), c); err != nil {
				return nil, true, err
			}
			return nil, true, browsertest.ErrNoAnswer
		}, reload: true},
		{name: "another tab", tab: true},
		{name: "another wallet", full: true, other: true},
		{name: "a clock that is an hour slow", full: true, script: `{ const now = Date.now; Date.now = () => now() - 3600_000; }`},
		{name: "another account meanwhile", full: true, method: func(wallet *browsertest.Wallet, c browsertest.Call, n int) (any, bool, error) {
			if c.Method == "eth_getBlockByNumber" && n == 1 {
				wallet.Rotate()
			}
			return nil, false, nil
		}},
		{name: "pays something else", method: func(wallet *browsertest.Wallet, c browsertest.Call, n int) (any, bool, error) {
			if c.Method != pays || n > 1 {
				return nil, false, nil
			}
			if c.Method == "eth_signTypedData_v4" {
				return hexutil.Bytes(make([]byte, 65)), true, nil
			}
			hash, err := sendLess(wallet, c)
			return hash, true, err
		}},
		{name: "a clock that is an hour fast", full: true, script: `{ const now = Date.now; Date.now = () => now() + 3600_000; }`},
		{name: "a slow network", slow: true},
		{name: "no scripts", full: true, play: payWithoutScripts},
		{name: "a page that is open over night", play: payNextDay},
		{name: "the time ends while the wallet is open", play: payTooLate},
	}
}

// sendLess sends 2.00 USDC instead of the requested amount.
func sendLess(wallet *browsertest.Wallet, c browsertest.Call) (string, error) {
	var tx struct {
		To   common.Address
		Data hexutil.Bytes
	}
	if err := json.Unmarshal(c.Params[0], &tx); err != nil {
		return "", err
	}
	const amountEnd = 4 + 64 // the selector, the receiver and the amount
	copy(tx.Data[amountEnd-4:], []byte{0, 0x1e, 0x84, 0x80})
	hash, err := wallet.Send(context.Background(), tx.To, tx.Data)
	return hash.Hex(), err
}

// TestExtraScriptedPayer pays invoices by a script in several ways, with a fault in each. The payer only presses what
// the page offers next. Each invoice is paid once; a page without a next step is a dead end.
func TestExtraScriptedPayer(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(13, 30))
	done := 0
	for way, pays := range []string{"eth_signTypedData_v4", "eth_sendTransaction"} {
		var tries []func(t *testing.T, w *browsertest.World)
		for i, fault := range payerFaults(pays) {
			collect, phone := random.IntN(2) == 0, random.IntN(2) == 0
			if !*every && (fault.full || i%2 != way) {
				continue
			}
			tries = append(tries, func(t *testing.T, w *browsertest.World) {
				t.Run(fault.name, func(t *testing.T) { payWithFault(t, w, pays, fault, collect, phone) })
			})
			done++
		}
		t.Run(pays, func(t *testing.T) {
			w := browsertest.Start(t, browsertest.WorldOptions{NoGasless: pays == "eth_sendTransaction"})
			for _, try := range tries {
				try(t, w)
			}
		})
	}
	if *every && done != payments {
		t.Errorf("%d payments, want %d", done, payments)
	}
}

// payWithFault pays an invoice, where pays is the method of the wallet that pays.
func payWithFault(t *testing.T, w *browsertest.World, pays string, fault payerFault, collect, phone bool) {
	if fault.play != nil {
		w = browsertest.Start(t, browsertest.WorldOptions{NoGasless: pays == "eth_sendTransaction"})
	}
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, true), w.NewAccount(tokens, true))
	counts := make(map[string]*atomic.Int32)
	for _, method := range []string{"eth_requestAccounts", "eth_signTypedData_v4", "eth_sendTransaction", "eth_getBlockByNumber"} {
		counts[method] = new(atomic.Int32)
	}
	if fault.play != nil {
		fault.play(t, w, wallet, browsertest.Options{Phone: phone, Wallets: []*browsertest.Wallet{wallet}}, pays)
		return
	}
	wallet.Answer(func(c browsertest.Call) (any, bool, error) {
		count := counts[c.Method]
		if fault.method == nil || count == nil {
			return nil, false, nil
		}
		return fault.method(wallet, c, int(count.Add(1)))
	})
	inv := w.Invoice("4900000", func(r *apitypes.CreateInvoiceRequest) {
		if collect {
			r.Collection = apitypes.CollectionDeposit
		}
	})
	o := browsertest.Options{Phone: phone, Script: quicker + fault.script, Wallets: []*browsertest.Wallet{wallet}}
	if fault.slow {
		o.Latency, o.BytesPerSecond = 400*time.Millisecond, 50_000
	}
	if fault.other {
		o.Wallets = append(o.Wallets, browsertest.NewWallet(t, w, "Owl", w.NewAccount(0, false)))
	}
	pages := []*browsertest.Page{browsertest.Open(t, o)}
	if fault.tab {
		pages = append(pages, pages[0].OpenBeside(o))
	}
	for _, p := range pages {
		p.Go(w.CheckoutURL(inv.ID))
	}
	walk(t, pages, fault.reload)
	paidOnce(t, w, wallet)
	if got := w.Read(inv.ID); got.AmountPaid != "4900000" || got.Exception != "" {
		t.Errorf("the invoice has %s, %s", got.AmountPaid, got.Exception)
	}
}

// steps are the buttons that the payer presses: the first one that the page has.
var steps = []string{"Pay 4.90 USDC", "Pay 2.90 USDC", "Nothing sent: pay now", "Try again", "Pay with Fox"}

// settled is the condition that the page shows that the invoice is paid.
const settled = `document.getElementById("status").className === "state-paid"`

// walk presses the steps on the pages in turn, until all show that the invoice is paid. With reload,
// the first page is loaded again once it waits for the wallet.
func walk(t *testing.T, pages []*browsertest.Page, reload bool) {
	t.Helper()
	const pause = 200 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	deadline := time.NewTimer(browsertest.Patience)
	defer deadline.Stop()
	for {
		done := true
		for _, p := range pages {
			done = p.Step("#wallet-pay", steps, settled) && done
		}
		if done {
			return
		}
		if reload && strings.Contains(pages[0].Text("#wallet-pay"), "Confirm in Fox") {
			reload = false
			pages[0].AwaitText("#wallet-pay", "has not answered yet")
			pages[0].Reload()
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("a dead end; the page reads\n%s", pages[0].Text("body"))
		}
	}
}

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
	expect.Equal(t, len(wallet.Calls("eth_signTypedData_v4", "eth_sendTransaction")), 1, "the wallet was asked … times:")
}

// TestExtraProof computes an invoice's on-chain id in the browser, and compares it with the
// registry's through the payer's wallet.
func TestExtraProof(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	inv := w.Invoice("4900000", nil)
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(0, false))
	p := open(t, w, inv, browsertest.Options{}, wallet)
	p.Press("On-chain record")
	p.Press("Check here")
	p.AwaitText("#proof", "Computed there")
	if n := strings.Count(p.Text("#proof"), inv.OnChainInvoiceID); n != 3 {
		t.Errorf("the id is shown %d times, want 3:\n%s", n, p.Text("#proof"))
	}
	expect.Equal(t, strings.Count(p.Text("#proof"), "The ids match."), 2, "ids match:")
	p.Axe(web)
	shot(p, "proof")
	if n := len(wallet.Calls("eth_requestAccounts", "personal_sign", "eth_sendTransaction")); n != 0 {
		t.Errorf("the wallet was asked %d times", n)
	}
	wallet.SetChainID(1)
	wallet.Refuse("wallet_switchEthereumChain", browsertest.ErrRejected)
	p.Reload()
	p.Press("On-chain record")
	p.Press("Check here")
	p.AwaitText("#proof", "Fox does not use Local test chain. Choose that network (chain id 1337) in your wallet.")
	isClean(t, w, p)
}

// TestExtraSlowNetwork opens the page at 400 ms and 50 kB/s. Its largest contentful paint needs only the
// document. The time is logged but not checked, because it depends on the machine's load.
func TestExtraSlowNetwork(t *testing.T) {
	w := browsertest.Start(t, browsertest.WorldOptions{})
	inv := w.Invoice("4900000", nil)
	warm := open(t, w, inv, browsertest.Options{})
	warm.AwaitText("h1", "4.90")
	for name, device := range map[string]browsertest.Options{"desktop": {}, "phone": {Phone: true}} {
		t.Run(name, func(t *testing.T) {
			device.Latency, device.BytesPerSecond = 400*time.Millisecond, 50_000
			p := open(t, w, inv, device)
			p.AwaitText("h1", "4.90")
			t.Logf("largest contentful paint after %s, %d bytes", p.LargestPaint(), p.Transferred())
			var delays []string
			p.Eval(`performance.getEntriesByType("resource").filter((r) => r.renderBlockingStatus === "blocking").map((r) => r.name)`, &delays)
			expect.Len(t, delays, 0, "the first paint waits for")
			const most = 13_300 // as in TestFirstPaintNeedsNoOtherRequest, with headers
			if got := p.Requests()[0].Bytes; got > most {
				t.Errorf("the document takes %d bytes", got)
			}
		})
	}
}

// TestExtraHeaviestPage opens and pays an invoice of the most and longest items, of a merchant with
// the heaviest logo, in the language of the longest texts.
func TestExtraHeaviestPage(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	setLogo(t, w)
	random := rand.New(rand.NewPCG(1, 2))
	words := func(n int) string { // that do not compress well
		var text strings.Builder
		for text.Len() < n {
			text.WriteByte("abcdefghijklmnopqrstuvwxyz "[random.IntN(27)])
		}
		return strings.TrimSpace(text.String())
	}
	inv := w.Invoice("10000000", func(r *apitypes.CreateInvoiceRequest) {
		r.MerchantID, r.Description, r.LineItems = "bar", words(500), nil
		for range 100 {
			r.LineItems = append(r.LineItems, apitypes.LineItem{Label: words(100), Amount: "100000"})
		}
	})
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, false))
	p := open(t, w, inv, browsertest.Options{Language: "ja"}, wallet)
	p.Await(`document.querySelector(".logo").complete && document.querySelector("#wallet-pay button")?.checkVisibility()`)
	before := p.Transferred()
	p.Eval(`document.querySelector("#wallet-pay button").click()`, nil)
	p.Await(`document.querySelector("#wallet-pay dl")`)
	after := p.Transferred()
	t.Logf("transferred: %d bytes before the wallet's part, %d bytes with it", before, after)
	if before > maxBefore || after > maxAfter {
		t.Errorf("the page transfers %d and %d bytes, want at most %d and %d", before, after, maxBefore, maxAfter)
	}
}

// setLogo creates the merchant "bar" with a logo that is as large as the service takes.
func setLogo(t *testing.T, w *browsertest.World) {
	t.Helper()
	expect.Success(t)(w.Client.CreateMerchant(t.Context(), apitypes.CreateMerchantRequest{
		ID: "bar", Name: "Corner Bar", DefaultAddresses: map[string]apitypes.Address{w.Info.Chain.ChainKey: w.Info.Merchant.Address},
	}))
	random := rand.New(rand.NewPCG(1, 2))
	const height = 430
	picture := image.NewGray(image.Rect(0, 0, access.MaxLogoBytes/height*98/100, height))
	for i := range picture.Pix {
		picture.Pix[i] = byte(random.Uint32())
	}
	var logo bytes.Buffer
	expect.OK(t, png.Encode(&logo, picture))
	expect.Success(t)(w.Client.SetMerchantLogo(t.Context(), "bar", logo.Bytes()))
}

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
		expect.Len(t, paymentsOf(t, w, inv.ID), 1, "the invoice has … payments:")
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
