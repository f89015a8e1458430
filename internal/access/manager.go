package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

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
type ScopeError struct{ Missing Scopes }

// Error names the scopes.
func (e *ScopeError) Error() string { return "the caller lacks " + e.Missing.String() }

// MerchantError means that the principal is a merchant and asked for a key of another owner.
type MerchantError struct{ MerchantID string }

// Error names the merchant.
func (e *MerchantError) Error() string { return "the caller is the merchant " + e.MerchantID }

// KeyManagerConfig is the configuration of a Manager. All fields are required.
type KeyManagerConfig struct {
	Store *db.DB
	Mode  Mode
	// Known reports whether a merchant exists.
	Known func(merchantID string) bool
	Now   func() time.Time
	Rand  io.Reader
}

// KeyManager issues, rotates and revokes keys. Each change and its entry in the audit log are one transaction.
type KeyManager struct {
	cfg KeyManagerConfig
	ids *invoice.IDs
}

// NewKeyManager returns a manager. It panics if a field is missing.
func NewKeyManager(cfg KeyManagerConfig) *KeyManager {
	if cfg.Store == nil || cfg.Mode == "" || cfg.Known == nil || cfg.Now == nil || cfg.Rand == nil {
		panic("access: all fields of ManagerConfig are required")
	}
	return &KeyManager{cfg: cfg, ids: invoice.NewIDs(cfg.Now, cfg.Rand)}
}

// KeyRequest describes a new key.
type KeyRequest struct {
	Name       string
	MerchantID string // empty for a key of the operator
	Scopes     Scopes
	ExpiresAt  time.Time // zero if it does not expire, or when the principal's own key does
	version    Version
}

// now returns the time in the precision of the database.
func (m *KeyManager) now() time.Time { return m.cfg.Now().UTC().Truncate(time.Second) }

// Create creates a key for the principal, which is the only one to see it. A merchant's principal creates keys of its
// merchant. No principal gives scopes that it lacks, or creates a key that outlives its own. Errors are
// *invoice.FieldError, *ScopeError, *MerchantError, ErrTooMany, *ApprovalRequiredError and internal errors.
func (m *KeyManager) Create(ctx context.Context, by Principal, r KeyRequest) (Record, Key, error) {
	if by.MerchantID != "" {
		if r.MerchantID != "" && r.MerchantID != by.MerchantID {
			return Record{}, Key{}, &MerchantError{by.MerchantID}
		}
		r.MerchantID = by.MerchantID
	}
	now := m.now()
	if err := m.check(r, now); err != nil {
		return Record{}, Key{}, err
	}
	if err := mayMake(by, r.Scopes); err != nil {
		return Record{}, Key{}, err
	}
	record, key, err := m.newKey(r, now)
	if err != nil {
		return Record{}, Key{}, err
	}
	err = m.change(ctx, func(tx *db.Tx) (Change, error) {
		by, err := still(ctx, tx, by, now)
		if err != nil {
			return Change{}, err
		}
		if record.ExpiresAt = by.CapExpiry(r.ExpiresAt); !r.ExpiresAt.IsZero() && record.ExpiresAt.Before(r.ExpiresAt) {
			return Change{}, &invoice.FieldError{
				Field: "expiresAt", Detail: fmt.Sprintf("must be at most %d, when the key of the request expires", record.ExpiresAt.Unix()),
			}
		}
		if err := wantKeyApproval(ctx, tx, by, r, member{}, now); err != nil {
			return Change{}, err
		}
		if err := insertKeyWithin(ctx, tx, record, now); err != nil {
			return Change{}, err
		}
		return Change{MerchantID: record.MerchantID, Action: ActionKeyCreate, Object: record.ID, After: audited(record)}, nil
	})
	if err != nil {
		return Record{}, Key{}, fmt.Errorf("create key: %w", err)
	}
	return record, key, nil
}

// wantKeyApproval uses up the approval of a new key, or returns an *ApprovalRequiredError. subject has the key that it
// replaces, if any. The approval counts only for the principal that asked, because the caller receives the key's
// secret. A key that is replaced by its own request needs none, because its holder stays the same. A session by the link
// of another key is not the holder's.
func wantKeyApproval(ctx context.Context, tx *db.Tx, by Principal, r KeyRequest, subject member, now time.Time) error {
	if subject.Replaces != "" && subject.Replaces == by.KeyID && by.ParentKeys == "" {
		return nil
	}
	subject.Name, subject.Scopes, subject.For = r.Name, r.Scopes.String(), by.Holder()
	if !r.ExpiresAt.IsZero() {
		subject.ExpiresAt = r.ExpiresAt.Unix()
	}
	used, err := WantApproval(ctx, tx, now, GuardedAction{By: by, Kind: OfKey, Subject: subject, Scopes: r.Scopes})
	if err != nil {
		return err
	}
	return AppendAudit(ctx, tx, used...)
}

// still returns the principal with the expiry that its stored keys have now. A cache may have admitted
// the principal, or it may have been admitted a while ago. Errors are ErrUnknown, ErrRevoked,
// ErrExpired and internal errors. Keys must be locked.
func still(ctx context.Context, tx *db.Tx, by Principal, now time.Time) (Principal, error) {
	for _, id := range by.ParentKeys.With(by.KeyID).All() {
		if IsConfigured(id) {
			continue
		}
		r, err := NewReader(tx).Key(ctx, id)
		if errors.Is(err, db.ErrNotFound) {
			err = ErrUnknown
		}
		if err == nil {
			err = refused(r, now)
		}
		if err != nil {
			return Principal{}, err
		}
		by.ExpiresAt = r.Principal().CapExpiry(by.ExpiresAt)
	}
	return by, nil
}

// mayMake returns a *ScopeError unless the principal could make a key with the scopes.
func mayMake(by Principal, scopes Scopes) error {
	if !scopes.Within(by.Scopes) {
		return &ScopeError{scopes &^ by.Scopes}
	}
	return nil
}

// check checks the request.
func (m *KeyManager) check(r KeyRequest, now time.Time) error {
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
func (m *KeyManager) newKey(r KeyRequest, now time.Time) (Record, Key, error) {
	key, err := NewKey(m.cfg.Mode, m.cfg.Rand)
	if err != nil {
		return Record{}, Key{}, err
	}
	return Record{
		ID: m.ids.New(PrefixKey), Name: r.Name, Hint: key.Hint(), Hash: key.Hash(), MerchantID: r.MerchantID,
		Scopes: r.Scopes, CreatedAt: now, ExpiresAt: r.ExpiresAt, Version: cmp.Or(r.version, NewestVersion()),
	}, key, nil
}

// insertKeyWithin stores a new key, unless its owner has MaxKeys active ones. Keys must be locked.
func insertKeyWithin(ctx context.Context, tx *db.Tx, r Record, now time.Time) error {
	n, err := countActiveKeys(ctx, tx, r.MerchantID, now)
	if err != nil {
		return err
	}
	if n >= MaxKeys {
		return ErrTooMany
	}
	return InsertKey(ctx, tx, r)
}

// change runs fn in a transaction in which keys are locked, and appends its change to the audit log.
// If fn returns no action, it has changed no key.
func (m *KeyManager) change(ctx context.Context, fn func(tx *db.Tx) (Change, error)) error {
	return m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		if err := LockKeys(ctx, tx); err != nil {
			return err
		}
		c, err := fn(tx)
		if err != nil || c.Action == "" {
			return err
		}
		return AppendAudit(ctx, tx, NewEntry(ctx, m.cfg.Now(), c))
	})
}

// find returns a key that the principal may see, or db.ErrNotFound.
func find(ctx context.Context, tx *db.Tx, by Principal, id string) (Record, error) {
	r, err := NewReader(tx).Key(ctx, id)
	if err == nil && !by.Sees(r.MerchantID) {
		return Record{}, db.ErrNotFound
	}
	return r, err
}

// findActive returns a key that the principal could make, and that is neither ended nor rotated nor a person's.
func findActive(ctx context.Context, tx *db.Tx, by Principal, id string, now time.Time) (Record, error) {
	r, err := find(ctx, tx, by, id)
	if err == nil {
		err = mayMake(by, r.Scopes)
	}
	if err == nil && (r.State(now) != Active || r.ReplacedBy != "") {
		err = ErrNotActive
	}
	if err == nil && r.PersonID != "" {
		err = ErrPersonal
	}
	return r, err
}

// Rotate creates a key in place of another, which stays valid for the overlap. The new key has the same name, owner,
// scopes and version. If the old one expires, the new one gets the expiry that the old one had before, but at most the
// principal's own. Errors are db.ErrNotFound, *ScopeError, *invoice.FieldError, ErrNotActive, ErrPersonal, ErrTooMany,
// *ApprovalRequiredError if another key rotates it, and internal errors.
func (m *KeyManager) Rotate(ctx context.Context, by Principal, id string, overlap time.Duration) (Record, Key, error) {
	if overlap < 0 || overlap > MaxOverlap {
		return Record{}, Key{}, &invoice.FieldError{Field: "overlapSeconds", Detail: fmt.Sprintf("must be 0 to %d", int(MaxOverlap.Seconds()))}
	}
	now := m.now()
	var record Record
	var key Key
	err := m.change(ctx, func(tx *db.Tx) (Change, error) {
		by, err := still(ctx, tx, by, now)
		if err != nil {
			return Change{}, err
		}
		old, err := findActive(ctx, tx, by, id, now)
		if err != nil {
			return Change{}, err
		}
		before := audited(old)
		r := KeyRequest{Name: old.Name, MerchantID: old.MerchantID, Scopes: old.Scopes, version: old.Version}
		if err := wantKeyApproval(ctx, tx, by, r, member{Replaces: id, OverlapSeconds: int64(overlap / time.Second)}, now); err != nil {
			return Change{}, err
		}
		if !old.ExpiresAt.IsZero() {
			r.ExpiresAt = now.Add(old.ExpiresAt.Sub(old.CreatedAt))
		}
		r.ExpiresAt = by.CapExpiry(r.ExpiresAt)
		if record, key, err = m.newKey(r, now); err != nil {
			return Change{}, err
		}
		if end := now.Add(overlap); old.ExpiresAt.IsZero() || end.Before(old.ExpiresAt) {
			old.ExpiresAt = end
		}
		if err := UpdateKey(ctx, tx, old); err != nil { // before insert counts the active keys
			return Change{}, err
		}
		if err := insertKeyWithin(ctx, tx, record, now); err != nil {
			return Change{}, err
		}
		old.ReplacedBy = record.ID
		return Change{MerchantID: old.MerchantID, Action: ActionKeyRotate, Object: old.ID, Before: before, After: audited(old)},
			UpdateKey(ctx, tx, old)
	})
	if err != nil {
		return Record{}, Key{}, fmt.Errorf("rotate key: %w", err)
	}
	return record, key, nil
}

// Revoke revokes a key immediately, and returns its record. A revoked key does not change. A principal
// revokes its own key, and keys that it could make, whatever their expiry. With a membership end the
// merchant's open invitations of the person, and the account of a person without another membership. Errors are
// db.ErrNotFound, *ScopeError and internal errors.
func (m *KeyManager) Revoke(ctx context.Context, by Principal, id string) (Record, error) {
	var record Record
	err := m.change(ctx, func(tx *db.Tx) (Change, error) {
		found, err := find(ctx, tx, by, id)
		if err == nil && id != by.KeyID {
			err = mayMake(by, found.Scopes)
		}
		if record = found; err != nil || !found.RevokedAt.IsZero() {
			return Change{}, err
		}
		var c Change
		if record, c, err = revokeKey(ctx, tx, found, m.now()); err != nil || found.PersonID == "" {
			return c, err
		}
		person, err := findPerson(ctx, tx, found.PersonID)
		if err != nil {
			return Change{}, err
		}
		if err := uninvite(ctx, tx, found.MerchantID, person.Email, m.now()); err != nil { // it would bring the person back
			return Change{}, err
		}
		return c, endFormerAccounts(ctx, tx, found.MerchantID, m.now())
	})
	return record, db.During("revoke key", err)
}

// revokeKey stores that a key is revoked, ends its requests for approval, and returns its record and the change.
func revokeKey(ctx context.Context, tx *db.Tx, r Record, now time.Time) (Record, Change, error) {
	c := Change{MerchantID: r.MerchantID, Action: ActionKeyRevoke, Object: r.ID, Before: audited(r)}
	r.RevokedAt = now
	c.After = audited(r)
	if err := UpdateKey(ctx, tx, r); err != nil { // first, since useApproval locks a key before a request
		return r, c, err
	}
	return r, c, endApprovalsOf(ctx, tx, r)
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
	PersonID   string   `json:"personId,omitempty"`
}

func audited(r Record) auditedKey {
	a := auditedKey{Name: r.Name, Hint: r.Hint, MerchantID: r.MerchantID, Scopes: r.Scopes.Names(), ReplacedBy: r.ReplacedBy, PersonID: r.PersonID}
	if !r.ExpiresAt.IsZero() {
		a.ExpiresAt = r.ExpiresAt.Unix()
	}
	if !r.RevokedAt.IsZero() {
		a.RevokedAt = r.RevokedAt.Unix()
	}
	return a
}
