package apikey

import (
	"crypto/subtle"
	"errors"

	"github.com/quittance/quittance/internal/access"
)

// IsRefusal reports whether an error of Authenticate says that the presented key is
// wrong.
func IsRefusal(err error) bool {
	for _, refusal := range []error{access.ErrMalformed, access.ErrChecksum, ErrWrongMode, ErrUnknown, ErrRevoked, ErrExpired} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// Holds reports whether a key's text is that of the configured key, or of a key that was
// read before and may have changed since.
func (a *Authenticator) Holds(text string) bool {
	key, err := access.ParseKey(text)
	if err != nil {
		return false
	}
	hash := key.Hash()
	return subtle.ConstantTimeCompare(hash[:], a.configured[:]) == 1 || a.cache.holds(hash)
}

// holds reports whether the key with a hash was read before.
func (c *cache) holds(h hash) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, held := c.held[h]
	return held
}
