package checkout

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

// shop is a Merchants with one merchant.
type shop struct {
	merchant invoice.Merchant
	png      string
}

func (s shop) Find(context.Context, string) (invoice.Merchant, bool, error) {
	return s.merchant, true, nil
}

func (s shop) LogoPNG(context.Context, string) ([]byte, error) { return []byte(s.png), nil }

// TestBrand shows the merchant's profile on the page, escaped.
func TestBrand(t *testing.T) {
	w := newWorld()
	w.merchants = shop{merchant: invoice.Merchant{
		ID: "corner-cafe", Name: `Corner <Café>`, Color: "#1a73e8", SupportContact: "help@cafe.example", Statement: `Thank you & "bye"`,
		Logo: &invoice.Logo{SHA256: "abc", Width: 40, Height: 20},
	}, png: "\x89PNG"}
	page := w.ask("GET", "/checkout/"+testID).Body.String()
	for _, want := range []string{
		`Invoice from <strong>Corner &lt;Café&gt;</strong>`, `<meta name="theme-color" content="#1a73e8">`, `fill="#1a73e8"`,
		`<img class="logo" src="/checkout/` + testID + `/logo?v=abc" width="40" height="20" alt="">`,
		`<a href="mailto:help@cafe.example" rel="noopener noreferrer">help@cafe.example</a>`, `<p class="statement" dir="auto">Thank you &amp; &#34;bye&#34;</p>`,
		`` + string(brandStyle("#1a73e8").Element) + ``,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	logo := w.ask("GET", "/checkout/"+testID+"/logo")
	for name, want := range map[string]string{"Content-Type": "image/png", "X-Content-Type-Options": "nosniff", "Cache-Control": "public, max-age=86400"} {
		if got := logo.Header().Get(name); got != want {
			t.Errorf("%s of the logo is %q, want %q", name, got, want)
		}
	}
	if logo.Code != http.StatusOK || logo.Body.String() != "\x89PNG" || !strings.HasPrefix(logo.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("the logo: %d %q", logo.Code, logo.Body)
	}
	if answer := w.ask("GET", "/checkout/inv_unknown/logo"); answer.Code != http.StatusNotFound {
		t.Errorf("the logo of no invoice: %d", answer.Code)
	}

	w.merchants = shop{merchant: invoice.Merchant{SupportContact: "https://cafe.example/help?a=1&b"}}
	page = w.ask("GET", "/checkout/"+testID).Body.String()
	if !strings.Contains(page, `href="https://cafe.example/help?a=1&amp;b"`) || !strings.Contains(page, "<strong>corner-cafe</strong>") || strings.Contains(page, "<img") {
		t.Error("the page of a merchant without a name and a logo shows others")
	}
	if answer := w.ask("GET", "/checkout/"+testID+"/logo"); answer.Code != http.StatusNotFound {
		t.Errorf("no logo: %d", answer.Code)
	}
	w.merchants = nil
	if page := w.ask("GET", "/checkout/"+testID).Body.String(); strings.Contains(page, "Questions?") || strings.Contains(page, "theme-color") {
		t.Error("the page without profiles shows one")
	}
}
