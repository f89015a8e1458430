package access

import "github.com/quittance/quittance/internal/invoice"

// MerchantSettings are all settings of a merchant in the service's configuration.
type MerchantSettings struct {
	invoice.Merchant
	WebhookURL     string              // http or https; empty if the endpoint is set through the API
	WebhookSecret  string              // empty without a URL
	WebhookHeaders []WebhookHeader     // sent with each event; empty without a URL
	OptionalEvents []invoice.EventType // delivered in addition to the five of the interface
}

// WebhookHeader is a custom header that is sent to an endpoint with each event. Its value may be a secret.
type WebhookHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
