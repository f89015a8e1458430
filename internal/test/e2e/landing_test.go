package e2e

import (
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/expect"
)

// TestDevLandingPage follows every link of the page at a world's root.
func TestDevLandingPage(t *testing.T) {
	t.Parallel()
	w, _ := startWorld(t)
	if err := await(within(t, patience), func() bool { // the chain must be indexed
		return launch(t, "ready", "--url", w.info.Load().BaseURL).exit(t, patience) == 0
	}); err != nil {
		t.Errorf("quittance ready: %v", err)
	}
	get := func(path string) string {
		answer, err := w.http.Get(w.url(path))
		expect.OK(t, err)
		defer answer.Body.Close() //nolint:errcheck // it was read
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %v", path, answer.Status, err)
		}
		return string(body)
	}
	page := get("/")
	info := w.info.Load()
	for _, want := range []string{info.Merchant.Address, info.Chain.RPCURL, info.Chain.Token} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not show %s", want)
		}
	}
	for _, key := range []string{info.Merchant.PrivateKey, info.Payer.PrivateKey, info.Merchant.WebhookSecret, info.Merchant.Key} {
		if strings.Contains(page, key) {
			t.Error("the page shows a secret")
		}
	}
	links := regexp.MustCompile(`href="(/[^"]*)"`).FindAllStringSubmatch(page, -1)
	if len(links) < 8 {
		t.Errorf("the page has %d links", len(links))
	}
	for _, link := range links {
		get(html.UnescapeString(link[1]))
	}
}
