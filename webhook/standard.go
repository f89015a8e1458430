package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// Headers of Standard Webhooks (standardwebhooks.com, version 1.0.0), which are sent in addition to the service's
// headers. Their signature also covers the delivery's id, and there are several signatures during the rotation of a
// secret.
const (
	// HeaderStandardID is the delivery's id, like [HeaderDelivery].
	HeaderStandardID = "Webhook-Id"
	// HeaderStandardTimestamp is the time of the attempt in Unix seconds, like [HeaderTimestamp].
	HeaderStandardTimestamp = "Webhook-Timestamp"
	// HeaderStandardSignature is a list of signatures, separated by spaces.
	HeaderStandardSignature = "Webhook-Signature"
)

// SecretPrefix is the prefix of generated secrets. The rest is the base64 (RFC 4648, section 4) of the key of Standard
// Webhooks.
const SecretPrefix = "whsec_"

// SignStandard returns the value of [HeaderStandardSignature] for a body sent at time t with a delivery's id, with one
// signature for each secret: "v1," and the base64 of HMAC-SHA256 over id, t and body, separated by dots. A secret with
// an empty key is left out, because anyone could sign with it.
func SignStandard(secrets []string, id string, t time.Time, body []byte) string {
	signed := append([]byte(id+"."+strconv.FormatInt(t.Unix(), 10)+"."), body...)
	signatures := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		key := StandardKey(secret)
		if len(key) == 0 {
			continue
		}
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write(signed)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(signatures, " ")
}

// StandardKey returns the key of Standard Webhooks for a secret: the decoded base64 after
// [SecretPrefix]. A secret of another form is the key itself.
func StandardKey(secret string) []byte {
	if text, ok := strings.CutPrefix(secret, SecretPrefix); ok {
		if key, err := base64.StdEncoding.DecodeString(text); err == nil {
			return key
		}
	}
	return []byte(secret)
}
