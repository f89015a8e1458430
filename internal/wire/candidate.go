package wire

import (
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// FromSuggestions returns the invoices that a payment could be meant for.
func FromSuggestions(suggestions []invoice.Suggestion) []PaymentCandidate {
	candidates := make([]PaymentCandidate, len(suggestions))
	for i, s := range suggestions {
		difference := s.Over.String()
		if !s.Short.IsZero() {
			difference = "-" + s.Short.String()
		}
		candidates[i] = PaymentCandidate{
			InvoiceID: s.ID, MerchantID: s.MerchantID, Status: InvoiceStatus(s.Status), Amount: s.Amount.String(),
			AmountDifference: difference, LateBy: s.LateBy, Early: s.Early, Covered: s.Difference.Covered, Ambiguous: s.Ambiguous,
		}
	}
	return candidates
}

// FromClaim returns a payer's claim, as it stands by now.
func FromClaim(c store.Claim) Claim {
	w := Claim{
		ID: c.ID, PaymentID: c.PaymentID, InvoiceID: c.InvoiceID, MerchantID: c.MerchantID,
		Signed: c.Signed, Status: ClaimOpen, CreatedAt: c.At,
	}
	switch c.AttributedTo {
	case "":
	case c.InvoiceID:
		w.Status = ClaimAccepted
	default:
		w.Status = ClaimDeclined
	}
	return w
}
