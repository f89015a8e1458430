package access

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// Link is a link that signs a person in once.
type Link struct {
	Token     string
	KeyID     string // of the person
	ExpiresAt time.Time
}

// MakeLink makes a link for the holder of a key: the principal's own, or one that the principal could make, but no
// person's. The link, and the session that it begins, end with the keys that let the principal in. Errors are
// db.ErrNotFound, *ScopeError, ErrNotActive, ErrPersonal, ErrTooManyLinks and internal ones.
func (m *SessionManager) MakeLink(ctx context.Context, by Principal, keyID string) (Link, error) {
	holder, parents := by, by.ParentKeys
	if keyID != by.KeyID {
		key, err := NewReader(m.cfg.Store).Key(ctx, keyID)
		switch {
		case err == nil && !by.Sees(key.MerchantID):
			return Link{}, db.ErrNotFound
		case err != nil:
			return Link{}, err
		case key.State(m.now()) != Active:
			return Link{}, ErrNotActive
		}
		holder = key.Principal()
		if missing := (holder.Scopes | NewScopes(KeysWrite)) &^ by.Scopes; missing != 0 {
			return Link{}, &ScopeError{Missing: missing}
		}
		if parents = parents.With(by.KeyID); len(parents.All()) > MaxParentKeys {
			return Link{}, ErrTooManyLinks
		}
	}
	if holder.PersonID != "" { // who may have other memberships
		return Link{}, ErrPersonal
	}
	holder.ExpiresAt = by.CapExpiry(holder.ExpiresAt)
	return m.insertLink(ctx, holder, parents)
}

// insertLink calls newLink in a transaction.
func (m *SessionManager) insertLink(ctx context.Context, holder Principal, parents KeyIDs) (link Link, err error) {
	err = m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		link, err = newLink(ctx, tx, m.cfg.Rand, holder, parents, m.now())
		return err
	})
	return link, err
}

// newLink stores a link that signs in the holder of a key, or the person whose membership the key is.
func newLink(ctx context.Context, tx *db.Tx, random io.Reader, holder Principal, parents KeyIDs, now time.Time) (Link, error) {
	token, err := newToken(random, PrefixLinkToken)
	if err != nil {
		return Link{}, err
	}
	link := Link{Token: token, KeyID: holder.KeyID, ExpiresAt: holder.CapExpiry(now.Add(SignInLinkLifetime))}
	stored := SignInLink{KeyID: holder.KeyID, PersonID: holder.PersonID, ParentKeys: parents, ExpiresAt: link.ExpiresAt}
	if err := insertSignInLink(ctx, tx, sessionHash(token), stored); err != nil {
		return Link{}, err
	}
	return link, AppendAudit(ctx, tx, NewEntry(ctx, now, Change{MerchantID: holder.MerchantID, Action: ActionSignInLink, Object: holder.KeyID}))
}

// HolderOfLink returns whom a link signs in. Errors are ErrLink, Admit's error and internal errors.
func (m *SessionManager) HolderOfLink(ctx context.Context, linkToken string) (Principal, error) {
	if !isToken(linkToken, PrefixLinkToken) {
		return Principal{}, ErrLink
	}
	link, err := admitted(ctx, m, sessionHash(linkToken), func() (SignInLink, error) {
		return findSignInLink(ctx, m.cfg.Store, sessionHash(linkToken), m.now())
	})
	switch {
	case errors.Is(err, db.ErrNotFound):
		return Principal{}, ErrLink
	case err != nil:
		return Principal{}, err
	}
	p, err := m.principalOf(ctx, link.KeyID, link.ParentKeys)
	if isEnd(err) {
		return Principal{}, ErrLink
	}
	return p, err
}

// OpenLink begins a session of the person of a link, which cannot be used again. Errors are those of HolderOfLink.
func (m *SessionManager) OpenLink(ctx context.Context, linkToken string, from Browser) (token string, err error) {
	p, err := m.HolderOfLink(ctx, linkToken)
	if err != nil {
		return "", err
	}
	err = m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		switch _, err := takeSignInLink(ctx, tx, sessionHash(linkToken), m.now()); {
		case errors.Is(err, db.ErrNotFound): // it was used in between
			return ErrLink
		case err != nil:
			return err
		}
		token, err = m.enter(ctx, tx, p, ByLink, m.now(), from)
		return err
	})
	return token, err
}

// SetupLink makes a link that signs in, once, the operator with all scopes. It makes a key, too, whose secret is not
// shown: what the operator makes in the session must not end with it, so the key has no expiry, and revoking it ends
// the session. Errors are ErrTooMany and internal errors.
func (m *KeyManager) SetupLink(ctx context.Context) (link Link, err error) {
	now := m.now()
	record, _, err := m.newKey(KeyRequest{Name: "setup", Scopes: Admin}, now)
	if err != nil {
		return Link{}, err
	}
	err = m.change(ctx, func(tx *db.Tx) (Change, error) {
		if err := insertKeyWithin(ctx, tx, record, now); err != nil {
			return Change{}, err
		}
		made := Change{Action: ActionKeyCreate, Object: record.ID, After: audited(record)}
		if err := AppendAudit(ctx, tx, NewEntry(ctx, now, made)); err != nil {
			return Change{}, err
		}
		link, err = newLink(ctx, tx, m.cfg.Rand, record.Principal(), "", now)
		return Change{}, err // both are in the audit log
	})
	return link, db.During("make a link to the setup", err)
}
