package apidocs

import (
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/quittance/quittance"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/apidocs/samples"
)

// redocSum is the SHA-256 of bundles/redoc.standalone.js in npm's redoc@2.5.4.
const redocSum = "dcaf76612bc4a3fbcc923a8966dee2f6146a5f32e5ce1b6f02dd60cbbf89500b"

func TestBundleIsUnchanged(t *testing.T) {
	t.Parallel()
	bundle, err := assets.ReadFile("assets/redoc.standalone.js")
	expect.OK(t, err)
	sum := sha256.Sum256(bundle)
	if got := hex.EncodeToString(sum[:]); got != redocSum {
		t.Errorf("the SHA-256 is %s, want %s", got, redocSum)
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	routes := Routes()
	for _, r := range routes {
		mux.Handle(r.Pattern, r.Handler)
	}
	get := func(path string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
	page := get("/docs")
	for _, path := range []string{"/docs/reference.css", "/docs/reference.js", "/docs/redoc.standalone.js", "/docs/guides", "/openapi.yaml"} {
		if !strings.Contains(page.Body.String(), `"`+path+`"`) {
			t.Errorf("the page does not name %s", path)
		}
	}
	for _, r := range routes {
		path := strings.TrimPrefix(r.Pattern, "GET ")
		answer := get(path)
		if answer.Code != http.StatusOK || answer.Body.Len() == 0 {
			t.Errorf("%s: %d with %d bytes", path, answer.Code, answer.Body.Len())
		}
		if got := answer.Header().Get("Content-Security-Policy"); got != policy || strings.Contains(got, "unsafe") || strings.Contains(got, "http") {
			t.Errorf("%s: policy %q", path, got)
		}
		if again := get(path, "If-None-Match", answer.Header().Get("ETag")); again.Code != http.StatusNotModified {
			t.Errorf("%s with its ETag: %d, want 304", path, again.Code)
		}
		packed := get(path, "Accept-Encoding", "gzip")
		tag := packed.Header().Get("ETag")
		if packed.Header().Get("Content-Encoding") != "gzip" || tag == answer.Header().Get("ETag") || answer.Header().Get("Vary") != "Accept-Encoding" || packed.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: compressed %v, plain %v", path, packed.Header(), answer.Header())
			continue
		}
		if again := get(path, "Accept-Encoding", "gzip", "If-None-Match", tag); again.Code != http.StatusNotModified || again.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s compressed, with its ETag: %d %v, want 304", path, again.Code, again.Header())
		}
		plain, err := gzip.NewReader(packed.Body)
		expect.OK(t, err)
		if text, err := io.ReadAll(plain); err != nil || string(text) != answer.Body.String() {
			t.Errorf("%s: %d bytes of %d, %v", path, len(text), answer.Body.Len(), err)
		}
	}
	var document struct {
		OpenAPI string         `json:"openapi"`
		Paths   map[string]any `json:"paths"`
	}
	expect.OK(t, json.Unmarshal(get("/openapi.json").Body.Bytes(), &document))
	if document.OpenAPI != "3.1.0" || document.Paths["/api/invoices"] == nil {
		t.Errorf("openapi.json is of version %q and has %d paths", document.OpenAPI, len(document.Paths))
	}
}

// TestGuides follows the links of the guides to other guides and to their headings. Keyboards can scroll each block and
// table, and the headings are in order.
func TestGuides(t *testing.T) {
	t.Parallel()
	pages := make(map[string]string)
	for _, r := range Routes() {
		path := strings.TrimPrefix(r.Pattern, "GET ")
		w := httptest.NewRecorder()
		r.Handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		pages[path] = w.Body.String()
	}
	links := 0
	for from, page := range pages {
		if !strings.HasPrefix(from, pathGuides) {
			continue
		}
		if loads := regexp.MustCompile(`<\w+[^>]* src=`).FindString(page); loads != "" {
			t.Errorf("%s loads a file: %s", from, loads)
		}
		if bad := regexp.MustCompile(`<(?:pre|table)>|<th></th>`).FindString(page); bad != "" {
			t.Errorf("%s has %s", from, bad)
		}
		level := 0
		for _, match := range regexp.MustCompile(`<h(\d)`).FindAllStringSubmatch(page, -1) {
			if next := int(match[1][0] - '0'); next > level+1 || next == 1 && level > 0 {
				t.Errorf("%s: a heading of level %d follows level %d", from, next, level)
			} else {
				level = next
			}
		}
		for _, match := range regexp.MustCompile(`href="(/docs[^"]*|#[^"]*)"`).FindAllStringSubmatch(page, -1) {
			path, heading, _ := strings.Cut(match[1], "#")
			to, ok := pages[cmp.Or(path, from)]
			if !ok || heading != "" && !strings.Contains(to, `id="`+heading+`"`) {
				t.Errorf("%s links to %s, which does not exist", from, match[1])
			}
			links++
		}
	}
	if links < 100 {
		t.Errorf("there are %d links", links)
	}
}

// TestSamples wants code in Go and TypeScript for each sample, only for operations that exist, and no image of another
// host in the reference.
func TestSamples(t *testing.T) {
	t.Parallel()
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string                          `yaml:"operationId"`
			Samples     []struct{ Lang, Source string } `yaml:"x-codeSamples"`
		}
	}
	expect.OK(t, yaml.Unmarshal(withSamples(quittance.OpenAPI), &document))
	shown := 0
	for _, item := range document.Paths {
		for _, operation := range item {
			var languages []string
			for _, sample := range operation.Samples {
				languages = append(languages, sample.Lang)
				if sample.Lang == "Go" && !strings.HasPrefix(sample.Source, "c := client.Must(client.FromEnv())\n") {
					t.Errorf("%s: the code is %s", operation.OperationID, sample.Source)
				}
			}
			if len(languages) > 1 {
				shown++
				if !slices.Equal(languages[:2], []string{"Go", "TypeScript"}) {
					t.Errorf("%s has code in %q", operation.OperationID, languages)
				}
			}
		}
	}
	if n := strings.Count(samples.Go, "\nfunc "); shown != n || n != strings.Count(samples.TypeScript, "\nexport async function ") {
		t.Errorf("%d operations show code; there are %d functions in Go", shown, n)
	}
}
