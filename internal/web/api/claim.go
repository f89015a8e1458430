package api

import (
	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Claim returns a payer's claim with its current status.
func Claim(c ledger.ClaimRow) apitypes.Claim {
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
