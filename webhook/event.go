package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Types of event. Receivers should ignore those that they do not know: there may be more one day.
const (
	// InvoiceCreated tells that a new invoice is open.
	InvoiceCreated = "invoice.created"
	// InvoicePaid tells that a transfer satisfying the invoice has confirmed on chain.
	InvoicePaid = "invoice.paid"
	// InvoiceExpired tells that the invoice passed its expiry unpaid.
	InvoiceExpired = "invoice.expired"
	// PaymentReceived tells that a transfer to a settlement address was observed; it may not be confirmed yet.
	PaymentReceived = "payment.received"
	// PaymentRefunded tells that a refund to the payer has confirmed on chain.
	PaymentRefunded = "payment.refunded"
)

// Event is the envelope that every event shares.
type Event struct {
	ID        string          `json:"id"`        // the same at every delivery of this event
	Type      string          `json:"type"`      // such as invoice.paid
	CreatedAt int64           `json:"createdAt"` // Unix seconds
	Data      json.RawMessage `json:"data"`      // a JSON object; its members depend on Type
}

// ErrInvalidEvent is matched by the errors of [ParseEvent].
var ErrInvalidEvent = errors.New("webhook: the body is not an event")

// ParseEvent reads the body of a delivery, whose signature must have been verified before. The error matches
// [ErrInvalidEvent] when the body is not one JSON object, or when a member of the envelope is absent or of another
// type. Members beyond the envelope's are ignored.
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
