package walk_test

import (
	"strings"

	"github.com/quittance/quittance/internal/test/devtest"
)

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
