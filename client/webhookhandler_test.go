package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
	"github.com/quittance/quittance/webhook"
)

const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

var sentAt = time.Unix(1_700_000_000, 0)

// deliver posts a body to a handler, and returns the status of its response.
func deliver(h client.WebhookHandler, body, secret string) int {
	r := httptest.NewRequest(http.MethodPost, "/webhooks", strings.NewReader(body))
	r.Header.Set(webhook.HeaderSignature, webhook.Sign(secret, sentAt, []byte(body)))
	r.Header.Set(webhook.HeaderDelivery, "dlv_1")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func body(typ, data string) string {
	return fmt.Sprintf(`{"id":"evt_1","type":%q,"createdAt":1700000000,"data":%s}`, typ, data)
}

// TestWebhookHandlerDispatches sends one event of each type.
func TestWebhookHandlerDispatches(t *testing.T) {
	var got []string
	note := func(ctx context.Context, id string) error {
		d := client.DeliveryOf(ctx)
		got = append(got, d.Event.Type+" "+id+" "+d.ID)
		return nil
	}
	h := client.WebhookHandler{
		Secrets: []string{"another", secret}, Now: func() time.Time { return sentAt }, Logger: slog.New(slog.DiscardHandler),
		InvoiceCreated:      func(ctx context.Context, i apitypes.Invoice) error { return note(ctx, i.ID) },
		InvoicePaid:         func(ctx context.Context, i apitypes.PaidInvoice) error { return note(ctx, i.ID) },
		InvoiceExpired:      func(ctx context.Context, i apitypes.Invoice) error { return note(ctx, i.ID) },
		PaymentReceived:     func(ctx context.Context, p apitypes.Payment) error { return note(ctx, p.ID) },
		PaymentRefunded:     func(ctx context.Context, d apitypes.RefundData) error { return note(ctx, d.Refund.ID) },
		PaymentUnattributed: func(ctx context.Context, d apitypes.UnattributedData) error { return note(ctx, d.Payment.ID) },
		Other:               func(ctx context.Context, e webhook.Event) error { return note(ctx, "other "+e.ID) },
	}
	for _, sent := range []string{
		body("invoice.created", `{"invoice":{"id":"inv_1"}}`), body("invoice.paid", `{"invoice":{"id":"inv_2"}}`),
		body("invoice.expired", `{"invoice":{"id":"inv_3"}}`), body("payment.received", `{"payment":{"id":"pay_1"}}`),
		body("payment.refunded", `{"refund":{"id":"ref_1"},"payment":{}}`), body("payment.unattributed", `{"payment":{"id":"pay_2"},"candidates":[]}`),
		body("webhook.ping", `{}`),
	} {
		if status := deliver(h, sent, secret); status != http.StatusNoContent {
			t.Errorf("%s: answered %d", sent, status)
		}
	}
	want := []string{
		"invoice.created inv_1 dlv_1", "invoice.paid inv_2 dlv_1", "invoice.expired inv_3 dlv_1", "payment.received pay_1 dlv_1",
		"payment.refunded ref_1 dlv_1", "payment.unattributed pay_2 dlv_1", "webhook.ping other evt_1 dlv_1",
	}
	expect.NoDiff(t, cmp.Diff(want, got), "calls")
}

func TestWebhookHandlerAnswers(t *testing.T) {
	paid := body("invoice.paid", `{"invoice":{"id":"inv_1"}}`)
	for name, test := range map[string]struct {
		body, secret string
		err          error
		want         int
	}{
		"handled":          {paid, secret, nil, http.StatusNoContent},
		"failed":           {paid, secret, errors.New("no stock"), http.StatusInternalServerError},
		"another secret":   {paid, "hunter2", nil, http.StatusUnauthorized},
		"not an event":     {`{}`, secret, nil, http.StatusBadRequest},
		"not an invoice":   {body("invoice.paid", `{"invoice":[]}`), secret, nil, http.StatusInternalServerError},
		"without function": {body("invoice.expired", `{}`), secret, nil, http.StatusNoContent},
	} {
		called := 0
		h := client.WebhookHandler{
			Secrets: []string{secret}, Now: func() time.Time { return sentAt }, Logger: slog.New(slog.DiscardHandler),
			InvoicePaid: func(context.Context, apitypes.PaidInvoice) error { called++; return test.err },
		}
		if got := deliver(h, test.body, test.secret); got != test.want {
			t.Errorf("%s: answered %d, want %d", name, got, test.want)
		}
		if want := test.body == paid && test.secret == secret; (called == 1) != want {
			t.Errorf("%s: called %d times", name, called)
		}
	}
	if status := deliver(client.WebhookHandler{Now: func() time.Time { return sentAt }, Logger: slog.New(slog.DiscardHandler)}, paid, ""); status != http.StatusUnauthorized {
		t.Errorf("without secrets it answers %d", status)
	}
}

// TestMustWebhookHandler expects a panic at the start of a program, not refused deliveries.
func TestMustWebhookHandler(t *testing.T) {
	h := client.MustWebhookHandler(client.WebhookHandler{Secrets: []string{"whsec_old"}}, secret)
	if has, ok := h.(client.WebhookHandler); !ok || !slices.Equal(has.Secrets, []string{"whsec_old", secret}) {
		t.Errorf("the handler is %+v", h)
	}
	for _, secrets := range [][]string{nil, {""}, {secret, ""}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic with the secrets %q", secrets)
				}
			}()
			client.MustWebhookHandler(client.WebhookHandler{Secrets: secrets[:len(secrets)/2]}, secrets[len(secrets)/2:]...)
		}()
	}
}

// TestWebhookHandlerKnowsAllEvents compares the functions with the webhooks of openapi.yaml.
func TestWebhookHandlerKnowsAllEvents(t *testing.T) {
	doc := expect.Must(openapi3.NewLoader().LoadFromFile(testdeps.Repo("openapi.yaml")))
	handler := reflect.TypeFor[client.WebhookHandler]()
	for typ := range doc.Webhooks {
		name := ""
		for word := range strings.SplitSeq(typ, ".") {
			name += strings.ToUpper(word[:1]) + word[1:]
		}
		if _, ok := handler.FieldByName(name); !ok {
			t.Errorf("no function %s for the event %s", name, typ)
		}
	}
	if len(doc.Webhooks) < 6 {
		t.Errorf("openapi.yaml has %d webhooks", len(doc.Webhooks))
	}
}

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
