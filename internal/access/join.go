package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// join makes the person of an invitation a member, and returns the membership's principal, and whether it
// is the person's only one. by is who invited, s may be a session of the person, and gone are merchants of the person
// that the service no longer has.
func (m *SessionManager) join(ctx context.Context, tx *db.Tx, s Session, by Principal, i Invitation, gone []string) (p Principal, only bool, err error) {
	now := m.now()
	if err := LockKeys(ctx, tx); err != nil {
		return p, false, err
	}
	by, err = still(ctx, tx, by, now)
	switch {
	case isEnd(err), err == nil && !(i.Scopes | NewScopes(KeysWrite)).Within(by.Scopes):
		return p, false, ErrLink
	case err != nil:
		return p, false, err
	}
	person, before, err := m.person(ctx, tx, i, gone)
	if err != nil {
		return p, false, err
	}
	key := Record{
		ID: m.ids.New(PrefixKey), Name: person.Name, MerchantID: i.MerchantID, Scopes: i.Scopes, CreatedAt: now,
		ExpiresAt: by.CapExpiry(time.Time{}), Version: NewestVersion(), PersonID: person.ID,
	}
	p = key.Principal()
	ctx = WithPrincipal(ctx, p)
	left, err := m.leave(ctx, tx, person.ID, by, i.MerchantID)
	if err != nil {
		return p, false, err
	}
	if before-left >= MaxMemberships {
		return p, false, ErrTooManyMemberships
	}
	if before > left {
		if err := m.wantProof(ctx, tx, s, person.ID); err != nil {
			return p, false, err
		}
	}
	var random [tokenSize]byte // nobody knows a text with the hash
	if _, err := io.ReadFull(m.cfg.Rand, random[:]); err != nil {
		return p, false, err
	}
	key.Hash = sha256.Sum256(random[:])
	if err := insertKeyWithin(ctx, tx, key, now); err != nil {
		return p, false, err
	}
	return p, before == left, AppendAudit(ctx, tx, NewEntry(ctx, now, Change{
		MerchantID: key.MerchantID, Action: ActionKeyCreate, Object: key.ID, After: audited(key),
	}))
}

// person returns the person with the address of an invitation, and how many memberships are active. The
// person is new unless another merchant had invited the same address. A person without a membership loses
// all passkeys, which may be of somebody who read an earlier mail, or read the address's mails then. So does a person
// with memberships only of merchants that are gone: the passkeys no longer sign in. These memberships end, or a merchant
// that comes back would be open to the new reader of the mails, without the passkeys.
func (m *SessionManager) person(ctx context.Context, tx *db.Tx, i Invitation, gone []string) (p Person, active int, err error) {
	p, err = personByEmail(ctx, tx, i.Email)
	if errors.Is(err, db.ErrNotFound) {
		p = Person{ID: m.ids.New(PrefixPerson), Email: i.Email, Name: i.Name, CreatedAt: m.now()}
		return p, 0, insertPerson(ctx, tx, p)
	}
	if err != nil {
		return p, 0, err
	}
	if err := lockPerson(ctx, tx, p.ID); err != nil {
		return p, 0, err
	}
	all, err := memberships(ctx, tx, p.ID, m.now())
	if err != nil || slices.ContainsFunc(all, func(m Membership) bool { return !slices.Contains(gone, m.MerchantID) }) {
		return p, len(all), err
	}
	for _, membership := range all {
		if _, err := m.leave(ctx, tx, p.ID, Open(), membership.MerchantID); err != nil {
			return p, 0, err
		}
		if err := uninvite(ctx, tx, membership.MerchantID, p.Email, m.now()); err != nil {
			return p, 0, err
		}
	}
	if err := endFormerAccounts(ctx, tx, i.MerchantID, m.now()); err != nil {
		return p, 0, err
	}
	forgotten, entries, err := forgetSignIns(ctx, tx, p.ID, m.now())
	if err != nil {
		return p, 0, err
	}
	for _, k := range forgotten {
		change := passkeyChange(ActionPasskeyRemove, k)
		change.MerchantID = i.MerchantID
		entries = append(entries, NewEntry(ctx, m.now(), change))
	}
	return p, 0, AppendAudit(ctx, tx, entries...)
}

// goneMerchants returns the other merchants of the person of an invitation that the service no longer has.
func (m *SessionManager) goneMerchants(ctx context.Context, i Invitation) (gone []string, err error) {
	p, err := personByEmail(ctx, m.cfg.Store, i.Email)
	if errors.Is(err, db.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := memberships(ctx, m.cfg.Store, p.ID, m.now())
	for _, membership := range all {
		if membership.MerchantID != i.MerchantID && !m.hasMerchant(membership.MerchantID) {
			gone = append(gone, membership.MerchantID)
		}
	}
	return gone, err
}

// leave ends the memberships of a person of a merchant, or of the operator, and returns how many were
// active. The error is ErrMayNotReplace if by, who invites the person again, may not revoke one.
func (m *SessionManager) leave(ctx context.Context, tx *db.Tx, personID string, by Principal, merchantID string) (left int, err error) {
	former, err := unrevokedKeys(ctx, tx, personID, merchantID)
	if err != nil {
		return 0, err
	}
	for _, key := range former {
		if key.State(m.now()) == Active {
			left++
			if !key.Scopes.Within(by.Scopes) {
				return 0, ErrMayNotReplace
			}
		}
		_, c, err := revokeKey(ctx, tx, key, m.now())
		if err != nil {
			return 0, err
		}
		if err := AppendAudit(ctx, tx, NewEntry(ctx, m.now(), c)); err != nil {
			return 0, err
		}
	}
	return left, nil
}

// wantProof returns ErrUnproven unless the person has neither passkeys nor an account, or the session is of the person
// who has them: confirmed by a passkey or, without passkeys, begun by the account.
func (m *SessionManager) wantProof(ctx context.Context, tx *db.Tx, s Session, personID string) error {
	passkeys, err := countPasskeys(ctx, tx, personID)
	if err != nil {
		return err
	}
	accounts, err := accountsOf(ctx, tx, personID)
	if err != nil || passkeys == 0 && len(accounts) == 0 {
		return err
	}
	own, err := findSession(ctx, tx, s.ID)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return err
	}
	if own.PersonID != personID || !own.Confirmed(m.now()) && passkeys > 0 || own.BeganBy != ByProvider && passkeys == 0 {
		return ErrUnproven
	}
	return nil
}
