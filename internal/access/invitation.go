package access

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Limits of people.
const (
	// InvitationLifetime is how long an invitation can be accepted.
	InvitationLifetime = 7 * 24 * time.Hour
	// MaxInvitations bounds the open invitations of a merchant, or of the operator.
	MaxInvitations = 50
	// MaxMemberships bounds the merchants of a person.
	MaxMemberships = 100
)

// Prefixes of people and invitations.
const (
	PrefixPerson          = "per_"
	PrefixInvitation      = "ivt_"
	PrefixInvitationToken = "qi_" // of the tokens in links that accept an invitation
)

// Errors of invitations.
var (
	// ErrTooManyInvitations: MaxInvitations are open.
	ErrTooManyInvitations = errors.New("too many invitations are open")
	// ErrTooManyMemberships: the person has MaxMemberships.
	ErrTooManyMemberships = errors.New("the person has too many memberships")
	// ErrUnproven: the person has a passkey or an account, and the session does not prove it.
	ErrUnproven = errors.New("sign in with your passkey or account first")
	// ErrMayNotReplace: the person is a member, and who invites the person cannot end that membership.
	ErrMayNotReplace = errors.New("who invited the person may not replace the membership")
)

// Invitation invites the person who reads the mail of an address to a merchant, or to the operator. It
// ends with the key of who invites, and with that key's parents.
type Invitation struct {
	ID         string // PrefixInvitation and 26 characters
	Email      string // in lower case
	Name       string // of the person
	MerchantID string // empty: the operator
	Merchant   string // its name, or empty
	Scopes     Scopes
	KeyID      string // of who invites
	ParentKeys KeyIDs
	CreatedAt  time.Time
	ExpiresAt  time.Time
}

// Invite stores an invitation, in place of an earlier one of the address by the merchant, and returns its
// token, which only a mail to its address may contain. The invitation has an address, a name, a merchant and
// scopes. Errors are *invoice.FieldError, *ScopeError, ErrTooManyInvitations, db.ErrNotFound without such a
// merchant, *ApprovalRequiredError, and internal ones.
func (m *SessionManager) Invite(ctx context.Context, by Principal, i Invitation) (_ Invitation, token string, err error) {
	if missing := (i.Scopes | NewScopes(KeysWrite)) &^ by.Scopes; missing != 0 {
		return i, "", &ScopeError{Missing: missing}
	}
	if by.MerchantID != "" {
		i.MerchantID = by.MerchantID
	}
	if !m.hasMerchant(i.MerchantID) {
		return i, "", db.ErrNotFound
	}
	if err := invoice.CheckLabel("name", i.Name); err != nil {
		return i, "", err
	}
	if token, err = newToken(m.cfg.Rand, PrefixInvitationToken); err != nil {
		return i, "", err
	}
	now := m.now()
	i.ID, i.Email, i.KeyID, i.ParentKeys = m.ids.New(PrefixInvitation), strings.ToLower(i.Email), by.KeyID, by.ParentKeys
	i.CreatedAt, i.ExpiresAt = now, by.CapExpiry(now.Add(InvitationLifetime))
	return i, token, m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		if err := LockKeys(ctx, tx); err != nil { // a policy that is being set ends the invitations that it sees
			return err
		}
		open, err := invitations(ctx, tx, i.MerchantID, now, MaxInvitations)
		if err != nil {
			return err
		}
		until, repeats, err := i.repeats(ctx, tx, open)
		if err != nil {
			return err
		}
		var used []Entry
		if repeats {
			i.ExpiresAt = clock.Earlier(i.ExpiresAt, until)
		} else if used, err = WantApproval(ctx, tx, now, GuardedAction{By: by, Kind: OfMember, Subject: member{Email: i.Email, Name: i.Name, Scopes: i.Scopes.String()}, Scopes: i.Scopes}); err != nil {
			return err
		}
		if open = slices.DeleteFunc(open, func(o Invitation) bool { return o.Email == i.Email }); len(open) >= MaxInvitations {
			return ErrTooManyInvitations
		}
		if err := uninvite(ctx, tx, i.MerchantID, i.Email, now); err != nil {
			return err
		}
		if err := insertInvitation(ctx, tx, i, sessionHash(token)); err != nil {
			return err
		}
		return AppendAudit(ctx, tx, append(used, invitationEntry(ctx, ActionInvite, i, now))...)
	})
}

// repeats reports whether an invitation is the same as an open one that can still be accepted, and until when. Then it
// needs no other approval, since the mail of the first one may not have come, and does not last longer.
func (i Invitation) repeats(ctx context.Context, tx *db.Tx, open []Invitation) (until time.Time, same bool, err error) {
	for _, o := range open {
		if i.Email == o.Email && i.Name == o.Name && i.Scopes == o.Scopes {
			_, err := still(ctx, tx, Principal{KeyID: o.KeyID, ParentKeys: o.ParentKeys}, i.CreatedAt)
			if isEnd(err) {
				return until, false, nil
			}
			return o.ExpiresAt, err == nil, err
		}
	}
	return until, false, nil
}

// member is an invitation, or a key, as people see it who approve it.
type member struct {
	Email     string `json:"email,omitempty"` // only of an invitation
	Name      string `json:"name"`
	Scopes    string `json:"scopes"`
	ExpiresAt int64  `json:"expiresAt,omitempty"` // of a key, in Unix seconds
	Replaces  string `json:"replaces,omitempty"`  // id of the key that is rotated
	// OverlapSeconds is how long the rotated key stays valid.
	OverlapSeconds int64 `json:"overlapSeconds,omitempty"`
	// For is who asked for a key, and receives its secret: Principal.Holder.
	For string `json:"for,omitempty"`
}

// Invitations returns the open invitations of a merchant that the principal may see, or of the operator, newest first.
func (m *SessionManager) Invitations(ctx context.Context, by Principal, merchantID string) ([]Invitation, error) {
	if !by.Sees(merchantID) {
		return nil, nil
	}
	return invitations(ctx, m.cfg.Store, merchantID, m.now(), MaxInvitations)
}

// Uninvite deletes an invitation of a merchant, or of the operator. The error is db.ErrNotFound if
// the principal sees no such invitation.
func (m *SessionManager) Uninvite(ctx context.Context, by Principal, merchantID, id string) error {
	if !by.Sees(merchantID) {
		return db.ErrNotFound
	}
	return m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		i, err := deleteInvitation(ctx, tx, merchantID, id)
		if err != nil {
			return err
		}
		return AppendAudit(ctx, tx, invitationEntry(ctx, ActionUninvite, i, m.now()))
	})
}

// uninvite deletes the invitations of an address by a merchant, or by the operator.
func uninvite(ctx context.Context, tx *db.Tx, merchantID, email string, now time.Time) error {
	deleted, err := deleteInvitations(ctx, tx, merchantID, email)
	if err != nil {
		return err
	}
	var entries []Entry
	for _, i := range deleted {
		entries = append(entries, invitationEntry(ctx, ActionUninvite, i, now))
	}
	return AppendAudit(ctx, tx, entries...)
}

// Invitation returns the invitation of a token. Errors are ErrLink, Admit's error and internal errors.
func (m *SessionManager) Invitation(ctx context.Context, token string) (Invitation, error) {
	if !isToken(token, PrefixInvitationToken) {
		return Invitation{}, ErrLink
	}
	i, err := admitted(ctx, m, sessionHash(token), func() (Invitation, error) {
		return findInvitation(ctx, m.cfg.Store, sessionHash(token), m.now())
	})
	if errors.Is(err, db.ErrNotFound) {
		return Invitation{}, ErrLink
	}
	return i, err
}

// Accept makes the person with the address of an invitation a member, in place of an earlier membership,
// and returns the membership. The invitation cannot be used again. For a person without another
// membership it begins a session and returns its token. The session is not confirmed: a mail that is days
// old, or that was passed on, must not give its reader a passkey of the person. Others sign in as before,
// because it must not open other merchants to its reader, either. Who joins a further merchant and has a passkey or an
// account needs s, a session that proves it: the mail may have another reader than before, and the former one would join.
// Errors are ErrLink, ErrTooMany, ErrTooManyMemberships, ErrUnproven, ErrMayNotReplace, Admit's error and internal errors.
func (m *SessionManager) Accept(ctx context.Context, s Session, invitationToken string, from Browser) (p Principal, token string, err error) {
	i, err := m.Invitation(ctx, invitationToken)
	if err != nil {
		return p, "", err
	}
	by, err := m.principalOf(ctx, i.KeyID, i.ParentKeys)
	if isEnd(err) || err == nil && !m.hasMerchant(i.MerchantID) {
		return p, "", ErrLink
	}
	if err != nil {
		return p, "", err
	}
	gone, err := m.goneMerchants(ctx, i) // before the transaction, since it may read
	if err != nil {
		return p, "", err
	}
	err = m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		switch _, err := takeInvitation(ctx, tx, sessionHash(invitationToken), m.now()); {
		case errors.Is(err, db.ErrNotFound): // it was used in between
			return ErrLink
		case err != nil:
			return err
		}
		var only bool
		if p, only, err = m.join(ctx, tx, s, by, i, gone); err == nil && only {
			token, err = m.begin(ctx, tx, p, ByInvitation, unconfirmed, from)
		}
		return err
	})
	return p, token, err
}

// hasMerchant reports whether the service has a merchant. An empty id is the operator's.
func (m *SessionManager) hasMerchant(id string) bool {
	return id == "" || m.cfg.Known == nil || m.cfg.Known(id)
}

// auditedInvitation is the audit log's form of an invitation.
type auditedInvitation struct {
	Email     string   `json:"email"`
	Name      string   `json:"name"`
	Scopes    []string `json:"scopes"`
	ExpiresAt int64    `json:"expiresAt"`
}

func invitationEntry(ctx context.Context, action Action, i Invitation, now time.Time) Entry {
	c := Change{MerchantID: i.MerchantID, Action: action, Object: i.ID}
	text := auditedInvitation{i.Email, i.Name, i.Scopes.Names(), i.ExpiresAt.Unix()}
	if action == ActionInvite {
		c.After = text
	} else {
		c.Before = text
	}
	return NewEntry(ctx, now, c)
}
