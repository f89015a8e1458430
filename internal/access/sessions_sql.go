package access

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// sessionUseInterval is the age in seconds from which a stored last use of a session is replaced.
const sessionUseInterval = 60

var sessionTable = db.NewTable("sessions", func(s *Session) []db.Column {
	return []db.Column{
		db.Col("id", db.Text(&s.ID)),
		db.Col("key_id", db.Text(&s.KeyID)),
		db.Col("person_id", db.Null(db.Text(&s.PersonID))),
		db.Col("parent_keys", db.Text(&s.ParentKeys)),
		db.Col("merchant_id", db.Null(db.Text(&s.MerchantID))),
		db.Col("client", db.Text(&s.Client)),
		db.Col("browser", db.Text(&s.Browser)),
		db.Col("language", db.Text(&s.Language)),
		db.Col("began_by", db.Text(&s.BeganBy)),
		db.Col("created_at", db.Seconds(&s.CreatedAt)),
		db.Col("confirmed_at", db.Seconds(&s.ConfirmedAt)),
		db.Col("used_at", db.Seconds(&s.UsedAt)),
		db.Col("expires_at", db.Seconds(&s.ExpiresAt)),
	}
})

// TokenHash is the SHA-256 hash of a token of a session or of a link that signs in.
type TokenHash [HashSize]byte

func (h TokenHash) text() string { return hex.EncodeToString(h[:]) }

// sessionByToken returns the session with the hash of a token, or ErrNotFound. It may have ended.
func sessionByToken(ctx context.Context, q db.Querier, token TokenHash) (Session, error) {
	return db.QueryRow(ctx, q, sessionTable.Scan, sessionTable.Select()+" WHERE token_hash = $1", token.text())
}

// findSession returns a session, or ErrNotFound. It may have ended.
func findSession(ctx context.Context, q db.Querier, id string) (Session, error) {
	return db.QueryRow(ctx, q, sessionTable.Scan, sessionTable.Select()+" WHERE id = $1", id)
}

// SessionFilter selects sessions of a person, else of a key, else of a merchant, or of the operator if all are empty.
type SessionFilter struct {
	PersonID, KeyID, MerchantID string

	Limit int
}

// Sessions lists sessions, the last that began first. Some may have ended.
func Sessions(ctx context.Context, q db.Querier, f SessionFilter) ([]Session, error) {
	w := db.Where{}
	switch {
	case f.PersonID != "":
		w.Equal("person_id", f.PersonID)
	case f.KeyID != "":
		w.Equal("key_id", f.KeyID)
	case f.MerchantID != "":
		w.Equal("merchant_id", f.MerchantID)
	default:
		w.Conditions = append(w.Conditions, "merchant_id IS NULL")
	}
	return db.QueryAll(ctx, q, sessionTable.Scan, sessionTable.Select()+w.Text()+" ORDER BY id DESC LIMIT "+db.Parameter(w.Next()), append(w.Args, f.Limit)...)
}

// insertSession stores a new session, and ends the oldest of its key beyond MaxSessions as endSessions does.
func insertSession(ctx context.Context, tx *db.Tx, s Session, token TokenHash) ([]Entry, error) {
	if err := tx.Insert(ctx, sessionTable.Insertion("", "token_hash"), [][]any{sessionTable.Values(s, token.text())}); err != nil {
		return nil, err
	}
	return endSessions(ctx, tx, s.CreatedAt, "key_id = $1 AND id <= (SELECT id FROM sessions WHERE key_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)", s.KeyID, MaxSessions)
}

// endSessions deletes the sessions that meet a condition, and returns the entries of the audit log, by which their open
// pages end.
func endSessions(ctx context.Context, tx *db.Tx, now time.Time, condition string, args ...any) (entries []Entry, err error) {
	ended, err := db.QueryAll(ctx, tx, sessionTable.Scan, "DELETE FROM sessions WHERE "+condition+" RETURNING "+sessionTable.List(), args...)
	for _, s := range ended {
		entries = append(entries, NewEntry(ctx, now, Change{MerchantID: s.MerchantID, Action: ActionSessionEnd, Object: s.ID, Before: sessionForAudit(s)}))
	}
	return entries, err
}

// recordSessionUse stores when a session was last used, unless a use within the last minute is stored.
func recordSessionUse(ctx context.Context, s *db.DB, id string, at time.Time) error {
	return s.Update(ctx, func(tx *db.Tx) error {
		return tx.Do(ctx, "UPDATE sessions SET used_at = $2 WHERE id = $1 AND used_at <= $3", id, at.Unix(), at.Unix()-sessionUseInterval)
	})
}

// ConfirmSession stores that the person using a session proved to hold the key.
func ConfirmSession(ctx context.Context, s *db.DB, id string, at time.Time) error {
	return updateSession(ctx, s, "UPDATE sessions SET confirmed_at = $2 WHERE id = $1", id, at.Unix())
}

// setSessionLanguage stores the language that the person using a session chose.
func setSessionLanguage(ctx context.Context, store *db.DB, s Session, language string) error {
	return store.Update(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(ctx, "UPDATE sessions SET language = $2 WHERE id = $1", s.ID, language)
		if err == nil && n == 0 {
			err = db.ErrNotFound
		}
		if err == nil && s.PersonID != "" && language != "" {
			err = setPersonLanguage(ctx, tx, s.PersonID, language)
		}
		return err
	})
}

// takeForm stores a form as the last one that the session sent, and reports whether it differs from the one before.
func takeForm(ctx context.Context, s *db.DB, id string, form TokenHash) (first bool, err error) {
	err = updateSession(ctx, s, "UPDATE sessions SET last_form = $2 WHERE id = $1 AND (last_form IS NULL OR last_form <> $2)", id, form.text())
	return err == nil, db.IgnoreNotFound(err)
}

// updateSession executes a statement that changes one session, or returns ErrNotFound.
func updateSession(ctx context.Context, s *db.DB, statement string, args ...any) error {
	return s.Update(ctx, func(tx *db.Tx) error {
		return tx.Change(ctx, statement, args...)
	})
}

// SignInLink is the stored data of a sign-in link, except its token.
type SignInLink struct {
	KeyID      string // of the key or the membership
	PersonID   string // of the person to whom it was mailed; or empty
	ParentKeys KeyIDs // the other keys that gave its maker access
	ExpiresAt  time.Time
}

var signInLinkTable = db.NewTable("sign_in_links", func(l *SignInLink) []db.Column {
	return []db.Column{
		db.Col("key_id", db.Text(&l.KeyID)),
		db.Col("person_id", db.Null(db.Text(&l.PersonID))),
		db.Col("parent_keys", db.Text(&l.ParentKeys)),
		db.Col("expires_at", db.Seconds(&l.ExpiresAt)),
	}
})

// insertSignInLink stores a link.
func insertSignInLink(ctx context.Context, tx *db.Tx, token TokenHash, l SignInLink) error {
	return tx.Insert(ctx, signInLinkTable.Insertion("", "token_hash"), [][]any{signInLinkTable.Values(l, token.text())})
}

// findSignInLink returns a link that has not expired, or ErrNotFound.
func findSignInLink(ctx context.Context, q db.Querier, token TokenHash, now time.Time) (SignInLink, error) {
	return db.QueryRow(ctx, q, signInLinkTable.Scan, signInLinkTable.Select()+" WHERE token_hash = $1 AND expires_at > $2", token.text(), now.Unix())
}

// takeSignInLink deletes a link that has not expired, and returns it, or ErrNotFound.
func takeSignInLink(ctx context.Context, tx *db.Tx, token TokenHash, now time.Time) (SignInLink, error) {
	return db.QueryRow(ctx, tx, signInLinkTable.Scan, "DELETE FROM sign_in_links WHERE token_hash = $1 AND expires_at > $2 RETURNING "+signInLinkTable.List(),
		token.text(), now.Unix())
}

// cleanSessions deletes up to limit sessions that have ended, up to limit links, invitations and uses
// of passkeys that have expired, and up to limit old requests for approval.
func cleanSessions(ctx context.Context, s *db.DB, now time.Time, limit int) error {
	idle := now.Add(-SessionIdle)
	return s.Update(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at <= $1 OR used_at <= $2 LIMIT $3)", now.Unix(), idle.Unix(), limit); err != nil {
			return err
		}
		for _, table := range []string{"sign_in_links", "invitations", "passkey_ceremonies"} {
			if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE token_hash IN (SELECT token_hash FROM "+table+" WHERE expires_at <= $1 LIMIT $2)", now.Unix(), limit); err != nil {
				return err
			}
		}
		return tx.Do(ctx, "DELETE FROM approvals WHERE id IN (SELECT id FROM approvals WHERE expires_at <= $1 LIMIT $2)", now.Add(-ApprovalKept).Unix(), limit)
	})
}

// Visits are when the person of a session last opened the dashboard's first page, and when the
// previous visit ended. They are zero without a visit.
type Visits struct{ Last, Before time.Time }

// sessionVisits returns the visits of a session, and the last one of any session of its key.
func sessionVisits(ctx context.Context, q db.Querier, s Session) (own Visits, last time.Time, err error) {
	own, err = db.QueryRow(ctx, q, db.Fields(func(v *Visits) []any {
		return []any{db.Seconds(&v.Last), db.Seconds(&v.Before)}
	}), "SELECT visited_at, visited_before FROM sessions WHERE id = $1", s.ID)
	if err != nil {
		return Visits{}, time.Time{}, err
	}
	last, err = db.QueryRow(ctx, q, db.ScanTime, "SELECT max(visited_at) FROM sessions WHERE key_id = $1", s.KeyID)
	return own, last, err
}

// setSessionVisits stores the visits of a session.
func setSessionVisits(ctx context.Context, tx *db.Tx, id string, v Visits) error {
	return tx.Do(ctx, "UPDATE sessions SET visited_at = $2, visited_before = $3 WHERE id = $1", id, db.OrNull(v.Last), db.OrNull(v.Before))
}

// EndSessions ends all sessions, sign-in links, invitations, uses of passkeys and requests for approval, which may have been
// used since a backup, and disconnects all accounts.
func EndSessions(ctx context.Context, tx *db.Tx) error {
	for _, table := range []string{"sessions", "sign_in_links", "invitations", "passkey_ceremonies", "accounts", "approvals"} {
		if _, err := tx.Exec(ctx, "DELETE FROM "+table); err != nil {
			return fmt.Errorf("end the %s: %w", table, err)
		}
	}
	return nil
}

// savedFilters returns up to limit filters of a list that the person with a key saved, in the order of their names.
func savedFilters(ctx context.Context, q db.Querier, keyID string, list string, limit int) ([]SavedFilter, error) {
	return db.QueryAll(ctx, q, func(row db.Scanner) (f SavedFilter, err error) {
		err = row.Scan(&f.Name, &f.Query, db.Seconds(&f.CreatedAt))
		f.List = list
		return f, err
	}, "SELECT name, query, created_at FROM saved_filters WHERE key_id = $1 AND list = $2 ORDER BY name LIMIT $3", keyID, list, limit)
}

// PutSavedFilter stores a filter. It replaces one with the same list and name.
func PutSavedFilter(ctx context.Context, tx *db.Tx, keyID string, f SavedFilter) error {
	return tx.Insert(ctx, db.Insertion{
		Table: "saved_filters", Columns: []string{"key_id", "list", "name", "query", "created_at"}, Conflict: "ON CONFLICT (key_id, list, name) DO UPDATE SET query = excluded.query",
	}, [][]any{{keyID, f.List, f.Name, f.Query, f.CreatedAt.Unix()}})
}

// deleteSavedFilter deletes a filter, if there is one.
func deleteSavedFilter(ctx context.Context, tx *db.Tx, keyID string, list string, name string) error {
	return tx.Do(ctx, "DELETE FROM saved_filters WHERE key_id = $1 AND list = $2 AND name = $3", keyID, list, name)
}
