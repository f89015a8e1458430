package access

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Limits of passkeys.
const (
	// MaxPasskeys bounds the passkeys of a person.
	MaxPasskeys = 20
	// MaxCeremonies bounds the sign-ins by passkeys that have begun. Another one ends the oldest. In a session,
	// a use ends an earlier one.
	MaxCeremonies = 10_000
	// CeremonyLifetime is how long a person has to use a passkey.
	CeremonyLifetime = 5 * time.Minute
)

// PrefixCeremony begins the tokens of uses of passkeys.
const PrefixCeremony = "qc_"

// Errors of passkeys.
var (
	// ErrPasskey: the passkey is unknown or of another host, or its answer is wrong, late or repeated.
	ErrPasskey = errors.New("the passkey was not accepted")
	// ErrTooManyPasskeys: the person has MaxPasskeys.
	ErrTooManyPasskeys = errors.New("the person has too many passkeys")
)

// Passkey is a key of a person's device, with which the person signs in and confirms dangerous changes.
type Passkey struct {
	ID         string // of the credential, in base64url
	PersonID   string
	Name       string
	Credential webauthn.Credential
	CreatedAt  time.Time
	UsedAt     time.Time // zero if it was not used
}

// Purpose is what a passkey is used for.
type Purpose string

// Purposes.
const (
	ToSignIn  Purpose = "sign-in" // for nobody in particular
	ToConfirm Purpose = "confirm" // for the person of a session
	ToAdd     Purpose = "add"     // for the person of a session
)

// Ceremony is a use of a passkey that has begun. Its answer is accepted once.
type Ceremony struct {
	Purpose   Purpose
	SessionID string // in which it began; empty to sign in
	Data      webauthn.SessionData
	ExpiresAt time.Time
}

// NewRelyingParty returns the party that accepts passkeys at a URL of the dashboard, or nil for a URL whose
// host cannot have any: an address, or no URL.
func NewRelyingParty(dashboardURL string) (*webauthn.WebAuthn, error) {
	u, err := url.Parse(dashboardURL)
	if err != nil || protocol.ValidateRPID(u.Hostname()) != nil {
		return nil, err
	}
	party, err := webauthn.New(&webauthn.Config{
		RPID: u.Hostname(), RPDisplayName: u.Hostname(), RPOrigins: []string{dashboardURL}, AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: new(true), UserVerification: protocol.VerificationRequired,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("passkeys at %s: %w", u.Host, err)
	}
	return party, nil
}

// holder is a person with passkeys, as webauthn has it.
type holder struct {
	Person
	passkeys []Passkey
}

// WebAuthnID implements webauthn.User.
func (h holder) WebAuthnID() []byte { return []byte(h.ID) }

// WebAuthnName implements webauthn.User.
func (h holder) WebAuthnName() string { return h.Email }

// WebAuthnDisplayName implements webauthn.User.
func (h holder) WebAuthnDisplayName() string { return h.Name }

// WebAuthnCredentials implements webauthn.User.
func (h holder) WebAuthnCredentials() []webauthn.Credential {
	all := db.Each(h.passkeys, func(k Passkey) webauthn.Credential { return k.Credential })
	return all
}

// holder returns a person with passkeys, or db.ErrNotFound.
func (m *SessionManager) holder(ctx context.Context, personID string) (h holder, err error) {
	if h.Person, err = findPerson(ctx, m.cfg.Store, personID); err != nil {
		return h, err
	}
	h.passkeys, err = passkeysOf(ctx, m.cfg.Store, personID)
	return h, err
}

// HasPasskeys reports whether passkeys can be used.
func (m *SessionManager) HasPasskeys() bool { return m.cfg.Passkeys != nil }

// CanUse reports whether one of some passkeys may be of the dashboard's host name.
func (m *SessionManager) CanUse(passkeys []Passkey) bool {
	if m.cfg.Passkeys == nil {
		return false
	}
	host := sha256.Sum256([]byte(m.cfg.Passkeys.Config.RPID))
	return slices.ContainsFunc(passkeys, func(k Passkey) bool {
		data := k.Credential.Attestation.AuthenticatorData // begins with the hash of the host name
		return len(data) < len(host) || bytes.HasPrefix(data, host[:])
	})
}

// Passkeys returns the passkeys of the person of a session, the first one first.
func (m *SessionManager) Passkeys(ctx context.Context, s Session) ([]Passkey, error) {
	if s.PersonID == "" {
		return nil, nil
	}
	return passkeysOf(ctx, m.cfg.Store, s.PersonID)
}

// BeginPasskey begins a use of a passkey, in a session unless it is to sign in. It returns the options for
// the browser, and a token of the ceremony. Errors are ErrPasskey, ErrTooManyPasskeys and internal ones.
func (m *SessionManager) BeginPasskey(ctx context.Context, purpose Purpose, s Session) (options any, token string, err error) {
	c := Ceremony{Purpose: purpose, ExpiresAt: m.now().Add(CeremonyLifetime)}
	var data *webauthn.SessionData
	if purpose == ToSignIn {
		options, data, err = m.cfg.Passkeys.BeginDiscoverableLogin()
	} else {
		c.SessionID = s.ID
		options, data, err = m.beginFor(ctx, purpose, s)
	}
	if err != nil {
		return nil, "", err
	}
	if token, err = newToken(m.cfg.Rand, PrefixCeremony); err != nil {
		return nil, "", err
	}
	c.Data = *data
	return options, token, m.cfg.Store.Update(ctx, func(tx *db.Tx) error { return insertCeremony(ctx, tx, c, sessionHash(token), m.now()) })
}

// beginFor begins a use for the person of a session.
func (m *SessionManager) beginFor(ctx context.Context, purpose Purpose, s Session) (any, *webauthn.SessionData, error) {
	h, err := m.holder(ctx, s.PersonID)
	switch {
	case err != nil:
		return nil, nil, err
	case purpose == ToConfirm && len(h.passkeys) == 0:
		return nil, nil, ErrPasskey
	case purpose == ToConfirm:
		return m.cfg.Passkeys.BeginLogin(h)
	case len(h.passkeys) >= MaxPasskeys:
		return nil, nil, ErrTooManyPasskeys
	}
	var own []protocol.CredentialDescriptor
	for _, k := range h.passkeys {
		own = append(own, k.Credential.Descriptor())
	}
	return m.cfg.Passkeys.BeginRegistration(h, webauthn.WithExclusions(own))
}

// take ends a ceremony, which must be for the purpose and of the session. Errors are ErrPasskey, Admit's
// error and internal errors.
func (m *SessionManager) take(ctx context.Context, token string, purpose Purpose, sessionID string) (c Ceremony, err error) {
	if !isToken(token, PrefixCeremony) {
		return c, ErrPasskey
	}
	c, err = admitted(ctx, m, sessionHash(token), func() (c Ceremony, err error) {
		err = m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
			c, err = takeCeremony(ctx, tx, sessionHash(token), m.now())
			return err
		})
		if err == nil && (c.Purpose != purpose || c.SessionID != sessionID) {
			err = db.ErrNotFound
		}
		return c, err
	})
	if errors.Is(err, db.ErrNotFound) {
		err = ErrPasskey
	}
	c.Data.Expires = time.Time{} // the service's clock has checked it
	return c, err
}

// SignInByPasskey begins a session of the person whose passkey answered. Errors are ErrPasskey, Admit's
// error and internal errors.
func (m *SessionManager) SignInByPasskey(ctx context.Context, token string, answer []byte, from Browser) (session string, err error) {
	c, err := m.take(ctx, token, ToSignIn, "")
	if err != nil {
		return "", err
	}
	response, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return "", ErrPasskey
	}
	var internal error
	user, credential, err := m.cfg.Passkeys.ValidatePasskeyLogin(func(_, userHandle []byte) (webauthn.User, error) {
		h, err := m.holder(ctx, string(userHandle))
		if err != nil && !errors.Is(err, db.ErrNotFound) {
			internal = err
		}
		return h, err
	}, c.Data, response)
	switch {
	case internal != nil:
		return "", internal
	case err != nil || credential.Authenticator.CloneWarning:
		return "", ErrPasskey
	}
	person := string(user.WebAuthnID())
	p, err := m.firstMembership(ctx, person)
	if errors.Is(err, db.ErrNotFound) {
		return "", ErrPasskey
	}
	if err != nil {
		return "", err
	}
	err = m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		if err := usePasskey(ctx, tx, person, *credential, m.now()); err != nil {
			return err
		}
		session, err = m.begin(ctx, tx, p, ByPasskey, m.now(), from)
		return err
	})
	return session, err
}

// ConfirmByPasskey records that the person of a session has used a passkey. Errors are ErrPasskey, Admit's
// error and internal errors.
func (m *SessionManager) ConfirmByPasskey(ctx context.Context, s Session, token string, answer []byte) error {
	c, err := m.take(ctx, token, ToConfirm, s.ID)
	if err != nil {
		return err
	}
	response, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return ErrPasskey
	}
	h, err := m.holder(ctx, s.PersonID)
	if err != nil {
		return err
	}
	credential, err := m.cfg.Passkeys.ValidateLogin(h, c.Data, response)
	if err != nil || credential.Authenticator.CloneWarning {
		return ErrPasskey
	}
	err = m.cfg.Store.Update(ctx, func(tx *db.Tx) error { return usePasskey(ctx, tx, s.PersonID, *credential, m.now()) })
	if err != nil {
		return err
	}
	return ConfirmSession(ctx, m.cfg.Store, s.ID, m.now())
}

// AddPasskey stores a passkey of the person of a session, which must still be confirmed. The person's other
// sessions must then be confirmed by a passkey, too. Errors are *invoice.FieldError, ErrPasskey,
// ErrTooManyPasskeys, Admit's error and internal errors.
func (m *SessionManager) AddPasskey(ctx context.Context, s Session, token, name string, answer []byte) error {
	if err := invoice.CheckLabel("name", name); err != nil {
		return err
	}
	c, err := m.take(ctx, token, ToAdd, s.ID)
	if err != nil {
		return err
	}
	response, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return ErrPasskey
	}
	h, err := m.holder(ctx, s.PersonID)
	if err != nil {
		return err
	}
	credential, err := m.cfg.Passkeys.CreateCredential(h, c.Data, response)
	if err != nil {
		return ErrPasskey
	}
	k := Passkey{ID: passkeyID(credential.ID), PersonID: s.PersonID, Name: name, Credential: *credential, CreatedAt: m.now()}
	err = m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		if err := insertPasskey(ctx, tx, k); err != nil {
			return err
		}
		if own, err := findSession(ctx, tx, s.ID); err != nil || !own.Confirmed(m.now()) {
			return cmp.Or(err, ErrPasskey) // another session added a passkey in between
		}
		if err := unconfirmOtherSessions(ctx, tx, s); err != nil {
			return err
		}
		return m.auditPerson(ctx, tx, k.PersonID, passkeyChange(ActionPasskeyAdd, k))
	})
	if errors.Is(err, db.ErrConflict) { // another person has it
		err = ErrPasskey
	}
	return err
}

// RemovePasskey deletes a passkey of the person of a session, ends the person's other sessions, and returns the
// passkey. The error is db.ErrNotFound if the person has no such passkey.
func (m *SessionManager) RemovePasskey(ctx context.Context, s Session, id string) (k Passkey, err error) {
	err = m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		if k, err = deletePasskey(ctx, tx, s.PersonID, id); err != nil {
			return err
		}
		ended, err := endOtherSessions(ctx, tx, s, m.now())
		if err != nil {
			return err
		}
		return m.auditPerson(ctx, tx, k.PersonID, passkeyChange(ActionPasskeyRemove, k), ended...)
	})
	return k, err
}

// passkeyID returns the text of a credential's id.
func passkeyID(id []byte) string { return base64.RawURLEncoding.EncodeToString(id) }

// auditedPasskey is the audit log's form of a passkey.
type auditedPasskey struct {
	PersonID string `json:"personId"`
	Name     string `json:"name"`
}

// auditPerson records a change of how a person signs in for each of the person's merchants, because that signs in for
// all. At each the person acts by the membership.
func (m *SessionManager) auditPerson(ctx context.Context, tx *db.Tx, personID string, c Change, others ...Entry) error {
	all, err := memberships(ctx, tx, personID, m.now())
	if err != nil {
		return err
	}
	entries := make([]Entry, len(all))
	for i, membership := range all {
		member := WithPrincipal(ctx, Principal{KeyID: membership.KeyID, MerchantID: membership.MerchantID})
		c.MerchantID = membership.MerchantID
		entries[i] = NewEntry(member, m.now(), c)
	}
	return AppendAudit(ctx, tx, slices.Concat(entries, others)...)
}

func passkeyChange(action Action, k Passkey) Change {
	c := Change{Action: action, Object: k.ID}
	if text := (auditedPasskey{k.PersonID, k.Name}); action == ActionPasskeyAdd {
		c.After = text
	} else {
		c.Before = text
	}
	return c
}
