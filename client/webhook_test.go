package client_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestWebhook(t *testing.T) {
	const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	hook := apitypes.Webhook{MerchantID: "acme", URL: "https://acme.example/", Health: apitypes.HealthOK, OptionalEvents: []apitypes.EventType{}, Secrets: []apitypes.WebhookSecret{{Version: 1, State: "active", CreatedAt: 1}}}
	ping := apitypes.Attempt{Number: 1, StartedAt: 1, DurationMs: 2, StatusCode: 500, Error: "answered 500, expected 2xx"}
	var seen []string
	created := true
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method+" "+r.URL.Path)
		status, body := http.StatusOK, any(apitypes.WebhookResponse{Webhook: hook})
		switch r.Method + " " + r.URL.Path {
		case "PUT /api/merchants/acme/webhook":
			if r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("the type is %q", r.Header.Get("Content-Type"))
			}
			if created {
				status, body = http.StatusCreated, apitypes.WebhookSecretResponse{Webhook: hook, Secret: secret}
			}
		case "POST /api/merchants/acme/webhook/secret":
			status, body = http.StatusCreated, apitypes.WebhookSecretResponse{Webhook: hook, Secret: secret}
		case "DELETE /api/merchants/acme/webhook/secret":
			w.WriteHeader(http.StatusNoContent)
			return
		case "POST /api/merchants/acme/webhook/ping":
			body = apitypes.PingResponse{Ping: ping}
		}
		answer(t, w, status, "application/json", body)
	})
	want := func(what string, w apitypes.Webhook, got, secret string, err error) {
		t.Helper()
		if diff := cmp.Diff(hook, w); diff != "" || got != secret || err != nil {
			t.Errorf("%s: %q, %v, %s", what, got, err, diff)
		}
	}
	w, shown, err := c.PutWebhook(t.Context(), "acme", "https://acme.example/")
	want("put", w, shown, secret, err)
	created = false
	w, shown, err = c.PutWebhook(t.Context(), "acme", "https://acme.example/")
	want("put again", w, shown, "", err)
	w, err = c.Webhook(t.Context(), "acme")
	want("get", w, "", "", err)
	w, shown, err = c.StageWebhookSecret(t.Context(), "acme")
	want("stage", w, shown, secret, err)
	w, err = c.PromoteWebhookSecret(t.Context(), "acme")
	want("promote", w, "", "", err)
	if got, err := c.PingWebhook(t.Context(), "acme"); !cmp.Equal(got, ping) || err != nil {
		t.Errorf("ping: %+v, %v", got, err)
	}
	expect.NoError(t, c.DropWebhookSecret(t.Context(), "acme"))
	if _, err := c.Webhook(t.Context(), "bean"); err == nil {
		t.Error("another merchant's endpoint is taken")
	}
	if diff := cmp.Diff([]string{"PUT /api/merchants/acme/webhook", "PUT /api/merchants/acme/webhook", "GET /api/merchants/acme/webhook",
		"POST /api/merchants/acme/webhook/secret", "POST /api/merchants/acme/webhook/secret/promote", "POST /api/merchants/acme/webhook/ping",
		"DELETE /api/merchants/acme/webhook/secret", "GET /api/merchants/bean/webhook"}, seen); diff != "" {
		t.Error(diff)
	}
	c = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(t, w, http.StatusConflict, "application/problem+json", apitypes.Problem{Type: "https://x.example/", Title: "x", Status: 409, Detail: "x", Code: apitypes.CodeNoStagedSecret})
	})
	var refused *client.Error
	if err := c.DropWebhookSecret(t.Context(), "acme"); !errors.As(err, &refused) || refused.Code != apitypes.CodeNoStagedSecret {
		t.Errorf("the error is %v", err)
	}
}

func TestPutWebhookOptionalEvents(t *testing.T) {
	for want, options := range map[string][]client.WebhookOption{
		`{"url":"https://acme.example/"}`:                                           nil,
		`{"url":"https://acme.example/","optionalEvents":[]}`:                       {client.OptionalEvents()},
		`{"url":"https://acme.example/","optionalEvents":["payment.unattributed"]}`: {client.OptionalEvents(apitypes.EventPaymentUnattributed)},
	} {
		hook := apitypes.Webhook{MerchantID: "acme", URL: "https://acme.example/", Health: apitypes.HealthOK, Secrets: []apitypes.WebhookSecret{},
			OptionalEvents: []apitypes.EventType{apitypes.EventPaymentUnattributed}}
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if got, err := io.ReadAll(r.Body); string(got) != want || err != nil {
				t.Errorf("sent %s, %v; want %s", got, err, want)
			}
			answer(t, w, http.StatusOK, "application/json", apitypes.WebhookResponse{Webhook: hook})
		})
		w, _, err := c.PutWebhook(t.Context(), "acme", "https://acme.example/", options...)
		if diff := cmp.Diff(hook, w); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}
