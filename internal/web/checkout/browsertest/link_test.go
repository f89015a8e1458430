package browsertest_test

import (
	"testing"

	"github.com/quittance/quittance/internal/test/browsertest"
)

// TestExtraLinkMakesOneInvoice presses the button, goes back and presses it again, and reloads the
// page and presses it a third time. Another opening of the link makes another invoice.
func TestExtraLinkMakesOneInvoice(t *testing.T) {
	t.Parallel()
	s := openShop(t, bare, nil)
	p := browsertest.Open(t, browsertest.Options{})
	p.Go(s.link.URL)
	pressed := func() (invoice string) {
		t.Helper()
		p.Await(`document.readyState === "complete" && document.querySelector("form[method=post] button")?.disabled === false`)
		p.Press("Pay")
		p.AwaitPath("/checkout/")
		p.Eval(`location.pathname`, &invoice)
		return invoice
	}
	first := pressed()
	p.Back()
	p.AwaitPath("/pay/")
	if again := pressed(); again != first {
		t.Errorf("after a step back the button leads to %s, want %s", again, first)
	}
	p.Back()
	p.AwaitPath("/pay/")
	p.Reload()
	if again := pressed(); again != first {
		t.Errorf("after a reload the button leads to %s, want %s", again, first)
	}
	p.Go(s.link.URL)
	if other := pressed(); other == first {
		t.Error("another opening of the link leads to the same invoice")
	}
}
