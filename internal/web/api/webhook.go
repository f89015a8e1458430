package api

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/quittance/quittance/apitypes"
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
