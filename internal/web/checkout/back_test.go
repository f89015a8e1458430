package checkout

import (
	"net/http"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

var returns = invoice.Details{ReturnURL: "https://shop.example/thanks?a=1&b=%22", CancelURL: "https://shop.example:8443/cart"}

// TestBackInEveryState checks where the page links to: to the return URL if no more money is due, else
// to the cancel URL.
func TestBackInEveryState(t *testing.T) {
	for _, story := range outcomes {
		t.Run(story.name, func(t *testing.T) {
			w := newWorld()
			story.set(w)
			if links := w.page(t).id(t, "back").named("a"); len(links) != 0 {
				t.Errorf("an invoice without URLs has %d links", len(links))
			}
			w.invoice.Details = returns
			links := w.page(t).id(t, "back").named("a")
			if len(links) != 1 {
				t.Fatalf("%d links, want 1", len(links))
			}
			want, host := returns.CancelURL, "shop.example:8443"
			if story.state == seen || story.state == paid {
				want, host = returns.ReturnURL, "shop.example"
			}
			if got := links[0]; got.attrs["href"] != want || got.attrs["rel"] != "noopener noreferrer" || got.attrs["target"] != "" {
				t.Errorf("the link is %v, want %s", got.attrs, want)
			}
			words := w.page(t).id(t, "back").words()
			if !strings.HasSuffix(words, host) || !strings.HasPrefix(words, "Back to corner-cafe") || strings.Contains(words, "without paying") != story.pays {
				t.Errorf("the link reads %q", words)
			}
		})
	}
}

func TestBackToAHostThatIsNotAllowed(t *testing.T) {
	w := newWorld()
	w.invoice.Details = returns
	w.merchants = shop{merchant: invoice.Merchant{ReturnHosts: []string{"other.example"}}}
	if links := w.page(t).id(t, "back").named("a"); len(links) != 0 {
		t.Errorf("the page links to %v, which the merchant's list does not have now", links[0].attrs)
	}
	w.merchants = shop{merchant: invoice.Merchant{ReturnHosts: []string{"shop.example"}}}
	if links := w.page(t).id(t, "back").named("a"); len(links) != 1 {
		t.Error("the page does not link to a host on the list")
	}
}

// TestPageShowsOfTheDetailsTheDescriptionAlone checks that the description is the only detail of an
// invoice that payers see.
func TestPageShowsOfTheDetailsTheDescriptionAlone(t *testing.T) {
	w := newWorld()
	if got := w.page(t).id(t, "description").words(); got != "" {
		t.Errorf("an invoice without a description has %q", got)
	}
	w.invoice.Details = invoice.Details{
		Description: "Two <b>espressos</b> & a cake", Reference: "secret-reference", Customer: invoice.Customer{ID: "secret-id", Email: "secret@example.com"},
		Metadata: map[string]string{"secret-key": "secret-value"},
	}
	if got := w.page(t).id(t, "description").words(); got != w.invoice.Details.Description {
		t.Errorf("the description reads %q", got)
	}
	for _, path := range []string{"", "/status", "/check", "/check?tx=0x" + strings.Repeat("1", 64)} {
		answer := w.ask("GET", "/checkout/"+testID+path)
		if answer.Code != http.StatusOK || strings.Contains(answer.Body.String(), "secret") {
			t.Errorf("%q: %d, secret: %t", path, answer.Code, strings.Contains(answer.Body.String(), "secret"))
		}
	}
}
