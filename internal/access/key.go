package access

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
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
