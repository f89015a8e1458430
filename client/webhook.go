package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/quittance/quittance/apitypes"
)

// webhook is the path of what belongs to a merchant's endpoint.
func (c *Client) webhook(merchantID string, rest ...string) *url.URL {
	return c.base.JoinPath(append([]string{"api/merchants", url.PathEscape(merchantID), "webhook"}, rest...)...)
}

// ofMerchant returns err or, without one, an error when the answer is of
// another merchant than was asked for.
func ofMerchant(err error, merchantID string, w apitypes.Webhook) error {
	return answered(err, "webhook of", merchantID, w.MerchantID)
}

// Webhook returns where a merchant's events go. When there is no such merchant,
// or it has no endpoint, the error's code is [apitypes.CodeNotFound].
func (c *Client) Webhook(ctx context.Context, merchantID string) (apitypes.Webhook, error) {
	var answer apitypes.WebhookResponse
	err := c.call(ctx, http.MethodGet, c.webhook(merchantID), nil, nil, &answer)
	return answer.Webhook, ofMerchant(err, merchantID, answer.Webhook)
}

// WebhookOption changes a request to set a webhook.
type WebhookOption func(*apitypes.PutWebhookRequest)

// OptionalEvents replaces the optional types of events that the webhook is sent,
// such as [apitypes.EventPaymentUnattributed]. Without arguments it removes all of them.
func OptionalEvents(types ...apitypes.EventType) WebhookOption {
	types = append([]apitypes.EventType{}, types...) // null is not an array
	return func(r *apitypes.PutWebhookRequest) { r.OptionalEvents = &types }
}

// PutWebhook sets where a merchant's events go. The first time, the service
// makes the secret that signs them and tells it, which it does not do again:
// later, the secret is empty. Without the option [OptionalEvents], the optional
// types stay as they are. The error's code is [apitypes.CodeInvalidField] when the URL
// cannot be used or a type is not optional, [apitypes.CodeConfiguredEndpoint] when the
// service's configuration has the endpoint, and [apitypes.CodeNoMasterKey] when the
// service cannot keep secrets.
func (c *Client) PutWebhook(ctx context.Context, merchantID, target string, options ...WebhookOption) (w apitypes.Webhook, secret string, err error) {
	r := apitypes.PutWebhookRequest{URL: target}
	for _, option := range options {
		option(&r)
	}
	body, err := json.Marshal(r)
	if err != nil {
		return w, "", fmt.Errorf("client: encode the request: %w", err)
	}
	// Without a secret in it, the answer is a WebhookResponse.
	var answer apitypes.WebhookSecretResponse
	header := http.Header{"Content-Type": {"application/json"}}
	err = c.call(ctx, http.MethodPut, c.webhook(merchantID), header, body, &answer)
	return answer.Webhook, answer.Secret, ofMerchant(err, merchantID, answer.Webhook)
}

// PingWebhook has the service post a test message to a merchant's endpoint, as
// it posts events, and returns how that went: well, unless there is an Error
// in it. The error's code is [apitypes.CodeNotFound] when there is no endpoint.
func (c *Client) PingWebhook(ctx context.Context, merchantID string) (apitypes.Attempt, error) {
	var answer apitypes.PingResponse
	err := c.call(ctx, http.MethodPost, c.webhook(merchantID, "ping"), nil, nil, &answer)
	return answer.Ping, err
}

// StageWebhookSecret has the service make a secret that is to replace the one in
// use, and returns it; it is not told again. Have the receiver accept both
// before [Client.PromoteWebhookSecret]. The error's code is
// [apitypes.CodeSecretStaged] when there is one already.
func (c *Client) StageWebhookSecret(ctx context.Context, merchantID string) (w apitypes.Webhook, secret string, err error) {
	var answer apitypes.WebhookSecretResponse
	err = c.call(ctx, http.MethodPost, c.webhook(merchantID, "secret"), nil, nil, &answer)
	return answer.Webhook, answer.Secret, ofMerchant(err, merchantID, answer.Webhook)
}

// PromoteWebhookSecret puts the staged secret to use, once the endpoint has
// taken a ping that it alone has signed. The error's code is [apitypes.CodePingFailed]
// when the endpoint has not, and [apitypes.CodeNoStagedSecret] when none is staged.
func (c *Client) PromoteWebhookSecret(ctx context.Context, merchantID string) (apitypes.Webhook, error) {
	var answer apitypes.WebhookResponse
	err := c.call(ctx, http.MethodPost, c.webhook(merchantID, "secret", "promote"), nil, nil, &answer)
	return answer.Webhook, ofMerchant(err, merchantID, answer.Webhook)
}

// DropWebhookSecret drops the staged secret. The error's code is
// [apitypes.CodeNoStagedSecret] when none is staged.
func (c *Client) DropWebhookSecret(ctx context.Context, merchantID string) error {
	return c.call(ctx, http.MethodDelete, c.webhook(merchantID, "secret"), nil, nil, nil)
}
