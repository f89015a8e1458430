package webhooks

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/webhook"
)

// userAgent identifies the sender.
const userAgent = "Quittance"

// Endpoint is where a merchant receives events.
type Endpoint struct {
	URL    string // http or https
	Secret string // key of the signature, including its prefix
	// Others also sign, in the header that can hold several signatures: the secrets that Secret replaced recently, and
	// the one that will replace it.
	Others []string
	// Headers are sent with each message. They passed CheckHeaders.
	Headers []access.WebhookHeader
	// Configured means that the configuration sets it for its merchant, even if the database has another.
	Configured bool
}

// host returns the host of the URL, without a port.
func (e Endpoint) host() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// sign sets the headers of a message that is sent now.
func (e Endpoint) sign(h http.Header, m Message, now time.Time) {
	for _, own := range e.Headers {
		h.Set(own.Name, own.Value)
	}
	timestamp := strconv.FormatInt(now.Unix(), 10)
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", userAgent)
	h.Set(webhook.HeaderEvent, m.Event)
	h.Set(webhook.HeaderDelivery, m.ID)
	h.Set(webhook.HeaderTimestamp, timestamp)
	h.Set(webhook.HeaderSignature, webhook.Sign(e.Secret, now, m.Body))
	h.Set(webhook.HeaderStandardID, m.ID)
	h.Set(webhook.HeaderStandardTimestamp, timestamp)
	h.Set(webhook.HeaderStandardSignature, webhook.SignStandard(e.secrets(), m.ID, now, m.Body))
}

// secrets returns all secrets that sign, the active one first.
func (e Endpoint) secrets() []string { return append([]string{e.Secret}, e.Others...) }
