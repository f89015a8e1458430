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

// As returns the principal of the person of a session for another of the person's merchants. It depends
// on the membership by which the session began, too. The error is db.ErrNotFound if the person has no
// such membership, or it has ended.
func (m *SessionManager) As(ctx context.Context, s Session, merchantID string) (Principal, error) {
	all, err := m.Memberships(ctx, s)
	if err != nil {
		return Principal{}, err
	}
	for _, membership := range all {
		if membership.MerchantID != merchantID {
			continue
		}
		p, err := m.principalOf(ctx, membership.KeyID, KeyIDs("").With(s.KeyID))
		if isEnd(err) {
			err = db.ErrNotFound
		}
		return p, err
	}
	return Principal{}, db.ErrNotFound
}

// MailLink makes a link that signs in the person with an e-mail address, to be sent there. It signs in
// for the first of the person's merchants. The error is db.ErrNotFound if nobody with a membership has
// the address.
func (m *SessionManager) MailLink(ctx context.Context, email string) (Link, error) {
	p, err := m.byEmail(ctx, email)
	if err != nil {
		return Link{}, err
	}
	return m.insertLink(ctx, p, "")
}

// Account is an account at an OpenID Connect provider.
type Account struct {
	Issuer, Subject string // name it for good
	Email           string // in lower case, verified by the provider
	SignedInAt      time.Time
}

// ErrAccount means that an account signs in nobody here.
var ErrAccount = errors.New("the account is of no person with a membership, or the person has another account")

// SignInByProvider begins a session of the person of an account. At the first sign-in that is the person
// with its e-mail address, and later nobody else, because a provider may give an address to another account.
// The session is confirmed when the person signed in to the provider. The error is ErrAccount or an internal
// one.
func (m *SessionManager) SignInByProvider(ctx context.Context, a Account, from Browser) (token string, err error) {
	person, err := personByAccount(ctx, m.cfg.Store, a)
	var p Principal
	if err == nil {
		p, err = m.firstMembership(ctx, person.ID)
	}
	known := err == nil
	if errors.Is(err, db.ErrNotFound) {
		p, err = m.byEmail(ctx, a.Email)
	}
	if errors.Is(err, db.ErrNotFound) {
		return "", ErrAccount
	}
	if err != nil {
		return "", err
	}
	err = m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		if token, err = m.enter(ctx, tx, p, a.SignedInAt, from); err != nil || known {
			return err
		}
		if err := keepAccount(ctx, tx, p.PersonID, a); err != nil {
			return err
		}
		return m.auditPerson(ctx, tx, p.PersonID, Change{
			Action: ActionAccount, Object: p.PersonID, After: map[string]string{"issuer": a.Issuer, "subject": a.Subject},
		})
	})
	return token, err
}

// byEmail returns the principal of the first membership of the person with an e-mail address, or
// db.ErrNotFound.
func (m *SessionManager) byEmail(ctx context.Context, email string) (Principal, error) {
	person, err := personByEmail(ctx, m.cfg.Store, email)
	if err != nil {
		return Principal{}, err
	}
	return m.firstMembership(ctx, person.ID)
}

// unconfirmed is when a session was confirmed that has not been.
var unconfirmed = time.Unix(0, 0)

// enter begins a session without a passkey. It is confirmed at a time unless the person has a passkey.
func (m *SessionManager) enter(ctx context.Context, tx *db.Tx, p Principal, at time.Time, from Browser) (token string, err error) {
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
	return m.begin(ctx, tx, p, at, from)
}

// firstMembership returns the principal of the first membership of a person that is accepted, or
// db.ErrNotFound.
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
