package browsertest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/browsertest"
)

// elapse advances the page's clocks by some seconds, as while a device sleeps.
func elapse(p *browsertest.Page, seconds int) {
	p.Eval(fmt.Sprintf(`void (() => {
		const ms = %d * 1000, clock = performance.now.bind(performance), date = Date.now;
		performance.now = () => clock() + ms;
		Date.now = () => date() + ms;
	})()`, seconds), nil)
}

// TestExtraLive checks that pages update without a reload, by streams or polls, also after faults.
func TestExtraLive(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	for name, test := range map[string]func(t *testing.T, w *browsertest.World, g *gate){
		"by the stream":                       byStream,
		"by polls where streams are refused":  byPolls,
		"by polls where streams are withheld": byPollsWithheld,
		"by the next stream after a cut":      afterCut,
		"after the device has slept":          afterSleep,
		"after the service was away":          afterOutage,
	} {
		t.Run(name, func(t *testing.T) { test(t, w, newGate(t, w)) })
	}
	t.Run("the rest as a new amount and code", func(t *testing.T) { restIsShown(t, w) })
	t.Run("the time left", func(t *testing.T) { timeLeft(t, w) })
}

// openAt opens the page of a new invoice through a gate.
func openAt(t *testing.T, w *browsertest.World, g *gate) (*browsertest.Page, apitypes.CreateInvoiceResponse) {
	t.Helper()
	inv := w.Invoice("4900000", nil)
	p := browsertest.Open(t, browsertest.Options{})
	p.Go(g.URL + "/checkout/" + inv.ID)
	p.Eval("void (window.mark = true)", nil) // lost if the page is loaded again
	g.awaitStream(t)
	return p, inv
}

// awaitPaid waits until a page shows a payment, and has not been loaded again.
func awaitPaid(p *browsertest.Page) {
	p.Await(counted + " && window.mark")
}

func byStream(t *testing.T, w *browsertest.World, g *gate) {
	p, inv := openAt(t, w, g)
	payPart(t, w, inv, price)
	p.Await(settled)
	awaitPaid(p)
	if n := g.polls.Load(); n != 0 {
		t.Errorf("with a stream the page polls %d times", n)
	}
}

func byPolls(t *testing.T, w *browsertest.World, g *gate) {
	g.refuse.Store(true)
	p, inv := openAt(t, w, g)
	payPart(t, w, inv, price)
	awaitPaid(p)
	if g.polls.Load() == 0 {
		t.Error("the page has not polled")
	}
}

// byPollsWithheld uses a proxy that buffers the messages of streams.
func byPollsWithheld(t *testing.T, w *browsertest.World, g *gate) {
	g.withhold.Store(true)
	p, inv := openAt(t, w, g)
	payPart(t, w, inv, price)
	const patience = 6
	elapse(p, patience)
	awaitPaid(p)
}

func afterCut(t *testing.T, w *browsertest.World, g *gate) {
	p, inv := openAt(t, w, g)
	g.cut()
	g.awaitStream(t)
	payPart(t, w, inv, price)
	awaitPaid(p)
}

// afterSleep lets a device sleep overnight. Afterwards its connection is gone without having been closed.
func afterSleep(t *testing.T, w *browsertest.World, g *gate) {
	g.withhold.Store(true)
	p, inv := openAt(t, w, g)
	payPart(t, w, inv, price)
	const night = 12 * 60 * 60
	elapse(p, night)
	awaitPaid(p)
}

func afterOutage(t *testing.T, w *browsertest.World, g *gate) {
	g.refuse.Store(true)
	p, inv := openAt(t, w, g)
	g.broken.Store(true)
	p.Await(`document.getElementById("checkout").classList.contains("offline")`)
	p.Axe(web)
	g.broken.Store(false)
	payPart(t, w, inv, price)
	awaitPaid(p)
	p.Await(`!document.getElementById("checkout").classList.contains("offline")`)
}

// restIsShown pays a part, after which the page asks for the rest.
func restIsShown(t *testing.T, w *browsertest.World) {
	inv := w.Invoice("4900000", nil)
	p := browsertest.Open(t, browsertest.Options{})
	p.Go(w.CheckoutURL(inv.ID))
	const shown = `[document.querySelector("#send code").textContent, document.querySelector("#code-request ~ .qr path").getAttribute("d")]`
	var before, after [2]string
	p.Eval(shown, &before)
	payPart(t, w, inv, 2_000_000)
	p.Await(`document.getElementById("status").className === "state-partial"`)
	p.Eval(shown, &after)
	p.AwaitText("h1", "2.90 USDC still due")
	if !strings.HasPrefix(before[0], "4.9") || !strings.HasPrefix(after[0], "2.9") || before[1] == after[1] {
		t.Errorf("the amounts are %s and %s, and the code is the same: %t", before[0], after[0], before[1] == after[1])
	}
}

// timeLeft opens a page on a device with a wrong clock, and waits until the time is almost up.
func timeLeft(t *testing.T, w *browsertest.World) {
	const window = 15 * 60
	for _, wrong := range []int{-3600, 3600} {
		inv := w.Invoice("4900000", func(r *apitypes.CreateInvoiceRequest) { r.ExpiresAt = time.Now().Unix() + window })
		p := browsertest.Open(t, browsertest.Options{Script: fmt.Sprintf(`{ const now = Date.now; Date.now = () => now() + %d * 1000; }`, wrong)})
		p.Go(w.CheckoutURL(inv.ID))
		p.Await(`/^1[45]\smin/.test(document.getElementById("left").textContent) && document.getElementById("soon").hidden`)
		elapse(p, window-50)
		p.AwaitText("#soon", "Less than a minute left.")
	}
}
