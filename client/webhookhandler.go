package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/webhook"
)

// WebhookHandler receives the events that the service posts to a merchant's endpoint. It
// verifies the signature, decodes the event, and calls the function for its type.
//
//	http.Handle("POST /webhooks", client.WebhookHandler{
//		Secrets: []string{os.Getenv("QUITTANCE_WEBHOOK_SECRET")},
//		InvoicePaid: func(ctx context.Context, e apitypes.InvoicePaidEvent) error {
//			return orders.Ship(ctx, e.Data.Invoice.ID)
//		},
//	})
//
// An event may be delivered more than once, and events in any order, so the functions must
// be idempotent. They should return within 5 seconds. After an error the event is answered
// with 500, and delivered again. Events without a function are answered with 204.
type WebhookHandler struct {
	// Secrets are the valid secrets of the endpoint, of which there are two during a
	// rotation. Empty ones never match.
	Secrets []string

	InvoiceCreated      func(context.Context, apitypes.InvoiceCreatedEvent) error
	InvoicePaid         func(context.Context, apitypes.InvoicePaidEvent) error
	InvoiceExpired      func(context.Context, apitypes.InvoiceExpiredEvent) error
	PaymentReceived     func(context.Context, apitypes.PaymentReceivedEvent) error
	PaymentRefunded     func(context.Context, apitypes.PaymentRefundedEvent) error
	PaymentUnattributed func(context.Context, apitypes.PaymentUnattributedEvent) error
	// Other is called for all other events, such as those of types that this package
	// does not know.
	Other func(context.Context, webhook.Event) error

	Now    func() time.Time // nil means [time.Now]
	Logger *slog.Logger     // nil means [slog.Default]
}

// ServeHTTP answers a delivery: 204 after the function has returned nil, 500 after it has
// returned an error, 400 if the body is not an event, and otherwise as
// [webhook.Verifier.Handler].
func (h WebhookHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	verifier := webhook.Verifier{Secrets: h.Secrets, Now: h.Now, Logger: h.Logger}
	verifier.Handler(http.HandlerFunc(h.receive)).ServeHTTP(w, r)
}

// receive handles a delivery whose signature is valid.
func (h WebhookHandler) receive(w http.ResponseWriter, r *http.Request) {
	log := h.Logger
	if log == nil {
		log = slog.Default()
	}
	body, err := io.ReadAll(r.Body)
	if err != nil { // the verifier has read it into memory
		http.Error(w, "the body could not be read", http.StatusInternalServerError)
		return
	}
	e, err := webhook.ParseEvent(body)
	if err != nil {
		log.ErrorContext(r.Context(), "webhook is not an event", "err", err)
		http.Error(w, "the body is not an event", http.StatusBadRequest)
		return
	}
	ctx := context.WithValue(r.Context(), deliveryKey{}, r.Header.Get(webhook.HeaderDelivery))
	if err := h.handle(ctx, e, body); err != nil {
		log.ErrorContext(r.Context(), "webhook failed, will be delivered again", "event", e.ID, "type", e.Type, "err", err)
		http.Error(w, "the event was not handled", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (h WebhookHandler) handle(ctx context.Context, e webhook.Event, body []byte) error {
	handled, err := false, error(nil)
	switch e.Type {
	case webhook.InvoiceCreated:
		handled, err = dispatch(ctx, h.InvoiceCreated, body)
	case webhook.InvoicePaid:
		handled, err = dispatch(ctx, h.InvoicePaid, body)
	case webhook.InvoiceExpired:
		handled, err = dispatch(ctx, h.InvoiceExpired, body)
	case webhook.PaymentReceived:
		handled, err = dispatch(ctx, h.PaymentReceived, body)
	case webhook.PaymentRefunded:
		handled, err = dispatch(ctx, h.PaymentRefunded, body)
	case string(apitypes.EventPaymentUnattributed):
		handled, err = dispatch(ctx, h.PaymentUnattributed, body)
	}
	if !handled && h.Other != nil {
		return h.Other(ctx, e)
	}
	return err
}

// dispatch calls f with the event, and reports whether there is an f.
func dispatch[E any](ctx context.Context, f func(context.Context, E) error, body []byte) (bool, error) {
	if f == nil {
		return false, nil
	}
	var e E
	if err := json.Unmarshal(body, &e); err != nil {
		return true, fmt.Errorf("client: decode the event: %w", err)
	}
	return true, f(ctx, e)
}

type deliveryKey struct{}

// DeliveryID returns the id of the delivery that a function of a [WebhookHandler] handles.
// It is the same for all attempts. The signature does not cover it.
func DeliveryID(ctx context.Context) string {
	id, _ := ctx.Value(deliveryKey{}).(string)
	return id
}
