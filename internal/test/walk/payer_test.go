package walk_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// payer is a payer with a device, in a language.
type payer struct {
	*walk
	*network
	words map[string]any
}

// pay is the way of payers: at a desk and by phone, in three languages, with a wallet in the browser and without one,
// with a wrong amount, and too late.
func pay(w *walk) {
	network := w.world()
	for i, language := range []string{"en", "de", "ar"} {
		for j, device := range []browsertest.Options{desktop, {Phone: true}} {
			device.Language = language
			w.device = device
			p := payer{w, network, nil}
			expect.OK(w, json.Unmarshal([]byte(w.document("internal/web/checkout/locale/"+language+".json")), &p.words))
			p.payOnce((i+j)%2 == 0)
		}
	}
	w.device = desktop
	english := payer{w, network, nil}
	english.payWrong()
	english.payLate()
}

var placeholder = regexp.MustCompile(`{{[^}]*}}`)

// word returns a regular expression for a text in the payer's language.
func (p payer) word(id string) string {
	text, plain := p.words[id].(string)
	if !plain {
		text, _ = p.words[id].(map[string]any)["other"].(string)
	}
	return strings.ReplaceAll(regexp.QuoteMeta(placeholder.ReplaceAllString(text, "\x00")), "\x00", ".+")
}

// invoice makes an invoice for the payer, and returns its address.
func (p payer) invoice() (address string) {
	p.walk.pause(func() {
		api := expect.Must(client.New(p.Info.BaseURL))
		made, err := api.CreateInvoice(p.Context(), apitypes.CreateInvoiceRequest{
			MerchantID: p.Info.Merchant.ID, MerchantAddress: p.Info.Merchant.Address, Amount: "4900000", Currency: "USDC", ChainKey: p.Info.Chain.ChainKey,
			ExpiresAt: time.Now().Add(time.Hour).Unix(), LineItems: []apitypes.LineItem{{Label: "Two espressos", Amount: "4000000"}, {Label: "Tip", Amount: "900000"}},
		})
		expect.OK(p, err)
		address = p.Info.BaseURL + made.CheckoutURL
	})
	return address
}

// payOnce pays an invoice, with a wallet in the browser or by a transfer that is typed from what the page shows.
func (p payer) payOnce(wallet bool) {
	p.Helper()
	name := p.device.Language + map[bool]string{true: " phone", false: " desktop"}[p.device.Phone]
	if wallet {
		p.open(p.invoice(), p.fox(p.Info.Payer.PrivateKey))
		p.offers(p.word("script.wallet.with"), patience)
		p.look(name + " wallet")
		p.press(p.word("script.wallet.with"))
		p.read(`\b(Fox)\b`)
		p.offers(p.word("script.wallet.pay"), patience)
		p.look(name + " review")
		p.press(strings.Replace(p.word("script.wallet.pay"), ".+", ".*4.90.*", 1))
	} else {
		p.open(p.invoice())
		p.look(name)
		amount := p.read(p.word("pay.send.exact") + `\s+[^\d]?(\d+[.,]\d+)`)
		p.transfer(p.read(`^[^0-9a-z]?(0x[0-9a-fA-F]{40})`), amount)
	}
	p.read("(" + p.word("status.paid.text") + ")")
	p.look(name + " paid")
	p.click(p.word("receipt.link"), "")
	p.look(name + " receipt")
}

// payWrong pays less than is due, and has the payment found.
func (p payer) payWrong() {
	p.Helper()
	p.open(p.invoice())
	hash := p.transfer(p.read(`^(0x[0-9a-fA-F]{40})`), "4.00")
	p.read("(enter its transaction hash)")
	p.look("wrong amount")
	if !p.sees(0, "v.field('Transaction hash')") {
		p.press("I have paid")
	}
	p.fill("Transaction hash", hash.Hex())
	p.press("Check payment")
	p.read("(0.90 USDC too little)")
	p.look("wrong amount found")
	p.click("Is this your payment.*", "")
	p.look("wrong amount claim")
	p.click("Notify Demo merchant", "")
	p.read("(Demo merchant knows that it is yours)")
	p.look("wrong amount claimed")
}

// payLate pays after the time to pay has ended.
func (p payer) payLate() {
	p.Helper()
	p.open(p.invoice())
	address, amount := p.read(`^(0x[0-9a-fA-F]{40})`), p.read(`Exact amount\n(\S+)`)
	p.walk.pause(func() {
		p.run("quittance clock advance 2h --url " + p.Info.BaseURL)
		p.steps--
	})
	p.read("^(Expired)$")
	p.look("expired")
	p.transfer(address, amount)
	p.read("^(Paid too late)$")
	p.look("late")
	if !p.offers("Contact .*|.*@.*", 0) {
		p.stuck("the page about a late payment names nobody to ask")
	}
}
