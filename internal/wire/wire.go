// Package wire holds the JSON of the interface: types generated from
// openapi.yaml, and their making from the values of package invoice.
//
// Amounts are strings of digits, addresses carry their ERC-55 checksum, hashes
// are lower-case hex and times are Unix seconds.
package wire

import (
	"math"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

//go:generate go tool -modfile=../../tools/go.mod oapi-codegen -config oapi-codegen.yaml -package wire -o types.gen.go ../../openapi.yaml
//go:generate go tool -modfile=../../tools/go.mod oapi-codegen -config oapi-codegen.yaml -package client -o ../../client/types.gen.go ../../openapi.yaml

// FromInvoice returns the invoice with all its members. Those that do not
// apply, such as settledAt of an open invoice, are left out of its JSON.
func FromInvoice(inv invoice.Invoice) Invoice {
	w := Invoice{
		ID:              inv.ID,
		MerchantID:      inv.MerchantID,
		MerchantAddress: chain.Checksum(inv.Merchant),
		Amount:          inv.Amount.String(),
		Currency:        inv.Currency,
		ChainKey:        inv.ChainKey,
		Status:          InvoiceStatus(inv.Status),
		LineItems:       fromLineItems(inv.LineItems),
		CreatedAt:       inv.CreatedAt,
		ExpiresAt:       inv.ExpiresAt,
		Exception:       InvoiceException(inv.Exception),
		AmountPaid:      inv.AmountPaid.String(),
		AmountRefunded:  inv.AmountRefunded.String(),
	}
	if !inv.TransferAmount.IsZero() {
		w.TransferAmount = inv.TransferAmount.String()
	}
	w.AmountRemaining, w.RemainingTransferAmount = remaining(inv)
	if !inv.Tolerance.IsZero() {
		w.Tolerance = inv.Tolerance.String()
	}
	if inv.Status == invoice.Paid {
		w.SettledTxHash, w.SettledAt = inv.SettledTx.String(), inv.SettledAt
	}
	return w
}

// remaining returns what is left to pay of an invoice that is open and partly
// paid, and what a plain transfer of it is told by; empty otherwise.
func remaining(inv invoice.Invoice) (amount, transfer string) {
	if inv.Status != invoice.Open || inv.Remaining.IsZero() {
		return "", ""
	}
	if !inv.RemainingTransfer.IsZero() {
		transfer = inv.RemainingTransfer.String()
	}
	return inv.Remaining.String(), transfer
}

// fromLineItems never returns nil, whose JSON would be null.
func fromLineItems(items []invoice.LineItem) []LineItem {
	w := make([]LineItem, len(items))
	for i, item := range items {
		w[i] = LineItem{Label: item.Label, Amount: item.Amount.String()}
	}
	return w
}

// FromCreated returns the answer to the request that created the invoice. A
// request that is repeated gets the same answer again, whatever has become of
// the invoice since.
func FromCreated(inv invoice.Invoice) CreateInvoiceResponse {
	inv.Status, inv.SettledTx, inv.SettledAt = invoice.Open, invoice.Hash{}, 0
	inv.Exception, inv.AmountPaid, inv.AmountRefunded = "", invoice.Amount{}, invoice.Amount{}
	inv.Remaining, inv.RemainingTransfer = invoice.Amount{}, invoice.Amount{}
	return CreateInvoiceResponse{
		ID:               inv.ID,
		OnChainInvoiceID: inv.CommitmentID.String(),
		CheckoutURL:      "/checkout/" + inv.ID,
		Invoice:          FromInvoice(inv),
	}
}

// FromPayment returns the payment. Its status and how it came to its invoice
// are details, told on request alone: readers of confirmed payments need none.
func FromPayment(p invoice.Payment, detailed bool) Payment {
	w := Payment{
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
		w.ConfirmedAt = p.ConfirmedAt
	}
	if !detailed {
		return w
	}
	w.Status = PaymentStatus(p.Status)
	if p.Attributed() {
		w.Attribution = &Attribution{Method: AttributionMethod(p.Method), By: p.AttributedBy, At: p.AttributedAt}
	}
	return w
}

// FromRefund returns a refund that has confirmed.
func FromRefund(r invoice.Refund) Refund {
	return Refund{
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
		ConfirmedAt: r.ConfirmedAt,
	}
}

// FromPaid returns the eight members of an invoice that invoice.paid tells.
func FromPaid(inv invoice.Invoice) PaidInvoice {
	return PaidInvoice{
		ID:            inv.ID,
		MerchantID:    inv.MerchantID,
		Amount:        inv.Amount.String(),
		Currency:      inv.Currency,
		ChainKey:      inv.ChainKey,
		Status:        InvoiceStatus(inv.Status),
		SettledTxHash: inv.SettledTx.String(),
		SettledAt:     inv.SettledAt,
	}
}

// blockNumber holds a height at the largest that the interface's integers
// take. No chain comes near; a lying node may.
func blockNumber(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
