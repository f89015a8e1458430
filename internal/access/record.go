package access

import (
	"crypto/subtle"
	"time"
)

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
