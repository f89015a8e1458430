package dashboard

import (
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strconv"
	"sync"
	texttemplate "text/template"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/web/checkout/locale"
	"github.com/quittance/quittance/internal/web/webpage"
)

//go:embed templates
var templateFiles embed.FS

//go:embed static
var staticFiles embed.FS

//go:embed texts
var textFiles embed.FS

// files are the files that pages load, by name.
var files = loadFiles()

func loadFiles() map[string]webpage.File {
	all := make(map[string]webpage.File)
	names, err := fs.Glob(staticFiles, "static/*")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		if path.Ext(name) == ".LICENSE" { // of packages in a bundle
			continue
		}
		body, err := staticFiles.ReadFile(name)
		if err != nil {
			panic(err)
		}
		all[path.Base(name)] = webpage.NewFile("/dashboard/static", path.Base(name), body)
	}
	return all
}

// texts returns the texts of the dashboard. They are parsed at first use. A text that a language lacks is English.
var texts = sync.OnceValue(func() *locale.Catalogue {
	folder, err := fs.Sub(textFiles, "texts")
	if err != nil {
		panic(err)
	}
	return locale.Open(folder)
})

// maxTemplateSets bounds the languages and time zones with cached templates. Beyond it, the cache is cleared.
const maxTemplateSets = 64

// templateSet is the input of the functions of templates.
type templateSet struct {
	text *locale.Text
	zone string // name
}

// parsed caches the templates of each language and time zone, which are parsed at first use.
var parsed = struct {
	sync.Mutex
	sets map[templateSet]*template.Template
}{sets: make(map[templateSet]*template.Template)}

// templatesIn returns the templates of all pages in a language. They show times in a time zone. A
// page's template has the name of its file. Shared templates have their own names.
func templatesIn(text *locale.Text, zone *time.Location) *template.Template {
	set := templateSet{text, zone.String()}
	parsed.Lock()
	defer parsed.Unlock()
	if all := parsed.sets[set]; all != nil {
		return all
	}
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		panic(err)
	}
	all := template.New("")
	for _, name := range names {
		// A set per page would hold the shared templates once for each.
		file := texttemplate.Must(texttemplate.New(path.Base(name)).Funcs(functions(text, zone)).ParseFS(templateFiles, name))
		for _, defined := range file.Templates() {
			called := defined.Name()
			if called == "main" {
				called = path.Base(name)
			} else if called == path.Base(name) {
				continue // the text outside of the definitions
			}
			if all.Lookup(called) != nil {
				panic("dashboard: " + name + " defines " + called + " again")
			}
			template.Must(all.AddParseTree(called, defined.Tree))
		}
	}
	all.Funcs(functions(text, zone))
	if len(parsed.sets) >= maxTemplateSets {
		clear(parsed.sets)
	}
	parsed.sets[set] = all
	return all
}

// functions returns the functions of templates in a language and a time zone.
func functions(text *locale.Text, zone *time.Location) map[string]any {
	v := &visit{text: text}
	return map[string]any{
		"t":     text.InTemplate,
		"colon": text.Colon,
		"text":  v.value,
		"bdi": func(of string) template.HTML {
			return template.HTML("<bdi>" + template.HTMLEscapeString(of) + "</bdi>") //nolint:gosec // it is escaped
		},
		"texts":    text.Scripts,
		"list":     func(all ...any) []any { return all },
		"lang":     text.Lang,
		"dir":      text.Dir,
		"asset":    func(name string) string { return files[name].Path },
		"time":     func(at int64) template.HTML { return text.TimeIn(clock.Unix(at), zone) },
		"second":   func(at int64) template.HTML { return text.SecondIn(clock.Unix(at), zone) },
		"money":    func(minor any, currency string) template.HTML { return v.money(fmt.Sprint(minor), currency) },
		"total":    v.total,
		"number":   func(n any) string { return text.Number(fmt.Sprint(n)) },
		"day":      text.Day,
		"short":    short,
		"duration": func(seconds int64) string { return duration(text, seconds) },
		"megabytes": func(bytes int64) string {
			const mega = 1_000_000
			return text.Number(strconv.FormatFloat(float64(bytes)/mega, 'f', 1, 64))
		},
		"exact": func(seconds int64) string { return exactDuration(text, seconds) },
		// wallet is the address of a link that opens a wallet's app. Templates do not accept its scheme as
		// safe, but the interface made it from addresses and numbers.
		"wallet": func(link string) template.URL { return walletURL(link) },
		"attribution": func(p page, candidates []candidateRow, paymentID string, form attributionForm) attributionPart {
			return attributionPart{p.visit, candidates, paymentID, form}
		},
		"table": func(p page, rows any) table { return table{p.visit, rows} },
	}
}

// table is the data of the templates of tables.
type table struct {
	Page *visit
	Rows any
}
