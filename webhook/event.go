package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Event types. Receivers should ignore unknown types, because more may be added.
const (
	// InvoiceCreated: a new invoice is open.
	InvoiceCreated = "invoice.created"
	// InvoicePaid: a transfer that satisfies the invoice has confirmed on chain.
	InvoicePaid = "invoice.paid"
	// InvoiceExpired: the invoice passed its expiry unpaid.
	InvoiceExpired = "invoice.expired"
	// PaymentReceived: a transfer to a settlement address was observed; it may not be confirmed yet.
	PaymentReceived = "payment.received"
	// PaymentRefunded: a refund to the payer has confirmed on chain.
	PaymentRefunded = "payment.refunded"
)

// Event is the envelope of every event.
type Event struct {
	ID        string          `json:"id"`        // the same in every delivery of this event
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
	var members map[string]json.RawMessage // because decoding into a struct ignores the case of member names
	if !utf8.Valid(body) {
		return Event{}, fmt.Errorf("%w: it is not UTF-8", ErrInvalidEvent)
	}
	if err := json.Unmarshal(body, &members); err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrInvalidEvent, err)
	}
	for name, into := range map[string]any{"id": &e.ID, "type": &e.Type, "createdAt": &e.CreatedAt, "data": &e.Data} {
		if text, has := members[name]; has {
			if err := json.Unmarshal(text, into); err != nil {
				return Event{}, fmt.Errorf("%w: %s: %w", ErrInvalidEvent, name, err)
			}
		}
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

// ConstructEvent verifies the signature of a body, and returns its event. header is the value of [HeaderSignature]. One
// of the secrets must match; there are several during a rotation. The error is an error of [Verify] or [ParseEvent].
// [Sign] makes headers for tests.
func ConstructEvent(body []byte, header string, secrets ...string) (Event, error) {
	return Verifier{Secrets: secrets}.ConstructEvent(body, header)
}

// ConstructEvent is [ConstructEvent] with the verifier's Secrets and clock.
func (v Verifier) ConstructEvent(body []byte, header string) (Event, error) {
	if err := v.Verify(header, body); err != nil {
		return Event{}, err
	}
	return ParseEvent(body)
}
