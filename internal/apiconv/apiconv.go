// Package apiconv converts internal values to the JSON types of package apitypes.
package apiconv

import (
	"math"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// Invoice returns an invoice. Members that do not apply, such as settledAt of an
// open invoice, are zero and absent from the JSON.
func Invoice(inv invoice.Invoice) apitypes.Invoice {
	w := apitypes.Invoice{
		ID:              inv.ID,
		MerchantID:      inv.MerchantID,
		MerchantAddress: chain.Checksum(inv.Merchant),
		Amount:          inv.Amount.String(),
		Currency:        inv.Currency,
		ChainKey:        inv.ChainKey,
		Status:          apitypes.InvoiceStatus(inv.Status),
		LineItems:       lineItems(inv.LineItems),
		CreatedAt:       invoice.UnixSeconds(inv.CreatedAt),
		ExpiresAt:       invoice.UnixSeconds(inv.ExpiresAt),
		Exception:       apitypes.InvoiceException(inv.Exception),
		AmountPaid:      inv.AmountPaid.String(),
		AmountRefunded:  inv.AmountRefunded.String(),
	}
	if !inv.TransferAmount.IsZero() {
		w.TransferAmount = inv.TransferAmount.String()
	}
	if excess := inv.Excess(); !excess.IsZero() {
		w.AmountExcess = excess.String()
	}
	w.AmountRemaining, w.RemainingTransferAmount = remaining(inv)
	if !inv.Tolerance.IsZero() {
		w.Tolerance = inv.Tolerance.String()
	}
	if inv.IsDeposit() {
		addDeposit(&w, inv)
	}
	if inv.Status == invoice.Paid {
		w.SettledTxHash, w.SettledAt = inv.SettledTx.String(), invoice.UnixSeconds(inv.SettledAt)
	}
	addDetails(&w, inv.Details)
	return w
}

// PublicInvoice returns an invoice for payers: without data that only concerns the merchant and the
// service.
func PublicInvoice(inv invoice.Invoice) apitypes.Invoice {
	inv.Details = invoice.Details{Description: inv.Details.Description}
	w := Invoice(inv)
	w.Tolerance = ""
	return w
}

func addDeposit(w *apitypes.Invoice, inv invoice.Invoice) {
	w.Collection = apitypes.CollectionDeposit
	if !inv.DepositAddress.IsZero() {
		w.DepositAddress = chain.Checksum(inv.DepositAddress)
	}
	if !inv.SweptTx.IsZero() {
		w.SweptTxHash = inv.SweptTx.String()
	}
}

func addDetails(w *apitypes.Invoice, d invoice.Details) {
	w.Reference, w.UniqueReference, w.Description = d.Reference, d.UniqueReference, d.Description
	w.ReturnURL, w.CancelURL, w.Metadata = d.ReturnURL, d.CancelURL, d.Metadata
	if d.Customer != (invoice.Customer{}) {
		w.Customer = &apitypes.Customer{ID: d.Customer.ID, Email: d.Customer.Email}
	}
}

// remaining returns the remaining amount of an open and partly paid invoice, and
// the amount of a plain transfer that identifies it. Otherwise, and if it ended in a past that the database has lost, both
// are empty: no payment would count.
func remaining(inv invoice.Invoice) (amount, transfer string) {
	if inv.Status != invoice.Open || inv.EndedInLostPast() || inv.Remaining.IsZero() {
		return "", ""
	}
	if !inv.RemainingTransfer.IsZero() {
		transfer = inv.RemainingTransfer.String()
	}
	return inv.Remaining.String(), transfer
}

// lineItems never returns nil, because nil would be null in JSON.
func lineItems(items []invoice.LineItem) []apitypes.LineItem {
	w := make([]apitypes.LineItem, len(items))
	for i, item := range items {
		w[i] = apitypes.LineItem{Label: item.Label, Amount: item.Amount.String()}
	}
	return w
}

// CreateInvoiceResponse returns the response to a request that creates the invoice, or that repeats
// its create.
//
// publicURL is the service's, without a trailing slash, or empty.
func CreateInvoiceResponse(inv invoice.Invoice, publicURL string) apitypes.CreateInvoiceResponse {
	r := apitypes.CreateInvoiceResponse{
		ID:               inv.ID,
		OnChainInvoiceID: inv.CommitmentID.String(),
		CheckoutURL:      "/checkout/" + inv.ID,
		Invoice:          Invoice(inv),
	}
	if publicURL != "" {
		r.CheckoutPage = publicURL + r.CheckoutURL
	}
	return r
}

// OfLostInvoice marks a payment as made for an invoice that the database has lost.
func OfLostInvoice(w *apitypes.Payment, id invoice.Hash) {
	w.Exception, w.OnChainInvoiceID = apitypes.PaymentOfLostInvoice, id.String()
}

// Payment returns a payment. Its status and its attribution are included only if detailed is set:
// clients that list confirmed payments do not need them.
func Payment(p invoice.Payment, detailed bool) apitypes.Payment {
	w := apitypes.Payment{
		ID:          p.ID,
		InvoiceID:   p.InvoiceID,
		ChainKey:    p.ChainKey,
		TxHash:      p.TxHash.String(),
		Amount:      p.Amount.String(),
		Currency:    p.Currency,
		From:        chain.Checksum(p.From),
		To:          chain.Checksum(p.To),
		BlockNumber: blockNumber(p.BlockNumber),
	}
	if p.Status == invoice.Confirmed {
		w.ConfirmedAt = invoice.UnixSeconds(p.ConfirmedAt)
	}
	if p.InOtherCurrency() {
		w.Exception = apitypes.PaymentInOtherCurrency
	}
	if !p.Attributed() {
		w.DepositInvoiceID = p.DepositOf
	}
	if !detailed {
		return w
	}
	w.Status = apitypes.PaymentStatus(p.Status.Shown())
	w.Screening, w.ScreeningReason = apitypes.PaymentScreening(p.Screening), p.ScreeningReason
	if p.Attributed() {
		w.Attribution = &apitypes.Attribution{Method: apitypes.AttributionMethod(p.Method), By: p.AttributedBy, At: invoice.UnixSeconds(p.AttributedAt)}
	}
	return w
}

// Refund returns a confirmed refund.
func Refund(r invoice.Refund) apitypes.Refund {
	return apitypes.Refund{
		ID:          r.ID,
		PaymentID:   r.PaymentID,
		InvoiceID:   r.InvoiceID,
		ChainKey:    r.ChainKey,
		TxHash:      r.TxHash.String(),
		Amount:      r.Amount.String(),
		Currency:    r.Currency,
		From:        chain.Checksum(r.From),
		To:          chain.Checksum(r.To),
		BlockNumber: blockNumber(r.BlockNumber),
		ConfirmedAt: invoice.UnixSeconds(r.ConfirmedAt),

		PreparedRefundID: r.PreparedID,
	}
}

// PaidInvoice returns the eight members of an invoice that invoice.paid contains.
func PaidInvoice(inv invoice.Invoice) apitypes.PaidInvoice {
	return apitypes.PaidInvoice{
		ID:            inv.ID,
		MerchantID:    inv.MerchantID,
		Amount:        inv.Amount.String(),
		Currency:      inv.Currency,
		ChainKey:      inv.ChainKey,
		Status:        apitypes.InvoiceStatus(inv.Status),
		SettledTxHash: inv.SettledTx.String(),
		SettledAt:     invoice.UnixSeconds(inv.SettledAt),
	}
}

// blockNumber caps a block number at the largest integer of the interface. No
// chain reaches it, but a faulty node may return a larger one.
func blockNumber(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
