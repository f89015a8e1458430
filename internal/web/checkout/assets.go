package checkout

import (
	"embed"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/quittance/quittance/internal/web/checkout/locale"
	"github.com/quittance/quittance/internal/web/webpage"
)

//go:embed templates
var templateFiles embed.FS

//go:embed static/checkout.js
var script []byte

//go:embed static/wallet.js
var walletScript []byte

//go:embed static/embed.js
var embedScript []byte

//go:embed static/icon.svg
var icon []byte

// assets are all files that the page loads, by name.
var assets = map[string]webpage.File{
	"checkout.js": newAsset("checkout.js", script),
	"wallet.js":   newAsset("wallet.js", walletScript),
	"embed.js":    newAsset("embed.js", embedScript),
	"icon.svg":    newAsset("icon.svg", icon),
}

// newAsset returns the file with a name, under a folder named by its hash.
func newAsset(name string, body []byte) webpage.File {
	file := webpage.NewFile("", name, body)
	hash := strings.Split(file.Path, ".")[1]
	file.Path = "/checkout/static/" + hash + "/" + name
	return file
}

// asset answers with a file. During an upgrade pages of the other release name it with another hash. They get
// this release's file, which is then not cached.
func (c *Checkout) asset(w http.ResponseWriter, r *http.Request) error {
	a, ok := assets[r.PathValue("file")]
	if !ok {
		return errNotFound
	}
	if a.Path == assets["embed.js"].Path {
		shareScript(w)
	}
	cached := "no-cache"
	if a.Path == r.URL.Path {
		cached = webpage.Forever
	}
	c.sendAsset(w, r, a, cached)
	return nil
}

// sendAsset answers with a file and a header Cache-Control.
func (c *Checkout) sendAsset(w http.ResponseWriter, r *http.Request, a webpage.File, cacheControl string) {
	if err := a.Send(w, r, cacheControl); err != nil {
		c.conf.Logger.DebugContext(r.Context(), "checkout", "err", err) // the client has disconnected
	}
}

// templates returns the templates of each language. They are parsed at first use: one language takes
// 0.5 MB and a few milliseconds.
var templates = sync.OnceValue(func() map[*locale.Text]func() *template.Template {
	all := make(map[*locale.Text]func() *template.Template)
	for _, text := range locale.Languages() {
		all[text] = sync.OnceValue(func() *template.Template { return parseTemplates(text) })
	}
	return all
})

func parseTemplates(text *locale.Text) *template.Template {
	return template.Must(template.New("checkout").Funcs(template.FuncMap{
		"t":         text.InTemplate,
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
		"long":      func(text string) long { return long{Text: text} },
		"large":     large,
		"sum": func(amount, currency string) template.HTML {
			return "<strong>" + money{amount, currency}.HTML() + "</strong>"
		},
		"asset":    func(name string) string { return assets[name].Path },
		"style":    func(name string) template.HTML { return styleSheets[name].Element },
		"code":     webpage.NewQRCode,
		"reloader": func() template.HTML { return reloader.Element },
	}).ParseFS(templateFiles, "templates/*.html"))
}

// large returns the class of a number that is broken into lines, or "".
func large(number string) string {
	const most = 20
	if len(number) > most {
		return " large"
	}
	return ""
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
