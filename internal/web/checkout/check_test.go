package checkout

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/webtest"
)

// tx is the transaction that the tests check.
var tx = invoice.Hash{0: 0xfe, 31: 11}

// nodes is an Inspector that returns one report.
type nodes struct {
	report   chain.Report
	replaced bool // the payer's nonce 7 was used
	err      error
	hang     chan struct{} // if not nil, answers wait until it is closed
	asked    int
}

func (n *nodes) Transaction(_ context.Context, chainKey string, _ invoice.Hash, _ invoice.Address) (chain.Report, error) {
	n.asked++
	if n.hang != nil {
		<-n.hang
	}
	report := n.report
	if report.Chain.Key == "" {
		report.Chain.Key = chainKey
	}
	return report, n.err
}

func (n *nodes) IsReplaced(_ context.Context, _ string, sender invoice.Address, nonce uint64) (bool, error) {
	return n.replaced && sender == payerAddress && nonce == 7, n.err
}

// mined returns the report of a transaction on the invoice's chain.
func mined(moved ...chain.Transfer) *nodes {
	return &nodes{report: chain.Report{Chain: localChain(), State: chain.Mined, Block: 11, Transfers: moved}}
}

func moved(token invoice.Address, to invoice.Address) chain.Transfer {
	m := chain.Transfer{Token: token, From: payerAddress, To: to, Amount: invoice.NewAmount(4_900_123)}
	if token == tokenAddress {
		m.Currency = chain.USDC
	}
	return m
}

// unattributed returns an unattributed payment to the invoice's address.
func unattributed(amount uint64, at int64) invoice.Payment {
	p := payment(amount, 11, at, invoice.Confirmed)
	p.InvoiceID, p.MerchantID, p.Method = "", "", ""
	return p
}

func (w *world) check(t *testing.T, typed string) *element {
	t.Helper()
	answer := w.ask(http.MethodGet, "/checkout/"+testID+"/check?tx="+url.QueryEscape(typed))
	if answer.Code != http.StatusOK {
		t.Fatalf("status %d: %s", answer.Code, answer.Body)
	}
	return webtest.Parse(t, answer.Body.String())
}

func TestCheckResults(t *testing.T) {
	elsewhere := invoice.Address{0: 9}
	for name, test := range map[string]struct {
		set  func(*world)
		tone tone
		says []string
	}{
		"counted": {func(w *world) {
			w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Confirmed)}
		}, good, []string{"Your payment is counted", "4.900123 USDC arrived on 21 September 2026, 14:13:27 UTC."}},
		"being confirmed": {func(w *world) {
			w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Pending)}
		}, busy, []string{"Payment seen", "4.900123 USDC arrived in time", "2 of 3 confirmations"}},
		"late": {func(w *world) {
			w.payments = []invoice.Payment{payment(4_900_123, 11, expires+9, invoice.Confirmed)}
		}, warn, []string{"Paid too late", "The time to pay ended on 21 September 2026, 14:28:20 UTC. The money is not lost. Ask corner-cafe to accept or refund it"}},
		"late and being confirmed": {func(w *world) {
			w.payments = []invoice.Payment{payment(4_900_123, 11, expires+9, invoice.Pending)}
		}, warn, []string{"Paid too late", "2 of 3 confirmations"}},
		"taken back": {func(w *world) {
			w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Orphaned)}
		}, busy, []string{"Taken back by the network", "do not pay again"}},
		"another order's": {func(w *world) {
			p := payment(4_900_777, 11, defaultNow, invoice.Confirmed)
			p.InvoiceID, p.MerchantID = "inv_secret", "corner-cafe"
			w.others = []invoice.Payment{p}
		}, warn, []string{"Counted for another order", "contact corner-cafe"}},
		"too little": {func(w *world) { w.others = []invoice.Payment{unattributed(4_890_123, defaultNow)} },
			warn, []string{"not matched", "4.890123 USDC has arrived", "0.009877 USDC too little", "keep a fee"}},
		"too much": {func(w *world) { w.others = []invoice.Payment{unattributed(5_000_000, defaultNow)} },
			warn, []string{"0.099877 USDC too much"}},
		"the amount, and ambiguous": {func(w *world) { w.others = []invoice.Payment{unattributed(4_900_000, defaultNow)} },
			warn, []string{"4.90 USDC has arrived. It did not say which order it is for."}},
		"within the suffix": {func(w *world) { w.others = []invoice.Payment{unattributed(4_900_999, defaultNow)} },
			warn, []string{"4.900999 USDC has arrived."}},
		"the amount, late": {func(w *world) { w.others = []invoice.Payment{unattributed(4_900_000, expires+60)} },
			warn, []string{"but was due by 21 September 2026, 14:28:20 UTC."}},
		"the amount, before the invoice": {func(w *world) {
			w.invoice.FromBlock = 11
			w.others = []invoice.Payment{unattributed(4_900_000, created-60)}
		},
			warn, []string{"made before this invoice."}},
		"a second payment": {func(w *world) {
			first := payment(4_900_123, 12, defaultNow, invoice.Confirmed)
			w.payments = []invoice.Payment{first}
			w.others = []invoice.Payment{unattributed(4_900_000, defaultNow)}
		}, warn, []string{"Another payment has already paid this invoice."}},
		"the rest, but too little": {func(w *world) {
			w.payments = []invoice.Payment{payment(2_000_000, 12, defaultNow, invoice.Confirmed)}
			w.others = []invoice.Payment{unattributed(2_800_000, defaultNow)}
		}, warn, []string{"0.10 USDC too little"}},
		"a part": {func(w *world) {
			w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Pending)}
		}, warn, []string{"Paid in part", "2.00 USDC arrived", "2.00 USDC of 4.90 USDC has arrived. Please pay the rest in time.", "2 of 3 confirmations", "Pay the invoice"}},
		"a part, and the time is up": {func(w *world) {
			w.payments, w.now = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Confirmed)}, expires+1
		}, warn, []string{"Time is up", "2.00 USDC arrived", "Please send nothing now."}},
		"a part, and expired": {func(w *world) {
			w.payments, w.invoice.Status = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Confirmed)}, invoice.Expired
		}, warn, []string{"Expired: paid in part", "2.00 USDC of 4.90 USDC had arrived", "Ask corner-cafe to accept or refund it"}},
		"sent back, and due again": {func(w *world) {
			p := payment(4_900_123, 11, defaultNow, invoice.Confirmed)
			p.Returned = p.Amount
			w.payments = []invoice.Payment{p}
			w.refund(4_900_123)
		}, warn, []string{"Waiting for your payment", "4.900123 USDC was refunded.", "Pay the invoice"}},
		"the second of two": {func(w *world) {
			w.settle(invoice.Duplicate, 4_900_123)
			w.payments = append(w.payments, payment(4_900_123, 11, defaultNow, invoice.Confirmed))
			w.invoice.AmountPaid = invoice.NewAmount(9_800_246)
		}, good, []string{"Your payment is counted", "9.800246 USDC has arrived", "too much", "Contact corner-cafe for a refund"}},
		"refunded": {func(w *world) {
			w.settle("", 4_900_123)
			w.payments[0] = payment(4_900_123, 11, defaultNow, invoice.Confirmed)
			w.refund(4_900_123)
		}, warn, []string{"Refunded", "4.900123 USDC was refunded."}},
		"not found":               {func(w *world) { w.nodes = &nodes{report: chain.Report{State: chain.Unknown}} }, busy, []string{"Not found yet"}},
		"not mined":               {func(w *world) { w.nodes = &nodes{report: chain.Report{State: chain.Queued}} }, busy, []string{"not carried out yet", "looks again by itself"}},
		"failed":                  {func(w *world) { w.nodes = &nodes{report: chain.Report{State: chain.Failed}} }, warn, []string{"failed", "No money was transferred.", "Pay the invoice"}},
		"nodes away":              {func(w *world) { w.nodes = &nodes{err: chain.ErrUnavailable} }, busy, []string{"The network does not answer", "not lost", "looks again by itself"}},
		"found before it is read": {func(w *world) { w.nodes = mined(moved(tokenAddress, merchantAddress)) }, busy, []string{"Found on the network", "This page soon shows whether it counts"}},
		"another token": {func(w *world) { w.nodes = mined(moved(elsewhere, merchantAddress)) },
			warn, []string{"Another token was sent", "Another token went to corner-cafe’s address", "Only USDC on Local test chain, the token below, counts. Ask corner-cafe to accept or refund it", "Sent token " + chain.Checksum(elsewhere)}},
		"the native coin": {func(w *world) { w.nodes = mined(moved(invoice.Address{}, merchantAddress)) },
			warn, []string{"The network’s own coin went to corner-cafe’s address"}},
		"another address": {func(w *world) { w.nodes = mined(moved(tokenAddress, elsewhere)) },
			warn, []string{"Sent to another address", "4.900123 USDC went to another address", "It went to " + chain.Checksum(elsewhere)}},
		"nothing moved": {func(w *world) { w.nodes = mined() }, warn, []string{"moved no money"}},
		"another chain": {func(w *world) {
			n := mined(moved(tokenAddress, merchantAddress))
			n.report.Chain.Key, n.report.Chain.Name = "optimism", "OP Mainnet"
			w.nodes = n
		}, warn, []string{"Sent on another network", "is on OP Mainnet", "must be paid on Local test chain", "same address there. Ask corner-cafe to accept or refund it"}},
		"another chain, another address": {func(w *world) {
			n := mined(moved(tokenAddress, elsewhere))
			n.report.Chain.Key = "optimism"
			w.nodes = n
		}, warn, []string{"Sent on another network", "did not go to corner-cafe’s address there"}},
		"another chain, not mined": {func(w *world) {
			w.nodes = &nodes{report: chain.Report{Chain: chain.Chain{Key: "base", Name: "Base"}, State: chain.Queued}}
		}, busy, []string{"is on Base", "not carried out yet. Cancel it"}},
		"another chain, failed": {func(w *world) {
			w.nodes = &nodes{report: chain.Report{Chain: chain.Chain{Key: "base", Name: "Base"}, State: chain.Failed}}
		}, warn, []string{"is on Base", "It failed, so no money was transferred."}},
	} {
		w := newWorld()
		test.set(w)
		found := w.check(t, tx.String()).ID(t, "verdict")
		if got := found.Attrs["class"]; got != "verdict tone-"+string(test.tone) {
			t.Errorf("%s: shown as %q, want tone %s", name, got, test.tone)
		}
		for _, want := range test.says {
			if !strings.Contains(found.Words(), want) {
				t.Errorf("%s: the page does not say %q:\n%s", name, want, found.Words())
			}
		}
		if !w.hasNextStep(t) {
			t.Errorf("%s: the page is a dead end", name)
		}
		if words := found.Words(); strings.Contains(words, "inv_secret") || strings.Contains(words, "4.900777") {
			t.Errorf("%s: the page shows another invoice: %s", name, words)
		}
	}
}

// hasNextStep reports whether the page about the tests' transaction asks again, reports that the
// payment counts for an invoice that needs no other, can claim it, or has a link to pay or to the merchant.
func (w *world) hasNextStep(t *testing.T) bool {
	t.Helper()
	w.merchants = shop{merchant: invoice.Merchant{ID: "corner-cafe", SupportContact: "help@corner.example"}}
	page := w.check(t, tx.String())
	verdict := page.ID(t, "verdict")
	reloads := page.All(func(e *element) bool { return e.Attrs["http-equiv"] == "refresh" })
	claims := page.All(func(e *element) bool { return e.Attrs["id"] == "claim" })
	st := w.status(t).State
	return verdict.Attrs["class"] == "verdict tone-good" && (st == seen || st == paid) || len(reloads)+len(claims)+len(verdict.Named("a")) > 0
}

// A page that asks again finds out that a queued transaction was replaced, and stops after maxAgain times. The
// page ignores claims of a link about the transaction.
func TestPageAsksAgain(t *testing.T) {
	w := newWorld()
	n := &nodes{report: chain.Report{State: chain.Unknown}, replaced: true}
	w.nodes = n
	h := w.handler()
	look := func(path string) (words, next string) {
		w.now += int64(keepLookups / time.Second)
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		page := webtest.Parse(t, answer.Body.String())
		main := page.All(func(e *element) bool { return e.Attrs["class"] == "check" })[0]
		return page.ID(t, "verdict").Words(), main.Attrs["data-next"]
	}
	first := "/checkout/" + testID + "/check?tx=" + tx.String()
	if words, _ := look(first + "&from=" + chain.Checksum(payerAddress) + "&nonce=7"); !strings.Contains(words, "Not found yet") {
		t.Errorf("with a sender and a nonce in the link, the page says %q", words)
	}
	n.report = chain.Report{State: chain.Queued, Sender: payerAddress, Nonce: 7}
	_, next := look(first)
	expect.Equal(t, next, "/checkout/"+testID+"/check?again=1&lang=en&tx="+tx.String(), "the next page is")
	n.report = chain.Report{State: chain.Unknown}
	for range 2 { // the page may be loaded again
		words, _ := look(next)
		for _, want := range []string{"Replaced by another transaction", "enter the new hash", "Pay the invoice"} {
			if !strings.Contains(words, want) {
				t.Errorf("the page says %q without %q", words, want)
			}
		}
	}
	n.replaced = false
	if words, got := look(next); !strings.Contains(words, "Not found yet") || !strings.Contains(got, "again=2&") {
		t.Errorf("the page goes on at %s: %s", got, words)
	}
	n.replaced = true
	w.now += int64(keepQueued / time.Second)
	if words, _ := look(first); !strings.Contains(words, "Not found yet") {
		t.Errorf("after %v the page says %q", keepQueued, words)
	}
	for times, goesOn := range map[string]bool{"59": true, "60": false, "-9": true, "x": true, "99999999999999999999": false} {
		if _, got := look(first + "&again=" + times); (got != "") != goesOn {
			t.Errorf("after %s times it goes on at %q", times, got)
		}
	}
}

// A lookup that takes long is answered in time, continues, and is shared.
func TestSlowLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		n := &nodes{report: chain.Report{State: chain.Failed}, hang: make(chan struct{})}
		w.nodes = n
		h := w.handler()
		check := func() *element {
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/checkout/"+testID+"/check?tx="+tx.String(), nil))
			return webtest.Parse(t, answer.Body.String()).ID(t, "verdict")
		}
		for range LookupsOfInvoice + 1 {
			begun := time.Now()
			if words := check().Words(); !strings.Contains(words, "Still looking") || !strings.Contains(words, "looks again by itself") {
				t.Errorf("the page says %q", words)
			}
			expect.Equal(t, time.Since(begun), AnswerWithin, "the answer took")
		}
		close(n.hang)
		synctest.Wait()
		if words := check().Words(); !strings.Contains(words, "failed") {
			t.Errorf("the page says %q", words)
		}
		w.now += int64(keepLookups/time.Second) - 1
		check()
		expect.Equal(t, n.asked, 1, "the nodes were asked … times:")
		w.now++
		if check(); n.asked != 2 {
			t.Errorf("a lookup of a while ago is not repeated: %d", n.asked)
		}
	})
}

func TestBridgedTokenIsNamed(t *testing.T) {
	w := newWorld()
	w.chain, _ = chain.Lookup("arbitrum")
	w.chain.Tokens[0].Address = tokenAddress
	w.invoice.ChainKey = w.chain.Key
	w.nodes = &nodes{report: chain.Report{Chain: w.chain, State: chain.Mined, Transfers: []chain.Transfer{
		moved(chain.MustAddress("0xFF970A61A04b1cA14834A43f5dE4533eBDDB5CC8"), merchantAddress)}}}
	if words := w.check(t, tx.String()).ID(t, "verdict").Words(); !strings.Contains(words, "4.900123 USDC.e (bridged USDC) went to") {
		t.Errorf("the bridged token is not named: %s", words)
	}
}

func TestInvalidHashes(t *testing.T) {
	w := newWorld()
	for typed, want := range map[string]string{
		"hello": "not a transaction hash", "0x12": "not a transaction hash",
		chain.Checksum(payerAddress):             "an address",
		tx.String() + " " + testHash(7).String(): "only one transaction hash",
		strings.Repeat("a", 5000):                "not a transaction hash",
		`"><script>alert(1)</script>`:            "not a transaction hash",
		"\xff\x00":                               "not a transaction hash",
	} {
		answer := w.ask(http.MethodGet, "/checkout/"+testID+"/check?tx="+url.QueryEscape(typed))
		page := webtest.Parse(t, answer.Body.String())
		if answer.Code != http.StatusBadRequest || !strings.Contains(page.Words(), want) {
			t.Errorf("%.40q: status %d: %s", typed, answer.Code, page.Words())
		}
		expect.Equal(t, len(page.Named("script")), 2, "%.40q: the page has … scripts:", typed)
	}
}

func testHash(n byte) invoice.Hash { return invoice.Hash{0: n} }

func TestHashNotations(t *testing.T) {
	digits := tx.String()[2:]
	for _, typed := range []string{
		tx.String(), digits, "  " + tx.String() + "\n", "0X" + strings.ToUpper(digits), "https://etherscan.io/tx/" + tx.String() + "#eventlog",
		"https://explorer.example/tx/" + tx.String() + "?to=" + chain.Checksum(payerAddress), tx.String() + " " + tx.String(),
	} {
		if got, wrong := parseTxHash(typed); wrong != "" || got != tx {
			t.Errorf("%q reads as %s, %v", typed, got, wrong)
		}
	}
}

func FuzzParseTxHash(f *testing.F) {
	f.Add(tx.String())
	f.Add("https://etherscan.io/tx/" + tx.String())
	f.Add("0x0x")
	f.Fuzz(func(t *testing.T, typed string) {
		h, wrong := parseTxHash(typed)
		if wrong == "" && (h.IsZero() || !strings.Contains(strings.ToLower(typed), h.String()[2:])) {
			t.Errorf("%q reads as %s", typed, h)
		}
	})
}

// hangingNodes do not answer before hang is closed.
type hangingNodes struct{ hang chan struct{} }

func (n hangingNodes) Transaction(context.Context, string, invoice.Hash, invoice.Address) (chain.Report, error) {
	<-n.hang
	return chain.Report{}, nil
}

func (n hangingNodes) IsReplaced(context.Context, string, invoice.Address, uint64) (bool, error) {
	return false, nil
}

// TestLookupsInFlightAreShared looks up transactions at one merchant, as one client and then as many,
// while the nodes do not answer. Clients of other merchants can still look up theirs.
func TestLookupsInFlightAreShared(t *testing.T) {
	n := hangingNodes{make(chan struct{})}
	c := newWorld().config()
	c.Inspector = n
	page := New(c)
	var begun []*nodeLookup
	questions := 0
	fill := func(merchant string, clients ...string) (taken int) {
		for _, client := range clients {
			for {
				questions++
				q := transactionQuery{invoiceID: fmt.Sprint("inv_", questions), chainKey: "base"}
				lookup, err := page.lookups.ask(from(client), merchant, q)
				if err != nil {
					break
				}
				begun = append(begun, lookup)
				taken++
			}
		}
		return taken
	}
	expect.Equal(t, fill("acme", "203.0.113.7:1"), MaxLookups/4, "one client has … lookups in flight:")
	if fill("acme", hosts(50)...); len(begun) != MaxLookups/2 {
		t.Errorf("one merchant's payers have %d lookups in flight, want %d", len(begun), MaxLookups/2)
	}
	for m := range 20 {
		fill(fmt.Sprint("merchant", m), "192.0.2.1:1", fmt.Sprintf("192.0.2.%d:1", m+2))
	}
	expect.Len(t, begun, MaxLookups, "all have … lookups in flight:")
	close(n.hang)
	for _, lookup := range begun {
		<-lookup.done
	}
}

// Nodes are only queried for transactions that are not stored, within the limits.
func TestLookupsAreLimited(t *testing.T) {
	w := newWorld()
	n := &nodes{report: chain.Report{State: chain.Unknown}}
	w.nodes = n
	h := w.handler()
	path := "/checkout/" + testID + "/check?tx="
	ask := func(client string, hash invoice.Hash) int { return askFrom(h, client, path+hash.String()) }
	const ofClient = (LookupsOfInvoice + 1) / 2 // of one invoice
	for i := range ofClient {
		if got := ask("203.0.113.7:99", testHash(byte(i+1))); got != http.StatusOK {
			t.Fatalf("lookup %d answers %d", i, got)
		}
	}
	if got := ask("203.0.113.7:99", testHash(99)); got != http.StatusTooManyRequests || n.asked != ofClient {
		t.Errorf("beyond the client's share the status is %d, and the nodes were asked %d times", got, n.asked)
	}
	expect.Equal(t, ask("203.0.113.8:99", testHash(98)), http.StatusOK, "another client's status is")
	for i := range LookupsOfInvoice {
		ask(fmt.Sprintf("192.0.2.%d:99", i+1), testHash(byte(100+i)))
	}
	if got := ask("198.51.100.1:99", testHash(97)); got != http.StatusTooManyRequests || n.asked != LookupsOfInvoice {
		t.Errorf("beyond the invoice's limit the status is %d, and the nodes were asked %d times", got, n.asked)
	}
	w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Confirmed)}
	if got := ask("203.0.113.8:99", tx); got != http.StatusOK || n.asked != LookupsOfInvoice {
		t.Errorf("what is stored answers %d beyond the limit, and the nodes were asked %d times", got, n.asked)
	}
	w.now += 60
	expect.Equal(t, ask("203.0.113.8:99", testHash(99)), http.StatusOK, "a minute later the status is")
}

func TestBrokenReadsOfACheck(t *testing.T) {
	w := newWorld()
	w.nodes = &nodes{err: errors.New("a bug")}
	if got := w.ask(http.MethodGet, "/checkout/"+testID+"/check?tx="+tx.String()).Code; got != http.StatusInternalServerError {
		t.Errorf("status %d, want 500", got)
	}
	expect.Equal(t, w.ask(http.MethodGet, "/checkout/inv_none/check?tx="+tx.String()).Code, http.StatusNotFound, "status")
}
