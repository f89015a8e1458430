package access

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Errors of a Manager, in addition to the errors of Authenticator.
var (
	// ErrSignedOut means that there is no such session, or that it has ended.
	ErrSignedOut = errors.New("the session has ended")
	// ErrLink means that a link that signs in is unknown, has expired or was used.
	ErrLink = errors.New("the link has expired, or was used before")
	// ErrTooManyLinks means that a session depends on access.MaxParentKeys keys, which made links for each
	// other, and can make no link for another key.
	ErrTooManyLinks = errors.New("the session began by too many links")
	// ErrOtherKey means that a session was confirmed with another key than its own.
	ErrOtherKey = errors.New("is not the key of this session")
)

// KeyAuthenticator finds the principals of keys. *Authenticator implements it and documents the errors.
type KeyAuthenticator interface {
	Authenticate(ctx context.Context, key string) (Principal, error)
	PrincipalOf(ctx context.Context, keyID string) (Principal, error)
}

// SessionConfig is the configuration of a Manager. All fields but Admit, Known and Passkeys are required.
type SessionConfig struct {
	Store         *db.DB
	Authenticator KeyAuthenticator
	// Admit is called before a token of a link, or of a session that this process does not know, is looked
	// up in the database. If it is nil, all are looked up.
	Admit Admit
	// Known reports whether the service has a merchant. If it is nil, every merchant exists.
	Known func(merchantID string) bool
	// Passkeys accepts passkeys. It is nil if the dashboard has no host name.
	Passkeys *webauthn.WebAuthn
	Now      func() time.Time
	Rand     io.Reader
}

// SessionManager begins, finds and ends sessions. It records in the audit log, in the same transaction, that
// a session begins or is ended, and that a link is made.
type SessionManager struct {
	cfg   SessionConfig
	ids   *invoice.IDs
	known known
}

// NewSessions returns a manager. It panics if a field is missing.
func NewSessions(cfg SessionConfig) *SessionManager {
	if cfg.Store == nil || cfg.Authenticator == nil || cfg.Now == nil || cfg.Rand == nil {
		panic("access: all fields of Config are required")
	}
	if cfg.Admit == nil {
		cfg.Admit = func(context.Context, [HashSize]byte) (func(bool), error) { return func(bool) {}, nil }
	}
	return &SessionManager{cfg: cfg, ids: invoice.NewIDs(cfg.Now, cfg.Rand), known: known{tokens: make(map[TokenHash]struct{})}}
}

// now returns the time in the precision of the database.
func (m *SessionManager) now() time.Time { return m.cfg.Now().UTC().Truncate(time.Second) }

// Browser describes the browser in which a person signs in.
type Browser struct {
	Client   string // address
	Name     string // header User-Agent
	Language string // of the page, such as de; may be empty
}

// SignIn begins a session of the person who holds a key, and returns its token for the cookie. At a
// service that is open to all, the key may be empty. Errors are the errors of Authenticate.
func (m *SessionManager) SignIn(ctx context.Context, key string, from Browser) (token string, err error) {
	p, err := m.cfg.Authenticator.Authenticate(ctx, strings.TrimSpace(key))
	if err != nil {
		return "", err
	}
	err = m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		token, err = m.begin(ctx, tx, p, ByKey, m.now(), from)
		return err
	})
	return token, err
}

// begin begins a session of a principal, which may be a membership, that is confirmed at a time.
func (m *SessionManager) begin(ctx context.Context, tx *db.Tx, p Principal, by string, confirmedAt time.Time, from Browser) (token string, err error) {
	now := m.now()
	s := Session{
		ID: m.ids.New(PrefixSession), KeyID: p.KeyID, PersonID: p.PersonID, ParentKeys: p.ParentKeys, MerchantID: p.MerchantID, Client: shorten(from.Client), Browser: shorten(from.Name),
		BeganBy: by, CreatedAt: now, ConfirmedAt: confirmedAt, UsedAt: now, ExpiresAt: p.CapExpiry(now.Add(SessionLifetime)),
	}
	token, err = newToken(m.cfg.Rand, PrefixSessionToken)
	if err != nil {
		return "", err
	}
	ended, err := insertSession(WithPrincipal(ctx, p), tx, s, sessionHash(token))
	if err != nil {
		return "", err
	}
	if p.PersonID != "" && from.Language != "" {
		if err := setPersonLanguage(ctx, tx, p.PersonID, from.Language); err != nil {
			return "", err
		}
	}
	ctx = WithPrincipal(ctx, p)
	return token, AppendAudit(ctx, tx, append(ended, NewEntry(ctx, now, Change{
		MerchantID: s.MerchantID, Action: ActionSessionBegin, Object: s.ID, After: sessionForAudit(s),
	}))...)
}

// Find is Look, and records the use of the session, so that it does not end for lack of use. A database that takes no
// writes, which has its own alert, leaves the sessions as they are: the pages that only read remain.
func (m *SessionManager) Find(ctx context.Context, token string) (Session, Principal, error) {
	s, p, err := m.Look(ctx, token)
	if now := m.now(); err == nil && now.Sub(s.UsedAt) >= time.Minute {
		if recordSessionUse(ctx, m.cfg.Store, s.ID, now) != nil {
			err = ctx.Err()
		}
	}
	return s, p, err
}

// Look returns the session of a token and the current principal of its key. Errors are ErrSignedOut,
// Admit's error and internal errors.
func (m *SessionManager) Look(ctx context.Context, token string) (Session, Principal, error) {
	if !isToken(token, PrefixSessionToken) {
		return Session{}, Principal{}, ErrSignedOut
	}
	s, err := m.lookUp(ctx, sessionHash(token))
	now := m.now()
	switch {
	case errors.Is(err, db.ErrNotFound), err == nil && s.Ended(now):
		return Session{}, Principal{}, ErrSignedOut
	case err != nil:
		return Session{}, Principal{}, err
	}
	p, err := m.principalOf(ctx, s.KeyID, s.ParentKeys)
	switch {
	case isEnd(err):
		return Session{}, Principal{}, ErrSignedOut
	case err != nil:
		return Session{}, Principal{}, err
	}
	return s, p, nil
}

// lookUp returns the session of a token, or db.ErrNotFound, or the error of Admit.
func (m *SessionManager) lookUp(ctx context.Context, token TokenHash) (Session, error) {
	if m.known.has(token) {
		s, err := sessionByToken(ctx, m.cfg.Store, token)
		if errors.Is(err, db.ErrNotFound) {
			m.known.remove(token)
		}
		return s, err
	}
	s, err := admitted(ctx, m, token, func() (Session, error) { return sessionByToken(ctx, m.cfg.Store, token) })
	if err == nil {
		m.known.add(token)
	}
	return s, err
}

// admitted returns what find finds by a token, if Admit permits that, and reports to Admit whether the error
// is db.ErrNotFound.
func admitted[T any](ctx context.Context, m *SessionManager, token TokenHash, find func() (T, error)) (found T, err error) {
	done, err := m.cfg.Admit(ctx, token)
	if err != nil {
		return found, err
	}
	found, err = find()
	done(errors.Is(err, db.ErrNotFound))
	return found, err
}

// principalOf returns the principal of a key that depends on other keys, too. It expires with the
// first of them. isEnd reports whether its error means that a key is no longer accepted.
func (m *SessionManager) principalOf(ctx context.Context, keyID string, parents KeyIDs) (Principal, error) {
	p, err := m.cfg.Authenticator.PrincipalOf(ctx, keyID)
	for _, id := range parents.All() {
		var other Principal
		if err == nil {
			other, err = m.cfg.Authenticator.PrincipalOf(ctx, id)
		}
		p.ExpiresAt = other.CapExpiry(p.ExpiresAt)
	}
	if err != nil {
		return Principal{}, err
	}
	p.ParentKeys = parents
	return p, nil
}

// isEnd reports whether an error of principalOf means that a key is no longer accepted.
func isEnd(err error) bool { return IsRefusal(err) || errors.Is(err, ErrMissing) }

// Confirm records that the person of a session holds its key, which may be empty at a service that is
// open to all. Errors are ErrOtherKey and the errors of Authenticate.
func (m *SessionManager) Confirm(ctx context.Context, s Session, key string) error {
	p, err := m.cfg.Authenticator.Authenticate(ctx, strings.TrimSpace(key))
	if err != nil {
		return err
	}
	if p.KeyID != s.KeyID {
		return ErrOtherKey
	}
	return ConfirmSession(ctx, m.cfg.Store, s.ID, m.now())
}

// Key returns a key that the principal sees, or db.ErrNotFound.
func (m *SessionManager) Key(ctx context.Context, by Principal, id string) (Record, error) {
	r, err := NewReader(m.cfg.Store).Key(ctx, id)
	if err == nil && !by.Sees(r.MerchantID) {
		return Record{}, db.ErrNotFound
	}
	return r, err
}

// List lists the active sessions of the person, which may have begun at another merchant, or of the principal's own
// key. If it may write keys, the sessions of all keys of its merchant, or of the operator, follow. Each list has the
// newest ones up to a limit, and more reports whether there are others.
func (m *SessionManager) List(ctx context.Context, by Principal, limit int) (live []Session, more bool, err error) {
	filters := []SessionFilter{{PersonID: by.PersonID, KeyID: by.KeyID, Limit: limit + 1}}
	if by.Can(KeysWrite) {
		filters = append(filters, SessionFilter{MerchantID: by.MerchantID, Limit: limit + 1})
	}
	now := m.now()
	for _, f := range filters {
		all, err := Sessions(ctx, m.cfg.Store, f)
		if err != nil {
			return nil, false, err
		}
		more = more || len(all) > limit
		for _, s := range all[:min(len(all), limit)] {
			if !s.Ended(now) && !slices.ContainsFunc(live, func(other Session) bool { return other.ID == s.ID }) {
				live = append(live, s)
			}
		}
	}
	return live, more, nil
}

// End ends a session of the principal's own key or person, or one that List returns. Errors are
// db.ErrNotFound and internal ones.
func (m *SessionManager) End(ctx context.Context, by Principal, id string) error {
	return m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		s, err := findSession(ctx, tx, id)
		own := err == nil && (s.KeyID == by.KeyID || s.PersonID != "" && s.PersonID == by.PersonID)
		if err == nil && !own && (!by.Can(KeysWrite) || s.MerchantID != by.MerchantID) {
			err = db.ErrNotFound
		}
		if err != nil {
			return err
		}
		ended, err := endSessions(ctx, tx, m.now(), "id = $1", id)
		if err != nil {
			return err
		}
		return AppendAudit(ctx, tx, ended...)
	})
}

// TakeForm records that a form of a session was sent, and reports whether it was not sent just before,
// to this replica or another.
func (m *SessionManager) TakeForm(ctx context.Context, s Session, token string) (first bool, err error) {
	return takeForm(ctx, m.cfg.Store, s.ID, sessionHash(token))
}

// SetLanguage stores the language that the person of a session chose, or "" for the browser's.
func (m *SessionManager) SetLanguage(ctx context.Context, s Session, language string) error {
	return setSessionLanguage(ctx, m.cfg.Store, s, language)
}

// Clean deletes sessions, links and old requests for approval that have ended by a time, which must not jump forward.
func (m *SessionManager) Clean(ctx context.Context, now time.Time) error {
	return cleanSessions(ctx, m.cfg.Store, now.UTC(), sessionCleanBatch)
}

const (
	// sessionCleanBatch bounds how many rows Clean deletes.
	sessionCleanBatch = 1000
	// tokenSize is the randomness of a token, in bytes.
	tokenSize = 32
	// maxToken bounds a token that is looked up, in bytes.
	maxToken = 64
	// maxText bounds the stored texts of a browser, in bytes.
	maxText = 200
)

var encoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// newToken returns a new random token with a prefix.
func newToken(random io.Reader, prefix string) (string, error) {
	var bytes [tokenSize]byte
	if _, err := io.ReadFull(random, bytes[:]); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	return prefix + strings.ToLower(encoding.EncodeToString(bytes[:])), nil
}

// isToken reports whether a text may be a token with the prefix.
func isToken(text, prefix string) bool {
	return strings.HasPrefix(text, prefix) && len(text) <= maxToken
}

// sessionHash returns the hash of a token. Only the hash is stored.
func sessionHash(token string) TokenHash { return sha256.Sum256([]byte(token)) }

// shorten returns the stored form of a text that a browser sent.
func shorten(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}

// auditedSession is the audit log's form of a session.
type auditedSession struct {
	KeyID      string `json:"keyId,omitempty"`
	PersonID   string `json:"personId,omitempty"`
	ParentKeys string `json:"parentKeys,omitempty"`
	Client     string `json:"client,omitempty"`
	Browser    string `json:"browser,omitempty"`
	BeganBy    string `json:"beganBy"`
	ExpiresAt  int64  `json:"expiresAt"`
}

func sessionForAudit(s Session) auditedSession {
	return auditedSession{s.KeyID, s.PersonID, string(s.ParentKeys), s.Client, s.Browser, s.BeganBy, s.ExpiresAt.Unix()}
}

// VisitPause is how long a person must have been away before the next visit begins.
const VisitPause = 30 * time.Minute

// visitInterval is how old the stored time of a session's visit must be before it is replaced, so that
// pages that are loaded often do not cause as many writes.
const visitInterval = time.Minute

// Visited returns when the visit before the one of a session ended, or zero if Visit recorded none.
func (m *SessionManager) Visited(ctx context.Context, s Session) (before time.Time, err error) {
	own, _, err := sessionVisits(ctx, m.cfg.Store, s)
	return own.Before, err
}

// Visit records that the person of a session opened the dashboard's first page, and returns when the
// previous visit ended, or zero for the first visit.
func (m *SessionManager) Visit(ctx context.Context, s Session) (before time.Time, err error) {
	now := m.now()
	if own, _, err := sessionVisits(ctx, m.cfg.Store, s); err != nil || now.Sub(own.Last) < visitInterval {
		return own.Before, err
	}
	err = m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		own, last, err := sessionVisits(ctx, tx, s)
		if err != nil {
			return err
		}
		if own.Last.IsZero() || now.Sub(own.Last) >= VisitPause {
			own.Before = last
		}
		own.Last, before = now, own.Before
		return setSessionVisits(ctx, tx, s.ID, own)
	})
	return before, err
}
