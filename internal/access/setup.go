package access

import (
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// SetupLifetime is how long the operator who sets up a service stays the operator without a key.
const SetupLifetime = 24 * time.Hour

// SetupLink makes a link that signs in, once, the operator with all scopes. The session ends after SetupLifetime at the
// latest: it belongs to a new key, which is not shown. Errors are ErrTooMany and internal errors.
func (m *KeyManager) SetupLink(ctx context.Context) (Link, error) {
	now := m.now()
	record, _, err := m.newKey(KeyRequest{Name: "setup", Scopes: Admin, ExpiresAt: now.Add(SetupLifetime)}, now)
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
		return Change{Action: ActionKeyCreate, Object: record.ID, After: audited(record)}, nil
	})
	if err != nil {
		return Link{}, fmt.Errorf("make a link to the setup: %w", err)
	}
	return link, nil
}
