package api

import (
	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
)

// Submission converts a submission of a refund.
func Submission(s invoice.Submission) apitypes.Submission {
	w := apitypes.Submission{ID: s.ID, RefundID: s.RefundID, By: s.By, StartedAt: invoice.UnixSeconds(s.StartedAt), WithdrawnBy: s.WithdrawnBy}
	if !s.TxHash.IsZero() {
		w.TxHash = s.TxHash.String()
	}
	if !s.InForce() {
		w.WithdrawnAt = invoice.UnixSeconds(s.WithdrawnAt)
	}
	return w
}
