package apiconv

import (
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
)

// PaymentCandidates returns the invoices that a payment may be meant for.
func PaymentCandidates(suggestions []invoice.Suggestion) []apitypes.PaymentCandidate {
	candidates := make([]apitypes.PaymentCandidate, len(suggestions))
	for i, s := range suggestions {
		difference := s.Over.String()
		if !s.Short.IsZero() {
			difference = "-" + s.Short.String()
		}
		candidates[i] = apitypes.PaymentCandidate{
			InvoiceID: s.ID, MerchantID: s.MerchantID, Status: apitypes.InvoiceStatus(s.Status), Amount: s.Amount.String(),
			AmountDifference: difference, LateBy: int64(s.LateBy / time.Second), Early: s.Early, Covered: s.Difference.Covered, Ambiguous: s.Ambiguous,
		}
	}
	return candidates
}
