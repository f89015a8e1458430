package checkout

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed templates
var templateFiles embed.FS

//go:embed static/checkout.css
var styleSheet []byte

//go:embed static/checkout.js
var script []byte

//go:embed static/claim.js
var claimScript []byte

//go:embed static/icon.svg
var icon []byte

// asset is a file that the page loads. Its path contains a hash of its content, so that
// browsers may cache it without a limit.
type asset struct {
	Path      string
	mediaType string
	body      []byte
}

// assets are all files that the page loads, by name.
var assets = map[string]asset{
	"checkout.css": newAsset("checkout.css", "text/css; charset=utf-8", styleSheet),
	"checkout.js":  newAsset("checkout.js", "text/javascript; charset=utf-8", script),
	"claim.js":     newAsset("claim.js", "text/javascript; charset=utf-8", claimScript),
	"icon.svg":     newAsset("icon.svg", "image/svg+xml", icon),
}

func newAsset(name, mediaType string, body []byte) asset {
	sum := sha256.Sum256(body)
	ext := path.Ext(name)
	return asset{
		Path:      "/checkout/static/" + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:8]) + ext,
		mediaType: mediaType,
		body:      body,
	}
}

func (c *Checkout) asset(a asset) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		c.send(w, r, http.StatusOK, a.mediaType, a.body)
		return nil
	}
}

var templates = template.Must(template.New("checkout").Funcs(template.FuncMap{
	"asset":   func(name string) string { return assets[name].Path },
	"code":    newQRCode,
	"clock":   clock,
	"rfc3339": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
}).ParseFS(templateFiles, "templates/*.html"))
