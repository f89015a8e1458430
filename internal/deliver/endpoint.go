package deliver

import (
	"net/http"
	"strconv"
	"time"

	"github.com/quittance/quittance/webhook"
)

// userAgent names the sender.
const userAgent = "Quittance"

// Endpoint is where a merchant receives events.
type Endpoint struct {
	URL    string // http or https
	Secret string // keys the signature, prefix included
	// Others sign, beside Secret, in the one header that can hold several
	// signatures: those that it has replaced of late, and one that is to replace
	// it.
	Others []string
}

// sign writes the headers of a message that is sent now.
func (e Endpoint) sign(h http.Header, m message, now time.Time) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", userAgent)
	h.Set(webhook.HeaderEvent, m.event)
	h.Set(webhook.HeaderDelivery, m.id)
	h.Set(webhook.HeaderTimestamp, timestamp)
	h.Set(webhook.HeaderSignature, webhook.Sign(e.Secret, now, m.body))
	h.Set(webhook.HeaderStandardID, m.id)
	h.Set(webhook.HeaderStandardTimestamp, timestamp)
	h.Set(webhook.HeaderStandardSignature, webhook.SignStandard(e.secrets(), m.id, now, m.body))
}

// secrets returns all secrets that sign, the one in use first.
func (e Endpoint) secrets() []string { return append([]string{e.Secret}, e.Others...) }
