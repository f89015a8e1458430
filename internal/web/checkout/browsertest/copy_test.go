package browsertest_test

import (
	"testing"

	"github.com/quittance/quittance/internal/test/browsertest"
)

// TestExtraCopy copies the amount and the address, and selects the text if the page may not copy.
func TestExtraCopy(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	inv := w.Invoice("4900000", nil)
	p := browsertest.Open(t, browsertest.Options{})
	p.Go(w.CheckoutURL(inv.ID))
	var values []string
	p.Eval(`[...document.querySelectorAll("#send [data-copy]")].map((b) => b.dataset.copy)`, &values)
	if len(values) != 3 {
		t.Fatalf("%q can be copied, want the amount, the address and the network", values)
	}
	p.Eval(`void Object.defineProperty(navigator, "clipboard", { configurable: true, value: { writeText: async (text) => { window.copied = text; } } })`, nil)
	p.Eval(`document.querySelector("#send [data-copy]").click()`, nil)
	p.Await(`window.copied === ` + quoted(values[0]) + ` && document.querySelector("#send [data-copy]").textContent === "Copied"`)
	p.AwaitText("#notice", "Copied")
	p.Await(`document.querySelector("#send [data-copy]").textContent === "Copy"`)

	p.Eval(`void Object.defineProperty(navigator, "clipboard", { value: undefined })`, nil)
	p.Eval(`document.querySelectorAll("#send [data-copy]")[1].click()`, nil)
	p.Await(`getSelection().toString() === ` + quoted(values[1]) + ` && document.querySelectorAll("#send [data-copy]")[1].textContent === "Selected"`)
}
