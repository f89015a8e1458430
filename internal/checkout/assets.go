package checkout

import (
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/quittance/quittance/internal/checkout/locale"
)

//go:embed templates
var templateFiles embed.FS

//go:embed static/checkout.css
var styleSheet []byte

//go:embed static/checkout.js
var script []byte

//go:embed static/local.js
var localScript []byte

//go:embed static/payer.js
var payerScript []byte

//go:embed static/wallet.js
var walletScript []byte

//go:embed static/frame.js
var frameScript []byte

//go:embed static/frame.css
var frameStyleSheet []byte

//go:embed static/link.css
var linkStyleSheet []byte

//go:embed static/receipt.css
var receiptStyleSheet []byte

//go:embed static/embed.js
var embedScript []byte

//go:embed static/icon.svg
var icon []byte

// asset is a file that the page loads. Its path contains a hash of its content, so that
// browsers may cache it without a limit.
type asset struct {
	Path      string
	mediaType string
	body      []byte
	gzipped   func() []byte // body, compressed when it is first asked for; nil if that is no smaller
}

// assets are all files that the page loads, by name.
var assets = map[string]asset{
	"checkout.css": newAsset("checkout.css", "text/css; charset=utf-8", styleSheet),
	"checkout.js":  newAsset("checkout.js", "text/javascript; charset=utf-8", script),
	"local.js":     newAsset("local.js", "text/javascript; charset=utf-8", localScript),
	"payer.js":     newAsset("payer.js", "text/javascript; charset=utf-8", payerScript),
	"wallet.js":    newAsset("wallet.js", "text/javascript; charset=utf-8", walletScript),
	"frame.js":     newAsset("frame.js", "text/javascript; charset=utf-8", frameScript),
	"frame.css":    newAsset("frame.css", "text/css; charset=utf-8", frameStyleSheet),
	"link.css":     newAsset("link.css", "text/css; charset=utf-8", linkStyleSheet),
	"receipt.css":  newAsset("receipt.css", "text/css; charset=utf-8", receiptStyleSheet),
	"embed.js":     newAsset("embed.js", "text/javascript; charset=utf-8", embedScript),
	"icon.svg":     newAsset("icon.svg", "image/svg+xml", icon),
}

func newAsset(name, mediaType string, body []byte) asset {
	sum := sha256.Sum256(body)
	ext := path.Ext(name)
	return asset{
		Path:      "/checkout/static/" + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:8]) + ext,
		mediaType: mediaType,
		body:      body,
		gzipped:   sync.OnceValue(func() []byte { return compress(body, gzip.BestCompression) }),
	}
}

func (c *Checkout) asset(a asset) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		if a.Path == assets["embed.js"].Path {
			shareScript(w)
		}
		c.sendAsset(w, r, a)
		return nil
	}
}

// sendAsset answers with a file, compressed if the client takes that.
func (c *Checkout) sendAsset(w http.ResponseWriter, r *http.Request, a asset) {
	header := w.Header()
	header.Add("Vary", "Accept-Encoding")
	body := a.body
	if acceptsGzip(r) {
		if gzipped := a.gzipped(); gzipped != nil {
			header.Set("Content-Encoding", "gzip")
			body = gzipped
		}
	}
	c.send(w, r, http.StatusOK, a.mediaType, body)
}

// templates returns the templates of each language, which are parsed when they are first
// asked for.
var templates = sync.OnceValue(parseTemplates)

func parseTemplates() map[*locale.Text]*template.Template {
	all := make(map[*locale.Text]*template.Template)
	for _, text := range locale.Languages() {
		all[text] = template.Must(template.New("checkout").Funcs(template.FuncMap{
			"t": func(id string, pairs ...any) (template.HTML, error) {
				v, err := newValues(pairs)
				return text.HTML(id, v), err
			},
			"lang":      text.Lang,
			"dir":       text.Dir,
			"language":  text.Name,
			"languages": locale.Languages,
			"texts":     text.Scripts,
			"clock":     text.Time,
			"strong":    wrap("strong"),
			"mono":      wrap("code"),
			"link":      anchor,
			"number":    number,
			"asset":     func(name string) string { return assets[name].Path },
			"code":      newQRCode,
		}).ParseFS(templateFiles, "templates/*.html"))
	}
	return all
}

// newValues returns the values of pairs of a name and a value.
func newValues(pairs []any) (values, error) {
	v := make(values, len(pairs)/2)
	for pair := range slices.Chunk(pairs, 2) {
		name, ok := pair[0].(string)
		if !ok || len(pair) != 2 {
			return nil, fmt.Errorf("values of a text must be pairs of a name and a value, not %v", pair)
		}
		v[name] = pair[1]
	}
	return v, nil
}

// wrap returns a function that puts text into an element with the given name.
func wrap(name string) func(any) template.HTML {
	return func(text any) template.HTML {
		return template.HTML("<" + name + ">" + template.HTMLEscaper(text) + "</" + name + ">") //nolint:gosec // escaped
	}
}

// anchor returns a link with a text.
func anchor(address template.URL, text string) template.HTML {
	return template.HTML(`<a href="` + template.HTMLEscapeString(string(address)) + `" rel="noopener noreferrer">` + template.HTMLEscapeString(text) + `</a>`) //nolint:gosec // escaped
}
