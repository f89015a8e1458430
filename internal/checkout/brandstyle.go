package checkout

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/quittance/quittance/internal/shade"
)

// The style sheet's grounds that are closest to text: the darkest of the light theme, and
// the lightest of the dark one. The accent color is read on all of them.
var (
	lightGround = shade.Color{0xef, 0xec, 0xe4}
	darkGround  = shade.Color{0x16, 0x35, 0x2b}
)

// accents returns the accent colors of both themes for a merchant's color. No color is
// readable on the grounds of both, so each has its own shade.
func accents(c shade.Color) (light, dark shade.Color) {
	return c.ReadableOn(lightGround, shade.Black), c.ReadableOn(darkGround, shade.White)
}

// brandStyle returns a style sheet that replaces the accent color by a merchant's.
func brandStyle(c shade.Color) string {
	rule := func(accent shade.Color) string {
		return fmt.Sprintf(":root { --accent: %s; --on-accent: %s; }", accent, accent.TextOn())
	}
	light, dark := accents(c)
	return rule(light) + "\n@media screen and (prefers-color-scheme: dark) { " + rule(dark) + " }\n"
}

// brandStylePath returns the path of the style sheet of a color, #rrggbb.
func brandStylePath(color string) string {
	return "/checkout/static/brand/" + strings.TrimPrefix(color, "#") + ".css"
}

// brandStyleSheet answers with the style sheet of the color in the path. It depends on
// nothing else, so browsers may cache it without a limit.
func (c *Checkout) brandStyleSheet(w http.ResponseWriter, r *http.Request) error {
	name, isStyle := strings.CutSuffix(r.PathValue("file"), ".css")
	color, ok := shade.Parse("#" + name)
	if !isStyle || !ok {
		return errNotFound
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	c.send(w, r, http.StatusOK, "text/css; charset=utf-8", []byte(brandStyle(color)))
	return nil
}
