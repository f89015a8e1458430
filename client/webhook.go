package client

import (
	"context"
	"net/http"

	"github.com/quittance/quittance/apitypes"
)

// Webhook returns a merchant's webhook. The error's code is [apitypes.CodeNotFound] if the
// merchant is unknown or has no endpoint.
func (c *Client) Webhook(ctx context.Context, merchantID string) (apitypes.Webhook, error) {
	var answer apitypes.WebhookResponse
	err := c.get(ctx, c.path("api/merchants", merchantID, "webhook"), &answer, is("webhook of", merchantID, &answer.Webhook.MerchantID))
	return answer.Webhook, err
}

// WebhookOption configures a request to set a webhook.
type WebhookOption func(*apitypes.PutWebhookRequest)

// OptionalEvents replaces the webhook's optional event types, such as
// [apitypes.EventPaymentUnattributed]. Without arguments it removes all.
func OptionalEvents(types ...apitypes.EventType) WebhookOption {
	types = append([]apitypes.EventType{}, types...) // null is not an array
	return func(r *apitypes.PutWebhookRequest) { r.OptionalEvents = &types }
}

// Headers replaces the custom headers that are sent with events. Without arguments it removes all. A header without a
// Value keeps the stored value, unless the scheme, host or port of the URL changes: then values must be given again.
func Headers(headers ...apitypes.WebhookHeader) WebhookOption {
	headers = append([]apitypes.WebhookHeader{}, headers...) // null is not an array
	return func(r *apitypes.PutWebhookRequest) { r.Headers = &headers }
}

// PutWebhook sets the URL of a merchant's webhook. The first call generates the signing secret and returns it; later
// calls return "". The request is not repeated if it may have reached the service, because the first secret would be
// lost. Without [OptionalEvents], the optional types do not change, and without [Headers] the headers do not. If the
// endpoint has headers, a URL with another scheme, host or port needs [Headers] too. The error's code is
// [apitypes.CodeInvalidField] if the URL cannot be used, values of headers are missing or a type is not optional,
// [apitypes.CodeConfiguredEndpoint] if the endpoint is set in the service's configuration, and
// [apitypes.CodeNoMasterKey] if the service cannot store secrets.
func (c *Client) PutWebhook(ctx context.Context, merchantID, target string, options ...WebhookOption) (w apitypes.Webhook, secret string, err error) {
	r := apitypes.PutWebhookRequest{URL: target}
	for _, option := range options {
		option(&r)
	}
	var answer struct {
		Webhook apitypes.Webhook `json:"webhook"`
		Secret  string           `json:"secret,omitempty"` // only of the first call
	}
	err = c.send(ctx, request{method: http.MethodPut, url: c.path("api/merchants", merchantID, "webhook")}, r, &answer, is("webhook of", merchantID, &answer.Webhook.MerchantID))
	return answer.Webhook, answer.Secret, err
}

// PingWebhook makes the service post a test event to a merchant's endpoint, and returns the attempt, with an empty
// Error on success. The error's code is [apitypes.CodeNotFound] if there is no endpoint.
func (c *Client) PingWebhook(ctx context.Context, merchantID string) (apitypes.Attempt, error) {
	var answer apitypes.PingResponse
	err := c.call(ctx, request{method: http.MethodPost, url: c.path("api/merchants", merchantID, "webhook", "ping")}, &answer)
	return answer.Ping, err
}

// StageWebhookSecret generates the secret that will replace the active one, and returns it. It cannot be read again.
// Make the receiver accept both before [Client.PromoteWebhookSecret]. The error's code is [apitypes.CodeSecretStaged]
// if a secret is staged already.
func (c *Client) StageWebhookSecret(ctx context.Context, merchantID string) (w apitypes.Webhook, secret string, err error) {
	var answer apitypes.WebhookSecretResponse
	err = c.call(ctx, request{method: http.MethodPost, url: c.path("api/merchants", merchantID, "webhook", "secret")}, &answer, is("webhook of", merchantID, &answer.Webhook.MerchantID))
	return answer.Webhook, answer.Secret, err
}

// PromoteWebhookSecret makes the staged secret the active one, after a ping signed with only the staged secret has
// succeeded. The error's code is [apitypes.CodePingFailed] if the ping failed, and [apitypes.CodeNoStagedSecret] if no
// secret is staged.
func (c *Client) PromoteWebhookSecret(ctx context.Context, merchantID string) (apitypes.Webhook, error) {
	var answer apitypes.WebhookResponse
	err := c.call(ctx, request{method: http.MethodPost, url: c.path("api/merchants", merchantID, "webhook", "secret", "promote")}, &answer, is("webhook of", merchantID, &answer.Webhook.MerchantID))
	return answer.Webhook, err
}

// DropWebhookSecret drops the staged secret. The error's code is
// [apitypes.CodeNoStagedSecret] if no secret is staged.
func (c *Client) DropWebhookSecret(ctx context.Context, merchantID string) error {
	return c.call(ctx, request{method: http.MethodDelete, url: c.path("api/merchants", merchantID, "webhook", "secret")}, nil)
}
