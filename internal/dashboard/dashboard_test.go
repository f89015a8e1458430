package dashboard

import (
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/eventfeed"
	"github.com/quittance/quittance/internal/store"
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
		if all := templatesIn(text, time.UTC); all.Lookup("signin.html") == nil || all.Lookup("layout") == nil || all.Lookup("main") != nil {
			t.Errorf("%s has the templates %v", text.Lang(), all.DefinedTemplates())
		}
	}
}

// TestConcerns wakes pages by what is recorded about their merchant or their invoice.
func TestConcerns(t *testing.T) {
	t.Parallel()
	event := func(merchantID, invoiceID string) eventfeed.News {
		return eventfeed.News{Events: []store.EventRow{{Event: store.Event{MerchantID: merchantID, InvoiceID: invoiceID}}}}
	}
	change := func(merchantID string, action access.Action, object string) eventfeed.News {
		return eventfeed.News{Changes: []store.ChangeRow{{MerchantID: merchantID, Action: action, Object: object}}}
	}
	operator, acme, one := &liveStream{}, &liveStream{merchant: "acme"}, &liveStream{merchant: "acme", invoice: "inv_1"}
	for name, c := range map[string]struct {
		news                 eventfeed.News
		operator, acme, page bool
	}{
		"event of the invoice":     {event("acme", "inv_1"), true, true, true},
		"event of another one":     {event("acme", "inv_2"), true, true, false},
		"event of another":         {event("globex", "inv_1"), true, false, false},
		"event without a merchant": {event("", ""), true, false, false},
		"change of the invoice":    {change("acme", access.ActionInvoiceVoid, "inv_1"), true, true, true},
		"change of a refund":       {change("acme", access.ActionRefundCancel, "ref_1"), true, true, true},
		"change of another":        {change("globex", access.ActionRefundCancel, "ref_1"), true, false, false},
		"sign-in":                  {change("acme", access.ActionSessionBegin, "ses_1"), false, false, false},
		"key":                      {change("acme", access.ActionKeyCreate, "key_1"), false, false, false},
		"nothing":                  {eventfeed.News{}, false, false, false},
	} {
		if got := [3]bool{operator.concerns(c.news), acme.concerns(c.news), one.concerns(c.news)}; got != [3]bool{c.operator, c.acme, c.page} {
			t.Errorf("%s wakes %v", name, got)
		}
	}
}
