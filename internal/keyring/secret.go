package keyring

import (
	"encoding/base64"
	"fmt"
	"io"
)

// SecretPrefix begins a webhook secret, so that people and scanners know one.
const SecretPrefix = "whsec_"

// SecretSize is the number of random bytes in a secret.
const SecretSize = 32

// NewSecret makes a webhook secret from randomness: the prefix, and the bytes
// in base64, as Standard Webhooks has it.
func NewSecret(random io.Reader) (string, error) {
	var b [SecretSize]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("make a secret: %w", err)
	}
	return SecretPrefix + base64.StdEncoding.EncodeToString(b[:]), nil
}
