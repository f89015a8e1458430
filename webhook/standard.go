package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// Headers of Standard Webhooks (standardwebhooks.com, version 1.0.0), which stand beside the service's own. Their
// signature covers the delivery's id as well, and there can be several during the rotation of a secret.
const (
	// HeaderStandardID is the delivery's id, as [HeaderDelivery] is.
	HeaderStandardID = "Webhook-Id"
	// HeaderStandardTimestamp is the time of the attempt in Unix seconds, as [HeaderTimestamp] is.
	HeaderStandardTimestamp = "Webhook-Timestamp"
	// HeaderStandardSignature is a list of signatures with blanks between them.
	HeaderStandardSignature = "Webhook-Signature"
)

// SecretPrefix begins the secrets that the service generates. What follows it is the base64 (RFC 4648, section 4) of
// the key that Standard Webhooks signs with.
const SecretPrefix = "whsec_"

// SignStandard returns the value of [HeaderStandardSignature] for a body sent at time t under a delivery's id, with one
// signature for each secret: "v1," and the base64 of HMAC-SHA256 over id, t and body with dots between them. A secret
// that is not [SecretPrefix] and base64 is the key itself.
func SignStandard(secrets []string, id string, t time.Time, body []byte) string {
	signed := append([]byte(id+"."+strconv.FormatInt(t.Unix(), 10)+"."), body...)
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		mac := hmac.New(sha256.New, standardKey(secret))
		_, _ = mac.Write(signed)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}

func standardKey(secret string) []byte {
	if text, ok := strings.CutPrefix(secret, SecretPrefix); ok {
		if key, err := base64.StdEncoding.DecodeString(text); err == nil {
			return key
		}
	}
	return []byte(secret)
}
