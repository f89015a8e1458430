package checkout

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"

	"github.com/quittance/quittance/internal/web/webpage"
)

//go:embed static/checkout.css
var pageStyle string

//go:embed static/frame.css
var frameStyle string

//go:embed static/link.css
var linkStyle string

//go:embed static/receipt.css
var receiptStyle string

// inline is a style sheet or script inside a page, which waits for no other request. The page's policy
// allows exactly its text.
type inline struct {
	Element template.HTML
	source  string // in the policy
}

func newStyleSheet(text string) inline { return newInline("style", text) }

func newInline(element, text string) inline {
	sum := sha256.Sum256([]byte(text))
	return inline{
		Element: template.HTML("<" + element + ">" + text + "</" + element + ">"), //nolint:gosec // part of the program, or colors
		source:  "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
	}
}

// reloader is a script that reloads a page after a minute if the page's own script has not run: its
// file may not have loaded.
var reloader = newInline("script", `setTimeout(()=>{document.documentElement.classList.contains("scripted")||location.reload()},6e4)`)

// styleSheets are the style sheets that do not depend on the request, by name.
var styleSheets = map[string]inline{
	"checkout.css": newStyleSheet(pageStyle),
	"frame.css":    newStyleSheet(frameStyle),
	"link.css":     newStyleSheet(linkStyle),
	"receipt.css":  newStyleSheet(receiptStyle),
}

// branded is the data of a page in a merchant's color.
type branded interface{ brandColor() string }

func (v view) brandColor() string        { return v.Brand.Color }
func (v linkView) brandColor() string    { return v.Brand.Color }
func (v refundView) brandColor() string  { return v.Brand.Color }
func (d receiptData) brandColor() string { return d.Brand.Color }

// styleSources returns the sources of all style sheets that a page with this data may have.
func styleSources(data any) string {
	var all []string
	for _, name := range []string{"checkout.css", "frame.css", "link.css", "receipt.css"} {
		all = append(all, styleSheets[name].source)
	}
	if b, ok := data.(branded); ok && b.brandColor() != "" {
		all = append(all, brandStyle(b.brandColor()).source)
	}
	return strings.Join(all, " ")
}

// The background colors of the style sheet with the lowest contrast to text: the darkest of the light
// theme, and the lightest of the dark one. The accent color must be readable on all of them.
var (
	lightGround = webpage.Color{0xef, 0xec, 0xe4}
	darkGround  = webpage.Color{0x16, 0x35, 0x2b}
)

// accents returns the accent colors of both themes for a merchant's color. No color is readable on the
// backgrounds of both, so each theme has its own shade.
func accents(c webpage.Color) (light, dark webpage.Color) {
	return c.ReadableOn(lightGround, webpage.Black), c.ReadableOn(darkGround, webpage.White)
}

// brandStyle returns a style sheet that replaces the accent color by a merchant's, #rrggbb.
// It is empty for any other text.
func brandStyle(color string) inline {
	c, ok := webpage.ParseColor(color)
	if !ok {
		return newStyleSheet("")
	}
	rule := func(accent webpage.Color) string {
		return fmt.Sprintf(":root { --accent: %s; --on-accent: %s; }", accent, accent.TextOn())
	}
	light, dark := accents(c)
	return newStyleSheet(rule(light) + "\n@media screen and (prefers-color-scheme: dark) { " + rule(dark) + " }\n")
}
