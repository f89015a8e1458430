// Package apidocs serves the reference of the REST interface: a page at /docs, which Redoc renders in the browser, the
// OpenAPI document that it shows, and the guides. Everything comes from this binary.
package apidocs

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
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

// Routes returns the routes of the reference. The first request for a page makes it, once in a process.
// That request panics if an embedded file is broken.
func Routes() []webpage.Route { return routes() }

const html = "text/html; charset=utf-8"

var routes = sync.OnceValue(func() []webpage.Route {
	all := []webpage.Route{
		route("/openapi.yaml", "application/yaml", func() []byte { return quittance.OpenAPI }),
		route("/openapi.json", "application/json", asJSON),
		route("/docs/reference.yaml", "application/yaml", func() []byte { return withSamples(quittance.OpenAPI) }),
		route(pathGuides, html, func() []byte { return guidesPage(nil) }),
	}
	for _, f := range []struct{ path, mediaType, name string }{
		{"/docs", html, "reference.html"},
		{"/docs/reference.css", "text/css; charset=utf-8", "reference.css"},
		{"/docs/reference.js", "text/javascript; charset=utf-8", "reference.js"},
		{"/docs/redoc.standalone.js", "text/javascript; charset=utf-8", "redoc.standalone.js"},
	} {
		all = append(all, route(f.path, f.mediaType, func() []byte {
			content, err := assets.ReadFile("assets/" + f.name)
			if err != nil {
				panic(fmt.Errorf("read an embedded file: %w", err))
			}
			return bytes.ReplaceAll(content, []byte(foreignLogo), []byte("data:,"))
		}))
	}
	for _, group := range groups {
		for name := range strings.FieldsSeq(group.names) {
			all = append(all, route(guide{Name: name}.Path(), html, func() []byte { return guidesPage(guideNamed(name)) }))
		}
	}
	return all
})

// foreignLogo is an image of another host that Redoc shows.
const foreignLogo = "https://cdn.redoc.ly/redoc/logo-mini.svg"

// asJSON returns the OpenAPI document as JSON.
func asJSON() []byte {
	var tree any
	if err := yaml.Unmarshal(quittance.OpenAPI, &tree); err != nil {
		panic(fmt.Errorf("parse openapi.yaml: %w", err))
	}
	document, err := json.Marshal(tree)
	if err != nil {
		panic(fmt.Errorf("convert openapi.yaml to JSON: %w", err))
	}
	return document
}

func route(path, mediaType string, content func() []byte) webpage.Route {
	return webpage.Route{Pattern: "GET " + path, Handler: file(mediaType, content)}.With(webpage.Open)
}

// file returns a handler that serves a file. Browsers cache it and revalidate it. The compressed file
// has a separate ETag.
func file(mediaType string, content func() []byte) http.Handler {
	made := sync.OnceValues(func() (tag string, whole webpage.Body) {
		made := content()
		sum := sha256.Sum256(made)
		return hex.EncodeToString(sum[:16]), webpage.NewBody(made)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tag, whole := made()
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
