// Package apidocs serves the reference of the REST interface: a page at /docs, which Redoc
// renders in the browser, the OpenAPI document that it shows, and the guides. Everything
// comes from this binary.
package apidocs

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"sync"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/quittance/quittance"
	"github.com/quittance/quittance/internal/web/webpage"
)

// assets are the page and its files. The bundle is Redoc's, unchanged.
//
//go:generate sh -c "npm pack --silent redoc@2.5.4 | xargs -I{} sh -c 'tar xzf {} --strip-components=2 -C assets package/bundles/redoc.standalone.js && tar xzfO {} package/LICENSE > assets/redoc.LICENSE && rm {}'"
//go:embed assets/guides.html assets/reference.html assets/reference.css assets/reference.js assets/redoc.standalone.js
var assets embed.FS

// policy allows the page to load only files of this service. The two hashes are for style elements
// that Redoc creates: an empty one, which it fills through the DOM, and the style of its scroll bars.
// It searches in a worker with a script that it makes as a blob.
const policy = "default-src 'none'; script-src 'self'; " +
	"style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' 'sha256-QMIg+bpjm3JdElJ388KYke01izlUW0UoNOeKjpMxdgc='; " +
	"img-src 'self' data:; connect-src 'self'; worker-src blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// Routes returns the routes of the reference, which are made once in a process. It panics if an embedded file is broken.
func Routes() []webpage.Route { return routes() }

var routes = sync.OnceValue(func() []webpage.Route {
	var tree any
	if err := yaml.Unmarshal(quittance.OpenAPI, &tree); err != nil {
		panic(fmt.Errorf("parse openapi.yaml: %w", err))
	}
	document, err := json.Marshal(tree)
	if err != nil {
		panic(fmt.Errorf("convert openapi.yaml to JSON: %w", err))
	}
	all := []webpage.Route{
		route("GET /openapi.yaml", file("application/yaml", quittance.OpenAPI)),
		route("GET /openapi.json", file("application/json", document)),
		route("GET /docs/reference.yaml", file("application/yaml", withSamples(quittance.OpenAPI))),
	}
	for _, f := range []struct{ path, mediaType, name string }{
		{"/docs", "text/html; charset=utf-8", "reference.html"},
		{"/docs/reference.css", "text/css; charset=utf-8", "reference.css"},
		{"/docs/reference.js", "text/javascript; charset=utf-8", "reference.js"},
		{"/docs/redoc.standalone.js", "text/javascript; charset=utf-8", "redoc.standalone.js"},
	} {
		content, err := assets.ReadFile("assets/" + f.name)
		if err != nil {
			panic(fmt.Errorf("read an embedded file: %w", err))
		}
		all = append(all, route("GET "+f.path, file(f.mediaType, bytes.ReplaceAll(content, []byte(foreignLogo), []byte("data:,")))))
	}
	return append(all, guideRoutes()...)
})

// foreignLogo is an image of another host that Redoc shows.
const foreignLogo = "https://cdn.redoc.ly/redoc/logo-mini.svg"

// guideRoutes returns the routes of the guides and of their list.
func guideRoutes() []webpage.Route {
	groups, err := readGuides()
	if err != nil {
		panic(err)
	}
	page := template.Must(template.ParseFS(assets, "assets/guides.html"))
	render := func(path string, g *guide) webpage.Route {
		var text bytes.Buffer
		if err := page.Execute(&text, guidePage{groups, g}); err != nil {
			panic(fmt.Errorf("render %s: %w", path, err))
		}
		return route("GET "+path, file("text/html; charset=utf-8", text.Bytes()))
	}
	all := []webpage.Route{render(pathGuides, nil)}
	for _, group := range groups {
		for _, g := range group.Guides {
			all = append(all, render(g.Path(), &g))
		}
	}
	return all
}

func route(pattern string, h http.Handler) webpage.Route {
	return webpage.Route{Pattern: pattern, Handler: h}.With(webpage.Open)
}

// file returns a handler that serves a file. Browsers cache it and revalidate it. The compressed file
// has a separate ETag.
func file(mediaType string, content []byte) http.Handler {
	sum := sha256.Sum256(content)
	tag, whole := hex.EncodeToString(sum[:16]), webpage.NewBody(content)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", mediaType)
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-cache")
		body, compressed := whole.For(w, r)
		header.Set("ETag", `"`+tag+`"`)
		if compressed {
			header.Set("ETag", `"`+tag+`-gzip"`)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	})
}
