package checkout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// TestHeldPayment: the payer of a payment that is screened or quarantined sees it as seen, and is not asked to pay
// again, also once the invoice has expired.
func TestHeldPayment(t *testing.T) {
	t.Parallel()
	inv := openInvoice()
	p := invoice.Payment{
		Transfer: invoice.Transfer{Amount: inv.Amount, Position: invoice.Position{BlockNumber: 5, BlockTime: inv.ExpiresAt}},
		ID:       "pay_1", InvoiceID: inv.ID, Status: invoice.Held, Screening: invoice.ScreeningQuarantined, ScreeningReason: "on list A",
	}
	inv = inv.WithPayment(p)
	for _, status := range []invoice.Status{invoice.Open, invoice.Expired} {
		inv.Status = status
		v := newView(pageInput{text: locale.English(), invoice: inv, chain: localChain(), payments: []invoice.Payment{p}, now: inv.ExpiresAt})
		text := fmt.Sprint(v.Text)
		if v.Headline != "Payment seen" || v.Pay != nil || strings.Contains(text, "list A") {
			t.Errorf("%s: %q, %s", status, v.Headline, text)
		}
		if got := v.Received[0].Status; got != invoice.Pending {
			t.Errorf("%s: the payment is shown as %s", status, got)
		}
		if asked := "Please do not pay again"; status == invoice.Expired && !strings.Contains(text, asked) {
			t.Errorf("%s: %s", status, text)
		}
	}
}
