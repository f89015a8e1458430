package access

import (
	"context"
	"errors"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// Person is somebody who signs in at the dashboard without a key. A membership lets the person act
// for a merchant, or for the operator: it is a key without a secret, with the scopes of a role. A session, and
// everything else that a person causes, ends with its membership as it ends with a key.
type Person struct {
	ID        string // PrefixPerson and 26 characters
	Email     string // in lower case; the person has proved to read its mail
	Name      string
	CreatedAt time.Time
	Language  string // of the pages that the person last signed in on, or chose; empty before
}

// Membership is an active membership of a person.
type Membership struct {
	KeyID        string
	MerchantID   string // empty: the operator
	MerchantName string // empty if the merchant has no profile
	Scopes       Scopes
}

// ErrPersonal means that a key is a membership of a person, who signs in by other means and has no secret.
var ErrPersonal = errors.New("the key belongs to a person, and has no secret")

// PersonOf returns the person of a session who signed in without a key, or db.ErrNotFound.
func (m *SessionManager) PersonOf(ctx context.Context, s Session) (Person, error) {
	return findPerson(ctx, m.cfg.Store, s.PersonID)
}

// Memberships returns the memberships among which the person of a session may switch. It returns none
// if the session began by a key.
func (m *SessionManager) Memberships(ctx context.Context, s Session) ([]Membership, error) {
	if s.PersonID == "" {
		return nil, nil
	}
	return memberships(ctx, m.cfg.Store, s.PersonID, m.now())
}

// As returns the principal of the person of a session for another of the person's merchants. All that the person makes
// there ends with that membership, and not with the one by which the session began. The error is db.ErrNotFound if the
// person has no such membership, or it has ended.
func (m *SessionManager) As(ctx context.Context, s Session, merchantID string) (Principal, error) {
	all, err := m.Memberships(ctx, s)
	if err != nil {
		return Principal{}, err
	}
	for _, membership := range all {
		if membership.MerchantID != merchantID {
			continue
		}
		p, err := m.principalOf(ctx, membership.KeyID, "")
		if isEnd(err) {
			err = db.ErrNotFound
		}
		return p, err
	}
	return Principal{}, db.ErrNotFound
}

// MailLink makes a link that signs in the person with an e-mail address, to be sent there. It signs in for the first of
// the person's merchants. The error is db.ErrNotFound if nobody with a membership has the address.
func (m *SessionManager) MailLink(ctx context.Context, email string) (Link, error) {
	person, err := personByEmail(ctx, m.cfg.Store, email)
	if err != nil {
		return Link{}, err
	}
	p, err := m.firstMembership(ctx, person.ID)
	if err != nil {
		return Link{}, err
	}
	return m.insertLink(ctx, p, "")
}

// Account is an account at an OpenID Connect provider that signs a person in. A person has at most one. The audit log has
// its members with names.
type Account struct {
	Issuer      string    `json:"issuer"`
	Subject     string    `json:"subject"` // names it for good at the issuer
	Name        string    `json:"-"`       // of the provider, when it was connected
	PersonID    string    `json:"-"`
	ConnectedAt time.Time `json:"-"`
	UsedAt      time.Time `json:"-"` // zero if it was not used
}

// Errors of accounts.
var (
	// ErrAccount: the account is connected to no person with a membership.
	ErrAccount = errors.New("the account signs in nobody here")
	// ErrUnconfirmed: the session is not confirmed, or no longer.
	ErrUnconfirmed = errors.New("the session is not confirmed")
)

// Accounts returns the account of the person of a session, if there is one.
func (m *SessionManager) Accounts(ctx context.Context, s Session) ([]Account, error) {
	return accountsOf(ctx, m.cfg.Store, s.PersonID)
}

// SignInByProvider begins a session of the person to whom an account is connected. It is confirmed as of the time
// at which the person signed in to the provider. The error is ErrAccount or an internal one.
func (m *SessionManager) SignInByProvider(ctx context.Context, issuer, subject string, at time.Time, from Browser) (token string, err error) {
	a, err := findAccount(ctx, m.cfg.Store, issuer, subject)
	var p Principal
	if err == nil {
		p, err = m.firstMembership(ctx, a.PersonID)
	}
	if errors.Is(err, db.ErrNotFound) {
		return "", ErrAccount
	}
	if err != nil {
		return "", err
	}
	a.UsedAt = m.now()
	err = m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		if err := useAccount(ctx, tx, a); err != nil { // it locks the row before the audit log, as RemoveAccount does
			return err
		}
		token, err = m.enter(ctx, tx, p, ByProvider, at, from)
		return err
	})
	return token, err
}

// AddAccount connects an account to the person of a session, which must still be confirmed. Errors are
// db.ErrNotFound without a person, ErrUnconfirmed, db.ErrConflict if the account is a person's or the person has one,
// and internal ones.
func (m *SessionManager) AddAccount(ctx context.Context, s Session, a Account) error {
	if s.PersonID == "" {
		return db.ErrNotFound
	}
	a.PersonID, a.ConnectedAt = s.PersonID, m.now()
	return m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		if err := m.wantConfirmed(ctx, tx, s); err != nil {
			return err
		}
		if err := endFormerAccounts(ctx, tx, "", m.now()); err != nil { // the person may have had another address
			return err
		}
		if err := insertAccount(ctx, tx, a); err != nil {
			return err
		}
		return m.auditPerson(ctx, tx, a.PersonID, Change{Action: ActionAccountAdd, Object: a.PersonID, After: a})
	})
}

// wantConfirmed returns ErrUnconfirmed unless the session is still confirmed. No passkey of its person is added before
// the transaction ends, which would end the confirmation.
func (m *SessionManager) wantConfirmed(ctx context.Context, tx *db.Tx, s Session) error {
	if err := lockPerson(ctx, tx, s.PersonID); err != nil {
		return err
	}
	own, err := findSession(ctx, tx, s.ID)
	if err == nil && !own.Confirmed(m.now()) {
		err = ErrUnconfirmed
	}
	return err
}

// RemoveAccount deletes the account of the person of a session, which must still be confirmed, ends the person's other
// sessions, and returns the account. The error is db.ErrNotFound if the person has none, ErrUnconfirmed or an internal one.
func (m *SessionManager) RemoveAccount(ctx context.Context, s Session) (a Account, err error) {
	err = m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		if err := m.wantConfirmed(ctx, tx, s); err != nil {
			return err
		}
		if a, err = deleteAccount(ctx, tx, s.PersonID); err != nil {
			return err
		}
		ended, err := endOtherSessions(ctx, tx, s, m.now())
		if err != nil {
			return err
		}
		return m.auditPerson(ctx, tx, a.PersonID, Change{Action: ActionAccountRemove, Object: a.PersonID, Before: a}, ended...)
	})
	return a, err
}

// unconfirmed is when a session was confirmed that has not been.
var unconfirmed = time.Unix(0, 0)

// enter begins a session without a passkey. It is confirmed at a time unless the person has a passkey.
func (m *SessionManager) enter(ctx context.Context, tx *db.Tx, p Principal, by string, at time.Time, from Browser) (token string, err error) {
	if err := lockPerson(ctx, tx, p.PersonID); err != nil { // a passkey that is being added unconfirms only sessions that it sees
		return "", err
	}
	n, err := countPasskeys(ctx, tx, p.PersonID)
	if err != nil {
		return "", err
	}
	if n > 0 {
		at = unconfirmed
	}
	return m.begin(ctx, tx, p, by, at, from)
}

// firstMembership returns the principal of the first membership of a person that is accepted, or db.ErrNotFound.
func (m *SessionManager) firstMembership(ctx context.Context, personID string) (Principal, error) {
	all, err := memberships(ctx, m.cfg.Store, personID, m.now())
	if err != nil {
		return Principal{}, err
	}
	for _, membership := range all {
		if p, err := m.principalOf(ctx, membership.KeyID, ""); !isEnd(err) {
			return p, err
		}
	}
	return Principal{}, db.ErrNotFound
}
