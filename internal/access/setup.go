package access

import (
	"context"

	"github.com/quittance/quittance/internal/db"
)

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
