package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// TestVersions names versions of the interface in requests.
func TestVersions(t *testing.T) {
	t.Parallel()
	w := newMatrixWorld(t, dbtest.Migrated(t))
	key := w.key("acme", access.Admin)
	for _, c := range []struct {
		named  []string
		status int
	}{{nil, 200}, {[]string{"2026-11-22"}, 200}, {[]string{"2026-11-21"}, 400}, {[]string{""}, 400}, {[]string{"latest"}, 400}, {[]string{"2026-11-22", "2026-11-22"}, 400}} {
		a := ask(t, http.MethodGet, w.url+"/api/invoices", "", authorized(key), func(r *http.Request) { r.Header["Quittance-Version"] = c.named })
		if a.status != c.status || a.header.Get("Quittance-Version") != "2026-11-22" {
			t.Errorf("%q answers %d with the version %q", c.named, a.status, a.header.Get("Quittance-Version"))
		}
		if c.status == 400 && (a.code != "invalid_field" || !strings.Contains(a.body, `"field":"Quittance-Version"`) || !strings.Contains(a.body, "2026-11-22")) {
			t.Errorf("%q: %s", c.named, a.body)
		}
	}
	var made struct{ Key struct{ ID, Version string } }
	w.decode(w.call("POST /api/keys", "acme", "", key), &made)
	w.ids["acme"]["keys"] = made.Key.ID
	first := made.Key.Version
	w.decode(w.call("POST /api/keys/{id}/rotate", "acme", "", key), &made)
	if first != "2026-11-22" || made.Key.Version != first {
		t.Errorf("the key has version %q, rotated %q", first, made.Key.Version)
	}
	if a := w.call("GET /api/keys", "acme", "", key); strings.Count(a.body, `"version":"2026-11-22"`) < 3 {
		t.Errorf("the list of keys: %s", a.body)
	}
}
