package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/quittance/quittance/apitypes"
)

// webhook returns the path of a merchant's endpoint.
func (c *Client) webhook(merchantID string, rest ...string) *url.URL {
	return c.base.JoinPath(append([]string{"api/merchants", url.PathEscape(merchantID), "webhook"}, rest...)...)
}

// ofMerchant returns err or, if that is nil, an error if the response is of another
// merchant than requested.
func ofMerchant(err error, merchantID string, w apitypes.Webhook) error {
	return answered(err, "webhook of", merchantID, w.MerchantID)
}

// Webhook returns a merchant's webhook. The error's code is [apitypes.CodeNotFound] if the
// merchant is unknown or has no endpoint.
func (c *Client) Webhook(ctx context.Context, merchantID string) (apitypes.Webhook, error) {
	var answer apitypes.WebhookResponse
	err := c.call(ctx, http.MethodGet, c.webhook(merchantID), nil, nil, &answer)
	return answer.Webhook, ofMerchant(err, merchantID, answer.Webhook)
}

// WebhookOption configures a request to set a webhook.
type WebhookOption func(*apitypes.PutWebhookRequest)

// OptionalEvents replaces the webhook's optional event types, such as
// [apitypes.EventPaymentUnattributed]. Without arguments it removes all.
func OptionalEvents(types ...apitypes.EventType) WebhookOption {
	types = append([]apitypes.EventType{}, types...) // null is not an array
	return func(r *apitypes.PutWebhookRequest) { r.OptionalEvents = &types }
}

// PutWebhook sets the URL of a merchant's webhook. The first call generates the signing
// secret and returns it; later calls return "". Without [OptionalEvents], the optional
// types do not change. The error's code is [apitypes.CodeInvalidField] if the URL cannot
// be used or a type is not optional, [apitypes.CodeConfiguredEndpoint] if the endpoint is
// set in the service's configuration, and [apitypes.CodeNoMasterKey] if the service
// cannot store secrets.
func (c *Client) PutWebhook(ctx context.Context, merchantID, target string, options ...WebhookOption) (w apitypes.Webhook, secret string, err error) {
	r := apitypes.PutWebhookRequest{URL: target}
	for _, option := range options {
		option(&r)
	}
	body, err := json.Marshal(r)
	if err != nil {
		return w, "", fmt.Errorf("client: encode the request: %w", err)
	}
	// Without a secret, the response is a WebhookResponse.
	var answer apitypes.WebhookSecretResponse
	header := http.Header{"Content-Type": {"application/json"}}
	err = c.call(ctx, http.MethodPut, c.webhook(merchantID), header, body, &answer)
	return answer.Webhook, answer.Secret, ofMerchant(err, merchantID, answer.Webhook)
}

// PingWebhook makes the service post a test event to a merchant's endpoint, and returns
// the attempt, whose Error is empty on success. The error's code is
// [apitypes.CodeNotFound] if there is no endpoint.
func (c *Client) PingWebhook(ctx context.Context, merchantID string) (apitypes.Attempt, error) {
	var answer apitypes.PingResponse
	err := c.call(ctx, http.MethodPost, c.webhook(merchantID, "ping"), nil, nil, &answer)
	return answer.Ping, err
}

// StageWebhookSecret generates the secret that is to replace the active one, and returns
// it, for the only time. Make the receiver accept both before
// [Client.PromoteWebhookSecret]. The error's code is [apitypes.CodeSecretStaged] if a
// secret is staged already.
func (c *Client) StageWebhookSecret(ctx context.Context, merchantID string) (w apitypes.Webhook, secret string, err error) {
	var answer apitypes.WebhookSecretResponse
	err = c.call(ctx, http.MethodPost, c.webhook(merchantID, "secret"), nil, nil, &answer)
	return answer.Webhook, answer.Secret, ofMerchant(err, merchantID, answer.Webhook)
}

// PromoteWebhookSecret makes the staged secret the active one, after a ping signed with it
// alone has succeeded. The error's code is [apitypes.CodePingFailed] if the ping failed,
// and [apitypes.CodeNoStagedSecret] if no secret is staged.
func (c *Client) PromoteWebhookSecret(ctx context.Context, merchantID string) (apitypes.Webhook, error) {
	var answer apitypes.WebhookResponse
	err := c.call(ctx, http.MethodPost, c.webhook(merchantID, "secret", "promote"), nil, nil, &answer)
	return answer.Webhook, ofMerchant(err, merchantID, answer.Webhook)
}

// DropWebhookSecret drops the staged secret. The error's code is
// [apitypes.CodeNoStagedSecret] if no secret is staged.
func (c *Client) DropWebhookSecret(ctx context.Context, merchantID string) error {
	return c.call(ctx, http.MethodDelete, c.webhook(merchantID, "secret"), nil, nil, nil)
}
