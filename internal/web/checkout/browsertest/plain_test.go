package browsertest_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestExtraWithoutScripts sends by hand the payment that a page without scripts asks for.
func TestExtraWithoutScripts(t *testing.T) {
	t.Parallel()
	w := browsertest.Start(t, browsertest.WorldOptions{})
	inv := w.Invoice("4900000", nil)
	p := browsertest.Open(t, browsertest.Options{NoScript: true, Phone: true})
	p.Go(w.CheckoutURL(inv.ID))
	p.Await(`[...document.querySelectorAll(".values dt")].every((name) => name.getBoundingClientRect().width > 150)`) // one line
	if _, err := w.Node.SendToken(t.Context(), w.Node.Keys.Payer, common.HexToAddress(p.Text("#send .address code")), askedAmount(t, p), nil); err != nil {
		t.Fatal(err)
	}
	awaitState(t, w, inv.ID, "#status.state-paid")
	p.Await(`document.querySelector("noscript meta[http-equiv=refresh]")`)
	p.Reload()
	p.AwaitText("#status", "Thank you.")
}

// askedAmount returns the amount of a plain transfer that the page asks for, in minor units.
func askedAmount(t *testing.T, p *browsertest.Page) *big.Int {
	t.Helper()
	amount, err := invoice.ParseDecimal(p.Text("#send code"), 6)
	expect.OK(t, err)
	bytes := amount.Bytes()
	return new(big.Int).SetBytes(bytes[:])
}
