package checkout

import (
	"bytes"
	"encoding/json"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// copies returns the texts that the page's buttons copy.
func copies(e *element) []string {
	var texts []string
	for _, button := range e.Named("button") {
		if text, ok := button.Attrs["data-copy"]; ok {
			texts = append(texts, text)
		}
	}
	return texts
}

func TestPageShowsTheAmountDue(t *testing.T) {
	w := newWorld()
	page := w.page(t)
	header := page.Named("header")[0]
	want := "Invoice from corner-cafe 4.90 USDC on Local test chain 2 items " +
		"Item Amount in USDC Flat white 3.40 Cinnamon bun 1.50 Total 4.90 Time left: 14 min 54 s until 21 September 2026, 14:28:20 UTC"
	if got := header.Words(); !strings.HasPrefix(got, want) {
		t.Errorf("the header reads\n%s\nwant\n%s", got, want)
	}
	expect.Equal(t, page.Named("title")[0].Words(), "Waiting for your payment: 4.90 USDC to corner-cafe", "the title is")
	if got, want := page.ID(t, "time").Words(), "Time left: 14 min 54 s until 21 September 2026, 14:28:20 UTC"; !strings.HasPrefix(got, want) {
		t.Errorf("the time left is %q, want %q", got, want)
	}
}

func TestPlainTransfer(t *testing.T) {
	w := newWorld()
	pay := w.page(t).ID(t, "pay")
	address := chain.Checksum(merchantAddress)
	for _, want := range []string{"Exact amount 4.900123 USDC", "The last digits mark the payment as yours.", "Address " + address, "Network Local test chain"} {
		if !strings.Contains(pay.Words(), want) {
			t.Errorf("the page does not say %q:\n%s", want, pay.Words())
		}
	}
	got := copies(pay)
	if len(got) < 2 || got[0] != "4.900123" || got[1] != address {
		t.Errorf("the first buttons copy %q, want the amount and the address", got)
	}
	link := "ethereum:" + chain.Checksum(tokenAddress) + "@1337/transfer?address=" + address + "&uint256=4900123"
	if a := pay.Named("a"); len(a) != 1 || a[0].Attrs["href"] != link {
		t.Errorf("the wallet link is not %s: %v", link, a[0].Attrs)
	}
	other := pay.ID(t, "other")
	if words := other.Words(); !strings.Contains(words, "It transfers 4.90 USDC") || copies(other)[1] != chain.TaggedTransfer(w.invoice.Merchant, w.invoice.Amount, w.invoice.CommitmentID) {
		t.Errorf("the transfer that names the invoice is not of the bare amount: %s", words)
	}
	if _, open := other.Attrs["open"]; open {
		t.Error("other ways to pay are unfolded, though a plain transfer will do")
	}
}

func TestWithoutTransferAmountTheInvoiceMustBeNamed(t *testing.T) {
	w := newWorld()
	w.invoice.TransferAmount = invoice.Amount{}
	pay := w.page(t).ID(t, "pay")
	if n := len(pay.Named("svg")) + len(pay.Named("a")); n != 1 || pay.ID(t, "code-page") == nil {
		t.Errorf("the page shows %d codes and links, want its own code", n)
	}
	if _, open := pay.ID(t, "other").Attrs["open"]; !open {
		t.Error("the way to pay is folded away")
	}
	if !strings.Contains(pay.Words(), "must name the invoice") {
		t.Errorf("the page does not say why: %s", pay.Words())
	}
	terms := chain.ContractTerms(w.invoice.Terms, w.invoice.ID)
	arguments := "(" + chain.Checksum(merchantAddress) + ", " + chain.Checksum(tokenAddress) + ", 4900000, 1790000900, " + hexutil.Encode(terms.Salt[:]) + ")"
	got := copies(pay)
	want := []string{chain.Checksum(tokenAddress), chain.TaggedTransfer(w.invoice.Merchant, w.invoice.Amount, w.invoice.CommitmentID), chain.Checksum(registryAddress), arguments}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the buttons copy\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	w.chain.Registry = invoice.Address{}
	if words := w.page(t).ID(t, "pay").Words(); strings.Contains(words, "registry") {
		t.Errorf("the page names a registry where there is none: %s", words)
	}
}

func isAsking(e *element) bool { return e.Attrs["class"] == "asking" }

// The remainder can be paid by a plain transfer from any wallet.
func TestRemainderIsPaidByAPlainTransfer(t *testing.T) {
	w := newWorld()
	w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Pending)}
	w.invoice.Remaining, w.invoice.RemainingTransfer = invoice.NewAmount(2_900_000), invoice.NewAmount(2_900_456)
	page := w.page(t)
	pay := page.ID(t, "pay")
	address := chain.Checksum(merchantAddress)
	for _, want := range []string{"Exact amount 2.900456 USDC", "The last digits mark the payment as yours.", "Address " + address} {
		if !strings.Contains(pay.Words(), want) {
			t.Errorf("the page does not say %q:\n%s", want, pay.Words())
		}
	}
	if got := copies(pay); len(got) < 2 || got[0] != "2.900456" || got[1] != address {
		t.Errorf("the first buttons copy %q, want the amount and the address", got)
	}
	link := "ethereum:" + chain.Checksum(tokenAddress) + "@1337/transfer?address=" + address + "&uint256=2900456"
	if a := pay.Named("a"); len(a) != 1 || a[0].Attrs["href"] != link {
		t.Errorf("the wallet link is not %s", link)
	}
	expect.Equal(t, page.ID(t, "sum").Words(), "2.90 USDC still due", "the large amount is")
	if words := page.ID(t, "status").Words(); !strings.Contains(words, "2.00 USDC of 4.90 USDC has arrived.") {
		t.Errorf("the status says %s", words)
	}
	w.others = []invoice.Payment{unattributed(4_900_000, defaultNow)}
	if _, open := w.page(t).All(isAsking)[0].Attrs["open"]; open {
		t.Error("the help is open after a payment that was for another invoice")
	}
	w.others = []invoice.Payment{unattributed(2_890_456, defaultNow)}
	page = w.page(t)
	if _, open := page.All(isAsking)[0].Attrs["open"]; !open || !strings.Contains(page.ID(t, "status").Words(), "corner-cafe has received a different amount.") {
		t.Errorf("the help is not open after a payment that is too little: %s", page.ID(t, "status").Words())
	}
	w.payments[0].TxHash = testHash(1)
	if words := w.check(t, tx.String()).ID(t, "verdict").Words(); !strings.Contains(words, "0.009544 USDC too little") {
		t.Errorf("a rest that is too little: %s", words)
	}
}

func TestRemainderIsPaidByATaggedTransfer(t *testing.T) {
	w := newWorld()
	w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Confirmed)}
	pay := w.page(t).ID(t, "pay")
	if words := pay.Words(); strings.Contains(words, "4.90") || !strings.Contains(words, "2.90 USDC") || strings.Contains(words, "registry") {
		t.Errorf("the page does not ask for the missing 2.90 USDC alone: %s", words)
	}
	if got, want := copies(pay)[1], chain.TaggedTransfer(w.invoice.Merchant, invoice.NewAmount(2_900_000), w.invoice.CommitmentID); got != want {
		t.Errorf("the data is\n%s\nwant\n%s", got, want)
	}
}

func TestTaggedTransferIsATransferAndTheID(t *testing.T) {
	inv := openInvoice()
	packed, err := contracts.NewTestUSDC().TryPackTransfer(common.Address(inv.Merchant), big.NewInt(4_900_000))
	expect.OK(t, err)
	want := append(bytes.Clone(packed), inv.CommitmentID[:]...)
	if got := chain.TaggedTransfer(inv.Merchant, inv.Amount, inv.CommitmentID); got != hexutil.Encode(want) {
		t.Errorf("the data is\n%s\nwant\n%x", got, want)
	}
}

func TestRecordListsTheTerms(t *testing.T) {
	w := newWorld()
	w.settle("", 4_900_123)
	details := w.page(t).All(func(e *element) bool { return e.Attrs["class"] == "record" })
	for _, want := range []string{
		"On-chain id " + w.invoice.CommitmentID.String(), "Chain id 1337", "Registry " + chain.Checksum(registryAddress),
		"address " + chain.Checksum(merchantAddress), "Token " + chain.Checksum(tokenAddress), "Amount 4900000 minor units",
		"Pay until 1790000900", "Invoice id " + testID, "Settled by " + w.invoice.SettledTx.String(),
	} {
		if !strings.Contains(details[0].Words(), want) {
			t.Errorf("the record does not say %q:\n%s", want, details[0].Words())
		}
	}
}

func TestEveryBuiltinNetworkHasAName(t *testing.T) {
	for _, ch := range chain.Builtin() {
		if networkName(locale.English(), ch.Key, ch.Name) == ch.Key {
			t.Errorf("network %s has no name", ch.Key)
		}
	}
	expect.Equal(t, networkName(locale.English(), "my-chain", ""), "my-chain", "a network without a name is called")
}

// TestDepositAddress shows the deposit address of an invoice. Any amount that it receives counts.
func TestDepositAddress(t *testing.T) {
	deposit := chain.MustAddress("0x1111111111111111111111111111111111111111")
	w := newWorld()
	w.invoice.Collection, w.invoice.DepositFactory, w.invoice.DepositAddress = invoice.Deposit, registryAddress, deposit
	w.invoice.TransferAmount = invoice.Amount{}
	for due, text := range map[string]string{"4900000": "Amount 4.90 USDC", "2900000": "Amount 2.90 USDC"} {
		w.payments = nil
		if due == "2900000" {
			w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Pending)}
		}
		pay := w.page(t).ID(t, "pay")
		for _, want := range []string{text, "You can pay in parts", "Address " + chain.Checksum(deposit)} {
			if !strings.Contains(pay.Words(), want) {
				t.Errorf("the page does not say %q:\n%s", want, pay.Words())
			}
		}
		for _, unwanted := range []string{"Exact", "fraction", "names the invoice"} {
			if strings.Contains(pay.Words(), unwanted) {
				t.Errorf("the page says %q:\n%s", unwanted, pay.Words())
			}
		}
		link := "ethereum:" + chain.Checksum(tokenAddress) + "@1337/transfer?address=" + chain.Checksum(deposit) + "&uint256=" + due
		if a := pay.Named("a"); len(a) != 1 || a[0].Attrs["href"] != link {
			t.Errorf("the wallet link is not %s: %v", link, a)
		}
	}
}

// TestTerms wants the terms to give the invoice's on-chain id, with a registry and without, and no longer if one of them is
// changed.
func TestTerms(t *testing.T) {
	w := newWorld()
	answer := w.ask(http.MethodGet, "/checkout/"+w.invoice.ID+"/terms")
	var got Terms
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
		t.Fatalf("status %d, %v: %s", answer.Code, err, answer.Body)
	}
	if want := newTerms(w.invoice, w.chain); got != want {
		t.Errorf("terms are %+v, want %+v", got, want)
	}

	inv := openInvoice()
	if terms := newTerms(inv, localChain()); terms.DepositFactory != "" || terms.DepositAddress != "" {
		t.Errorf("the terms of an invoice without a deposit address name one: %+v", terms)
	}
	inv.DepositFactory, inv.DepositAddress = invoice.Address{1}, invoice.Address{2}
	if terms := newTerms(inv, localChain()); terms.DepositFactory != chain.Checksum(inv.DepositFactory) || terms.DepositAddress != chain.Checksum(inv.DepositAddress) {
		t.Errorf("the terms do not name the deposit address: %+v", terms)
	}
	for _, registry := range []invoice.Address{{}, inv.Registry} {
		inv.Registry = registry
		inv.CommitmentID = chain.CommitmentID(localChain().ID, registry, inv.Terms, inv.ID)
		terms := newTerms(inv, localChain())
		if id, err := terms.Commitment(); err != nil || id != inv.CommitmentID {
			t.Errorf("registry %s: the terms give the id %s (%v), want %s", registry, id, err, inv.CommitmentID)
		}
		for name, change := range map[string]func(*Terms){
			"registry":  func(t *Terms) { t.Registry = "0x00000000000000000000000000000000000000b2" },
			"merchant":  func(t *Terms) { t.MerchantAddress = "0x00000000000000000000000000000000000000b2" },
			"token":     func(t *Terms) { t.Token = "0x00000000000000000000000000000000000000b2" },
			"amount":    func(t *Terms) { t.Amount = "17" },
			"expiresAt": func(t *Terms) { t.ExpiresAt++ },
			"chainId":   func(t *Terms) { t.ChainID++ },
			"invoiceId": func(t *Terms) { t.InvoiceID += "0" },
		} {
			changed := terms
			change(&changed)
			if id, err := changed.Commitment(); err != nil || id == inv.CommitmentID {
				t.Errorf("with another %s, the id is %s (%v), want another", name, id, err)
			}
		}
	}
	for _, malformed := range []Terms{{Amount: "1"}, {MerchantAddress: "0x12"}, func() Terms {
		terms := newTerms(inv, localChain())
		terms.Amount = "1.5"
		return terms
	}()} {
		if id, err := malformed.Commitment(); err == nil {
			t.Errorf("%+v gives the id %s, want an error", malformed, id)
		}
	}
}
