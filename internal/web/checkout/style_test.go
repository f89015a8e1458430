package checkout

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/webtest"
	"github.com/quittance/quittance/internal/web/checkout/locale"
	"github.com/quittance/quittance/internal/web/webpage"
)

// themes returns the colors of checkout.css by name, of the light theme and of the dark one.
func themes(t *testing.T) (light, dark map[string]webpage.Color) {
	t.Helper()
	before, after, ok := strings.Cut(pageStyle, "@media (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("checkout.css has no dark theme")
	}
	colors := func(css string) map[string]webpage.Color {
		css, _, _ = strings.Cut(css, "}")
		all := make(map[string]webpage.Color)
		for _, m := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(css, -1) {
			color, ok := webpage.ParseColor(m[2])
			if !ok {
				t.Fatalf("%q is no color", m[2])
			}
			all[m[1]] = color
		}
		return all
	}
	return colors(before), colors(after)
}

// TestBrandColorIsReadable checks that any color is readable on every background of its theme, and the
// text of a button on the color.
func TestBrandColorIsReadable(t *testing.T) {
	light, dark := themes(t)
	for name, theme := range map[string]struct {
		colors map[string]webpage.Color
		accent func(webpage.Color) webpage.Color
	}{
		"light": {light, func(c webpage.Color) webpage.Color { a, _ := accents(c); return a }},
		"dark":  {dark, func(c webpage.Color) webpage.Color { _, a := accents(c); return a }},
	} {
		grounds := 0
		for variable, ground := range theme.colors {
			if variable != "ground" && variable != "sheet" && variable != "field" && !strings.HasSuffix(variable, "-ground") {
				continue
			}
			grounds++
			for i := range 9 * 9 * 9 {
				color := webpage.Color{uint8(i % 9 * 255 / 8), uint8(i / 9 % 9 * 255 / 8), uint8(i / 81 * 255 / 8)}
				accent := theme.accent(color)
				if got := webpage.Contrast(accent, ground); got < webpage.MinContrast {
					t.Fatalf("%s: %s of %s on --%s has a contrast of %.2f", name, accent, color, variable, got)
				}
				if got := webpage.Contrast(accent.TextOn(), accent); got < webpage.MinContrast {
					t.Fatalf("%s: text on %s of %s has a contrast of %.2f", name, accent, color, got)
				}
			}
		}
		if grounds < 5 {
			t.Errorf("%s: checkout.css has %d grounds", name, grounds)
		}
	}
}

func TestBrandStyle(t *testing.T) {
	const want = "<style>:root { --accent: #7a6b00; --on-accent: #ffffff; }\n@media screen and (prefers-color-scheme: dark) { :root { --accent: #ffe000; --on-accent: #000000; } }\n</style>"
	if got := brandStyle("#ffe000").Element; string(got) != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	for _, color := range []string{"", "ffe000", "#FFE000", "#ffe00", "#ffe0000", "#}"} {
		expect.Equal(t, brandStyle(color).Element, "<style></style>", "%q gives", color)
	}
}

// TestContactIsLinkedWhereTextsAskForIt checks that a status links to the merchant's contact exactly
// if it asks the payer to contact the merchant.
func TestContactIsLinkedWhereTextsAskForIt(t *testing.T) {
	for _, story := range outcomes {
		w := newWorld()
		story.set(w)
		page := w.page(t)
		words := strings.ToLower(page.ID(t, "status").Words())
		asks := strings.Contains(words, "contact corner-cafe") || strings.Contains(words, "ask corner-cafe")
		if again := page.ID(t, "again").Words(); asks && again != "" {
			t.Errorf("%s: after money has arrived, the page says %s", story.name, again)
		}
		for contact, url := range map[string]string{"": "", "+1 202 555 0100": "tel:+12025550100", "help@cafe.example": "mailto:help@cafe.example"} {
			w.merchants = shop{merchant: invoice.Merchant{SupportContact: contact}}
			links := w.page(t).ID(t, "status").Named("a")
			if want := asks && contact != ""; (len(links) == 1) != want || want && links[0].Attrs["href"] != url {
				t.Errorf("%s, with the contact %q: %d links", story.name, contact, len(links))
			}
		}
	}
}

// pagePolicy returns the policy of a page with data that must not be framed.
func pagePolicy(data any) string {
	return strings.Replace(policy, "style-src 'none'", "style-src "+styleSources(data), 1)
}

// maxDocument is how many bytes of a page are sent before the client must acknowledge some:
// ten segments of 1460 bytes (RFC 6928), less 1300 for headers.
const maxDocument = 10*1460 - 1300

// TestFirstPaintNeedsNoOtherRequest checks that no file a page loads delays its first paint, that its
// policy allows its style sheets, and that it is sent in one flight.
func TestFirstPaintNeedsNoOtherRequest(t *testing.T) {
	w := newWorld()
	w.merchants = shop{merchant: invoice.Merchant{ID: "corner-cafe", Color: "#ffe000", EmbedOrigins: []string{"https://cafe.example"}}}
	for _, lang := range locale.Languages() {
		answer := w.ask(http.MethodGet, "/checkout/"+testID+"?embed=1&lang="+lang.Lang(), "Accept-Encoding", "gzip")
		if n := answer.Body.Len(); n > maxDocument {
			t.Errorf("%s: %d bytes, want at most %d", lang.Lang(), n, maxDocument)
		}
		reader, err := gzip.NewReader(answer.Body)
		expect.OK(t, err)
		text, err := io.ReadAll(reader)
		expect.OK(t, err)
		delaysNothing(t, webtest.Parse(t, string(text)), answer.Header().Get("Content-Security-Policy"))
	}
}

// delaysNothing checks that a page has three style sheets that its policy allows, and loads
// no file before its first paint.
func delaysNothing(t *testing.T, page *element, policy string) {
	t.Helper()
	styles := page.Named("style")
	expect.Len(t, styles, 3, "style sheets:")
	for _, style := range styles {
		if source := newStyleSheet(style.Text[0]).source; !strings.Contains(policy, source) {
			t.Errorf("the policy %q lacks %s", policy, source)
		}
	}
	for _, link := range page.Named("link") {
		if link.Attrs["rel"] == "stylesheet" {
			t.Errorf("the style sheet %s delays the first paint", link.Attrs["href"])
		}
	}
	for _, script := range page.Named("script") {
		_, deferred := script.Attrs["defer"]
		if script.Attrs["src"] != "" && !deferred && script.Attrs["type"] != "module" {
			t.Errorf("the script %s delays the first paint", script.Attrs["src"])
		}
	}
}

// shop is a Merchants with one merchant.
type shop struct {
	merchant invoice.Merchant
	png      string
}

func (s shop) Find(context.Context, string) (invoice.Merchant, bool, error) {
	return s.merchant, true, nil
}

func (s shop) LogoPNG(context.Context, string) ([]byte, error) { return []byte(s.png), nil }

// TestBrand shows the merchant's profile on the page, escaped.
func TestBrand(t *testing.T) {
	w := newWorld()
	w.merchants = shop{merchant: invoice.Merchant{
		ID: "corner-cafe", Name: `Corner <Café>`, Color: "#1a73e8", SupportContact: "help@cafe.example", Statement: `Thank you & "bye"`,
		Logo: &invoice.Logo{SHA256: "abc", Width: 40, Height: 20},
	}, png: "\x89PNG"}
	page := w.ask("GET", "/checkout/"+testID).Body.String()
	for _, want := range []string{
		`Invoice from <strong>Corner &lt;Café&gt;</strong>`, `<meta name="theme-color" content="#1a73e8">`, `fill="#1a73e8"`,
		`<img class="logo" src="/checkout/` + testID + `/logo?v=abc" width="40" height="20" alt="">`,
		`<a href="mailto:help@cafe.example" rel="noopener noreferrer">help@cafe.example</a>`, `<p class="statement" dir="auto">Thank you &amp; &#34;bye&#34;</p>`,
		`` + string(brandStyle("#1a73e8").Element) + ``,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	logo := w.ask("GET", "/checkout/"+testID+"/logo")
	for name, want := range map[string]string{"Content-Type": "image/png", "X-Content-Type-Options": "nosniff", "Cache-Control": "public, max-age=86400"} {
		expect.Equal(t, logo.Header().Get(name), want, "%s of the logo is", name)
	}
	if logo.Code != http.StatusOK || logo.Body.String() != "\x89PNG" || !strings.HasPrefix(logo.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("the logo: %d %q", logo.Code, logo.Body)
	}
	if answer := w.ask("GET", "/checkout/inv_unknown/logo"); answer.Code != http.StatusNotFound {
		t.Errorf("the logo of no invoice: %d", answer.Code)
	}

	w.merchants = shop{merchant: invoice.Merchant{SupportContact: "https://cafe.example/help?a=1&b"}}
	page = w.ask("GET", "/checkout/"+testID).Body.String()
	if !strings.Contains(page, `href="https://cafe.example/help?a=1&amp;b"`) || !strings.Contains(page, "<strong>corner-cafe</strong>") || strings.Contains(page, "<img") {
		t.Error("the page of a merchant without a name and a logo shows others")
	}
	if answer := w.ask("GET", "/checkout/"+testID+"/logo"); answer.Code != http.StatusNotFound {
		t.Errorf("no logo: %d", answer.Code)
	}
	w.merchants = nil
	if page := w.ask("GET", "/checkout/"+testID).Body.String(); strings.Contains(page, "Questions?") || strings.Contains(page, "theme-color") {
		t.Error("the page without profiles shows one")
	}
}
