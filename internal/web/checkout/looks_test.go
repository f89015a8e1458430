package checkout_test

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/checkout"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// every looks at all scenes in every language, size and theme. Without it each main scene is looked at
// once, and the languages, sizes and themes take turns.
var every = flag.Bool("every", false, "look at all scenes in every language, size and theme")

// pictures is the folder for screenshots of all scenes.
var pictures = flag.String("screenshots", "", "write screenshots of all scenes, sizes and themes in the languages of -in to this `folder`")

// in are the languages of screenshots.
var in = flag.String("in", "en,de,ar", "`languages` of the screenshots")

func TestMain(m *testing.M) {
	os.Exit(browsertest.Main(m))
}

// look is how a page is looked at.
type look struct{ phone, dark bool }

var looks = []look{{false, false}, {true, true}, {true, false}, {false, true}}

func (l look) String() string {
	return map[bool]string{false: "1200", true: "390"}[l.phone] + "-" + map[bool]string{false: "light", true: "dark"}[l.dark]
}

// options returns the options of a page in a language.
func (l look) options(language string) browsertest.Options {
	return browsertest.Options{Phone: l.phone, Dark: l.dark, Language: language}
}

// TestExtraLooks checks payers' pages with the rules of axe-core, and what they show at which size.
func TestExtraLooks(t *testing.T) {
	for i, scene := range checkout.Scenes() {
		if !scene.Main && !*every && *pictures == "" {
			continue
		}
		t.Run(scene.Name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(scene.Handler)
			t.Cleanup(server.Close)
			p := browsertest.Open(t, browsertest.Options{Script: "localStorage.clear();" + scene.Script})
			for j, text := range locale.Languages() {
				v := visit{t, p, scene, server.URL, text}
				switch own := (i+j)%len(locale.Languages()) == 0; {
				case *pictures != "":
					v.photograph()
				case *every:
					v.inspect(looks)
				case own:
					v.inspect(looks[(i+i/len(locale.Languages()))%len(looks):][:1])
				case scene.Pays && i == 0:
					v.inspect(nil)
				}
			}
		})
	}
}

// TestExtraCheckLooksAgain waits until the page about a transaction has found the transaction.
func TestExtraCheckLooksAgain(t *testing.T) {
	scene := checkout.CheckAgain()
	server := httptest.NewServer(scene.Handler)
	defer server.Close()
	const quick = `{ const timeout = setTimeout; window.setTimeout = (f, ms, ...args) => timeout(f, ms / 20, ...args); }`
	p := browsertest.Open(t, browsertest.Options{Script: quick})
	p.Go(server.URL + scene.Path)
	p.AwaitText("#verdict", "Not found yet")
	p.Eval(`document.getElementById("tx").value = "0x5"`, nil)
	p.AwaitText("#verdict", "Your payment is counted")
	p.Await(`document.getElementById("tx").value === "0x5" && document.getElementById("verdict").className === "verdict tone-good" && !document.querySelector("main").dataset.again`)
}

// visit is a scene in a language.
type visit struct {
	t     *testing.T
	page  *browsertest.Page
	scene checkout.Scene
	url   string
	text  *locale.Text
}

// open opens the page in a look, and waits until it shows the scene.
func (v visit) open(l look) {
	v.t.Helper()
	v.page.Emulate(l.options(v.text.Lang()))
	v.page.Go(v.url + v.scene.Path)
	if v.scene.Act != "" {
		v.page.Eval("void ("+v.scene.Act+")", nil)
	}
	if v.scene.Shown != "" {
		v.page.Await(fmt.Sprintf("document.querySelector(%q)", v.scene.Shown))
	}
}

// photograph writes screenshots in every look, in the languages of -in.
func (v visit) photograph() {
	if !slices.Contains(strings.Split(*in, ","), v.text.Lang()) {
		return
	}
	v.open(looks[0])
	if v.scene.Prints {
		v.page.Emulate(browsertest.Options{Width: 720, Print: true, Language: v.text.Lang()})
		v.page.Screenshot(filepath.Join(*pictures, fmt.Sprintf("%s-%s-print.png", strings.ReplaceAll(v.scene.Name, " ", "-"), v.text.Lang())))
	}
	for _, l := range looks {
		v.page.Emulate(l.options(v.text.Lang()))
		name := strings.NewReplacer(" ", "-", ",", "", ".", "-").Replace(v.scene.Name)
		v.page.Screenshot(filepath.Join(*pictures, fmt.Sprintf("%s-%s-%s.png", name, v.text.Lang(), l)))
	}
}

// web is the folder of the scripts' package-lock.json.
const web = "web"

// inspect checks the page at several sizes, and with the rules of axe-core in some looks.
func (v visit) inspect(checked []look) {
	v.t.Helper()
	v.open(look{phone: true})
	v.holds()
	for _, l := range checked {
		v.page.Emulate(l.options(v.text.Lang()))
		for _, violation := range v.page.Violations(web) {
			v.t.Errorf("%s, %s: %s", v.text.Lang(), l, violation)
		}
	}
}

// technical are names of technical standards and their parts.
var technical = regexp.MustCompile(`(?i)\b(ERC|EIP)-?\d+|x402|EVM|\bABI\b|keccak|calldata|JSON-RPC|permit\b|transferWith|nonce`)

// fold is the height of a phone.
const fold = 844

// measures are what a page shows.
type measures struct {
	Lang, Dir string
	Text      string   // all of it, including folded parts
	Long      []string // hashes and addresses that are not shortened
	Folded    []string // shortened ones that do not expand
	Wide      float64  // by how many pixels the page scrolls sideways on the narrowest phone
	Address   float64  // where it ends on a phone, in pixels; 0 without it
	Phone     string   // the ways to pay on a phone, in their order
	Broken    []string // labels that are broken into letters on the narrowest phone
}

// ways returns the ids of the visible ways to pay in their order, and of visible QR codes.
const ways = `[...document.querySelectorAll("#pay > *, #pay .qr")].filter((e) => e.checkVisibility({ contentVisibilityAuto: true }) && e.getBoundingClientRect().height > 0)
	.map((e) => e.id || e.previousElementSibling.htmlFor).join(" ")`

// narrow measures a page at the width of the narrowest phone.
const narrow = `(() => {
	const lines = (e) => { const range = document.createRange(); range.selectNodeContents(e); return new Set([...range.getClientRects()].map((r) => Math.round(r.bottom))).size; };
	return {
		Wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
		Broken: [...document.querySelectorAll("dt, th, label, summary, button, .button, h1, h2, h3")]
			.filter((e) => e.checkVisibility() && lines(e) > 2 && e.innerText.length < 4 * lines(e)).map((e) => e.innerText),
	};
})()`

// measure returns the measures of a page that is shown on a phone. Addresses that a payer
// compares and texts to sign are whole, and so are receipts, which are printed.
const measure = `(() => {
	const bottom = (s) => { const e = document.querySelector(s); return e ? e.getBoundingClientRect().bottom + scrollY : 0; };
	const m = { Lang: document.documentElement.lang, Dir: document.documentElement.dir, Long: [], Folded: [], Address: bottom("#send .address code"), Phone: (` + ways + `) };
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) {
		const at = walker.currentNode.parentElement;
		if (/0x[0-9a-fA-F]{41,}/.test(walker.currentNode.data) && at.checkVisibility() && !at.closest(".text, .receipt")) m.Long.push(walker.currentNode.data);
	}
	for (const d of document.querySelectorAll("details:not(.long)")) d.open = true;
	for (const d of [...document.querySelectorAll(".long")].filter((d) => d.checkVisibility())) {
		d.querySelector("summary").click();
		const whole = d.lastElementChild;
		const [begin, end] = d.querySelector("summary").innerText.trim().split("…");
		if (!whole.checkVisibility() || !whole.innerText.startsWith(begin) || end && !whole.innerText.trim().endsWith(end)) m.Folded.push(d.innerText);
	}
	m.Text = document.body.innerText;
	return m;
})()`

// holds checks the page that is shown on a phone.
func (v visit) holds() {
	v.t.Helper()
	var m measures
	v.page.Eval(measure, &m)
	v.page.Emulate(browsertest.Options{Phone: true, Width: 320, Language: v.text.Lang()})
	v.page.Eval(narrow, &m)
	if v.scene.Pays {
		v.paysAsItShould(m)
	}
	lang := v.text.Lang()
	if m.Lang != lang || m.Dir != v.text.Dir() {
		v.t.Errorf("%s: the page is in %q, %s", lang, m.Lang, m.Dir)
	}
	if found := technical.FindString(m.Text); found != "" {
		v.t.Errorf("%s: the page names %q:\n%s", lang, found, m.Text)
	}
	if len(m.Long) > 0 || len(m.Folded) > 0 {
		v.t.Errorf("%s: not shortened: %q; not expanded: %q", lang, m.Long, m.Folded)
	}
	if m.Wide > 0 || len(m.Broken) > 0 {
		v.t.Errorf("%s: at 320 px, the page scrolls sideways by %v px, and breaks %q", lang, m.Wide, m.Broken)
	}
	if v.scene.Prints {
		expect.Equal(v.t, v.page.PrintedPages(), 1, "%s: it is printed on … pages:", lang)
	}
	if got := v.page.Errors(); len(got) > 0 {
		v.t.Errorf("%s: the page reports %q", lang, got)
	}
}

// paysAsItShould checks the ways to pay on a phone, whose measures are given, on a desktop, and without scripts.
func (v visit) paysAsItShould(m measures) {
	v.t.Helper()
	lang := v.text.Lang()
	if m.Address == 0 || m.Address > 2*fold {
		v.t.Errorf("%s: the address ends at %v px, below the second fold", lang, m.Address)
	}
	if !strings.HasPrefix(m.Phone, "open send scan") {
		v.t.Errorf("%s: a phone shows %q", lang, m.Phone)
	}
	var desktop string
	var plain measures
	v.page.Emulate(browsertest.Options{Width: 320, Language: lang}) // as a narrow frame
	v.page.Eval(ways, &desktop)
	if !strings.HasPrefix(desktop, "send scan code-address") {
		v.t.Errorf("%s: a desktop shows %q", lang, desktop)
	}
	v.page.Emulate(browsertest.Options{Phone: true, Width: 320, NoScript: true, Language: lang})
	v.page.Go(v.url + v.scene.Path)
	v.page.Eval(narrow, &plain)
	if plain.Wide > 0 || len(plain.Broken) > 0 {
		v.t.Errorf("%s: at 320 px without scripts, the page scrolls sideways by %v px, and breaks %q", lang, plain.Wide, plain.Broken)
	}
	v.open(look{phone: true})
}
