package access

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
)

// Errors of Authenticate, in addition to access.ErrMalformed and access.ErrChecksum. They do not show the key.
var (
	ErrMissing   = errors.New("no key was presented")
	ErrWrongMode = errors.New("is of another kind of service: keys of quittance serve begin with qk_live_, keys of quittance dev with qk_test_")
	ErrUnknown   = errors.New("is not known here: it belongs to another installation, or was never created")
	ErrRevoked   = errors.New("was revoked")
	ErrExpired   = errors.New("has expired")
	// ErrNoMerchant: the key works again when its merchant is back.
	ErrNoMerchant = errors.New("is of a merchant that this service does not have, or that was retired")
)

// prefixConfigured begins the id of the operator's key that the configuration names.
const prefixConfigured = "configured_"

// configuredIDSize is how much of the key's hash its id holds, in bytes.
const configuredIDSize = 16

// ConfiguredKeyID returns the id of the operator's key that the configuration names. That key is not
// stored, so a request cannot rotate or revoke it. Its id contains a part of its hash, so that a
// session or other work begun with an earlier key is not taken for this key's.
func ConfiguredKeyID(key Key) string {
	hash := key.Hash()
	return prefixConfigured + hex.EncodeToString(hash[:configuredIDSize])
}

// IsConfigured reports whether an id belongs to a key that the configuration names or named.
func IsConfigured(keyID string) bool { return strings.HasPrefix(keyID, prefixConfigured) }

// recordInterval is how often uses of keys are stored, and recordTimeout bounds one store.
const recordInterval, recordTimeout = 10 * time.Second, 5 * time.Second

// AuthenticatorConfig is the configuration of an Authenticator. Admit, Known and Configured are optional.
type AuthenticatorConfig struct {
	Store  KeyReader
	Admit  Admit // if nil, every key is read
	Mode   Mode  // of the keys that are accepted
	Open   bool  // requests without a key act for the operator
	Now    func() time.Time
	Logger *slog.Logger
	// Known reports whether the service has a merchant. If it is nil, every merchant exists.
	Known func(merchantID string) bool
	// Configured is the operator's key that the configuration names, or the zero Key.
	Configured Key
}

// Admit is called before a key that was never read is read from the database. An error is returned to
// the caller, and the key is not read. done takes whether the key is wrong.
type Admit func(ctx context.Context, keyHash [HashSize]byte) (done func(wrong bool), err error)

// admitAll is the default of Admit.
func admitAll(context.Context, hash) (done func(bool), err error) { return func(bool) {}, nil }

// KeyReader reads keys and stores their use. access.Tables implement it and document the methods.
type KeyReader interface {
	KeysVersion(ctx context.Context) (int64, error)
	KeyByHash(ctx context.Context, hash [HashSize]byte) (Record, error)
	Key(ctx context.Context, id string) (Record, error)
	RecordKeyUses(ctx context.Context, uses map[string]time.Time) error
}

// Authenticator finds the principal of a caller by its key. It is safe for concurrent use.
type Authenticator struct {
	cfg        AuthenticatorConfig
	configured [HashSize]byte // zero without such a key; no hash is zero
	operator   Principal      // of the configured key, or zero without one
	cache      *cache
	uses       uses
}

// NewAuthenticator returns an authenticator. It panics if a required field is missing.
func NewAuthenticator(cfg AuthenticatorConfig) *Authenticator {
	if cfg.Store == nil || cfg.Mode == "" || cfg.Now == nil || cfg.Logger == nil {
		panic("access: Store, Mode, Now and Logger are required")
	}
	if cfg.Admit == nil {
		cfg.Admit = admitAll
	}
	a := &Authenticator{cfg: cfg, cache: newCache(cfg.Store, cfg.Admit, cfg.Now)}
	if cfg.Configured != (Key{}) {
		a.configured = cfg.Configured.Hash()
		a.operator = Principal{KeyID: ConfiguredKeyID(cfg.Configured), Scopes: Admin}
	}
	return a
}

// Authenticate returns the principal of a key's text, or of no key if the text is empty. Errors are errors of this
// package, access.ErrMalformed, access.ErrChecksum, the error of Admit, and internal errors.
//
// A revoked key is refused within a second after the revocation, on all replicas.
func (a *Authenticator) Authenticate(ctx context.Context, text string) (Principal, error) {
	if text == "" {
		if a.cfg.Open {
			return Open(), nil
		}
		return Principal{}, ErrMissing
	}
	key, err := ParseKey(text)
	if err != nil {
		return Principal{}, err
	}
	if key.Mode() != a.cfg.Mode {
		return Principal{}, ErrWrongMode
	}
	hash := key.Hash()
	if subtle.ConstantTimeCompare(hash[:], a.configured[:]) == 1 {
		return a.operator, nil
	}
	found, err := a.cache.lookup(ctx, hash)
	switch {
	case errors.Is(err, db.ErrNotFound), err == nil && !found.Fits(hash):
		return Principal{}, ErrUnknown
	case err != nil:
		return Principal{}, err
	}
	now := a.cfg.Now()
	if err := a.refused(found.Record, now); err != nil {
		return Principal{}, err
	}
	a.uses.note(found, now)
	return found.Principal(), nil
}

// PrincipalOf returns the current principal of a key by its id, or of no key if that is empty. Errors
// are ErrMissing, ErrUnknown, ErrRevoked, ErrExpired, ErrNoMerchant and internal errors.
func (a *Authenticator) PrincipalOf(ctx context.Context, keyID string) (Principal, error) {
	switch {
	case keyID == "" && a.cfg.Open:
		return Open(), nil
	case keyID == "":
		return Principal{}, ErrMissing
	case keyID == a.operator.KeyID:
		return a.operator, nil
	}
	found, err := a.cfg.Store.Key(ctx, keyID)
	if errors.Is(err, db.ErrNotFound) {
		err = ErrUnknown
	}
	if err == nil {
		err = a.refused(found, a.cfg.Now())
	}
	if err != nil {
		return Principal{}, err
	}
	return found.Principal(), nil
}

// refused returns the error of a key that is not active or belongs to an unknown merchant, or nil.
func (a *Authenticator) refused(r Record, now time.Time) error {
	if err := refused(r, now); err != nil {
		return err
	}
	if r.MerchantID != "" && a.cfg.Known != nil && !a.cfg.Known(r.MerchantID) {
		return ErrNoMerchant
	}
	return nil
}

// refused returns the error of a key that is not active, or nil.
func refused(r Record, now time.Time) error {
	switch r.State(now) {
	case Revoked:
		return ErrRevoked
	case Expired:
		return ErrExpired
	case Active:
	}
	return nil
}

// Run stores the uses of keys until ctx ends, and then the rest. A write that is in progress when ctx ends is finished.
func (a *Authenticator) Run(ctx context.Context) {
	unstopped := context.WithoutCancel(ctx)
	for clock.Sleep(ctx, recordInterval, nil) {
		a.RecordUses(unstopped)
	}
	a.RecordUses(unstopped)
}

// RecordUses stores the uses of keys since the last call. If that fails, it logs an error and drops
// these uses, because only the last use of a key matters.
func (a *Authenticator) RecordUses(ctx context.Context) {
	used := a.uses.take()
	if len(used) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	if err := a.cfg.Store.RecordKeyUses(ctx, used); err != nil {
		a.cfg.Logger.WarnContext(ctx, "record of the last use of keys failed", "err", err)
	}
}

// noteInterval is the shortest interval at which uses of one key are recorded.
const noteInterval = time.Minute

// uses are the last uses of keys that are not stored yet.
type uses struct {
	mu sync.Mutex
	at map[string]time.Time // by the key's id
}

// note records the use of a key, unless one was recorded within noteInterval.
func (u *uses) note(k *cachedKey, now time.Time) {
	last := k.noted.Load()
	if now.Unix()-last < int64(noteInterval/time.Second) || !k.noted.CompareAndSwap(last, now.Unix()) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.at == nil {
		u.at = make(map[string]time.Time)
	}
	if len(u.at) < MaxCached {
		u.at[k.ID] = now
	}
}

// take returns the uses that were recorded since the last call.
func (u *uses) take() map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	at := u.at
	u.at = nil
	return at
}

// IsRefusal reports whether an error of Authenticate means that the presented key is wrong.
func IsRefusal(err error) bool {
	for _, refusal := range []error{ErrMalformed, ErrChecksum, ErrWrongMode, ErrUnknown, ErrRevoked, ErrExpired, ErrNoMerchant} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}
