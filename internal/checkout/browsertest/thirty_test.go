package browsertest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/checkout/browsertest"
)

// payments is how many invoices the scripted payer pays.
const payments = 30

// payerFault is what goes wrong for the scripted payer in one payment. It answers the n-th
// request to the wallet of a kind.
type payerFault struct {
	name   string
	method func(wallet *browsertest.Wallet, c browsertest.Call, n int) (any, bool, error)
	reload bool // the payer reloads the page once it waits
	tab    bool // the payer has another tab open
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
		{name: "none"},
		{name: "refuses to connect", method: once("eth_requestAccounts", browsertest.ErrRejected)},
		{name: "has another request", method: once("eth_requestAccounts", browsertest.ErrPending)},
		{name: "refuses to pay", method: once(pays, browsertest.ErrRejected)},
		{name: "disconnects while it pays", method: once(pays, browsertest.ErrDisconnected)},
		{name: "has an error while it pays", method: once(pays, &browsertest.RPCError{Code: -32603, Message: "internal error"})},
		{name: "never answers", method: once(pays, browsertest.ErrNoAnswer), reload: true},
		{name: "is on another chain", method: func(wallet *browsertest.Wallet, c browsertest.Call, n int) (any, bool, error) {
			if c.Method == "eth_requestAccounts" && n == 1 {
				wallet.SetChainID(1)
			}
			return nil, false, nil
		}},
		{name: "lies about its chain", method: func(_ *browsertest.Wallet, c browsertest.Call, n int) (any, bool, error) {
			return map[string]string{"hash": common.HexToHash("0x1").Hex()}, c.Method == "eth_getBlockByNumber" && n == 1, nil
		}},
		{name: "loses its answer", method: func(wallet *browsertest.Wallet, c browsertest.Call, n int) (any, bool, error) {
			if c.Method != pays || n > 1 {
				return nil, false, nil
			}
			if _, err := wallet.Perform(context.Background(), c); err != nil {
				return nil, true, err
			}
			return nil, true, browsertest.ErrNoAnswer
		}, reload: true},
		{name: "another tab", tab: true},
	}
}

// TestThirtyPayments has a scripted payer pay invoices in several ways, with a fault in each.
// The payer presses what the page offers next, and does nothing else. Each invoice is paid
// once; a page without a next step is a dead end.
func TestThirtyPayments(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 30))
	done := 0
	for _, noGasless := range []bool{false, true} {
		w := browsertest.Start(t, browsertest.WorldOptions{NoGasless: noGasless})
		pays := "eth_signTypedData_v4"
		if noGasless {
			pays = "eth_sendTransaction"
		}
		faults := payerFaults(pays)
		for i := range payments / 2 {
			fault, collect := faults[i%len(faults)], random.IntN(2) == 0
			t.Run(fmt.Sprintf("%s/%d %s", pays, i, fault.name), func(t *testing.T) {
				payWithFault(t, w, fault, collect, random.IntN(2) == 0)
			})
			done++
		}
	}
	t.Logf("%d payments", done)
}

// payWithFault pays an invoice.
func payWithFault(t *testing.T, w *browsertest.World, fault payerFault, collect, phone bool) {
	wallet := browsertest.NewWallet(t, w, "Fox", w.NewAccount(tokens, true))
	counts := make(map[string]*atomic.Int32)
	for _, method := range []string{"eth_requestAccounts", "eth_signTypedData_v4", "eth_sendTransaction", "eth_getBlockByNumber"} {
		counts[method] = new(atomic.Int32)
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
	o := browsertest.Options{Phone: phone, Script: quicker, Wallets: []*browsertest.Wallet{wallet}}
	pages := []*browsertest.Page{browsertest.Open(t, o)}
	if fault.tab {
		pages = append(pages, pages[0].OpenBeside(o))
	}
	for _, p := range pages {
		p.Go(w.CheckoutURL(inv.ID))
	}
	walk(t, pages, fault.reload)
	paidOnce(t, w, wallet)
	got := w.Read(inv.ID)
	if got.AmountPaid != "4900000" {
		t.Errorf("the invoice has %s", got.AmountPaid)
	}
}

// steps are the buttons that the payer presses, the first one that is there.
var steps = []string{"Pay 4.90 USDC", "Nothing was sent: pay now", "Try again", "Pay with Fox"}

// walk presses the steps on the pages in turn, until all show that the payment has arrived.
// With reload, the first page is loaded again once it waits for the wallet.
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
			done = p.Step("#wallet-pay", steps, counted) && done
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
