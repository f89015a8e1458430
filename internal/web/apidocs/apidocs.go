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
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/quittance/quittance"
	"github.com/quittance/quittance/internal/web/apidocs/samples"
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

// withSamples returns an OpenAPI document with code in Go and TypeScript before the code for the shell, and with links to
// the guides that the service has.
func withSamples(document []byte) []byte {
	const member = "\n      x-codeSamples:\n"
	var out bytes.Buffer
	begin := 0
	operations := operationID.FindAllSubmatchIndex(document, -1)
	for i, found := range operations {
		at, end := found[1], len(document)
		if i+1 < len(operations) {
			end = operations[i+1][0]
		}
		code := samplesOf(string(document[found[2]:found[3]]))
		if has := bytes.Index(document[at:end], []byte(member)); has >= 0 {
			at += has + len(member)
		} else if code != "" {
			code = member + strings.TrimSuffix(code, "\n")
		}
		out.Write(document[begin:at])
		out.WriteString(code)
		begin = at
	}
	out.Write(document[begin:])
	return guideLink.ReplaceAll(out.Bytes(), []byte("]("+pathGuides+"/$1"))
}

// guideLink matches the beginning of a link to a guide in the repository.
var guideLink = regexp.MustCompile(regexp.QuoteMeta("]("+repository+"docs/") + `([a-z-]+)\.md`)

// operationID matches the line of an operation's id, without its end.
var operationID = regexp.MustCompile(`(?m)^      operationId: (\w+)$`)

// samplesOf returns the elements of x-codeSamples for an operation. It is empty if there is no code.
func samplesOf(operation string) (elements string) {
	for _, language := range []struct{ name, source, function, client string }{
		{"Go", samples.Go, "\nfunc " + strings.ToUpper(operation[:1]) + operation[1:] + "(", "c := client.Must(client.FromEnv())\n"},
		{"TypeScript", samples.TypeScript, "\nexport async function " + operation + "(", "const quittance = new Quittance({ url, key });\n"},
	} {
		_, rest, found := strings.Cut(language.source, language.function)
		if !found {
			continue
		}
		_, rest, _ = strings.Cut(rest, "{\n")
		body, _, _ := strings.Cut(rest, "\n}\n")
		body = indent.ReplaceAllString(strings.TrimSuffix(body, "\n\treturn nil"), "")
		text, err := json.Marshal(language.client + body + "\n")
		if err != nil {
			panic(fmt.Errorf("encode the code for %s: %w", operation, err))
		}
		elements += fmt.Sprintf("        - {lang: %s, source: %s}\n", language.name, text)
	}
	return elements
}

// indent is the indentation of a function's body.
var indent = regexp.MustCompile(`(?m)^(\t|  )`)
