package dashboard_test

import (
	"regexp"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/browsertest"
)

// physical matches properties that name a side of the screen instead of the text's.
var physical = regexp.MustCompile(`(?:margin|padding|border|inset)-(?:left|right)|[;{ ](?:left|right):|(?:text-align|float|justify-\w+): ?(?:left|right)|(?:padding|margin|inset): [^\s;]+ ([^\s;]+) [^\s;]+ ([^\s;]+);`)

// TestStylesFollowText expects that the styles name no side of the screen, so that pages in
// right-to-left languages are mirrored.
func TestStylesFollowText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fill(w, plain, 1)
	p := w.named("cafe", "Maria Rossi", access.Admin)
	sheet := regexp.MustCompile(`/dashboard/static/dashboard\.\w+\.css`).FindString(p.get("/dashboard").body)
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
