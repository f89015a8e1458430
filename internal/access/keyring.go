package access

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
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
	// ErrNoKey means that the keyring lacks the master key of the secret.
	ErrNoKey = errors.New("the master key that this was sealed under is not configured")
	// ErrBroken means that the sealed secret was changed, or belongs to another merchant or version.
	ErrBroken = errors.New("this was not sealed for this merchant and version, or was changed since")
)

// MasterKey is a master key.
type MasterKey struct {
	// ID identifies the key without revealing it.
	ID     string
	aead   cipher.AEAD
	signer ed25519.PrivateKey // made of the key
	tokens []byte             // key of HMAC-SHA256, made of the key
}

// NewMasterKey generates a master key and returns its text.
func NewMasterKey(random io.Reader) (string, error) {
	var b [KeySize]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("make a master key: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// ParseMasterKey reads a master key, 64 hex digits. The error does not show it.
func ParseMasterKey(text string) (MasterKey, error) {
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != KeySize {
		return MasterKey{}, fmt.Errorf("is no master key; want %d hex digits, such as openssl rand -hex %d prints", 2*KeySize, KeySize)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return MasterKey{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return MasterKey{}, err
	}
	sum := sha256.Sum256(append([]byte("quittance master key\x00"), raw...))
	const idSize = 8
	seed, err := hkdf.Key(sha256.New, raw, nil, "quittance signature", ed25519.SeedSize)
	if err != nil {
		return MasterKey{}, err
	}
	tokens, err := hkdf.Key(sha256.New, raw, nil, "quittance tokens", sha256.Size)
	if err != nil {
		return MasterKey{}, err
	}
	return MasterKey{ID: hex.EncodeToString(sum[:idSize]), aead: aead, signer: ed25519.NewKeyFromSeed(seed), tokens: tokens}, nil
}

// minDistinct is the least number of different bytes, and of different steps from
// byte to byte, in a master key. One random key in 10^14 has fewer.
const minDistinct = 16

// CheckRandom refuses the text of a master key that is not random, such as zeros, a
// repeated word or a sequence. The error does not show it.
func CheckRandom(text string) error {
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return nil //nolint:nilerr // ParseKey reports it
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

// Keyring seals under its newest master key, and opens secrets sealed under any of its keys.
type Keyring struct {
	newest MasterKey
	keys   map[string]MasterKey
}

// NewKeyring returns a keyring with the newest key and the keys that it replaced.
func NewKeyring(newest MasterKey, older ...MasterKey) *Keyring {
	k := &Keyring{newest: newest, keys: map[string]MasterKey{newest.ID: newest}}
	for _, old := range older {
		k.keys[old.ID] = old
	}
	return k
}

// Sealed is an encrypted and authenticated secret.
type Sealed struct {
	KeyID string // of the master key
	Data  []byte // the nonce and the ciphertext
}

// Tokens returns 32 bytes for a purpose that cannot be guessed without the master key: first the bytes
// of the newest key, then of the older ones.
func (k *Keyring) Tokens(purpose string) [][]byte {
	all := make([][]byte, 0, len(k.keys))
	add := func(key MasterKey) {
		mac := hmac.New(sha256.New, key.tokens)
		mac.Write([]byte(purpose))
		all = append(all, mac.Sum(nil))
	}
	add(k.newest)
	for id, key := range k.keys {
		if id != k.newest.ID {
			add(key)
		}
	}
	return all
}

// Sign returns the signature of a text under the newest key, and the public key that verifies it (Ed25519, RFC 8032).
func (k *Keyring) Sign(text []byte) (public ed25519.PublicKey, signature []byte) {
	return k.newest.signer.Public().(ed25519.PublicKey), ed25519.Sign(k.newest.signer, text)
}

// Verify returns ErrNoKey unless the public key is of one of the keys, and ErrBroken unless it verifies the signature.
func (k *Keyring) Verify(public ed25519.PublicKey, text, signature []byte) error {
	for _, key := range k.keys {
		if public.Equal(key.signer.Public()) {
			if !ed25519.Verify(public, text, signature) {
				return ErrBroken
			}
			return nil
		}
	}
	return ErrNoKey
}

// KeyID returns the id of the newest key.
func (k *Keyring) KeyID() string { return k.newest.ID }

// Has reports whether the keyring has the key with the id.
func (k *Keyring) Has(keyID string) bool {
	_, ok := k.keys[keyID]
	return ok
}

// Seal encrypts a version of a merchant's secret.
func (k *Keyring) Seal(merchantID string, version int64, secret string) Sealed {
	sealed := k.newest.aead.Seal(nil, nil, []byte(secret), associatedData(merchantID, version)) //nolint:gosec // this AEAD generates its nonces
	return Sealed{KeyID: k.newest.ID, Data: sealed}
}

// Open decrypts a version of a merchant's secret. It returns ErrNoKey, with the key's id, or ErrBroken on failure.
func (k *Keyring) Open(merchantID string, version int64, s Sealed) (string, error) {
	key, ok := k.keys[s.KeyID]
	if !ok {
		return "", fmt.Errorf("%w; its id is %.64q", ErrNoKey, s.KeyID)
	}
	secret, err := key.aead.Open(nil, nil, s.Data, associatedData(merchantID, version))
	if err != nil {
		return "", ErrBroken
	}
	return string(secret), nil
}

// associatedData returns the associated data of a secret. It is unique, because a merchant's id contains no zero byte.
func associatedData(merchantID string, version int64) []byte {
	return []byte(merchantID + "\x00" + strconv.FormatInt(version, 10))
}

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
