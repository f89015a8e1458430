package checkout

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

// parseColor parses #rrggbb.
func parseColor(t *testing.T, text string) (c rgb) {
	t.Helper()
	if n, err := fmt.Sscanf(text, "#%02x%02x%02x", &c[0], &c[1], &c[2]); n != len(c) || err != nil {
		t.Fatalf("%q is no color: %v", text, err)
	}
	return c
}

// themes returns the colors of checkout.css by name: those of the light theme, and of the
// dark one.
func themes(t *testing.T) (light, dark map[string]rgb) {
	t.Helper()
	before, after, ok := strings.Cut(string(styleSheet), "@media (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("checkout.css has no dark theme")
	}
	colors := func(css string) map[string]rgb {
		css, _, _ = strings.Cut(css, "}")
		all := make(map[string]rgb)
		for _, m := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(css, -1) {
			all[m[1]] = parseColor(t, m[2])
		}
		return all
	}
	return colors(before), colors(after)
}

// TestContrast compares the ratio with known ones.
func TestContrast(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{{"#000000", "#ffffff", 21}, {"#777777", "#ffffff", 4.48}, {"#767676", "#ffffff", 4.54}, {"#ff0000", "#ffffff", 4.00}, {"#0d6450", "#0d6450", 1}} {
		for range 2 {
			if got := contrast(parseColor(t, c.a), parseColor(t, c.b)); math.Abs(got-c.want) > 0.005 {
				t.Errorf("the contrast of %s and %s is %.3f, want %.2f", c.a, c.b, got, c.want)
			}
			c.a, c.b = c.b, c.a
		}
	}
}

// TestBrandColorIsReadable checks that any color is readable on every ground of its theme,
// and the text of a button on the color.
func TestBrandColorIsReadable(t *testing.T) {
	light, dark := themes(t)
	for name, theme := range map[string]struct {
		colors       map[string]rgb
		ground, with rgb
	}{"light": {light, lightGround, black}, "dark": {dark, darkGround, white}} {
		grounds := 0
		for variable, ground := range theme.colors {
			if variable != "ground" && variable != "sheet" && variable != "field" && !strings.HasSuffix(variable, "-ground") {
				continue
			}
			grounds++
			for i := range 9 * 9 * 9 {
				color := rgb{uint8(i % 9 * 255 / 8), uint8(i / 9 % 9 * 255 / 8), uint8(i / 81 * 255 / 8)}
				accent := color.readableOn(theme.ground, theme.with)
				if got := contrast(accent, ground); got < minContrast {
					t.Fatalf("%s: %s of %s on --%s has a contrast of %.2f", name, accent, color, variable, got)
				}
				if got := contrast(accent.textOn(), accent); got < minContrast {
					t.Fatalf("%s: text on %s of %s has a contrast of %.2f", name, accent, color, got)
				}
			}
		}
		if grounds < 5 {
			t.Errorf("%s: checkout.css has %d grounds", name, grounds)
		}
	}
}

// TestReadableColorIsKept checks the edge: a color of just enough contrast stays as it is,
// and the next lighter one is changed as little as possible.
func TestReadableColorIsKept(t *testing.T) {
	edge := rgb{}
	for gray := range math.MaxUint8 {
		if next := (rgb{uint8(gray), uint8(gray), uint8(gray)}); contrast(next, lightGround) >= minContrast {
			edge = next
		}
	}
	if got := edge.readableOn(lightGround, black); got != edge {
		t.Errorf("%s, which is readable, becomes %s", edge, got)
	}
	beyond := rgb{edge[0] + 1, edge[1] + 1, edge[2] + 1}
	if got := beyond.readableOn(lightGround, black); got != edge {
		t.Errorf("%s becomes %s, want %s", beyond, got, edge)
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
