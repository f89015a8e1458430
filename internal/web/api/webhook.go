package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// getWebhook answers GET /api/merchants/{id}/webhook.
func (a *API) getWebhook(w http.ResponseWriter, r *http.Request) error {
	v, err := a.conf.Endpoints.View(r.Context(), r.PathValue("id"))
	return a.writeJSON(w, r, http.StatusOK, apitypes.WebhookResponse{Webhook: fromView(v, a.conf.Now())}, db.During("read endpoint", err))
}

// putWebhook answers PUT /api/merchants/{id}/webhook.
func (a *API) putWebhook(w http.ResponseWriter, r *http.Request, o object) error {
	var set webhooks.Settings
	if err := cmp.Or(text(o, "", "url", &set.URL, asIs), texts(o, "optionalEvents", &set.Optional), headerChanges(o, "headers", &set.Headers)); err != nil {
		return err
	}
	v, secret, err := a.conf.Endpoints.Put(r.Context(), r.PathValue("id"), set)
	if err = db.During("set endpoint", err); secret == "" {
		return a.writeJSON(w, r, http.StatusOK, apitypes.WebhookResponse{Webhook: fromView(v, a.conf.Now())}, err)
	}
	return a.writeJSON(w, r, http.StatusCreated, apitypes.WebhookSecretResponse{Webhook: fromView(v, a.conf.Now()), Secret: secret}, err)
}

// headerChanges reads an array of headers into dst, which is unchanged if the array is absent.
func headerChanges(o object, name string, dst *[]webhooks.HeaderChange) error {
	return objects(o, name, dst, func(path string, in object, change *webhooks.HeaderChange) error {
		if err := text(in, path, "name", &change.Name, asIs); err != nil {
			return err
		}
		return optional(in, "value", func(member string) error {
			change.Value = new(string)
			return text(in, path, member, change.Value, asIs)
		})
	})
}

// objects is array for elements that are objects. Their paths end with a dot.
func objects[T any](o object, name string, dst *[]T, read func(path string, in object, to *T) error) error {
	return array(o, name, dst, func(path string, element any, to *T) error {
		in, ok := element.(map[string]any)
		if !ok {
			return invalidField(path, "must be an object; it is %s", kind(element))
		}
		return read(path+".", in, to)
	})
}

// array reads an array into dst, which is unchanged if the array is absent. read reads one element; its
// path is, for example, headers[2].
func array[T any](o object, name string, dst *[]T, read func(path string, element any, to *T) error) error {
	v, ok := o[name]
	if !ok {
		return nil
	}
	elements, ok := v.([]any)
	if !ok {
		return invalidField(name, "must be an array; it is %s", kind(v))
	}
	all := make([]T, len(elements))
	for i, element := range elements {
		if err := read(fmt.Sprintf("%s[%d]", name, i), element, &all[i]); err != nil {
			return err
		}
	}
	*dst = all
	return nil
}

// pingWebhook answers POST /api/merchants/{id}/webhook/ping.
func (a *API) pingWebhook(w http.ResponseWriter, r *http.Request) error {
	leave, err := a.pings.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	ping, err := a.conf.Endpoints.PingMerchant(r.Context(), r.PathValue("id"))
	return a.writeJSON(w, r, http.StatusOK, apitypes.PingResponse{Ping: Attempt(ping)}, db.During("ping endpoint", err))
}

// stageSecret answers POST /api/merchants/{id}/webhook/secret.
func (a *API) stageSecret(w http.ResponseWriter, r *http.Request) error {
	v, secret, err := a.conf.Endpoints.Stage(r.Context(), r.PathValue("id"))
	return a.writeJSON(w, r, http.StatusCreated, apitypes.WebhookSecretResponse{Webhook: fromView(v, a.conf.Now()), Secret: secret}, db.During("stage secret", err))
}

// dropSecret answers DELETE /api/merchants/{id}/webhook/secret.
func (a *API) dropSecret(w http.ResponseWriter, r *http.Request) error {
	return noContent(w, db.During("drop secret", a.conf.Endpoints.Unstage(r.Context(), r.PathValue("id"))))
}

// promoteSecret answers POST /api/merchants/{id}/webhook/secret/promote.
func (a *API) promoteSecret(w http.ResponseWriter, r *http.Request) error {
	leave, err := a.pings.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	v, err := a.conf.Endpoints.Promote(r.Context(), r.PathValue("id"))
	return a.writeJSON(w, r, http.StatusOK, apitypes.WebhookResponse{Webhook: fromView(v, a.conf.Now())}, db.During("promote secret", err))
}

func fromView(v webhooks.View, now time.Time) apitypes.Webhook {
	w := apitypes.Webhook{
		MerchantID: v.MerchantID, URL: v.URL, Configured: v.Configured,
		ChangedAt:      invoice.UnixSeconds(v.ChangedAt),
		OptionalEvents: db.Each(v.Optional, func(typ invoice.EventType) apitypes.EventType { return apitypes.EventType(typ) }),
		HeaderNames:    v.Headers,
		Health:         apitypes.WebhookHealth(v.Breaker.Health(now)), Secrets: db.Each(v.Secrets, secretOf),
		FailingSince: invoice.UnixSeconds(v.Breaker.Failing), LastError: v.Breaker.Error, LastErrorAt: invoice.UnixSeconds(v.Breaker.Failed),
	}
	if v.Breaker.IsPaused(now) {
		w.PausedUntil = v.Breaker.Until.Unix()
	}
	return w
}

func secretOf(s webhooks.SecretRow) apitypes.WebhookSecret {
	return apitypes.WebhookSecret{Version: s.Version, State: string(s.State), CreatedAt: invoice.UnixSeconds(s.CreatedAt), ValidUntil: invoice.UnixSeconds(s.ValidUntil), ReplacedAt: invoice.UnixSeconds(s.ReplacedAt)}
}

// redeliverEvent answers POST /api/events/{id}/redeliver.
func (a *API) redeliverEvent(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if !access.FromContext(r.Context()).IsOperator() {
		if _, _, err := a.visibleEvent(r.Context(), id); err != nil {
			return fmt.Errorf("read event: %w", err)
		}
	}
	if err := a.conf.Events.Redeliver(r.Context(), id, a.conf.Now()); err != nil {
		return fmt.Errorf("send event again: %w", err)
	}
	return a.writeEvent(w, r, false)
}

// redeliverEvents answers POST /api/events/redeliver, in transactions of bounded size within RedeliverTime.
func (a *API) redeliverEvents(w http.ResponseWriter, r *http.Request, o object) error {
	filter, scope, after, err := parseRedeliver(r.Context(), o)
	if err != nil {
		return err
	}
	h, err := a.history(r.Context(), "")
	if err != nil {
		return err
	}
	if after, err = h.move(scope, after); err != nil {
		return err
	}
	leave, err := a.redelivering.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	filter.After = after.Event
	var answer apitypes.RedeliverEventsResponse
	for begun := a.conf.Now(); ; {
		now := a.conf.Now()
		n, next, err := a.conf.Events.RedeliverMany(r.Context(), filter, now, RedeliverBatch)
		if err != nil {
			return fmt.Errorf("send events again: %w", err)
		}
		answer.Redelivered += n
		if next == 0 {
			break
		}
		filter.After = next
		if now.Sub(begun) >= RedeliverTime {
			answer.NextCursor = formatCursor(scope, h.at(next, -1, 0).key())
			break
		}
	}
	return a.writeJSON(w, r, http.StatusOK, answer, nil)
}

// parseRedeliver parses the filter of the events to redeliver, and returns the scope of its cursors
// and the position in the given cursor. It returns an *invoice.FieldError for the first invalid member.
func parseRedeliver(ctx context.Context, o object) (f webhooks.RedeliverFilter, scope string, after position, err error) {
	var cursor string
	err = cmp.Or(
		optional(o, "merchantId", func(n string) error { return text(o, "", n, &f.MerchantID, parseMerchantID) }),
		optional(o, "type", func(n string) error { return text(o, "", n, &f.Type, parseEventType) }),
		optional(o, "invoiceId", func(n string) error { return text(o, "", n, &f.InvoiceID, parseInvoiceID) }),
		optional(o, "from", func(n string) error { return seconds(o, n, &f.CreatedFrom) }),
		optional(o, "to", func(n string) error { return seconds(o, n, &f.CreatedTo) }),
		optional(o, "failedOnly", func(n string) error { return boolean(o, n, &f.OnlyFailed) }),
		optional(o, "cursor", func(n string) error { return text(o, "", n, &cursor, asIs) }),
	)
	if err == nil {
		f.MerchantID, err = ownMerchant(ctx, f.MerchantID)
	}
	_, from := o["from"]
	_, to := o["to"]
	switch {
	case err != nil:
		return f, "", after, err
	case !from && !f.OnlyFailed:
		return f, "", after, invalidField("from", "is required unless failedOnly is true: it keeps all events from being sent again by mistake")
	case to && (f.CreatedTo.Before(f.CreatedFrom) || f.CreatedTo.Unix() == 0):
		return f, "", after, invalidField("to", "must not lie before from")
	}
	scope = fmt.Sprintf("redeliver %q %q %q %d %d %t", f.MerchantID, f.Type, f.InvoiceID, invoice.UnixSeconds(f.CreatedFrom), invoice.UnixSeconds(f.CreatedTo), f.OnlyFailed)
	if cursor != "" {
		var ok bool
		if after, ok = parsePosition(scope, cursor); !ok {
			return f, "", after, invalidField("cursor", "must be the nextCursor of an answer to a request with the same members")
		}
	}
	return f, scope, after, nil
}

// optional reads a member if it is present.
func optional(o object, name string, read func(name string) error) error {
	if _, ok := o[name]; !ok {
		return nil
	}
	return read(name)
}

// boolean reads true or false.
func boolean(o object, name string, dst *bool) error {
	v, ok := o[name].(bool)
	if !ok {
		return invalidField(name, "must be true or false; it is %s", kind(o[name]))
	}
	*dst = v
	return nil
}

func parseMerchantID(s string) (string, error) {
	if !invoice.ValidMerchantID(s) {
		return "", fmt.Errorf("must be 1 to %d characters of A-Z, a-z, 0-9, '_', '.' and '-'", invoice.MaxMerchantID)
	}
	return s, nil
}
