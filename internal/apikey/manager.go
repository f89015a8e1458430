package apikey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Limits of keys.
const (
	// MaxKeys bounds the active keys of the operator, and of each merchant.
	MaxKeys = 100
	// DefaultOverlap is how long a key stays valid after its rotation by default.
	DefaultOverlap = 24 * time.Hour
	// MaxOverlap bounds that time.
	MaxOverlap = 30 * 24 * time.Hour
)

// Errors of a Manager.
var (
	// ErrTooMany means that the owner has MaxKeys active keys.
	ErrTooMany = fmt.Errorf("there are %d active keys already", MaxKeys)
	// ErrNotActive means that the key was revoked, has expired or was rotated.
	ErrNotActive = errors.New("the key was revoked, has expired or was rotated")
)

// ScopeError means that the principal lacks scopes that the key has or would have.
type ScopeError struct{ Missing access.Scopes }

// Error names the scopes.
func (e *ScopeError) Error() string { return "the caller lacks " + e.Missing.String() }

// MerchantError means that the principal is a merchant and asked for a key of another
// owner.
type MerchantError struct{ MerchantID string }

// Error names the merchant.
func (e *MerchantError) Error() string { return "the caller is the merchant " + e.MerchantID }

// ManagerConfig is the configuration of a Manager. All fields are required.
type ManagerConfig struct {
	Store *db.DB
	Mode  access.Mode
	// Known reports whether a merchant exists.
	Known func(merchantID string) bool
	Now   func() time.Time
	Rand  io.Reader
}

// Manager issues, rotates and revokes keys. Each change and its entry in the audit log
// are one transaction.
type Manager struct {
	cfg ManagerConfig
	ids *invoice.IDs
}

// NewManager returns a manager. It panics if a field is missing.
func NewManager(cfg ManagerConfig) *Manager {
	if cfg.Store == nil || cfg.Mode == "" || cfg.Known == nil || cfg.Now == nil || cfg.Rand == nil {
		panic("apikey: all fields of ManagerConfig are required")
	}
	return &Manager{cfg: cfg, ids: invoice.NewIDs(cfg.Now, cfg.Rand)}
}

// Request describes a new key.
type Request struct {
	Name       string
	MerchantID string // empty for a key of the operator
	Scopes     access.Scopes
	ExpiresAt  time.Time // zero if it does not expire, or when the principal's own key does
	version    access.Version
}

// now returns the time in the precision of the database.
func (m *Manager) now() time.Time { return m.cfg.Now().UTC().Truncate(time.Second) }

// Create creates a key for the principal, which is the only one to see it. A merchant's principal
// creates keys of its merchant. No principal gives scopes that it lacks, or creates a key that
// outlives its own. Errors are *invoice.FieldError, *ScopeError, *MerchantError, ErrTooMany and
// internal errors.
func (m *Manager) Create(ctx context.Context, by access.Principal, r Request) (access.Record, access.Key, error) {
	if by.MerchantID != "" {
		if r.MerchantID != "" && r.MerchantID != by.MerchantID {
			return access.Record{}, access.Key{}, &MerchantError{by.MerchantID}
		}
		r.MerchantID = by.MerchantID
	}
	now := m.now()
	if err := m.check(r, now); err != nil {
		return access.Record{}, access.Key{}, err
	}
	if err := mayMake(by, r.Scopes); err != nil {
		return access.Record{}, access.Key{}, err
	}
	record, key, err := m.newKey(r, now)
	if err != nil {
		return access.Record{}, access.Key{}, err
	}
	err = m.change(ctx, func(tx *db.Tx) (access.Change, error) {
		by, err := m.still(ctx, tx, by, now)
		if err != nil {
			return access.Change{}, err
		}
		if record.ExpiresAt = by.CapExpiry(r.ExpiresAt); !r.ExpiresAt.IsZero() && record.ExpiresAt.Before(r.ExpiresAt) {
			return access.Change{}, &invoice.FieldError{
				Field: "expiresAt", Detail: fmt.Sprintf("must be at most %d, when the key of the request expires", record.ExpiresAt.Unix()),
			}
		}
		if err := m.insert(ctx, tx, record, now); err != nil {
			return access.Change{}, err
		}
		return access.Change{MerchantID: record.MerchantID, Action: access.ActionKeyCreate, Object: record.ID, After: audited(record)}, nil
	})
	if err != nil {
		return access.Record{}, access.Key{}, fmt.Errorf("create key: %w", err)
	}
	return record, key, nil
}

// still returns the principal with the expiry that its stored keys have now. A cache may have admitted
// the principal, or it may have been admitted a while ago. Errors are ErrUnknown, ErrRevoked,
// ErrExpired and internal errors. Keys must be locked.
func (m *Manager) still(ctx context.Context, tx *db.Tx, by access.Principal, now time.Time) (access.Principal, error) {
	for _, id := range by.ParentKeys.With(by.KeyID).All() {
		if IsConfigured(id) {
			continue
		}
		r, err := access.NewReader(tx).Key(ctx, id)
		if errors.Is(err, db.ErrNotFound) {
			err = ErrUnknown
		}
		if err == nil {
			err = refused(r, now)
		}
		if err != nil {
			return access.Principal{}, err
		}
		by.ExpiresAt = r.Principal().CapExpiry(by.ExpiresAt)
	}
	return by, nil
}

// mayMake returns a *ScopeError unless the principal could make a key with the scopes.
func mayMake(by access.Principal, scopes access.Scopes) error {
	if !scopes.Within(by.Scopes) {
		return &ScopeError{scopes &^ by.Scopes}
	}
	return nil
}

// check checks the request.
func (m *Manager) check(r Request, now time.Time) error {
	if err := invoice.CheckLabel("name", r.Name); err != nil {
		return err
	}
	switch {
	case r.MerchantID != "" && (!invoice.ValidMerchantID(r.MerchantID) || !m.cfg.Known(r.MerchantID)):
		return &invoice.FieldError{Field: "merchantId", Detail: "is not known"}
	case r.Scopes == 0:
		return &invoice.FieldError{Field: "scopes", Detail: "must name at least one scope"}
	case !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(now):
		return &invoice.FieldError{Field: "expiresAt", Detail: "must lie in the future"}
	}
	return nil
}

// newKey generates a key and its record.
func (m *Manager) newKey(r Request, now time.Time) (access.Record, access.Key, error) {
	key, err := access.NewKey(m.cfg.Mode, m.cfg.Rand)
	if err != nil {
		return access.Record{}, access.Key{}, err
	}
	return access.Record{
		ID: m.ids.New(access.PrefixKey), Name: r.Name, Hint: key.Hint(), Hash: key.Hash(), MerchantID: r.MerchantID,
		Scopes: r.Scopes, CreatedAt: now, ExpiresAt: r.ExpiresAt, Version: cmp.Or(r.version, access.NewestVersion()),
	}, key, nil
}

// insert stores a new key, unless its owner has MaxKeys active ones.
func (m *Manager) insert(ctx context.Context, tx *db.Tx, r access.Record, now time.Time) error {
	n, err := access.CountActiveKeys(ctx, tx, r.MerchantID, now)
	if err != nil {
		return err
	}
	if n >= MaxKeys {
		return ErrTooMany
	}
	return access.InsertKey(ctx, tx, r)
}

// change runs fn in a transaction in which keys are locked, and appends its change to the audit log.
// If fn returns no action, it has changed no key.
func (m *Manager) change(ctx context.Context, fn func(tx *db.Tx) (access.Change, error)) error {
	return m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		if err := access.LockKeys(ctx, tx); err != nil {
			return err
		}
		c, err := fn(tx)
		if err != nil || c.Action == "" {
			return err
		}
		return access.AppendAudit(ctx, tx, access.NewEntry(ctx, m.cfg.Now(), c))
	})
}

// find returns a key that the principal may see, or db.ErrNotFound.
func find(ctx context.Context, tx *db.Tx, by access.Principal, id string) (access.Record, error) {
	r, err := access.NewReader(tx).Key(ctx, id)
	if err == nil && !by.Sees(r.MerchantID) {
		return access.Record{}, db.ErrNotFound
	}
	return r, err
}

// findActive returns a key that the principal could make, and that is neither ended nor
// rotated.
func findActive(ctx context.Context, tx *db.Tx, by access.Principal, id string, now time.Time) (access.Record, error) {
	r, err := find(ctx, tx, by, id)
	if err == nil {
		err = mayMake(by, r.Scopes)
	}
	if err == nil && (r.State(now) != access.Active || r.ReplacedBy != "") {
		err = ErrNotActive
	}
	return r, err
}

// Rotate creates a key in place of another, which stays valid for the overlap. The new key has the
// same name, owner, scopes and version. If the old one expires, the new one gets the expiry that the
// old one had before, but at most the principal's own. Errors are db.ErrNotFound, *ScopeError,
// *invoice.FieldError, ErrNotActive, ErrTooMany and internal errors.
func (m *Manager) Rotate(ctx context.Context, by access.Principal, id string, overlap time.Duration) (access.Record, access.Key, error) {
	if overlap < 0 || overlap > MaxOverlap {
		return access.Record{}, access.Key{}, &invoice.FieldError{Field: "overlapSeconds", Detail: fmt.Sprintf("must be 0 to %d", int(MaxOverlap.Seconds()))}
	}
	now := m.now()
	var record access.Record
	var key access.Key
	err := m.change(ctx, func(tx *db.Tx) (access.Change, error) {
		by, err := m.still(ctx, tx, by, now)
		if err != nil {
			return access.Change{}, err
		}
		old, err := findActive(ctx, tx, by, id, now)
		if err != nil {
			return access.Change{}, err
		}
		before := audited(old)
		r := Request{Name: old.Name, MerchantID: old.MerchantID, Scopes: old.Scopes, version: old.Version}
		if !old.ExpiresAt.IsZero() {
			r.ExpiresAt = now.Add(old.ExpiresAt.Sub(old.CreatedAt))
		}
		r.ExpiresAt = by.CapExpiry(r.ExpiresAt)
		if record, key, err = m.newKey(r, now); err != nil {
			return access.Change{}, err
		}
		if end := now.Add(overlap); old.ExpiresAt.IsZero() || end.Before(old.ExpiresAt) {
			old.ExpiresAt = end
		}
		if err := access.UpdateKey(ctx, tx, old); err != nil { // before insert counts the active keys
			return access.Change{}, err
		}
		if err := m.insert(ctx, tx, record, now); err != nil {
			return access.Change{}, err
		}
		old.ReplacedBy = record.ID
		return access.Change{MerchantID: old.MerchantID, Action: access.ActionKeyRotate, Object: old.ID, Before: before, After: audited(old)},
			access.UpdateKey(ctx, tx, old)
	})
	if err != nil {
		return access.Record{}, access.Key{}, fmt.Errorf("rotate key: %w", err)
	}
	return record, key, nil
}

// Revoke revokes a key immediately, and returns its record. A revoked key does not change. A principal
// revokes its own key, and keys that it could make, whatever their expiry. Errors are
// db.ErrNotFound, *ScopeError and internal errors.
func (m *Manager) Revoke(ctx context.Context, by access.Principal, id string) (access.Record, error) {
	var record access.Record
	err := m.change(ctx, func(tx *db.Tx) (access.Change, error) {
		found, err := find(ctx, tx, by, id)
		if err == nil && id != by.KeyID {
			err = mayMake(by, found.Scopes)
		}
		if record = found; err != nil || !found.RevokedAt.IsZero() {
			return access.Change{}, err
		}
		record.RevokedAt = m.now()
		return access.Change{MerchantID: found.MerchantID, Action: access.ActionKeyRevoke, Object: found.ID, Before: audited(found), After: audited(record)},
			access.UpdateKey(ctx, tx, record)
	})
	if err != nil {
		return access.Record{}, fmt.Errorf("revoke key: %w", err)
	}
	return record, nil
}

// auditedKey is the audit log's form of a key.
type auditedKey struct {
	Name       string   `json:"name"`
	Hint       string   `json:"hint"`
	MerchantID string   `json:"merchantId,omitempty"`
	Scopes     []string `json:"scopes"`
	ExpiresAt  int64    `json:"expiresAt,omitempty"`
	RevokedAt  int64    `json:"revokedAt,omitempty"`
	ReplacedBy string   `json:"replacedBy,omitempty"`
}

func audited(r access.Record) auditedKey {
	a := auditedKey{Name: r.Name, Hint: r.Hint, MerchantID: r.MerchantID, Scopes: r.Scopes.Names(), ReplacedBy: r.ReplacedBy}
	if !r.ExpiresAt.IsZero() {
		a.ExpiresAt = r.ExpiresAt.Unix()
	}
	if !r.RevokedAt.IsZero() {
		a.RevokedAt = r.RevokedAt.Unix()
	}
	return a
}
