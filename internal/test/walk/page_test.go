package walk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// open opens a browser with the person's device and wallets at an address that was shown.
func (w *walk) open(address string, wallets ...*browsertest.Wallet) {
	w.Helper()
	options := w.device
	options.Wallets = wallets
	w.page = browsertest.Open(w, options)
	w.visit(address)
}

// visit opens an address that was shown.
func (w *walk) visit(address string) {
	w.Helper()
	w.steps++
	w.page.Go(address)
}

// eyes find what a person sees: what can be pressed by its whole name and a text of the page, both by a regular expression,
// and a field by the beginning of its label.
const eyes = `((see) => see({
	text: (e) => (e?.innerText || e?.ariaLabel || "").replaceAll("\u00a0", " ").trim(),
	all: (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility({ contentVisibilityAuto: true }) && !e.disabled),
	named(name) { return this.all("a[href], button, summary").find((e) => new RegExp("^(?:" + name + ")$").test(this.text(e))); },
	field(label) { return this.all("input, select, textarea").find((e) => [e.ariaLabel, e.placeholder, ...[...e.labels ?? []].map(this.text)].some((l) => l?.startsWith(label))); },
	found(pattern) { return this.text(document.body).match(new RegExp(pattern, "m")); },
}))`

// sees reports whether an expression about what eyes see becomes true within a time.
func (w *walk) sees(within time.Duration, expression string, args ...any) bool {
	return w.page.Becomes(eyes+"((v) => "+fmt.Sprintf(expression, args...)+")", within)
}

// offers reports whether there is something to press with a name.
func (w *walk) offers(name string, within time.Duration) bool {
	return w.sees(within, "v.named(%q)", name)
}

// eval evaluates the body of a function of what eyes see.
func (w *walk) eval(expression string, args ...any) (text string) {
	w.Helper()
	w.page.Eval(eyes+"((v) => { "+fmt.Sprintf(expression, args...)+" })", &text)
	return text
}

// where names the page.
func (w *walk) where() string { return w.eval("return location.pathname") }

// lost ends the walk at a dead end.
func (w *walk) lost(format string, args ...any) {
	w.Helper()
	w.stuck("%s "+format, append([]any{w.where()}, args...)...)
	w.Fatalf("the page reads\n%s", w.page.Text("body"))
}

// click clicks on the link or button with a name that a regular expression matches, and waits for the next page.
// Without one the walk is at a dead end, and goes on at an address that the person guesses.
func (w *walk) click(name, otherwise string) {
	w.Helper()
	w.steps++
	if !w.offers(name, patience) {
		if otherwise == "" {
			w.lost("has no %q", name)
		}
		w.stuck("%s has no %q", w.where(), name)
		w.guess("the address %s", otherwise)
		w.page.Go(otherwise)
		return
	}
	w.eval("window.walked = true; v.named(%q).click(); return ''", name)
	if !w.page.Becomes("!window.walked && document.readyState === 'complete'", patience) {
		w.Fatalf("%s: %q leads to no page", w.where(), name)
	}
}

// press clicks on a button that changes the page.
func (w *walk) press(name string) {
	w.Helper()
	if w.steps++; !w.offers(name, browsertest.Patience) {
		w.lost("has no %q", name)
	}
	w.eval("v.named(%q).click(); return ''", name)
}

// fill fills in the field with a label that begins with a text: types the value, or chooses the option.
func (w *walk) fill(label, value string) {
	w.Helper()
	if w.steps++; !w.sees(patience, "v.field(%q)", label) {
		w.lost("has no field %q", label)
	}
	w.eval(`const e = v.field(%q), value = %q;
		e.value = e.options ? [...e.options].find((o) => o.text.startsWith(value)).value : value;
		for (const type of ["input", "change"]) e.dispatchEvent(new Event(type, { bubbles: true }));
		return ""`, label, value)
}

// read waits until the page shows what a regular expression finds, and returns its first group. Otherwise the walk is at
// a dead end.
func (w *walk) read(pattern string) string {
	w.Helper()
	if !w.sees(browsertest.Patience, "v.found(%q)", pattern) {
		w.lost("does not show %q", pattern)
	}
	return w.eval("return v.found(%q)?.[1] ?? ''", pattern)
}

// download returns the file behind a link with a name.
func (w *walk) download(name string) string {
	w.Helper()
	if w.steps++; !w.offers(name, patience) {
		w.lost("has no %q", name)
	}
	return w.eval("return fetch(v.named(%q).href).then((r) => r.text())", name)
}

// axe is the folder of the package-lock.json that has axe-core, which also checks that contrast is at least 4.5:1.
var axe = testdeps.Repo("internal/web/checkout/web")

// looked are the pages that were looked at.
var looked = make(map[string]bool)

// look looks at the page, the first time under a name, on a desktop and a phone, in light and dark: it breaks no rule
// of axe-core, scrolls not sideways at 320 px, and reports no error.
func (w *walk) look(name string) {
	w.Helper()
	if *pictures == "" || looked[w.who+name] {
		return
	}
	looked[w.who+name] = true
	w.pause(func() {
		for _, device := range []browsertest.Options{desktop, {Phone: true}} {
			for _, dark := range []bool{false, true} {
				device.Dark, device.Language = dark, w.device.Language
				w.page.Emulate(device)
				// When colors change, the reference is made again. It takes axe-core half a minute.
				theme := "light"
				if dark {
					theme = "dark"
				}
				w.page.Await("document.readyState === 'complete' && !document.querySelector('#reference:not([data-theme=" + theme + "])')")
				if device.Phone == dark {
					for _, violation := range w.page.Violations(axe) {
						w.Errorf("%s: %.2000s", name, violation)
					}
				}
				w.photograph(name, device)
			}
		}
		w.page.Emulate(browsertest.Options{Phone: true, Width: 320, Language: w.device.Language})
		var over float64
		if w.page.Eval("document.documentElement.scrollWidth - document.documentElement.clientWidth", &over); over > 0 {
			w.Errorf("%s: at 320 px, the page scrolls sideways by %v px", name, over)
		}
		w.page.Emulate(w.device)
		if found := w.page.Errors(); len(found) > 0 {
			w.Errorf("%s: the page reports %q", name, found)
		}
	})
}

// photograph writes a picture of the page.
func (w *walk) photograph(name string, device browsertest.Options) {
	w.Helper()
	size, theme := "1280", "light"
	if device.Phone {
		size = "390"
	}
	if device.Dark {
		theme = "dark"
	}
	file := filepath.Join(*pictures, strings.Join([]string{w.who, strings.ReplaceAll(name, " ", "-"), size, theme}, "-")+".png")
	// The reference is larger than a picture can be: show its beginning.
	w.page.Eval("void (document.adoptedStyleSheets = [new CSSStyleSheet()], document.adoptedStyleSheets[0].replaceSync('#reference .api-content > :nth-child(n+6) { display: none }'))", nil)
	w.page.Screenshot(file)
}

// await waits until something is so, and reports whether it is.
func (w *walk) await(is func() bool) bool {
	limit, tick := time.NewTimer(browsertest.Patience), time.NewTicker(50*time.Millisecond)
	defer limit.Stop()
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-limit.C:
			return false
		}
	}
	return true
}

// document returns the text of a document of the walked tree.
func (w *walk) document(name string) string {
	w.Helper()
	text := expect.Must(os.ReadFile(filepath.Join(*tree, name)))
	return string(text)
}
