package dashboard_test

import (
	"cmp"
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/web/webpage"
)

// every looks at all pages in every size and theme. Without it each page is looked at once, and the
// sizes and themes take turns.
var every = flag.Bool("every", false, "look at all pages in every size and theme")

// pictures is the folder for screenshots of all pages.
var pictures = flag.String("screenshots", "", "write screenshots of all pages in every size and theme to this `folder`")

// web is the folder of the package-lock.json that has axe-core.
const web = "../checkout/web"

// mostTransferred bounds what the first load of a page transfers, in bytes.
const mostTransferred = 100_000

// look is how a page is looked at.
type look struct{ phone, dark bool }

var looks = []look{{false, false}, {true, true}, {true, false}, {false, true}}

// tongues are the languages in which pages are looked at: English, one with long words and one that is
// written from right to left. Without -every they take turns.
var tongues = []string{"en", "de", "ar"}

func (l look) String() string {
	return map[bool]string{false: "1200", true: "390"}[l.phone] + "-" + map[bool]string{false: "light", true: "dark"}[l.dark]
}

func (l look) options() browsertest.Options { return browsertest.Options{Phone: l.phone, Dark: l.dark} }

// days is how many days of sales the merchant of the looks has.
const days = 30

// TestExtraLooks looks at each page of a merchant and of the operator: no rule of axe-core is violated, no
// page scrolls sideways, and the first load is small.
func TestExtraLooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fill(w, plain, days)
	table := newRouteTable()
	for role, p := range map[string]*person{"merchant": w.named("cafe", "Maria Rossi", access.Admin), "operator": w.named("", "Operations", access.Admin)} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			browser := browsertest.Open(t, browsertest.Options{})
			browser.SetCookies(w.url, p.Jar)
			for i, at := range p.scenes(t, table) {
				s := scene{t, browser, w.url + at.path, nameOf(role, at)}
				switch {
				case *pictures != "":
					s.photograph()
				case *every:
					for _, tongue := range tongues {
						s.inspect(tongue, looks)
					}
				default:
					s.inspect(tongues[i%len(tongues)], looks[i%len(looks):][:1])
				}
			}
		})
	}
}

// scenes are the pages to look at: one of each route and state of its object, and with each set of
// parameters. Of the operator's pages, only the ones without a merchant.
func (p *person) scenes(t *testing.T, table *routeTable) (chosen []place) {
	t.Helper()
	seen := make(map[string]bool)
	for _, at := range p.crawl(t, table, "/dashboard").places {
		name := nameOf("", at)
		isPage := strings.HasPrefix(at.page.header.Get("Content-Type"), "text/html")
		isOwn := p.merchantID != "" || table.routes[at.pattern].Credential == webpage.OperatorSession || !strings.Contains(at.pattern, "{id}") && parameters(at.path) == ""
		if isPage && isOwn && !seen[name] && !strings.Contains(at.path, "cursor=") {
			seen[name] = true
			chosen = append(chosen, at)
		}
	}
	return chosen
}

// nameOf returns the name of a scene: its role, the route, the parameters, and the state of the object.
func nameOf(role string, at place) string {
	_, path, _ := strings.Cut(at.pattern, " /dashboard")
	name := strings.NewReplacer("/", " ", "{", "", "}", "").Replace(path)
	if badges := at.page.Classed("badge"); strings.HasSuffix(at.pattern, "{id}") && len(badges) > 0 {
		name += " " + badges[0].Words()
	}
	return strings.ToLower(strings.Join(strings.Fields(role+" "+cmp.Or(name, "home")+" "+parameters(at.path)), "-"))
}

// scene is a page in a browser.
type scene struct {
	t    *testing.T
	page *browsertest.Page
	url  string
	name string
}

// photograph writes screenshots in every look.
func (s scene) photograph() {
	s.page.Go(s.url)
	for _, l := range looks {
		s.page.Emulate(l.options())
		s.page.Screenshot(filepath.Join(*pictures, fmt.Sprintf("dashboard-%s-%s.png", s.name, l)))
	}
}

// inspect checks the page in a language and some looks, and its width on narrow phones.
func (s scene) inspect(tongue string, checked []look) {
	s.t.Helper()
	s.name += "-" + tongue
	options := checked[0].options()
	options.Language = tongue
	s.page.Emulate(options)
	before := s.page.Transferred()
	s.page.Go(s.url)
	if n := s.page.Transferred() - before; n > mostTransferred {
		s.t.Errorf("%s: its first load transfers %d bytes, want %d at most", s.name, n, mostTransferred)
	}
	var language string
	if s.page.Eval("document.documentElement.lang", &language); language != tongue {
		s.t.Errorf("%s: the page is in %s", s.name, language)
	}
	for _, l := range checked {
		s.page.Emulate(l.options())
		for _, violation := range s.page.Violations(web) {
			s.t.Errorf("%s, %s: %s", s.name, l, violation)
		}
	}
	for _, width := range []int{390, 320} {
		s.page.Emulate(browsertest.Options{Phone: true, Width: width})
		var over float64
		if s.page.Eval("document.documentElement.scrollWidth - document.documentElement.clientWidth", &over); over > 0 {
			s.t.Errorf("%s: at %d px, the page scrolls sideways by %v px", s.name, width, over)
		}
	}
	if got := s.page.Errors(); len(got) > 0 {
		s.t.Fatalf("%s: the page reports %q", s.name, got)
	}
}

// physical matches properties that name a side of the screen instead of the text's.
var physical = regexp.MustCompile(`(?:margin|padding|border|inset)-(?:left|right)|[;{ ](?:left|right):|(?:text-align|float|justify-\w+): ?(?:left|right)|(?:padding|margin|inset): [^\s;]+ ([^\s;]+) [^\s;]+ ([^\s;]+);`)

// TestStylesFollowText expects that the styles name no side of the screen, so that pages in
// right-to-left languages are mirrored.
func TestStylesFollowText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fill(w, plain, 1)
	p := w.named("cafe", "Maria Rossi", access.Admin)
	sheet := regexp.MustCompile(`/dashboard/static/\w+/dashboard\.css`).FindString(p.get("/dashboard").body)
	for _, found := range physical.FindAllStringSubmatch(p.get(sheet).body, -1) {
		if found[1] == "" || found[1] != found[2] {
			t.Errorf("the styles have %q", found[0])
		}
	}
}

// TestExtraRightToLeft looks at pages in Arabic. The navigation is at the right. Text with a fixed
// direction, such as amounts, hashes and references, keeps it.
func TestExtraRightToLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fill(w, plain, 2)
	p := w.named("cafe", "Maria Rossi", access.Admin)
	page := browsertest.Open(t, browsertest.Options{})
	page.SetCookies(w.url, p.Jar)
	page.Emulate(browsertest.Options{Language: "ar"})
	page.Go(w.url + "/dashboard/invoices")
	for what, script := range map[string]string{
		"the page is written from right to left":  `document.documentElement.dir === "rtl"`,
		"the navigation is at the right":          `document.querySelector("nav").getBoundingClientRect().left >= document.querySelector("main").getBoundingClientRect().right`,
		"the first column is at the right":        `(([a, b]) => a.getBoundingClientRect().left > b.getBoundingClientRect().left)(document.querySelectorAll("thead th"))`,
		"amounts and hashes keep their direction": `[...document.querySelectorAll("main .money, main code")].every(e => getComputedStyle(e).direction === "ltr" && getComputedStyle(e).unicodeBidi === "isolate")`,
		"there are amounts":                       `document.querySelectorAll("main .money").length > 0`,
		"the texts of merchants keep theirs":      `[...document.querySelectorAll("main bdi")].every(e => getComputedStyle(e).unicodeBidi === "isolate")`,
		"the language can be chosen on each page": `document.querySelectorAll("select[name=language] option").length === 12`,
	} {
		var holds bool
		if page.Eval(script, &holds); !holds {
			t.Errorf("it is not so that %s", what)
		}
	}
}
