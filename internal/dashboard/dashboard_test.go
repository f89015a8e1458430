package dashboard

import (
	"net/http/httptest"
	"net/url"
	"testing"
)

// TestNext leads to pages of the dashboard alone after a sign-in.
func TestNext(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{
		"":                                "/dashboard",
		"/dashboard":                      "/dashboard",
		"/dashboard/invoices?status=paid": "/dashboard/invoices?status=paid",
		"/dashboard/sign-in":              "/dashboard",
		"/dashboard/sign-out":             "/dashboard",
		"https://evil.example/dashboard":  "/dashboard",
		"//evil.example/dashboard":        "/dashboard",
		"/\\evil.example/dashboard":       "/dashboard",
		"/dashboard\\@evil.example":       "/dashboard",
		"/dashboardevil":                  "/dashboard",
		"javascript:alert(1)":             "/dashboard",
		"/dashboard/\r\nX: y":             "/dashboard",
		"/dashboard/../api/keys":          "/dashboard",
		"/dashboard/%2e%2e/api/keys":      "/dashboard",
		"/dashboard//evil.example":        "/dashboard",
		"/dashboard/.":                    "/dashboard",
		"/api/keys":                       "/dashboard",
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/dashboard/sign-in?"+url.Values{"next": {asked}}.Encode(), nil)
		if got := next(r); got != want {
			t.Errorf("%q leads to %q, want %q", asked, got, want)
		}
	}
}

// TestTemplatesParse parses the templates of every language.
func TestTemplatesParse(t *testing.T) {
	t.Parallel()
	for _, text := range texts().Languages() {
		if all := templatesIn(text); all["signin.html"] == nil || all["layout.html"] != nil {
			t.Errorf("%s has the templates %v", text.Lang(), all)
		}
	}
}
