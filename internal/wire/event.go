package wire

import (
	"encoding/json"
	"fmt"

	"github.com/quittance/quittance/internal/invoice"
)

// Event is the envelope of an event: these four members and no more.
type Event struct {
	ID        string            `json:"id"`
	Type      invoice.EventType `json:"type"`
	CreatedAt int64             `json:"createdAt"` // Unix seconds
	Data      any               `json:"data"`
}

// EventBody encodes an event as the body of its deliveries. data is InvoiceData,
// PaidInvoiceData, PaymentData or RefundData, as the type asks for. The bytes
// are to be kept: every delivery sends the same.
func EventBody(id string, typ invoice.EventType, createdAt int64, data any) ([]byte, error) {
	body, err := json.Marshal(Event{ID: id, Type: typ, CreatedAt: createdAt, Data: data})
	if err != nil {
		return nil, fmt.Errorf("encode event %s of type %s: %w", id, typ, err)
	}
	return body, nil
}

// CreatedData returns the data of invoice.created.
func CreatedData(inv invoice.Invoice) InvoiceData { return InvoiceData{Invoice: FromInvoice(inv)} }

// ExpiredData returns the data of invoice.expired.
func ExpiredData(inv invoice.Invoice) InvoiceData { return InvoiceData{Invoice: FromInvoice(inv)} }

// PaidData returns the data of invoice.paid.
func PaidData(inv invoice.Invoice) PaidInvoiceData { return PaidInvoiceData{Invoice: FromPaid(inv)} }

// ReceivedData returns the data of payment.received. It tells the payment's
// status, as most are not confirmed when they are seen.
func ReceivedData(p invoice.Payment) PaymentData { return PaymentData{Payment: FromPayment(p, true)} }

// RefundedData returns the data of payment.refunded: the refund, and the
// payment that it pays back.
func RefundedData(r invoice.Refund, p invoice.Payment) RefundData {
	return RefundData{Refund: FromRefund(r), Payment: FromPayment(p, true)}
}

// UnattributedDataOf returns the data of payment.unattributed: the payment, and
// the invoices that it could be meant for.
func UnattributedDataOf(p invoice.Payment, suggestions []invoice.Suggestion) UnattributedData {
	return UnattributedData{Payment: FromPayment(p, true), Candidates: FromSuggestions(suggestions)}
}
