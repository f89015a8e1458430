package session

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apikey"
	"github.com/quittance/quittance/internal/db"
)

// Link is a link that signs a person in once.
type Link struct {
	Token     string
	KeyID     string // of the person
	ExpiresAt time.Time
}

// MakeLink makes a link for the person of a key: the principal's own, or one that the
// principal could make. The link, and the session that it begins, end with the keys that let
// the principal in. Errors are db.ErrNotFound, *apikey.ScopeError, apikey.ErrNotActive,
// ErrTooManyLinks and internal ones.
func (m *Manager) MakeLink(ctx context.Context, by access.Principal, keyID string) (Link, error) {
	person, parents := by, by.ParentKeys
	if keyID != by.KeyID {
		key, err := access.NewReader(m.cfg.Store).Key(ctx, keyID)
		switch {
		case err == nil && !by.Sees(key.MerchantID):
			return Link{}, db.ErrNotFound
		case err != nil:
			return Link{}, err
		case key.State(m.now()) != access.Active:
			return Link{}, apikey.ErrNotActive
		}
		person = key.Principal()
		if missing := (person.Scopes | access.NewScopes(access.KeysWrite)) &^ by.Scopes; missing != 0 {
			return Link{}, &apikey.ScopeError{Missing: missing}
		}
		if parents = parents.With(by.KeyID); len(parents.All()) > access.MaxParentKeys {
			return Link{}, ErrTooManyLinks
		}
	}
	token, err := m.newToken(access.PrefixLinkToken)
	if err != nil {
		return Link{}, err
	}
	now := m.now()
	link := Link{Token: token, KeyID: keyID, ExpiresAt: by.CapExpiry(person.CapExpiry(now.Add(access.SignInLinkLifetime)))}
	return link, m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		if err := access.InsertSignInLink(ctx, tx, hash(token), access.SignInLink{KeyID: keyID, ParentKeys: parents, ExpiresAt: link.ExpiresAt}); err != nil {
			return err
		}
		return access.AppendAudit(ctx, tx, access.NewEntry(ctx, now, access.Change{
			MerchantID: person.MerchantID, Action: access.ActionSignInLink, Object: keyID,
		}))
	})
}

// OpenLink begins a session of the person of a link, which cannot be used again. Errors are ErrLink,
// Admit's error and internal errors.
func (m *Manager) OpenLink(ctx context.Context, linkToken string, from Browser) (token string, err error) {
	if !strings.HasPrefix(linkToken, access.PrefixLinkToken) || len(linkToken) > maxToken {
		return "", ErrLink
	}
	done, err := m.cfg.Admit(ctx, hash(linkToken))
	if err != nil {
		return "", err
	}
	link, err := access.FindSignInLink(ctx, m.cfg.Store, hash(linkToken), m.now())
	done(errors.Is(err, db.ErrNotFound))
	if errors.Is(err, db.ErrNotFound) {
		return "", ErrLink
	}
	if err != nil {
		return "", err
	}
	p, err := m.principalOf(ctx, link.KeyID, link.ParentKeys)
	switch {
	case isEnd(err):
		return "", ErrLink
	case err != nil:
		return "", err
	}
	err = m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		switch _, err := access.TakeSignInLink(ctx, tx, hash(linkToken), m.now()); {
		case errors.Is(err, db.ErrNotFound): // it was used in between
			return ErrLink
		case err != nil:
			return err
		}
		token, err = m.begin(ctx, tx, p, from)
		return err
	})
	return token, err
}
