package dashboard_test

import (
	"encoding/json"
	"net/http"
	"path"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/webpage"
)

// TestScripts loads the script of a page, which the page's policy allows and the browser caches, and
// the texts that it shows.
func TestScripts(t *testing.T) {
	t.Parallel()
	owner := newWorld(t).person("acme", access.Admin)
	page := owner.get("/dashboard").want(t, http.StatusOK)
	if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'self';") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %s", policy)
	}
	var loaded, texts int
	for _, script := range page.Named("script") {
		if script.Attrs["type"] == "application/json" {
			texts++
			var catalogue map[string]string
			if err := json.Unmarshal([]byte(strings.Join(script.Text, "")), &catalogue); err != nil || catalogue["script.copied"] != "Copied" {
				t.Errorf("the texts are %v: %v", catalogue, err)
			}
			continue
		}
		loaded++
		file := owner.get(script.Attrs["src"])
		if kind := file.header.Get("Content-Type"); file.status != http.StatusOK || !strings.HasPrefix(kind, "text/javascript") {
			t.Errorf("%s answers %d, %s", file.path, file.status, kind)
		}
		expect.Equal(t, file.header.Get("Cache-Control"), webpage.Forever, "browsers keep %s as", file.path)
		other := owner.get("/dashboard/static/0123456789abcdef/" + path.Base(file.path)) // as a page of another release
		if other.body != file.body || other.header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s answers %d, %s", other.path, other.status, other.header.Get("Cache-Control"))
		}
	}
	if loaded != 1 || texts != 1 {
		t.Errorf("the page has %d scripts and %d catalogues of texts", loaded, texts)
	}
}
