package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Key is the secret that a caller of the API presents: a prefix, and 40 characters of
// lower-case Crockford base32 that encode 168 random bits and a CRC-32 (IEEE) of the
// prefix and these bits. The checksum distinguishes a typing error from an unknown key.
//
// String returns the hint, so that a key is not printed or logged by mistake.
type Key struct {
	mode   Mode
	random [randomSize]byte
}

// Mode is the kind of service that accepts a key.
type Mode string

// Modes of keys.
const (
	Live Mode = "live" // accepted by quittance serve
	Test Mode = "test" // accepted by quittance dev
)

// Sizes of a key's parts.
const (
	randomSize   = 21 // bytes
	checksumSize = 4  // bytes
	bodyLength   = (randomSize + checksumSize) * 8 / 5
	hintLength   = 6
)

// KeyLength is the length of a key, in bytes.
const KeyLength = len("qk_live_") + bodyLength

// HashSize is the size of a key's hash, in bytes.
const HashSize = sha256.Size

// PrefixKey begins the id of a key. The id is no secret.
const PrefixKey = "key_"

var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// Errors of ParseKey. They do not show the key.
var (
	// ErrMalformed means that a text does not have the form of a key.
	ErrMalformed = errors.New("does not have the form of a key: qk_live_ or qk_test_, and 40 characters")
	// ErrChecksum means that a text has the form of a key, but its checksum is wrong.
	ErrChecksum = errors.New("has a wrong checksum: at least one character was changed")
)

// NewKey generates a key.
func NewKey(mode Mode, random io.Reader) (Key, error) {
	k := Key{mode: mode}
	if _, err := io.ReadFull(random, k.random[:]); err != nil {
		return Key{}, fmt.Errorf("make a key: %w", err)
	}
	return k, nil
}

// ParseKey parses the text of a key. The error is ErrMalformed or ErrChecksum.
func ParseKey(text string) (Key, error) {
	var k Key
	for _, mode := range []Mode{Live, Test} {
		if strings.HasPrefix(text, mode.prefix()) {
			k.mode = mode
		}
	}
	if k.mode == "" || len(text) != KeyLength {
		return Key{}, ErrMalformed
	}
	raw, err := crockford.DecodeString(text[len(k.mode.prefix()):])
	if err != nil || len(raw) != randomSize+checksumSize { // the decoder skips line breaks
		return Key{}, ErrMalformed
	}
	copy(k.random[:], raw)
	if binary.BigEndian.Uint32(raw[randomSize:]) != k.checksum() {
		return Key{}, ErrChecksum
	}
	return k, nil
}

// prefix begins the text of a key.
func (m Mode) prefix() string { return "qk_" + string(m) + "_" }

// checksum returns the CRC-32 of the prefix and the random part.
func (k Key) checksum() uint32 {
	return crc32.ChecksumIEEE(append([]byte(k.mode.prefix()), k.random[:]...))
}

// Mode returns the kind of service that accepts the key.
func (k Key) Mode() Mode { return k.mode }

// Reveal returns the text of the key.
func (k Key) Reveal() string {
	raw := binary.BigEndian.AppendUint32(append([]byte(nil), k.random[:]...), k.checksum())
	return k.mode.prefix() + crockford.EncodeToString(raw)
}

// Hash returns the SHA-256 of the key's text. Only the hash is stored.
func (k Key) Hash() [HashSize]byte {
	var text [KeyLength]byte
	n := copy(text[:], k.mode.prefix())
	var raw [randomSize + checksumSize]byte
	copy(raw[:], k.random[:])
	binary.BigEndian.PutUint32(raw[randomSize:], k.checksum())
	crockford.Encode(text[n:], raw[:])
	return sha256.Sum256(text[:])
}

// Hint returns the beginning of the key, by which its holder recognises it.
func (k Key) Hint() string { return k.Reveal()[:len(k.mode.prefix())+hintLength] }

// String implements fmt.Stringer with the hint.
func (k Key) String() string { return k.Hint() + "…" }

// GoString implements fmt.GoStringer with the hint.
func (k Key) GoString() string { return k.String() }

// Record is the stored record of a key.
type Record struct {
	ID   string // PrefixKey and 26 characters
	Name string // the owner's name for it
	Hint string
	Hash [HashSize]byte
	// MerchantID is the merchant that it belongs to, or empty for the operator.
	MerchantID string
	Scopes     Scopes
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero if it does not expire
	RevokedAt  time.Time // zero if it was not revoked
	LastUsedAt time.Time // zero if it was not used; up to a minute late
	ReplacedBy string    // the key that a rotation made in its place, or empty
	PersonID   string    // of the person whose membership it is: then nobody knows its secret; or empty
	Version    Version   // version of the interface for its requests
}

// State is whether a key is accepted, or why not.
type State string

// States of keys.
const (
	Active  State = "active"
	Expired State = "expired"
	Revoked State = "revoked"
)

// State returns the state of the key at a time.
func (r Record) State(now time.Time) State {
	switch {
	case !r.RevokedAt.IsZero():
		return Revoked
	case !r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt):
		return Expired
	}
	return Active
}

// Fits reports whether the hash is the key's, in constant time.
func (r Record) Fits(hash [HashSize]byte) bool {
	return subtle.ConstantTimeCompare(r.Hash[:], hash[:]) == 1
}

// Principal returns the principal of a request with the key.
func (r Record) Principal() Principal {
	return Principal{KeyID: r.ID, Name: r.Name, MerchantID: r.MerchantID, Scopes: r.Scopes, ExpiresAt: r.ExpiresAt, Version: r.Version, PersonID: r.PersonID}
}

// keyText matches the beginning of a key and the characters after it, so that a mistyped key is found too.
var keyText = regexp.MustCompile(`(?i)qk(_|%5f)(live|test)(_|%5f)[0-9a-z]+`)

// ContainsKey reports whether a text holds a key, or something that looks like one.
func ContainsKey(text string) bool {
	return strings.ContainsAny(text, "qQ") && keyText.MatchString(text) // a quick check, because most texts contain no key
}

// Redact replaces all keys in a text that is to be logged.
func Redact(text string) string {
	if len(text) < len("qk_live_") {
		return text
	}
	return keyText.ReplaceAllString(text, "qk_REDACTED")
}

// WithoutQuery returns a URL with its query, which may hold a secret, replaced by "…".
func WithoutQuery(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.RawQuery == "" {
		return target
	}
	u.RawQuery = ""
	return u.String() + "?…"
}

// RedactError returns err with all keys in its text replaced. It wraps err.
func RedactError(err error) error {
	if text := err.Error(); ContainsKey(text) {
		return redactedError{err, Redact(text)}
	}
	return err
}

// redactedError is an error with another text.
type redactedError struct {
	error
	text string
}

// Error returns the text without keys.
func (e redactedError) Error() string { return e.text }

// Unwrap returns the error with the whole text.
func (e redactedError) Unwrap() error { return e.error }
