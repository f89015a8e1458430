package access

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Principal is the party on behalf of which a request acts: the operator or one merchant, with the
// scopes of the presented key. The zero value has no rights.
type Principal struct {
	// KeyID is the id of the key, or empty without a key.
	KeyID string
	// Name is the name of the key, or empty.
	Name string
	// MerchantID is the merchant that the key belongs to, or empty for the operator.
	MerchantID string
	Scopes     Scopes
	// ExpiresAt is when the key, or the first of the keys in ParentKeys, expires, or zero if they never do.
	ExpiresAt time.Time
	// ParentKeys are the other keys on which the principal depends, such as a key that made a link by
	// which the holder of KeyID signed in.
	ParentKeys KeyIDs
	// PersonID is the person whose membership the key is, or empty.
	PersonID string
	// Version is the version of the interface that the key is pinned to, or empty.
	Version Version
}

// Open returns the principal of requests without a key, if those are allowed: the operator with all scopes.
func Open() Principal { return Principal{Scopes: Admin} }

// Label returns the name of the principal in records for people: the key's name, its id, or open.
func (p Principal) Label() string { return cmp.Or(p.Name, p.KeyID, ActorOpen) }

// Holder returns who acts: the id of the person, or the ids of the key and of the keys on which the principal depends.
func (p Principal) Holder() string { return cmp.Or(p.PersonID, string(p.ParentKeys.With(p.KeyID))) }

// IsOperator reports whether the principal is the operator.
func (p Principal) IsOperator() bool { return p.MerchantID == "" && p.Scopes != 0 }

// Can reports whether the principal has a scope.
func (p Principal) Can(s Scope) bool { return p.Scopes.Has(s) }

// Sees reports whether the principal may see objects of a merchant, subject to its scopes. The
// operator sees all, including objects without a merchant.
func (p Principal) Sees(merchantID string) bool {
	return p.Scopes != 0 && (p.MerchantID == "" || p.MerchantID == merchantID)
}

// CapExpiry returns the expiry of a new key: the earlier of the requested time, zero for never, and
// the principal's own expiry. So an expiring key cannot create a key that outlives it.
func (p Principal) CapExpiry(at time.Time) time.Time {
	if !p.ExpiresAt.IsZero() && (at.IsZero() || p.ExpiresAt.Before(at)) {
		return p.ExpiresAt
	}
	return at
}

// KeyIDs is a set of ids of keys, separated by spaces.
type KeyIDs string

// MaxParentKeys bounds the parent keys of a principal.
const MaxParentKeys = 8

// All returns the ids.
func (ids KeyIDs) All() []string { return strings.Fields(string(ids)) }

// With returns the set with another id.
func (ids KeyIDs) With(id string) KeyIDs {
	all := ids.All()
	if id != "" && !slices.Contains(all, id) {
		all = append(all, id)
	}
	return KeyIDs(strings.Join(all, " "))
}

// IsLetInBy reports whether the principal acts by a key, as its own or a parent key.
func (p Principal) IsLetInBy(keyID string) bool {
	return keyID != "" && (keyID == p.KeyID || slices.Contains(p.ParentKeys.All(), keyID))
}

type contextKey struct{}

// WithPrincipal returns a context that carries p.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// FromContext returns the principal that ctx carries, or the zero value.
func FromContext(ctx context.Context) Principal {
	p, _ := ctx.Value(contextKey{}).(Principal)
	return p
}

type recheckKey struct{}

// WithRecheck returns a context of a request that was authorized by something other than a key.
// recheck returns an error once that ends.
func WithRecheck(ctx context.Context, recheck func(ctx context.Context) error) context.Context {
	return context.WithValue(ctx, recheckKey{}, recheck)
}

// RecheckFrom returns the function that ctx carries, or nil.
func RecheckFrom(ctx context.Context) func(ctx context.Context) error {
	recheck, _ := ctx.Value(recheckKey{}).(func(ctx context.Context) error)
	return recheck
}

// Version is a version of the interface: the date since which it exists.
type Version string

// Version1 is the first version.
const Version1 Version = "2026-11-22"

// Versions are the versions that the service speaks, the oldest first. docs/versioning.md describes them.
var Versions = []Version{Version1}

// NewestVersion returns the version of new keys, and of requests with a key that has no version.
func NewestVersion() Version { return Versions[len(Versions)-1] }

// Known reports whether the service speaks the version.
func (v Version) Known() bool { return slices.Contains(Versions, v) }
