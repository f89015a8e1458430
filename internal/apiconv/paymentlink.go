package apiconv

import (
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// PaymentLinkPath returns the path of a link's page.
func PaymentLinkPath(l invoice.PaymentLink) string { return "/pay/" + l.MerchantID + "/" + l.Slug }

// PaymentLink converts a payment link. publicURL is the service's, without a trailing slash,
// or empty.
func PaymentLink(l invoice.PaymentLink, publicURL string) apitypes.PaymentLink {
	out := apitypes.PaymentLink{
		ID: l.ID, MerchantID: l.MerchantID, Slug: l.Slug, URL: publicURL + PaymentLinkPath(l), Title: l.Title, Description: l.Description,
		Amount: positive(l.Amount), MinAmount: positive(l.Minimum), MaxAmount: positive(l.Maximum), Currency: l.Currency, ChainKey: l.ChainKey,
		LineItem: l.LineItem, ReferencePrefix: l.ReferencePrefix, Collection: apitypes.Collection(l.Collection), ReturnURL: l.ReturnURL, CancelURL: l.CancelURL,
		ExpiresIn: int64(l.Lifetime / time.Second), Archived: l.Archived, CreatedAt: invoice.UnixSeconds(l.CreatedAt), ChangedAt: invoice.UnixSeconds(l.ChangedAt),
	}
	if !l.Merchant.IsZero() {
		out.MerchantAddress = chain.Checksum(l.Merchant)
	}
	return out
}

// positive returns an amount, or "" for 0.
func positive(a invoice.Amount) string {
	if a.IsZero() {
		return ""
	}
	return a.String()
}
