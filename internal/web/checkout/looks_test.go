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
	Lang, Dir     string
	Text          string   // all of it, including folded parts
	Long          []string // hashes and addresses that are not shortened
	Folded        []string // shortened ones that do not expand
	Wide          float64  // by how many pixels the page scrolls sideways on the narrowest phone
	Code, Address float64  // where they end on a phone, in pixels; 0 without them
}

// measure returns the measures of a page that is shown on a phone. Addresses that a payer
// compares and texts to sign are whole, and so are receipts, which are printed.
const measure = `(() => {
	const bottom = (s) => { const e = document.querySelector(s); return e ? e.getBoundingClientRect().bottom + scrollY : 0; };
	const m = { Lang: document.documentElement.lang, Dir: document.documentElement.dir, Long: [], Folded: [], Code: bottom("#scan .qr"), Address: bottom("#send .address code") };
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
	v.page.Eval("document.documentElement.scrollWidth - document.documentElement.clientWidth", &m.Wide)
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
	if m.Wide > 0 {
		v.t.Errorf("%s: at 320 px, the page scrolls sideways by %v px", lang, m.Wide)
	}
	if v.scene.Pays && (m.Code == 0 || m.Address == 0 || m.Code > 2*fold || m.Address > 2*fold) {
		v.t.Errorf("%s: the code ends at %v px and the address at %v px, below the second fold", lang, m.Code, m.Address)
	}
	if v.scene.Prints {
		if n := v.page.PrintedPages(); n != 1 {
			v.t.Errorf("%s: it is printed on %d pages", lang, n)
		}
	}
	if got := v.page.Errors(); len(got) > 0 {
		v.t.Errorf("%s: the page reports %q", lang, got)
	}
}
