package walk_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
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
