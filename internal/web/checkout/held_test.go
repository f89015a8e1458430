package checkout

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/mailer"
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
		s := pageInput{text: locale.English(), invoice: inv, chain: localChain(), payments: []invoice.Payment{p}, now: inv.ExpiresAt}
		v := newView(s)
		text := fmt.Sprint(v.Text)
		if v.Headline != "Payment seen" || v.Pay != nil || strings.Contains(text, "list A") {
			t.Errorf("%s: %q, %s", status, v.Headline, text)
		}
		if got := v.Received[0].Status; got != invoice.Pending {
			t.Errorf("%s: the payment is shown as %s", status, got)
		}
		for _, hours := range []int{-1, 1} {
			if err := s.mailable(mailer.Mail{Hours: hours}); !errors.Is(err, mailer.ErrLater) {
				t.Errorf("%s: the reminder after %d hours: %v", status, hours, err)
			}
		}
		if asked := "Please do not pay again"; status == invoice.Expired && !strings.Contains(text, asked) {
			t.Errorf("%s: %s", status, text)
		}
	}
}

// TestCheckOfRejectedPayment: a payer who checks a rejected payment is not asked to claim it.
func TestCheckOfRejectedPayment(t *testing.T) {
	t.Parallel()
	s := pageInput{text: locale.English(), invoice: openInvoice(), chain: localChain()}
	for _, screening := range []invoice.Screening{invoice.ScreeningRejected, ""} {
		p := invoice.Payment{Transfer: invoice.Transfer{Amount: s.invoice.Amount}, Status: invoice.Confirmed, Screening: screening}
		if got := s.resultOfUnattributed(p).Claimable != nil; got != (screening == "") {
			t.Errorf("%q can be claimed: %v", screening, got)
		}
	}
}
