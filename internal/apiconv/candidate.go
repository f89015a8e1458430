package apiconv

import (
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
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

// Claim returns a payer's claim with its current status.
func Claim(c store.Claim) apitypes.Claim {
	w := apitypes.Claim{
		ID: c.ID, PaymentID: c.PaymentID, InvoiceID: c.InvoiceID, MerchantID: c.MerchantID,
		Signed: c.Signed, Status: apitypes.ClaimOpen, CreatedAt: invoice.UnixSeconds(c.At),
	}
	switch c.AttributedTo {
	case "":
	case c.InvoiceID:
		w.Status = apitypes.ClaimAccepted
	default:
		w.Status = apitypes.ClaimDeclined
	}
	return w
}
