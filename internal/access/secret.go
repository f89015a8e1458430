package access

import (
	"encoding/base64"
	"fmt"
	"io"
)

// SecretPrefix marks a webhook secret for people and secret scanners.
const SecretPrefix = "whsec_"

// SecretSize is the number of random bytes in a secret.
const SecretSize = 32

// NewSecret generates a webhook secret in the format of Standard Webhooks: the prefix, and the bytes in base64.
func NewSecret(random io.Reader) (string, error) {
	var b [SecretSize]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("make a secret: %w", err)
	}
	return SecretPrefix + base64.StdEncoding.EncodeToString(b[:]), nil
}
