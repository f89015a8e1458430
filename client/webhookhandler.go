package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/webhook"
)

// WebhookHandler receives the events that the service posts to a merchant's endpoint. It
// verifies the signature, decodes the event, and calls the function for its type with the
// event's data.
//
//	http.Handle("POST /webhooks", client.MustWebhookHandler(client.WebhookHandler{
//		InvoicePaid: func(ctx context.Context, invoice apitypes.PaidInvoice) error {
//			return orders.Ship(ctx, invoice.ID)
//		},
//	}, os.Getenv("WEBHOOK_SECRET")))
//
// An event may be delivered more than once, and events in any order, so the functions must
// be idempotent. They should return within 5 seconds. After an error the event is answered
// with 500, and delivered again. Events without a function are answered with 204.
type WebhookHandler struct {
	// Secrets are the valid secrets of the endpoint. There are two during a rotation. Empty ones never match.
	Secrets []string

	InvoiceCreated      func(context.Context, apitypes.Invoice) error
	InvoicePaid         func(context.Context, apitypes.PaidInvoice) error
	InvoiceExpired      func(context.Context, apitypes.Invoice) error
	PaymentReceived     func(context.Context, apitypes.Payment) error
	PaymentRefunded     func(context.Context, apitypes.RefundData) error
	PaymentUnattributed func(context.Context, apitypes.UnattributedData) error
	// Other is called for all other events, such as events of types that this package does not know.
	Other func(context.Context, webhook.Event) error

	Now    func() time.Time // nil means [time.Now]
	Logger *slog.Logger     // nil means [slog.Default]
}

// MustWebhookHandler returns h with more secrets. It panics if there is no secret, or an empty one, because the handler
// would then refuse every delivery. Call it at the start of a program.
func MustWebhookHandler(h WebhookHandler, secrets ...string) http.Handler {
	h.Secrets = slices.Concat(h.Secrets, secrets)
	if len(h.Secrets) == 0 || slices.Contains(h.Secrets, "") {
		panic("client: the webhook handler has no secret, or an empty one; is WEBHOOK_SECRET set?")
	}
	return h
}

// ServeHTTP answers a delivery: 204 after the function has returned nil, 500 after it has returned an error, 400 if the
// body is not an event, and otherwise like [webhook.Verifier.Handler].
func (h WebhookHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	verifier := webhook.Verifier{Secrets: h.Secrets, Now: h.Now, Logger: h.Logger}
	verifier.Handler(http.HandlerFunc(h.receive)).ServeHTTP(w, r)
}

// receive handles a delivery with a valid signature.
func (h WebhookHandler) receive(w http.ResponseWriter, r *http.Request) {
	log := h.Logger
	if log == nil {
		log = slog.Default()
	}
	body, err := io.ReadAll(r.Body)
	if err != nil { // the verifier has already read the body into memory
		http.Error(w, "the body could not be read", http.StatusInternalServerError)
		return
	}
	e, err := webhook.ParseEvent(body)
	if err != nil {
		log.ErrorContext(r.Context(), "webhook is not an event", "err", err)
		http.Error(w, "the body is not an event", http.StatusBadRequest)
		return
	}
	ctx := context.WithValue(r.Context(), deliveryKey{}, Delivery{ID: r.Header.Get(webhook.HeaderDelivery), Event: e})
	if err := h.handle(ctx, e); err != nil {
		log.ErrorContext(r.Context(), "webhook failed, will be delivered again", "event", e.ID, "type", e.Type, "err", err)
		http.Error(w, "the event was not handled", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (h WebhookHandler) handle(ctx context.Context, e webhook.Event) error {
	handled, err := false, error(nil)
	switch apitypes.EventType(e.Type) {
	case apitypes.EventInvoiceCreated:
		handled, err = dispatch(ctx, e, h.InvoiceCreated, func(d apitypes.InvoiceData) apitypes.Invoice { return d.Invoice })
	case apitypes.EventInvoicePaid:
		handled, err = dispatch(ctx, e, h.InvoicePaid, func(d apitypes.PaidInvoiceData) apitypes.PaidInvoice { return d.Invoice })
	case apitypes.EventInvoiceExpired:
		handled, err = dispatch(ctx, e, h.InvoiceExpired, func(d apitypes.InvoiceData) apitypes.Invoice { return d.Invoice })
	case apitypes.EventPaymentReceived:
		handled, err = dispatch(ctx, e, h.PaymentReceived, func(d apitypes.PaymentData) apitypes.Payment { return d.Payment })
	case apitypes.EventPaymentRefunded:
		handled, err = dispatch(ctx, e, h.PaymentRefunded, func(d apitypes.RefundData) apitypes.RefundData { return d })
	case apitypes.EventPaymentUnattributed:
		handled, err = dispatch(ctx, e, h.PaymentUnattributed, func(d apitypes.UnattributedData) apitypes.UnattributedData { return d })
	}
	if !handled && h.Other != nil {
		return h.Other(ctx, e)
	}
	return err
}

// dispatch calls f with the subject of the event's data, and reports whether there is an f.
func dispatch[D, S any](ctx context.Context, e webhook.Event, f func(context.Context, S) error, subject func(D) S) (bool, error) {
	if f == nil {
		return false, nil
	}
	var data D
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return true, fmt.Errorf("client: decode the data of %s: %w", e.ID, err)
	}
	return true, f(ctx, subject(data))
}

// Delivery is the delivery for which a function of a [WebhookHandler] was called.
type Delivery struct {
	// ID is the id of the delivery, the same for all attempts. The signature does not
	// cover it.
	ID    string
	Event webhook.Event
}

type deliveryKey struct{}

// DeliveryOf returns the delivery that a function of a [WebhookHandler] handles, given its
// context.
func DeliveryOf(ctx context.Context) Delivery {
	d, _ := ctx.Value(deliveryKey{}).(Delivery)
	return d
}
