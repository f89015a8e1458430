package checkout

import (
	"embed"
	"html/template"
	"net/http"
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

// newAsset returns the file with a name.
func newAsset(name string, body []byte) webpage.File {
	return webpage.NewFile("/checkout/static", name, body)
}

// asset answers with a file.
func (c *Checkout) asset(w http.ResponseWriter, r *http.Request) error {
	if r.PathValue("file") == "embed.js" {
		shareScript(w)
	}
	return c.SendFile(w, r, assets)
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
		"colon":     text.Colon,
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

// embedScript answers with the script that opens payment pages in a dialog of a merchant's page.
// Content-Location is the path of this version; its content never changes.
func (c *Checkout) embedScript(w http.ResponseWriter, r *http.Request) error {
	a := assets["embed.js"]
	w.Header().Set("Content-Location", a.Path)
	shareScript(w)
	c.Sent(r, a.Send(w, r, "public, max-age=3600"))
	return nil
}

// shareScript lets pages of all origins load a script, and compare it with a hash.
func shareScript(w http.ResponseWriter) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
}
