package apiconv

import (
	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
)

// Decision returns a decision about an item of the inbox.
func Decision(d invoice.Decision) apitypes.Decision {
	w := apitypes.Decision{
		ID: d.ID, MerchantID: d.MerchantID, Kind: apitypes.InboxKind(d.Kind), ObjectID: d.ObjectID, Version: d.Version,
		Decision: apitypes.DecisionOutcome(d.Outcome), Reason: d.Reason, By: d.By, At: invoice.UnixSeconds(d.At), UndoneBy: d.UndoneBy,
		InvoiceID: d.InvoiceID,
	}
	if d.UndoneBy != "" {
		w.UndoneAt = invoice.UnixSeconds(d.UndoneAt)
	}
	if d.InvoiceID != "" {
		w.AppliesAt = invoice.UnixSeconds(d.AppliesAt)
	}
	if !d.AppliedAt.IsZero() {
		w.AppliedAt = invoice.UnixSeconds(d.AppliedAt)
	}
	return w
}
