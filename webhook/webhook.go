// Package webhook signs and verifies the events that Quittance posts to a merchant's URL, and the notices that a
// transfer provider posts to Quittance. It imports only the standard library.
//
// A signed request has a header with the value
//
//	t=<timestamp>,v1=<digest>
//
// The digest is the lower-case hex of HMAC-SHA256 (RFC 2104) over the timestamp exactly as in the header, a dot and the
// raw bytes of the body. The key is the bytes of the secret as it was shown, including its prefix.
//
// A merchant's endpoint wraps its handler once:
//
//	http.Handle("POST /hooks", webhook.Handler(secret, next))
//
// Only the timestamp in the signature header and the body are signed. The other X-Service-* headers help with routing
// and logs; a receiver must act only on the body, read with [ParseEvent]. A receiver should remember the ids of the
// events it has handled, because an event may be delivered more than once.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strconv"
	"time"
)

// Headers of a delivery. Header names are case-insensitive.
const (
	// HeaderEvent is the event's type, such as invoice.paid.
	HeaderEvent = "X-Service-Event"
	// HeaderDelivery is the delivery's id, the same at every attempt.
	HeaderDelivery = "X-Service-Delivery"
	// HeaderTimestamp is the time of the attempt in Unix seconds, the t of the signature.
	HeaderTimestamp = "X-Service-Timestamp"
	// HeaderSignature is the signature of an event sent to a merchant.
	HeaderSignature = "X-Service-Signature"
	// HeaderProviderSignature is the signature of a notice sent by a transfer provider.
	HeaderProviderSignature = "X-Provider-Signature"
)

// Limits on what a receiver accepts.
const (
	// Tolerance bounds the difference between a signature's timestamp and the receiver's clock.
	// A difference of exactly Tolerance is accepted.
	Tolerance = 300 * time.Second
	// MaxBody bounds the body that a handler of this package reads, in bytes.
	MaxBody = 1 << 20
	// MaxHeader bounds a signature header, in bytes.
	MaxHeader = 4096
)

// Sign returns the signature header's value for a body sent at time t, which is truncated to Unix seconds. The body
// must be the bytes that are sent. With an empty secret it returns "", because anyone could sign with it.
func Sign(secret string, t time.Time, body []byte) string {
	if secret == "" {
		return ""
	}
	timestamp := strconv.FormatInt(t.Unix(), 10)
	return "t=" + timestamp + ",v1=" + digest(secret, timestamp, body)
}

// digest returns the lower-case hex HMAC-SHA256 over timestamp, a dot and body. Writing to a hash never fails.
func digest(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, timestamp+".")
	_, _ = mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
