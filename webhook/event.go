package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Event types. Receivers should ignore unknown types, because more may be added.
const (
	// InvoiceCreated says that a new invoice is open.
	InvoiceCreated = "invoice.created"
	// InvoicePaid says that a transfer satisfying the invoice has confirmed on chain.
	InvoicePaid = "invoice.paid"
	// InvoiceExpired says that the invoice passed its expiry unpaid.
	InvoiceExpired = "invoice.expired"
	// PaymentReceived says that a transfer to a settlement address was observed; it may not be confirmed yet.
	PaymentReceived = "payment.received"
	// PaymentRefunded says that a refund to the payer has confirmed on chain.
	PaymentRefunded = "payment.refunded"
)

// Event is the envelope of every event.
type Event struct {
	ID        string          `json:"id"`        // the same at every delivery of this event
	Type      string          `json:"type"`      // such as invoice.paid
	CreatedAt int64           `json:"createdAt"` // Unix seconds
	Data      json.RawMessage `json:"data"`      // a JSON object; its members depend on Type
}

// ErrInvalidEvent is the error of [ParseEvent].
var ErrInvalidEvent = errors.New("webhook: the body is not an event")

// ParseEvent parses the body of a delivery. Verify its signature first. The error is [ErrInvalidEvent] if the body is
// not one JSON object, or if a member of the envelope is missing or of another type. Additional members are ignored.
func ParseEvent(body []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(body, &e); err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrInvalidEvent, err)
	}
	switch {
	case e.ID == "":
		return Event{}, fmt.Errorf("%w: id is absent or empty", ErrInvalidEvent)
	case e.Type == "":
		return Event{}, fmt.Errorf("%w: type is absent or empty", ErrInvalidEvent)
	case e.CreatedAt <= 0:
		return Event{}, fmt.Errorf("%w: createdAt is absent or not a time", ErrInvalidEvent)
	case len(e.Data) == 0 || e.Data[0] != '{':
		return Event{}, fmt.Errorf("%w: data is absent or not an object", ErrInvalidEvent)
	}
	return e, nil
}
