package checkout

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestEveryPageIsClosed checks that no page for payers sets a cookie, has a policy that allows more
// than it needs, or loads anything from another host.
func TestEveryPageIsClosed(t *testing.T) {
	for _, scene := range Scenes() {
		answer := httptest.NewRecorder()
		scene.Handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://pay.example"+scene.Path, nil))
		header := answer.Header()
		if got := header.Values("Set-Cookie"); len(got) != 0 {
			t.Errorf("%s: cookies %q", scene.Name, got)
		}
		policy := header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			t.Errorf("%s: the policy is %q", scene.Name, policy)
		}
		if len(answer.Body.String()) == 0 {
			t.Errorf("%s: status %d without a page", scene.Name, answer.Code)
			continue
		}
		loads := parsePage(t, answer.Body.String()).all(func(e *element) bool {
			return slices.Contains([]string{"script", "link", "img", "iframe", "source", "use", "object", "embed"}, e.name)
		})
		for _, e := range loads {
			if from := e.attrs["src"] + e.attrs["href"] + e.attrs["data"]; from != "" && (!strings.HasPrefix(from, "/") || strings.HasPrefix(from, "//")) {
				t.Errorf("%s: <%s> loads %s", scene.Name, e.name, from)
			}
		}
	}
}
