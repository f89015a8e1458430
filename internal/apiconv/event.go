package apiconv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
)

// Event is the envelope of an event.
type Event struct {
	ID        string            `json:"id"`
	Type      invoice.EventType `json:"type"`
	CreatedAt int64             `json:"createdAt"` // Unix seconds
	Data      any               `json:"data"`
}

// EventBody returns the JSON body of an event's deliveries. data is of the type
// that belongs to typ. Store the bytes: every delivery sends the same ones.
func EventBody(id string, typ invoice.EventType, createdAt time.Time, data any) ([]byte, error) {
	body, err := JSON(Event{ID: id, Type: typ, CreatedAt: invoice.UnixSeconds(createdAt), Data: data})
	if err != nil {
		return nil, fmt.Errorf("encode event %s of type %s: %w", id, typ, err)
	}
	return body, nil
}

// writtenMembers are the members of an invoice that contain merchants' texts, and may have personal
// data.
var writtenMembers = []string{"lineItems", "reference", "uniqueReference", "description", "customer", "returnUrl", "cancelUrl", "metadata"}

// EraseEvent returns the body of an event with the current line items and details of its invoice. All
// other members stay.
func EraseEvent(body []byte, inv invoice.Invoice) ([]byte, error) {
	type members = map[string]any
	var event, now members
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&event); err != nil {
		return nil, fmt.Errorf("decode an event of %s: %w", inv.ID, err)
	}
	data, _ := event["data"].(members)
	announced, ok := data["invoice"].(members)
	if !ok {
		return nil, fmt.Errorf("an event of %s has no invoice", inv.ID)
	}
	text, err := JSON(Invoice(inv))
	if err == nil {
		err = json.Unmarshal(text, &now)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range writtenMembers {
		delete(announced, name)
		if value, given := now[name]; given {
			announced[name] = value
		}
	}
	return JSON(event)
}

// JSON returns the JSON text of a value. It leaves &, < and > as they are: encoding/json
// escapes them for texts that are put into HTML.
func JSON(v any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// InvoiceData returns the data of invoice.created and invoice.expired.
func InvoiceData(inv invoice.Invoice) apitypes.InvoiceData {
	return apitypes.InvoiceData{Invoice: Invoice(inv)}
}

// PaidInvoiceData returns the data of invoice.paid.
func PaidInvoiceData(inv invoice.Invoice) apitypes.PaidInvoiceData {
	return apitypes.PaidInvoiceData{Invoice: PaidInvoice(inv)}
}

// PaymentData returns the data of payment.received. It includes the payment's
// status, because most payments are not confirmed when they are observed.
func PaymentData(p invoice.Payment) apitypes.PaymentData {
	return apitypes.PaymentData{Payment: Payment(p, true)}
}

// RefundData returns the data of payment.refunded: the refund and the refunded
// payment.
func RefundData(r invoice.Refund, p invoice.Payment) apitypes.RefundData {
	return apitypes.RefundData{Refund: Refund(r), Payment: Payment(p, true)}
}

// UnattributedData returns the data of payment.unattributed: the payment and the
// invoices that it may be meant for.
func UnattributedData(p invoice.Payment, suggestions []invoice.Suggestion) apitypes.UnattributedData {
	return apitypes.UnattributedData{Payment: Payment(p, true), Candidates: PaymentCandidates(suggestions)}
}
