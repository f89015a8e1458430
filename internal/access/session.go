package access

import (
	"sync"
	"time"
)

// Prefixes of identifiers and tokens.
const (
	PrefixSession      = "ses_" // of identifiers of sessions
	PrefixSessionToken = "qs_"  // of the tokens in cookies
	PrefixLinkToken    = "ql_"  // of the tokens in links that sign in
)

// Limits of sessions at the dashboard.
const (
	// SessionLifetime is how long a session lasts at most.
	SessionLifetime = 7 * 24 * time.Hour
	// SessionIdle is how long a session lasts without a request.
	SessionIdle = 12 * time.Hour
	// ConfirmedFor is how long after a sign-in or a confirmation a session may make dangerous changes.
	ConfirmedFor = 10 * time.Minute
	// SignInLinkLifetime is how long a link that signs in can be used.
	SignInLinkLifetime = 10 * time.Minute
	// MaxSessions bounds the sessions of a key. Another one ends the oldest.
	MaxSessions = 20
)

// Session is a browser in which somebody is signed in at the dashboard, by a key or as a Person. The
// session has the scopes of a key, which may be a membership, and ends with it and with its parent keys.
type Session struct {
	ID         string // PrefixSession and 26 characters
	KeyID      string // of the key or the membership; empty at a service that is open to all
	PersonID   string // of the person, who signed in without a key; or empty
	ParentKeys KeyIDs // the keys that made the link by which it began; the session ends with any of them
	MerchantID string // that the key belongs to, or empty for the operator
	Client     string // address from which the person signed in
	Browser    string // the browser's User-Agent at that time
	Language   string // chosen by the person, such as de, or empty
	BeganBy    string // ByKey, ByLink, ByInvitation, ByPasskey or ByProvider
	CreatedAt  time.Time
	// ConfirmedAt is when the person last proved to hold the key.
	ConfirmedAt time.Time
	UsedAt      time.Time // up to a minute late
	ExpiresAt   time.Time // regardless of use
}

// How a session began.
const (
	ByKey        = "key" // or by none, at a service that is open to all
	ByLink       = "link"
	ByInvitation = "invitation"
	ByPasskey    = "passkey"
	ByProvider   = "provider"
)

// Ended reports whether the session has expired at a time, or was idle for too long.
func (s Session) Ended(now time.Time) bool {
	return !now.Before(s.ExpiresAt) || !now.Before(s.UsedAt.Add(SessionIdle))
}

// Confirmed reports whether the session may make dangerous changes at a time. A confirmation by a clock
// that was set back since then does not last longer.
func (s Session) Confirmed(now time.Time) bool { return now.Sub(s.ConfirmedAt).Abs() < ConfirmedFor }

// MaxKnown bounds the tokens of sessions that a process caches. A dropped one is looked up like a new one.
const MaxKnown = MaxCached

// known are tokens of sessions that were found.
type known struct {
	mu     sync.Mutex
	tokens map[TokenHash]struct{}
}

func (k *known) has(token TokenHash) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.tokens[token]
	return ok
}

// add adds a token. Beyond MaxKnown it drops a random one.
func (k *known) add(token TokenHash) {
	k.mu.Lock()
	defer k.mu.Unlock()
	insert(k.tokens, token, struct{}{})
}

func (k *known) remove(token TokenHash) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.tokens, token)
}
