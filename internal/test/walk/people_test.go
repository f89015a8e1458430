package walk_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/devtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// operate is the way of an operator, from an empty folder to a paid invoice, by docs/install.md.
func operate(w *walk) {
	chain := w.world() // its chain is the network
	at, door := devtest.FreeAddress(w), devtest.FreeAddress(w)
	w.writeConfig(chain, at, door)

	w.run(w.command("docs/go-live.md", "quittance config check", "quittance config check --config quittance.yaml"))
	service := w.start(strings.ReplaceAll(w.command("docs/configuration.md", "quittance serve --config", ""), "FILE", "quittance.yaml"))
	service.shows(`msg=(ready)`)
	if out := w.run(w.command("docs/go-live.md", "quittance ready", "")); !strings.Contains(out, "ready") {
		w.stuck("quittance ready prints %q", out)
	}
	if out := w.run(w.command("docs/install.md", "quittance chain status --config quittance.yaml", "")); group(`(ready)$`, out) == "" {
		w.stuck("quittance chain status prints %q", out)
	}
	if strings.Contains(w.document("docs/install.md"), "merchant create") { // once the configuration had merchants
		w.run(strings.Replace(w.command("docs/install.md", "quittance merchant create", ""), "base-sepolia=0x1111111111111111111111111111111111111111", "house="+chain.Info.Merchant.Address, 1))
	}
	w.run(w.command("docs/install.md", `quittance key create --config quittance.yaml --name "shop`, ""))
	link := group(`^(http\S+)`, w.run(w.command("docs/install.md", "quittance setup --config", "quittance dashboard open --config quittance.yaml")))
	w.open(link)
	w.look("sign in")
	w.click("Sign in", "")
	w.look("setup")
	paid := w.setEndpoint()
	w.sell(chain)
	if !w.await(func() bool { return len(paid) > 0 }) {
		w.stuck("the endpoint got no invoice.paid")
	}
	for _, page := range []string{"Operator", "Merchants", "Audit log", "Inbox", "Customers", "Refunds", "Payment links", "Events", "API requests", "People and keys", "Merchant"} {
		w.click(page+"( \\d+)?", "")
		if w.offers("Show", 0) && w.sees(0, "v.field('Merchant')") {
			w.click("Show", "")
		}
		w.look("page " + page)
	}
}

// writeConfig makes the secrets and the configuration, from the files and for the network that the documents name.
func (w *walk) writeConfig(chain *network, at, door string) {
	w.Helper()
	w.run(strings.Replace(group(`(?s)\n(umask 077;.*?)\n\x60\x60\x60`, w.document("docs/install.md")), "https://base-sepolia.provider.example/v2/ACCESS-KEY", chain.Info.Chain.RPCURL, 1))
	text := w.document("deploy/systemd/quittance.yaml")
	w.steps++ // copies it
	for _, change := range [][2]string{
		{"127.0.0.1:8080", at}, {"127.0.0.1:9090", door}, {"https://pay.example.com", "http://" + at},
		{"sqlite:/var/lib/quittance/quittance.db", "sqlite:quittance.db"}, {"/run/credentials/quittance.service/secret_", "secrets/"},
		{"  - chainKey: base-sepolia\n", "  - chainKey: house\n    chainId: " + fmt.Sprint(chain.Info.Chain.ChainID) + "\n    finality: 3\n    tokens:\n      - {currency: USDC, address: \"" + chain.Info.Chain.Token + "\", decimals: 6}\n"},
		{", https://sepolia.base.org", ""},
	} {
		if w.steps++; !strings.Contains(text, change[0]) {
			w.guess("where the configuration has %s", change[0])
		}
		text = strings.ReplaceAll(text, change[0], change[1])
	}
	text += "webhooks: {allow: [127.0.0.1]}\n" // the receiver is on this machine
	expect.OK(w, os.WriteFile(filepath.Join(w.dir, "quittance.yaml"), []byte(text), 0o600))
}

// setEndpoint sets the endpoint of the merchant at the dashboard, and returns the invoices whose invoice.paid it has
// verified with the secret that is shown.
func (w *walk) setEndpoint() (paid chan string) {
	w.Helper()
	paid = make(chan string, 1)
	var handler http.Handler
	receiver := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { handler.ServeHTTP(rw, r) }))
	w.Cleanup(receiver.Close)
	w.click("Webhook endpoint", "")
	w.look("choose a merchant")
	w.fill("Merchant", "shop")
	w.click("Show", "")
	w.look("endpoint")
	w.fill("URL", receiver.URL)
	w.click("Save", "")
	w.look("endpoint set")
	handler = client.MustWebhookHandler(client.WebhookHandler{InvoicePaid: func(_ context.Context, i apitypes.PaidInvoice) error {
		paid <- i.ID
		return nil
	}}, w.read(`(whsec_\S+)`))
	return paid
}

// sell creates an invoice at the dashboard, opens its page, and pays by a transfer that is typed.
func (w *walk) sell(chain *network) {
	w.Helper()
	w.click("Invoices", "")
	w.look("invoices")
	w.click("New invoice", "")
	w.look("new invoice")
	if w.sees(0, "v.field('Merchant')") {
		w.fill("Merchant", "shop")
	}
	w.fill("Amount", "4.90")
	w.fill("Payable until", time.Now().UTC().Add(time.Hour).Format("2006-01-02T15:04"))
	w.click("Create the invoice", "")
	w.look("invoice")
	w.visit(w.read(`^(http\S+/checkout/\S+)`))
	w.look("checkout")
	chain.transfer(w.read(`^(0x[0-9a-fA-F]{40})`), w.read(`Exact amount\n(\S+)`))
	w.read("(received the payment on)")
	w.page.Back()
	w.page.AwaitPath("/dashboard/invoices/")
	w.read("^(Paid)$")
	w.look("invoice paid")
}

// account is the way of an accountant who closes a month.
func account(w *walk) {
	network := w.world()
	var link string
	w.pause(func() { link = network.month() })
	w.steps = 0

	w.open(link, network.fox(network.Info.Merchant.PrivateKey))
	w.click("Sign in", "")
	w.look("home")
	before := w.statement()
	w.click("Payments", "")
	w.look("payments")
	w.matches(before["Received"])
	short := w.read(`(0x[0-9a-f]+…[0-9a-f]+)\b`)
	for _, by := range [][2]string{{"hash", short}, {"amount", "7.25"}, {"e-mail", "maria@cafe.example"}, {"word", "wedding"}} {
		w.search(by[0], by[1])
	}
	w.refund("7.25.* USDC", "1.50")

	after := w.statement()
	if refunded := new(big.Rat).Sub(after["Refunded"], before["Refunded"]); refunded.Cmp(big.NewRat(3, 2)) != 0 {
		w.stuck("the statement has %s refunded more than before, want 1.50", refunded.FloatString(6))
	}
	w.click("Refunds", "")
	w.look("refunds")
	w.matches(after["Refunded"])
}

// month makes the month's invoices, and a link that signs the accountant in.
func (n *network) month() (link string) {
	n.w.Helper()
	api := expect.Must(client.New(n.Info.BaseURL))
	for i, sale := range [][3]string{ // nobody pays the last
		{"4900000", "Coffee", "juan@shop.example"}, {"7250000", "Flowers for a wedding", "maria@cafe.example"},
		{"12500000", "Cakes", "li@bar.example"}, {"3000000", "Tea", "ida@inn.example"},
	} {
		made, err := api.CreateInvoice(n.w.Context(), apitypes.CreateInvoiceRequest{
			MerchantID: n.Info.Merchant.ID, MerchantAddress: n.Info.Merchant.Address, Amount: sale[0], Currency: "USDC", ChainKey: n.Info.Chain.ChainKey,
			ExpiresAt: time.Now().Add(time.Hour).Unix(), Reference: fmt.Sprintf("order-%d", 10017+i), Description: sale[1], Customer: &apitypes.Customer{Email: sale[2]},
		})
		expect.OK(n.w, err)
		if i == 3 {
			break
		}
		units, _ := new(big.Rat).SetString(made.Invoice.TransferAmount + "/1000000")
		n.transfer(n.Info.Merchant.Address, units.FloatString(6))
		if !n.w.await(func() bool {
			inv, err := api.Invoice(n.w.Context(), made.ID)
			return err == nil && inv.Status == apitypes.StatusPaid
		}) {
			n.w.Fatalf("%s is not paid", made.ID)
		}
	}
	key, _, err := api.CreateKey(n.w.Context(), apitypes.CreateKeyRequest{Name: "Ida", MerchantID: n.Info.Merchant.ID, Scopes: []string{access.PresetFinance}})
	if err == nil {
		link, _, err = api.CreateSignInLink(n.w.Context(), key.ID)
	}
	expect.OK(n.w, err)
	return link
}

// statement opens the statement of this month, checks that both accounts add up, and returns the exact figures by name.
func (w *walk) statement() map[string]*big.Rat {
	w.Helper()
	w.click("Statement", "")
	if month := time.Now().UTC().Format("2006-01"); w.eval("return v.field('Month').value") != month {
		w.fill("Month", month)
		w.click("Show", "")
	}
	w.look("statement")
	var shown map[string]string
	w.page.Eval(`Object.fromEntries([...document.querySelectorAll(".account tr")].map((r) => {
		return [r.cells[0].innerText.replace(/^[+−] | \(.*/g, ""), r.cells[1].querySelector("[title]")?.title ?? r.cells[1].innerText];
	}))`, &shown)
	figures := make(map[string]*big.Rat)
	for name, text := range shown {
		figures[name], _ = new(big.Rat).SetString(regexp.MustCompile(`[^0-9.]`).ReplaceAllString(text, ""))
	}
	for _, account := range [][]string{
		{"Owed before", "Invoiced", "-Paid toward invoices", "-Canceled", "-Expired unpaid", "-Waived within the tolerance", "-Owed after"},
		{"Received and not refunded before", "Received", "-Refunded", "-Received and not refunded after"},
	} {
		total := new(big.Rat)
		for _, name := range account {
			value, minus := figures[strings.TrimPrefix(name, "-")], strings.HasPrefix(name, "-")
			if value == nil {
				w.lost("has no figure %q: %v", name, shown)
			}
			if minus {
				value = new(big.Rat).Neg(value)
			}
			total.Add(total, value)
		}
		if total.Sign() != 0 {
			w.stuck("the account does not add up: %v of %v", account, shown)
		}
	}
	return figures
}

// matches downloads the list that is shown, and compares its sum with a figure of the statement.
func (w *walk) matches(figure *big.Rat) {
	w.Helper()
	export := w.download("CSV")
	rows, err := csv.NewReader(strings.NewReader(export)).ReadAll()
	total := new(big.Rat)
	for _, row := range rows {
		if i := slices.Index(rows[0], "amountDecimal"); i >= 0 {
			if value, ok := new(big.Rat).SetString(row[i]); ok {
				total.Add(total, value)
			}
		}
	}
	if err != nil || total.Cmp(figure) != 0 {
		w.stuck("the export of %s adds up to %s, and the statement has %s (%v)\n%s", w.where(), total.FloatString(6), figure.FloatString(6), err, export)
	}
}

// search finds the invoice over 7.25 USDC, or a payment by its hash.
func (w *walk) search(what, text string) {
	w.Helper()
	w.fill("Search by", text)
	w.steps++
	w.page.Eval("void (window.walked = document.querySelector('[role=search]').requestSubmit() ?? true)", nil)
	if !w.page.Becomes("!window.walked && document.readyState === 'complete'", patience) || !w.sees(0, "v.found(%q)", `\d\.\d\d\S* USDC`) {
		w.stuck("the search by %s does not find %s", what, text)
	}
	w.look("search by " + what)
}

// develop is the way of a merchant's developer, who begins with the README in a fresh clone.
func develop(w *walk) {
	w.build()
	free := devtest.FreeAddress(w)
	world := w.start(w.command("README.md", "bin/quittance dev", "bin/quittance dev") + " --listen " + free + " --rpc-listen 127.0.0.1:0 --data " + w.TempDir())
	world.shows(`^(Stop with Ctrl-C)`)
	home := world.find(`open (http\S+) in a browser`)
	merchant := world.find(`(?s)Refund it.*--private-key 0x([0-9a-f]{64})`)

	w.open(home, w.networkOf(home).fox(merchant))
	w.look("home of dev")
	w.click("Open a fresh invoice.*|Create an invoice of 4.90 USDC", "")
	w.look("checkout")
	w.click("Pay with the test wallet", "")
	w.read("(received the payment on)")
	w.look("checkout paid")

	w.runREADME(world)
	w.visit(home)
	w.click("Read the API reference|API reference", home+"/docs")
	w.page.Becomes("document.querySelector('[role=navigation] li, .menu-content')", patience)
	w.look("docs")
	w.guides(home)

	w.visit(home)
	w.click("Sign in as Demo merchant", home+"/dashboard")
	if w.offers("Open the dashboard", 0) {
		w.click("Open the dashboard", "")
	}
	w.look("dashboard home")
	w.click("Payments", "")
	w.look("dashboard payments")
	w.refund("4.90.* USDC", "1.50")
}

// refund refunds a part of the payment that the page shows by its amount, from the browser's wallet.
func (w *walk) refund(payment, amount string) {
	w.Helper()
	w.click(payment, "")
	w.look("payment")
	w.click("Refund…", "")
	w.look("refund form")
	w.fill("Amount in USDC", amount)
	w.fill("Reason", "One bun returned")
	w.click("Prepare the refund", "")
	w.look("refund prepared")
	w.press("Sign with Fox")
	w.press("Send " + amount + " USDC")
	w.read("^(Confirmed)$")
	if !w.sees(patience, "document.body && !v.found('It is being sent')") {
		w.stuck("a confirmed refund is said to be sent")
	}
	w.look("refund confirmed")
}

// runREADME runs the README's program with what the terminal shows, and has its invoice paid. The program handles the webhook.
func (w *walk) runREADME(world *terminal) {
	w.Helper()
	address := devtest.FreeAddress(w) // another program may use the one that is shown
	variables := "export ADDR=" + address
	for _, name := range []string{"QUITTANCE_URL", "QUITTANCE_API_KEY", "WEBHOOK_SECRET"} {
		value := world.find(`export ` + name + `=(\S+)`)
		if value == "" {
			w.guess("%s", name)
			value = map[string]string{"QUITTANCE_URL": world.find(`open (http\S+)`), "WEBHOOK_SECRET": world.find(`secret +(whsec_\S+)`)}[name]
		}
		variables += "; export " + name + "='" + value + "'"
	}
	w.steps++
	listen := world.find(`^ +(.*quittance listen --url \S+ --forward-to \S+)$`)
	w.start(strings.Replace(listen, "http://127.0.0.1:9000", "http://"+address, 1)).shows(`^(Listening)`)
	shop := w.start(variables + "; " + w.command("README.md", "go run ./examples", "go run ./examples/quickstart"))
	if page := shop.shows(`pay at (\S+)`); page != "" {
		w.visit(page)
		w.click("Pay with the test wallet", "")
		shop.shows(`paid (inv_\S+)`)
	}
}

// guides looks at the guides of /docs.
func (w *walk) guides(home string) {
	w.Helper()
	w.click("Guides", home+"/docs/guides")
	w.look("docs guides")
	w.click("Refunds", "")
	w.look("docs refunds")
	w.pause(func() {
		var paths []string
		w.page.Eval("[...document.querySelectorAll('a[href^=\"/docs/guides/\"]')].map((a) => a.getAttribute('href').split('#')[0])", &paths)
		for _, path := range paths {
			w.page.Go(home + path)
			w.look(strings.ReplaceAll(path[1:], "/", " "))
		}
	})
}

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
