package access

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/db"
)

// SetupLink makes a link that signs in, once, the operator with all scopes. It makes a key, too, whose secret is not
// shown: what the operator makes in the session must not end with it, so the key has no expiry, and revoking it ends
// the session. Errors are ErrTooMany and internal errors.
func (m *KeyManager) SetupLink(ctx context.Context) (Link, error) {
	now := m.now()
	record, _, err := m.newKey(KeyRequest{Name: "setup", Scopes: Admin}, now)
	if err != nil {
		return Link{}, err
	}
	token, err := newToken(m.cfg.Rand, PrefixLinkToken)
	if err != nil {
		return Link{}, err
	}
	link := Link{Token: token, KeyID: record.ID, ExpiresAt: now.Add(SignInLinkLifetime)}
	err = m.change(ctx, func(tx *db.Tx) (Change, error) {
		if err := insertKeyWithin(ctx, tx, record, now); err != nil {
			return Change{}, err
		}
		if err := insertSignInLink(ctx, tx, sessionHash(token), SignInLink{KeyID: record.ID, ExpiresAt: link.ExpiresAt}); err != nil {
			return Change{}, err
		}
		made := Change{Action: ActionKeyCreate, Object: record.ID, After: audited(record)}
		return Change{Action: ActionSignInLink, Object: record.ID}, AppendAudit(ctx, tx, NewEntry(ctx, now, made))
	})
	if err != nil {
		return Link{}, fmt.Errorf("make a link to the setup: %w", err)
	}
	return link, nil
}
