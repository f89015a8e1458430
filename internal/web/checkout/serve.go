package checkout

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/checkout/locale"
	"github.com/quittance/quittance/internal/web/webpage"
)

// policy allows the page to load only files of this service, and the icons that wallets bring
// along as data: URLs: no inline script except the reloader, no styles, no frames, no other host.
var policy = "default-src 'none'; script-src 'self' " + reloader.source + "; style-src 'none'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// allow replaces 'none' by sources in a directive of a response's policy.
func allow(header http.Header, directive, sources string) {
	const name = "Content-Security-Policy"
	header.Set(name, strings.Replace(header.Get(name), directive+" 'none'", directive+" "+sources, 1))
}

// handler answers a request, or returns an error before it writes a response.
type handler = webpage.Handler

// pageError is an error that is shown as a page.
type pageError = webpage.PageError

// newPages returns what answers the requests of a checkout.
func newPages(c *Checkout) *webpage.Pages {
	return &webpage.Pages{
		Policy: policy, Logger: c.conf.Logger,
		Errors: webpage.PageErrors{
			NotFound: errNotFound, MethodNotAllowed: errMethodNotAllowed, TooOften: errTooOften, Busy: errBusy, Internal: errInternal,
		},
		Refuse: func(r *http.Request) *pageError {
			if c.conf.Origins.Check(r) != nil { // an unsafe request of a foreign origin
				return errCrossOrigin
			}
			return nil
		},
		Show: c.showError,
		Exceeded: func(limit string) {
			if slices.Contains(access.Quotas, limit) {
				c.conf.Refused(limit)
			}
		},
	}
}

var (
	errNotFound         = newPageError(http.StatusNotFound, "error.noPage", "error.link")
	errNoReceipt        = newPageError(http.StatusNotFound, "error.noReceipt.title", "error.noReceipt.text")
	errLinkArchived     = newPageError(http.StatusGone, "error.archived.title", "error.archived.text")
	errMethodNotAllowed = newPageError(http.StatusMethodNotAllowed, "error.form.title", "error.form.text")
	errCrossOrigin      = newPageError(http.StatusForbidden, "error.form.title", "error.form.text")
	errTestWallet       = newPageError(http.StatusBadGateway, "error.testWallet.title", "error.testWallet.text")
	errBadForm          = newPageError(http.StatusBadRequest, "error.form.title", "error.form.text")
	errTooOften         = newPageError(http.StatusTooManyRequests, "error.often.title", "error.again")
	errBusy             = newPageError(http.StatusServiceUnavailable, "error.busy.title", "error.again")
	errInternal         = newPageError(http.StatusInternalServerError, "error.internal.title", "error.again")
)

func newPageError(status int, title, text string) *pageError {
	return &pageError{Status: status, Title: title, Text: text}
}

// message is the data of the page of an error.
type message struct {
	*pageError

	Again bool // the page can be loaded again, in another language
}

// showError answers with the page of an error.
func (c *Checkout) showError(w http.ResponseWriter, r *http.Request, page *pageError) error {
	return c.render(w, r, page.Status, "message.html", message{page, r.Method != http.MethodPost})
}

// render answers with a template in the language of the request. It executes the template
// before it writes the response.
func (c *Checkout) render(w http.ResponseWriter, r *http.Request, status int, template string, data any) error {
	var body bytes.Buffer
	if err := templates()[locale.For(r)]().ExecuteTemplate(&body, template, data); err != nil {
		return fmt.Errorf("render %s: %w", template, err)
	}
	allow(w.Header(), "style-src", styleSources(data))
	c.Send(w, r, status, body.Bytes())
	return nil
}

// lead sends the browser to a page of the checkout with GET.
func lead(w http.ResponseWriter, r *http.Request, page string) error {
	http.Redirect(w, r, page, http.StatusSeeOther) //nolint:gosec // a path of the checkout, with stored ids and escaped values
	return nil
}

// withForm returns h for requests with a form of MaxClaimForm bytes at most.
func withForm(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		r.Body = http.MaxBytesReader(w, r.Body, MaxClaimForm)
		if r.ParseForm() != nil {
			return errBadForm
		}
		return h(w, r)
	}
}

// frame describes the merchant's page that shows a page in a frame, if any.
type frame struct {
	// Origins are the origins that may show the page, separated by spaces. It is empty for a page that
	// must not be framed.
	Origins string
	lang    string // the language that the request asks for; empty without
}

// newFrame returns the frame of a request for a page of the merchant. It is zero unless the request
// has the parameter embed and the merchant has a list of origins.
func newFrame(r *http.Request, m invoice.Merchant) frame {
	query := r.URL.Query()
	f := frame{lang: query.Get("lang")}
	if query.Get("embed") == "1" {
		f.Origins = strings.Join(m.EmbedOrigins, " ")
	}
	return f
}

// setHeaders permits exactly the origins to show the page in a frame.
func (f frame) setHeaders(w http.ResponseWriter) {
	if f.Origins == "" {
		return
	}
	header := w.Header()
	header.Del("X-Frame-Options") // it cannot name origins
	allow(header, "frame-ancestors", f.Origins)
}

// Address returns the beginning of the page's address in another language.
func (f frame) Address() string {
	if f.Origins != "" {
		return "?embed=1&"
	}
	return "?"
}

// query returns the query that keeps the frame and the language on the next page, with further pairs
// of a name and a value. It is empty without any.
func (f frame) query(pairs ...string) string {
	values := make(url.Values)
	if f.Origins != "" {
		values.Set("embed", "1")
	}
	if f.lang != "" {
		values.Set("lang", f.lang)
	}
	for pair := range slices.Chunk(pairs, 2) {
		values.Set(pair[0], pair[1])
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

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
