package browsertest_test

import (
	"flag"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/checkout/browsertest"
	"github.com/quittance/quittance/internal/checkout/locale"
)

// every says that no combination is left out. Without it each fault of the scripted payer, and
// each size, theme and language of a state, is tried once.
var every = flag.Bool("every", false, "try each fault in each way to pay, and each state in each size, theme and language")

// stateShots is the folder for screenshots of every state.
var stateShots = flag.String("states", "", "write a screenshot of every state, size, theme and language of shotLanguages to this `folder`")

// shotLanguages are the languages of screenshots.
var shotLanguages = []string{"en", "de", "ar"}

// checkedLanguages are the languages in which every state is checked: one from left to
// right, and one from right to left.
var checkedLanguages = []string{"de", "ar"}

// look is how a page is opened.
type look struct {
	language    string
	phone, dark bool
}

func (l look) String() string {
	return fmt.Sprintf("%s-%s-%s", l.language, map[bool]string{false: "1280", true: "390"}[l.phone], map[bool]string{false: "light", true: "dark"}[l.dark])
}

// checkedLooks are the looks in which every state is checked.
func checkedLooks() []look {
	if *every {
		return looks(checkedLanguages)
	}
	return []look{{checkedLanguages[0], false, false}, {checkedLanguages[1], true, true}}
}

// looks are the looks of the languages whose files exist.
func looks(languages []string) []look {
	var list []look
	for _, text := range locale.Languages() {
		if slices.Contains(languages, text.Lang()) {
			for _, phone := range []bool{false, true} {
				list = append(list, look{text.Lang(), phone, false}, look{text.Lang(), phone, true})
			}
		}
	}
	return list
}

// order makes an invoice of a coffee bar, with a description and several items.
func order(r *apitypes.CreateInvoiceRequest) {
	r.Description = "Table 12, the terrace"
	r.LineItems = []apitypes.LineItem{{Label: "Flat white", Amount: "3400000"}, {Label: "Cinnamon bun", Amount: "1500000"}}
	r.ReturnURL, r.CancelURL = "https://cafe.example/thanks", "https://cafe.example/cart"
}

// payPart sends an amount in minor units that names the invoice, and waits until it is mined.
func payPart(t *testing.T, w *browsertest.World, inv apitypes.CreateInvoiceResponse, amount int64) {
	t.Helper()
	hash, err := w.Node.SendToken(t.Context(), w.Node.Keys.Payer, common.HexToAddress(w.Info.Merchant.Address), big.NewInt(amount), common.FromHex(inv.OnChainInvoiceID))
	if err == nil {
		_, err = w.Node.Mined(t.Context(), hash)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestEveryState checks the page of every state in both sizes and themes, in two languages.
func TestEveryState(t *testing.T) {
	w := browsertest.Start(t, browsertest.WorldOptions{})
	t.Run("waiting", func(t *testing.T) { inspect(t, w, w.Invoice("4900000", order).ID, "waiting") })
	t.Run("deposit", func(t *testing.T) { inspect(t, w, w.Invoice("4900000", deposit).ID, "waiting") })
	t.Run("draft", func(t *testing.T) {
		inspect(t, w, w.Invoice("4900000", func(r *apitypes.CreateInvoiceRequest) { order(r); r.Draft = true }).ID, "draft")
	})
	t.Run("void", func(t *testing.T) {
		inv := w.Invoice("4900000", order)
		if _, err := w.Client.VoidInvoice(t.Context(), inv.ID); err != nil {
			t.Fatal(err)
		}
		inspect(t, w, inv.ID, "void")
	})
	t.Run("partial", func(t *testing.T) {
		inv := w.Invoice("4900000", order)
		payPart(t, w, inv, 2_000_000)
		inspect(t, w, inv.ID, "partial")
	})
	t.Run("paid", func(t *testing.T) {
		inv := w.Invoice("4900000", order)
		payPart(t, w, inv, price)
		inspect(t, w, inv.ID, "paid")
	})
	t.Run("overpaid", func(t *testing.T) {
		inv := w.Invoice("4900000", order)
		payPart(t, w, inv, 2*price)
		inspect(t, w, inv.ID, "paid")
	})
	t.Run("seen", func(t *testing.T) {
		inv := w.Invoice("4900000", order)
		payPart(t, w, inv, price)
		w.Node.Hold(time.Hour)
		defer w.Node.Hold(0)
		inspect(t, w, inv.ID, "seen")
	})
	late := w.Invoice("4900000", order)
	t.Run("expired", func(t *testing.T) {
		advance(t, w, int((20 * time.Minute).Seconds()))
		inspect(t, w, late.ID, "expired")
	})
	t.Run("late", func(t *testing.T) {
		payPart(t, w, late, price)
		awaitState(t, w, late.ID, "#received li")
		inspect(t, w, late.ID, "expired")
	})
}

// awaitState waits until a page has an element.
func awaitState(t *testing.T, w *browsertest.World, id, selector string) {
	t.Helper()
	t.Run("await", func(t *testing.T) {
		p := browsertest.Open(t, browsertest.Options{})
		p.Go(w.CheckoutURL(id))
		p.Await(fmt.Sprintf("document.querySelector(%q)", selector))
	})
}

// inspect checks an invoice's page, once it has the state, in every look.
func inspect(t *testing.T, w *browsertest.World, id, state string) {
	t.Helper()
	awaitState(t, w, id, "#status.state-"+state)
	for _, l := range checkedLooks() {
		t.Run(l.String(), func(t *testing.T) { inspectLook(t, w, id, l) })
	}
	if *stateShots == "" {
		return
	}
	name := filepath.Base(t.Name())
	for _, l := range looks(shotLanguages) {
		t.Run("shot "+l.String(), func(t *testing.T) {
			p := openLook(t, w, id, l)
			p.Screenshot(filepath.Join(*stateShots, name+"-"+l.String()+".png"))
		})
	}
}

// openLook opens an invoice's page in a look.
func openLook(t *testing.T, w *browsertest.World, id string, l look) *browsertest.Page {
	t.Helper()
	width := 1280
	if l.phone {
		width = 390
	}
	p := browsertest.Open(t, browsertest.Options{Phone: l.phone, Width: width, Dark: l.dark, Language: l.language})
	p.Go(w.CheckoutURL(id))
	return p
}

func inspectLook(t *testing.T, w *browsertest.World, id string, l look) {
	p := openLook(t, w, id, l)
	var lang string
	if p.Eval("document.documentElement.lang", &lang); lang != l.language {
		t.Errorf("the page is in %q", lang)
	}
	if got := p.Errors(); len(got) > 0 {
		t.Errorf("the page reports %q", got)
	}
	p.Axe(web)
}

// TestLocal checks that times and numbers are written as in the page's language, and that a
// page without scripts has them in UTC and with a dot.
func TestLocal(t *testing.T) {
	w := browsertest.Start(t, browsertest.WorldOptions{})
	inv := w.Invoice("4900000", order)
	for _, test := range []struct {
		noScript bool
		amount   string
		end      string // what the end of the time to pay contains, as a layout in UTC
	}{{false, "4,90", " um "}, {true, "4.90", ", 15:04:05 UTC"}} {
		p := browsertest.Open(t, browsertest.Options{Language: "de", NoScript: test.noScript})
		p.Go(w.CheckoutURL(inv.ID))
		if got := p.Text("h1 data"); got != test.amount {
			t.Errorf("without scripts %v: the amount is %q, want %q", test.noScript, got, test.amount)
		}
		if got, want := p.Text("#time time"), time.Unix(w.Read(inv.ID).ExpiresAt, 0).UTC().Format(test.end); !strings.Contains(got, want) {
			t.Errorf("without scripts %v: the end is %q, want %q", test.noScript, got, want)
		}
	}
}

// TestSizes checks where things are on a phone, and that no size scrolls sideways.
func TestSizes(t *testing.T) {
	w := browsertest.Start(t, browsertest.WorldOptions{})
	inv := w.Invoice("4900000", order)
	for _, text := range locale.Languages() {
		for _, width := range []int{320, 390, 768, 1280} {
			t.Run(fmt.Sprint(text.Lang(), width), func(t *testing.T) {
				p := browsertest.Open(t, browsertest.Options{Phone: width < 500, Width: width, Language: text.Lang()})
				p.Go(w.CheckoutURL(inv.ID))
				var at struct{ Scroll, Code, Address float64 }
				p.Eval(`(() => {
					for (const d of document.querySelectorAll("details")) d.open = true;
					const scroll = document.documentElement.scrollWidth - document.documentElement.clientWidth;
					for (const d of document.querySelectorAll("details:not(.lines)")) d.open = false;
					const bottom = (s) => document.querySelector(s).getBoundingClientRect().bottom;
					return { Scroll: scroll, Code: bottom("#scan .qr"), Address: bottom("#send .values dd:nth-of-type(2)") };
				})()`, &at)
				const fold = 844
				if at.Scroll > 0 || width == 390 && (at.Code > 2*fold || at.Address > 2*fold) {
					t.Errorf("it scrolls sideways by %v px; the code ends at %v px, and the address at %v px", at.Scroll, at.Code, at.Address)
				}
				const most = 60_000
				if n := p.Transferred(); n > most {
					t.Errorf("%d bytes were transferred, want at most %d", n, most)
				}
			})
		}
	}
}
