// Package keyring makes the secrets of webhooks, and seals them for storage under
// a master key that the database does not hold.
//
// Sealing is AES-256-GCM (NIST SP 800-38D) with a random nonce. The merchant
// and the version of a secret are its associated data: a sealed secret that is
// moved to another row does not open there.
package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// KeySize is the size of a master key, in bytes.
const KeySize = 32

// Errors of Open.
var (
	// ErrNoKey: the secret was sealed under a master key that the keyring does
	// not have.
	ErrNoKey = errors.New("the master key that this was sealed under is not configured")
	// ErrBroken: what was sealed was changed, or belongs to another merchant or
	// version.
	ErrBroken = errors.New("this was not sealed for this merchant and version, or was changed since")
)

// Key is a master key.
type Key struct {
	// ID tells the key without telling anything about it.
	ID   string
	aead cipher.AEAD
}

// NewKey makes the text of a master key from randomness.
func NewKey(random io.Reader) (string, error) {
	var b [KeySize]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("make a master key: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// ParseKey reads a master key, 64 hex digits. The error does not show it.
func ParseKey(text string) (Key, error) {
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != KeySize {
		return Key{}, fmt.Errorf("is no master key; want %d hex digits, such as openssl rand -hex %d prints", 2*KeySize, KeySize)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return Key{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return Key{}, err
	}
	sum := sha256.Sum256(append([]byte("quittance master key\x00"), raw...))
	const idSize = 8
	return Key{ID: hex.EncodeToString(sum[:idSize]), aead: aead}, nil
}

// minDistinct is how many different bytes, and how many different steps from one
// byte to the next, a master key has at least. Of random keys, one in 10^14 has
// fewer than 16.
const minDistinct = 16

// CheckRandom refuses the text of a master key that nobody drew at random, such
// as zeros, a repeated word or a sequence. The error does not show it.
func CheckRandom(text string) error {
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return nil //nolint:nilerr // ParseKey refuses it
	}
	values, steps := make(map[byte]bool), make(map[byte]bool)
	for i, b := range raw {
		values[b] = true
		if i > 0 {
			steps[b-raw[i-1]] = true
		}
	}
	if len(values) < minDistinct || len(steps) < minDistinct {
		return fmt.Errorf("is too regular to be random; make another with openssl rand -hex %d", KeySize)
	}
	return nil
}

// Keyring seals under its newest master key, and opens what was sealed under any
// that it has.
type Keyring struct {
	newest Key
	keys   map[string]Key
}

// New returns a keyring. The older keys are those that the newest has replaced.
func New(newest Key, older ...Key) *Keyring {
	v := &Keyring{newest: newest, keys: map[string]Key{newest.ID: newest}}
	for _, k := range older {
		v.keys[k.ID] = k
	}
	return v
}

// Sealed is a secret that is encrypted and authenticated.
type Sealed struct {
	KeyID string // of the master key
	Data  []byte // the nonce and the ciphertext
}

// KeyID returns the id of the key that the keyring seals under.
func (v *Keyring) KeyID() string { return v.newest.ID }

// Has reports whether the keyring has the key with that id.
func (v *Keyring) Has(keyID string) bool {
	_, ok := v.keys[keyID]
	return ok
}

// Seal encrypts a version of a merchant's secret.
func (v *Keyring) Seal(merchantID string, version int64, secret string) Sealed {
	sealed := v.newest.aead.Seal(nil, nil, []byte(secret), purpose(merchantID, version)) //nolint:gosec // this AEAD makes its nonces itself
	return Sealed{KeyID: v.newest.ID, Data: sealed}
}

// Open decrypts a version of a merchant's secret. Errors are ErrNoKey, with the
// id of the key, and ErrBroken.
func (v *Keyring) Open(merchantID string, version int64, s Sealed) (string, error) {
	key, ok := v.keys[s.KeyID]
	if !ok {
		return "", fmt.Errorf("%w; its id is %.64q", ErrNoKey, s.KeyID)
	}
	secret, err := key.aead.Open(nil, nil, s.Data, purpose(merchantID, version))
	if err != nil {
		return "", ErrBroken
	}
	return string(secret), nil
}

// purpose is the associated data of a secret. A merchant's id holds no zero
// byte, so no two have the same.
func purpose(merchantID string, version int64) []byte {
	return []byte(merchantID + "\x00" + strconv.FormatInt(version, 10))
}
