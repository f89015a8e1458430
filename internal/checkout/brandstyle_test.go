package checkout

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/shade"
)

// themes returns the colors of checkout.css by name: those of the light theme, and of the
// dark one.
func themes(t *testing.T) (light, dark map[string]shade.Color) {
	t.Helper()
	before, after, ok := strings.Cut(string(styleSheet), "@media (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("checkout.css has no dark theme")
	}
	colors := func(css string) map[string]shade.Color {
		css, _, _ = strings.Cut(css, "}")
		all := make(map[string]shade.Color)
		for _, m := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(css, -1) {
			color, ok := shade.Parse(m[2])
			if !ok {
				t.Fatalf("%q is no color", m[2])
			}
			all[m[1]] = color
		}
		return all
	}
	return colors(before), colors(after)
}

// TestBrandColorIsReadable checks that any color is readable on every ground of its theme,
// and the text of a button on the color.
func TestBrandColorIsReadable(t *testing.T) {
	light, dark := themes(t)
	for name, theme := range map[string]struct {
		colors map[string]shade.Color
		accent func(shade.Color) shade.Color
	}{
		"light": {light, func(c shade.Color) shade.Color { a, _ := accents(c); return a }},
		"dark":  {dark, func(c shade.Color) shade.Color { _, a := accents(c); return a }},
	} {
		grounds := 0
		for variable, ground := range theme.colors {
			if variable != "ground" && variable != "sheet" && variable != "field" && !strings.HasSuffix(variable, "-ground") {
				continue
			}
			grounds++
			for i := range 9 * 9 * 9 {
				color := shade.Color{uint8(i % 9 * 255 / 8), uint8(i / 9 % 9 * 255 / 8), uint8(i / 81 * 255 / 8)}
				accent := theme.accent(color)
				if got := shade.Contrast(accent, ground); got < shade.MinContrast {
					t.Fatalf("%s: %s of %s on --%s has a contrast of %.2f", name, accent, color, variable, got)
				}
				if got := shade.Contrast(accent.TextOn(), accent); got < shade.MinContrast {
					t.Fatalf("%s: text on %s of %s has a contrast of %.2f", name, accent, color, got)
				}
			}
		}
		if grounds < 5 {
			t.Errorf("%s: checkout.css has %d grounds", name, grounds)
		}
	}
}

func TestBrandStyleSheet(t *testing.T) {
	w := newWorld()
	answer := w.ask(http.MethodGet, brandStylePath("#ffe000"))
	want := ":root { --accent: #7a6b00; --on-accent: #ffffff; }\n@media screen and (prefers-color-scheme: dark) { :root { --accent: #ffe000; --on-accent: #000000; } }\n"
	if got := answer.Body.String(); answer.Code != http.StatusOK || got != want {
		t.Errorf("%d\n%s, want\n%s", answer.Code, got, want)
	}
	for name, want := range map[string]string{"Content-Type": "text/css; charset=utf-8", "Cache-Control": "public, max-age=31536000, immutable"} {
		if got := answer.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, file := range []string{"ffe000", "FFE000.css", "ffe00.css", "ffe0000.css", "}.css", "+1+2+3.css"} {
		if answer := w.ask(http.MethodGet, "/checkout/static/brand/"+file); answer.Code != http.StatusNotFound {
			t.Errorf("%s: %d", file, answer.Code)
		}
	}
}

// TestContactIsLinkedWhereTextsAskForIt checks that a status which asks the payer to
// contact the merchant links to the contact, and no other.
func TestContactIsLinkedWhereTextsAskForIt(t *testing.T) {
	for _, story := range outcomes {
		w := newWorld()
		story.set(w)
		asks := strings.Contains(strings.ToLower(w.page(t).id(t, "status").words()), "contact corner-cafe")
		for contact, url := range map[string]string{"": "", "+1 202 555 0100": "tel:+12025550100", "help@cafe.example": "mailto:help@cafe.example"} {
			w.merchants = shop{merchant: invoice.Merchant{SupportContact: contact}}
			links := w.page(t).id(t, "status").named("a")
			if want := asks && contact != ""; (len(links) == 1) != want || want && links[0].attrs["href"] != url {
				t.Errorf("%s, with the contact %q: %d links", story.name, contact, len(links))
			}
		}
	}
}
