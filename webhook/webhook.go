// Package webhook signs and verifies the events that Quittance posts to a merchant's URL, and the notices that a
// transfer provider posts to Quittance. It imports the standard library alone, so that a receiver can too.
//
// A signed request carries one header whose value is
//
//	t=<timestamp>,v1=<digest>
//
// The digest is the lower-case hex of HMAC-SHA256 (RFC 2104) over the timestamp exactly as the header has it, a dot and
// the raw bytes of the body. The key is the bytes of the secret as it was shown, prefix included.
//
// A merchant's endpoint wraps its handler once:
//
//	http.Handle("POST /hooks", webhook.Handler(secret, next))
//
// Only the timestamp in the signature header and the body are signed. The other X-Service-* headers help with routing
// and logs; what a receiver acts upon must come from the body, by way of [ParseEvent]. A receiver should remember the
// ids of the events it has handled, because an event may be delivered more than once.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strconv"
	"time"
)

// Headers of a delivery. Their names are compared without regard to case, as HTTP has it.
const (
	// HeaderEvent names the event's type, such as invoice.paid.
	HeaderEvent = "X-Service-Event"
	// HeaderDelivery is the delivery's id, the same at every attempt.
	HeaderDelivery = "X-Service-Delivery"
	// HeaderTimestamp is the time of the attempt in Unix seconds, the t of the signature.
	HeaderTimestamp = "X-Service-Timestamp"
	// HeaderSignature carries the signature of an event sent to a merchant.
	HeaderSignature = "X-Service-Signature"
	// HeaderProviderSignature carries the signature of a notice sent by a transfer provider.
	HeaderProviderSignature = "X-Provider-Signature"
)

// Limits on what a receiver accepts.
const (
	// Tolerance is how far a signature's timestamp may lie from the receiver's clock, in the past or the future.
	// A difference of exactly Tolerance is accepted.
	Tolerance = 300 * time.Second
	// MaxBody is the size in bytes of the largest body that a handler made by this package reads.
	MaxBody = 1 << 20
	// MaxHeader is the length in bytes of the longest signature header that is parsed.
	MaxHeader = 4096
)

// Sign returns the signature header's value for a body sent at time t, which is cut to whole Unix seconds. The body
// must be the bytes that go over the wire. With an empty secret, by which anyone could sign, it returns nothing.
func Sign(secret string, t time.Time, body []byte) string {
	if secret == "" {
		return ""
	}
	timestamp := strconv.FormatInt(t.Unix(), 10)
	return "t=" + timestamp + ",v1=" + digest(secret, timestamp, body)
}

// digest returns the lower-case hex HMAC-SHA256 over timestamp, a dot and body. A hash never fails to write.
func digest(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, timestamp+".")
	_, _ = mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
