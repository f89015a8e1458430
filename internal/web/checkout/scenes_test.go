package checkout

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Scene is a page that payers see, in one state.
type Scene struct {
	Name    string
	Path    string
	Handler http.Handler
	// Main scenes are always looked at. Others are similar to a main scene.
	Main bool
	// Pays is set if the page shows how to pay.
	Pays bool
	// Prints is set if the page is printed on one page of paper.
	Prints bool
	// Script runs before the page's scripts, and Act when it has loaded.
	Script, Act string
	// Shown is a selector of an element that the page then shows.
	Shown string
}

// cafe is the profile of the merchant of the scenes.
func cafe() invoice.Merchant {
	return invoice.Merchant{
		ID: "corner-cafe", Name: "Corner Café", Color: "#1d4ed8", SupportContact: "help@cafe.example",
		Statement: "Corner Café GmbH\n12 Market Street, Springfield",
	}
}

// withLogo is the same with a logo.
func withLogo() invoice.Merchant {
	m := cafe()
	m.Logo = &invoice.Logo{SHA256: "abc", Width: 240, Height: 80}
	return m
}

// logoPNG is the logo of the scenes' merchant.
func logoPNG() string {
	const width, height, border = 240, 80, 12
	logo := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(logo, logo.Bounds(), image.NewUniform(color.RGBA{0x1d, 0x4e, 0xd8, 0xff}), image.Point{}, draw.Src)
	draw.Draw(logo, image.Rect(border, border, height-border, height-border), image.White, image.Point{}, draw.Src)
	var file bytes.Buffer
	if err := png.Encode(&file, logo); err != nil {
		panic(err)
	}
	return file.String()
}

// base is the network of the scenes, which has an explorer.
func base() chain.Chain {
	ch, _ := chain.Lookup("base")
	ch.Registry = registryAddress
	return ch
}

// onBase moves the world to the network of the scenes.
func (w *world) onBase() {
	w.chain = base()
	token := w.chain.Tokens[0].Address
	w.invoice.ChainKey, w.invoice.Token = w.chain.Key, token
	w.invoice.CommitmentID = chain.CommitmentID(w.chain.ID, registryAddress, w.invoice.Terms, w.invoice.ID)
	for _, list := range [][]invoice.Payment{w.payments, w.others} {
		for i := range list {
			list[i].ChainKey, list[i].Token = w.chain.Key, token
		}
	}
	if n, ok := w.nodes.(*nodes); ok {
		if n.report.Chain.Key == chain.Local {
			n.report.Chain = w.chain
		}
		for i, m := range n.report.Transfers {
			if m.Token == tokenAddress {
				n.report.Transfers[i].Token = token
			}
		}
	}
}

// newScene returns a scene of a changed world at a path below its invoice's path.
func newScene(name, path string, set func(*world)) Scene {
	w := newWorld()
	w.publicURL = "https://pay.example"
	w.merchants = shop{cafe(), logoPNG()}
	w.invoice.Details = invoice.Details{Description: "Table 12, the terrace", Reference: "2026-0412", ReturnURL: "https://cafe.example/thanks", CancelURL: "https://cafe.example/cart"}
	w.cursor.Confirmed = invoice.Header{Number: 9, Time: invoice.Unix(defaultNow - 20)}
	w.cursor.Indexed.Time = invoice.Unix(defaultNow)
	set(w)
	w.onBase()
	return Scene{Name: name, Path: "/checkout/" + w.invoice.ID + path, Handler: w.handler(), Pays: path == "" && w.takesPlain()}
}

// takesPlain reports whether the invoice's page shows how to pay from any wallet.
func (w *world) takesPlain() bool {
	r, _ := http.NewRequest(http.MethodGet, "/", nil)
	r.SetPathValue("id", w.invoice.ID)
	s, err := w.checkout().loadFor(r)
	if err != nil {
		panic(err)
	}
	pay := newView(s).Pay
	return pay != nil && pay.Plain != nil
}

// Scenes returns the pages that payers see.
func Scenes() []Scene {
	var all []Scene
	for _, part := range [][]Scene{stateScenes(), extremeScenes(), verdictScenes(), receiptScenes(), refundScenes(), linkScenes(), errorScenes(), walletScenes()} {
		all = append(all, part...)
	}
	return all
}

// mainOutcomes are the outcomes that every run looks at.
var mainOutcomes = []string{"waiting", "seen", "part", "checking", "held", "halted", "paid", "paid and refunded in full", "expired", "late", "void", "draft"}

// stateScenes are the invoice's page in every state.
func stateScenes() (all []Scene) {
	for _, story := range outcomes {
		s := newScene("state "+story.name, "", story.set)
		for _, name := range mainOutcomes {
			s.Main = s.Main || name == story.name
		}
		all = append(all, s)
	}
	deposit := newScene("state waiting for a deposit", "", func(w *world) {
		w.invoice.DepositFactory, w.invoice.DepositAddress = registryAddress, homeAddress
	})
	rest := newScene("state partly paid", "", func(w *world) {
		w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Confirmed)}
		w.invoice.Remaining, w.invoice.RemainingTransfer = invoice.NewAmount(2_900_000), invoice.NewAmount(2_900_456)
	})
	rest.Main = true
	soon := newScene("state almost over", "", func(w *world) { w.now = expires - 30 })
	soon.Main = true
	frame := newScene("state in a frame", "?embed=1", func(w *world) {
		m := withLogo()
		m.EmbedOrigins = []string{"https://cafe.example"}
		w.merchants = shop{m, logoPNG()}
	})
	frame.Main = true
	return append(all, deposit, rest, soon, frame)
}

// extremeScenes have texts, numbers and lists of the greatest length.
func extremeScenes() []Scene {
	long := func(w *world) {
		m := withLogo()
		m.Name = strings.Repeat("Donaudampfschifffahrtsgesellschaft", 5)[:invoice.MaxLabel/2]
		m.Statement = strings.Repeat("x", invoice.MaxStatement)
		m.SupportContact = "https://cafe.example/" + strings.Repeat("help", 40)
		w.merchants = shop{m, logoPNG()}
		w.invoice.Details.Description = strings.Repeat("w", invoice.MaxDescription)
		w.invoice.Details.Reference = strings.Repeat("R", 100)
		w.invoice.LineItems = nil
		for range 100 {
			w.invoice.LineItems = append(w.invoice.LineItems, invoice.LineItem{Label: strings.Repeat("m", invoice.MaxLabel), Amount: huge()})
		}
		w.invoice.Amount, w.invoice.TransferAmount = huge(), huge()
	}
	many := func(w *world) {
		for i := range uint64(MaxPayments + 5) {
			w.payments = append(w.payments, payment(100_000, i+1, defaultNow, []invoice.PaymentStatus{invoice.Confirmed, invoice.Pending, invoice.Orphaned}[i%3]))
		}
	}
	all := []Scene{
		newScene("long texts", "", long), newScene("many payments", "", many),
		newScene("receipt with long texts", "/receipt", func(w *world) {
			long(w)
			w.payments = []invoice.Payment{payment(1, 11, defaultNow, invoice.Confirmed)}
			w.payments[0].Amount = huge()
			w.settled()
		}),
	}
	all[0].Main, all[1].Main = true, true
	return all
}

// huge is the largest amount.
func huge() invoice.Amount {
	a, err := invoice.ParseAmount("115792089237316195423570985008687907853269984665640564039457584007913129639935")
	if err != nil {
		panic(err)
	}
	return a
}

// verdictScenes are the page about a transaction, with the claim of a payment.
func verdictScenes() []Scene {
	query := "/check?tx=" + tx.String()
	elsewhere := invoice.Address{0: 9}
	all := []Scene{
		newScene("claim", query, func(w *world) { w.others = claimable().others }),
		newScene("check not found", query, func(w *world) { w.nodes = &nodes{report: chain.Report{State: chain.Unknown}} }),
		newScene("check another token", query, func(w *world) { w.nodes = mined(moved(elsewhere, merchantAddress)) }),
		newScene("check with a problem", "/check?tx=0x12", func(*world) {}),
		newScene("check", "/check", func(*world) {}),
		newScene("check counted", query, func(w *world) {
			w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Pending)}
		}),
		newScene("check another address", query, func(w *world) { w.nodes = mined(moved(tokenAddress, elsewhere)) }),
		newScene("check another network", query, func(w *world) {
			w.nodes = mined(moved(tokenAddress, merchantAddress))
			w.nodes.(*nodes).report.Chain.Key = "optimism"
		}),
		newScene("check a part", query, func(w *world) {
			w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Pending)}
		}),
		newScene("claim kept", query, func(w *world) {
			w.others = claimable().others
			w.claims.kept = testID + " pay_1"
		}),
	}
	for i := range all[:4] {
		all[i].Main = true
	}
	return all
}

// CheckAgain is the page about a transaction that is found when the page looks again.
func CheckAgain() Scene {
	query := "/check?tx=" + tx.String()
	unknown := newScene("", query, func(w *world) { w.nodes = &nodes{report: chain.Report{State: chain.Unknown}} })
	counted := newScene("", query, func(w *world) {
		w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Confirmed)}
	})
	first := unknown.Handler
	unknown.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("again") {
			counted.Handler.ServeHTTP(w, r)
			return
		}
		first.ServeHTTP(w, r)
	})
	return unknown
}

// receiptScenes are the receipts.
func receiptScenes() (all []Scene) {
	for _, story := range receipts {
		if story.state == "" {
			continue
		}
		s := newScene("receipt "+story.name, "/receipt", func(w *world) {
			story.set(w)
			refunded := w.invoice.AmountRefunded
			w.settled()
			w.invoice.AmountRefunded = refunded
			w.mails = new(mails)
		})
		s.Main, s.Prints = story.name == "paid" || story.name == "refunded", true
		all = append(all, s)
	}
	return append(all, newScene("receipt checked", "/receipt?check=0x12", func(w *world) { w.settle("", 4_900_123) }))
}

// refundScenes are the page on which a payer names the address of a refund.
func refundScenes() []Scene {
	scene := func(name, query string, change func(*invoice.RefundRecord)) Scene {
		f := newFakeRefunds()
		var ticks atomic.Int64 // seconds pass, so that no limit is reached
		ch := base()
		f.refund.ChainKey, f.refund.Token = ch.Key, ch.Tokens[0].Address
		change(&f.refund)
		f.err = ledger.ErrNotThePayer
		return Scene{Name: "refund " + name, Path: "/refunds/" + testToken + query, Handler: handlerOf(New(Config{
			Reader: newWorld(), Merchants: shop{cafe(), logoPNG()}, Chains: []chain.Chain{ch}, Refunds: f,
			Now: func() time.Time { return time.Unix(defaultNow+ticks.Add(5), 0) }, Logger: newWorld().config().Logger,
		}))}
	}
	none := func(*invoice.RefundRecord) {}
	all := []Scene{
		scene("new", "", none),
		scene("confirm", "?to="+chain.Checksum(homeAddress), none),
		scene("sent", "", func(r *invoice.RefundRecord) {
			r.Status, r.To = invoice.RefundConfirmed, homeAddress
			r.Transfer = invoice.Refund{ID: "ref_2", Status: invoice.Confirmed}
			r.Transfer.To, r.Transfer.TxHash = homeAddress, tx
		}),
		scene("problem", "?to=0x12", none),
		scene("not signed by the payer", "?to="+chain.Checksum(homeAddress), none),
		scene("expired", "", func(r *invoice.RefundRecord) { r.ExpiresAt = time.Unix(defaultNow, 0) }),
		scene("canceled", "", func(r *invoice.RefundRecord) { r.Status = invoice.RefundCanceled }),
		scene("approval", "", func(r *invoice.RefundRecord) { r.Status, r.To = invoice.RefundAwaitingApproval, homeAddress }),
		scene("confirmed", "", func(r *invoice.RefundRecord) { r.Status, r.To = invoice.RefundPending, homeAddress }),
	}
	for i := range all {
		all[i].Main = i < 3
		if all[i].Name == "refund not signed by the payer" {
			all[i].Act = `document.getElementById("signature").value = "0x12", document.querySelector("form:has(#signature)").submit()`
			all[i].Shown = "#claim > .problem"
		}
	}
	return all
}

// linkScenes are the page of a payment link.
func linkScenes() []Scene {
	scene := func(name string, change func(*fakeLinks)) Scene {
		f := newFakeLinks()
		f.link.Title, f.link.ChainKey, f.profile = "An espresso", "base", cafe()
		change(f)
		w := newWorld()
		return Scene{Name: "link " + name, Path: "/pay/" + cafeLink, Handler: handlerOf(New(Config{
			Reader: w, Merchants: shop{f.profile, logoPNG()}, Chains: []chain.Chain{base()}, Links: f, PublicURL: f.public, Rand: strings.NewReader(strings.Repeat("x", 1<<16)),
			Now: func() time.Time { return time.Unix(f.now, 0) }, Logger: w.config().Logger,
		}))}
	}
	all := []Scene{
		scene("fixed", func(*fakeLinks) {}),
		scene("free", func(f *fakeLinks) {
			f.link.Amount, f.link.Minimum, f.link.Maximum = invoice.Amount{}, invoice.NewAmount(1_000_000), invoice.NewAmount(500_000_000)
		}),
		scene("with a problem", func(f *fakeLinks) { f.link.Amount = invoice.Amount{} }),
		scene("long", func(f *fakeLinks) {
			f.link.Title, f.link.Description, f.link.Amount = strings.Repeat("W", 100), strings.Repeat("w", invoice.MaxDescription), huge()
		}),
	}
	all[1].Main = true
	all[2].Act, all[2].Shown = `document.getElementById("amount").value = "0", document.querySelector("form").submit()`, ".problem"
	return all
}

// errorScenes are the pages of errors.
func errorScenes() (all []Scene) {
	for _, page := range []*pageError{
		errNotFound, errTooOften, errLinkArchived, errNoReceipt, errMethodNotAllowed, errCrossOrigin, errTestWallet, errBadForm, errBusy, errInternal,
	} {
		c := newWorld().checkout()
		mux := handlerOf(c).(*http.ServeMux)
		mux.Handle("GET /{$}", c.Serve(func(http.ResponseWriter, *http.Request) error { return page }))
		all = append(all, Scene{Name: page.Title, Path: "/", Handler: mux, Main: page == errNotFound || page == errTooOften})
	}
	return all
}

// fakeWallets announces two wallets. Requests without an entry in answers are refused, and requests
// with an undefined answer are not answered.
const fakeWallets = `{
	const answers = {
		eth_requestAccounts: ["0x8617E340B3D01FA5F11F306F4090FD50E238070D"], eth_accounts: ["0x8617E340B3D01FA5F11F306F4090FD50E238070D"],
		eth_chainId: "0x2105", eth_blockNumber: "0x10", eth_getCode: "0x", eth_estimateGas: "0xfde8", eth_gasPrice: "0x3b9aca00", eth_getBalance: "0xde0b6b3a7640000",
		eth_call: "0x" + "1312d00".padStart(64, "0"), eth_getTransactionCount: "0x1", eth_getTransactionReceipt: null, eth_getTransactionByHash: {}, eth_getLogs: [],
		eth_getBlockByNumber: { hash: "0x" + "0".repeat(64) },
		eth_sendTransaction: "0x" + "5c".repeat(32),
		...CHANGES
	};
	const request = ({ method }) => new Promise((resolve, reject) => {
		if (!(method in answers)) reject({ code: method === "eth_sendTransaction" ? 4001 : 4200, message: "no" });
		else if (answers[method] !== undefined) resolve(answers[method]);
	});
	for (const name of NAMES) {
		const icon = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'><path fill='%23e76f51' d='M0 0h1v1H0z'/></svg>";
		const detail = { info: { rdns: "example." + name, name, icon }, provider: { request } };
		addEventListener("eip6963:requestProvider", () => dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail })));
	}
}`

// walletScenes are the ways to pay with a wallet in the browser.
func walletScenes() []Scene {
	scene := func(name, wallets, changes, act, shown string) Scene {
		s := newScene("wallet "+name, "", func(*world) {})
		s.Script, s.Act, s.Shown = strings.NewReplacer("NAMES", wallets, "CHANGES", changes).Replace(fakeWallets), act, shown
		return s
	}
	// press presses the buttons of the wallet's part, the first one of each step.
	press := func(steps int) string {
		return `(async () => {
			const shown = async (selector) => { for (;;) { const e = document.querySelector(selector); if (e) return e; await new Promise((f) => setTimeout(f, 20)); } };
			(await shown("#wallet-pay .wallets button")).click();
			if (` + strconv.Itoa(steps) + ` > 1) (await shown("#wallet-pay:has(dl) .actions button")).click();
		})()`
	}
	const one, two = `["Fox"]`, `["Fox", "Owl of the Night"]`
	all := []Scene{
		scene("offers", two, "{}", "", "#wallet-pay .wallets"),
		scene("review", one, "{}", press(1), "#wallet-pay dl"),
		scene("sent", one, "{}", press(2), "#checkout.sent"),
		scene("too little", one, `{ eth_call: "0x" + "0".repeat(64) }`, press(1), "#wallet-pay .problem"),
		scene("confirm", one, "{ eth_sendTransaction: undefined }", press(2), "#wallet-pay:not(:has(dl)):not(:has(.wallets)):not(:has(.problem)):has(h2)"),
		scene("false network", one, `{ eth_chainId: "0x1" }`, press(1), "#wallet-pay .problem"),
	}
	for i := range all[:3] {
		all[i].Main = true
	}
	all[2].Pays, all[4].Pays = false, false
	return all
}
