package checkout

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strings"
)

// minContrast is the least contrast of text in the accent color with what is behind it
// (WCAG 2.2, 1.4.3, level AA).
const minContrast = 4.5

// rgb is a color, each channel between 0 and 255.
type rgb [3]uint8

// The style sheet's grounds that are closest to text: the darkest of the light theme, and
// the lightest of the dark one. The accent is read on all of them.
var (
	lightGround = rgb{0xef, 0xec, 0xe4}
	darkGround  = rgb{0x16, 0x35, 0x2b}
)

// The texts on the accent color.
var (
	white = rgb{0xff, 0xff, 0xff}
	black = rgb{0, 0, 0}
)

// luminance returns the relative luminance as WCAG 2.2 defines it.
func (c rgb) luminance() float64 {
	linear := func(channel uint8) float64 {
		v := float64(channel) / math.MaxUint8
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
}

// contrast returns the contrast ratio of two colors, from 1 to 21.
func contrast(a, b rgb) float64 {
	l, m := a.luminance(), b.luminance()
	return (max(l, m) + 0.05) / (min(l, m) + 0.05)
}

// readableOn returns the color, mixed with as little of another one as it takes to be
// readable on a ground.
func (c rgb) readableOn(ground, with rgb) rgb {
	const steps = 255
	for part := range steps {
		var mixed rgb
		for i := range mixed {
			mixed[i] = uint8((int(c[i])*(steps-part) + int(with[i])*part) / steps)
		}
		if contrast(mixed, ground) >= minContrast {
			return mixed
		}
	}
	return with
}

// textOn returns white or black, whichever is the more readable on the color.
func (c rgb) textOn() rgb {
	if contrast(white, c) >= contrast(black, c) {
		return white
	}
	return black
}

// String returns the color as #rrggbb.
func (c rgb) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// brandStyle returns a style sheet that replaces the accent color by a merchant's. No
// color is readable on the grounds of both themes, so each has its own shade.
func brandStyle(c rgb) string {
	rule := func(accent rgb) string {
		return fmt.Sprintf(":root { --accent: %s; --on-accent: %s; }", accent, accent.textOn())
	}
	return rule(c.readableOn(lightGround, black)) + "\n@media screen and (prefers-color-scheme: dark) { " + rule(c.readableOn(darkGround, white)) + " }\n"
}

// brandStylePath returns the path of the style sheet of a color, #rrggbb.
func brandStylePath(color string) string {
	return "/checkout/static/brand/" + strings.TrimPrefix(color, "#") + ".css"
}

var brandStyleFile = regexp.MustCompile(`^[0-9a-f]{6}\.css$`)

// brandStyleSheet answers with the style sheet of the color in the path. It depends on
// nothing else, so browsers may cache it without a limit.
func (c *Checkout) brandStyleSheet(w http.ResponseWriter, r *http.Request) error {
	var color rgb
	file := r.PathValue("file")
	if !brandStyleFile.MatchString(file) {
		return errNotFound
	}
	if _, err := fmt.Sscanf(file, "%02x%02x%02x", &color[0], &color[1], &color[2]); err != nil {
		return errNotFound
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	c.send(w, r, http.StatusOK, "text/css; charset=utf-8", []byte(brandStyle(color)))
	return nil
}
