package store

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/access"
)

// sessionUseInterval is how old the stored last use of a session must be to be replaced,
// in seconds.
const sessionUseInterval = 60

const sessionColumns = "id, key_id, parent_keys, merchant_id, client, browser, language, created_at, confirmed_at, used_at, expires_at"

func scanSession(row scanner) (s access.Session, err error) {
	err = row.Scan(&s.ID, &s.KeyID, &s.ParentKeys, nullText(&s.MerchantID), &s.Client, &s.Browser, &s.Language, seconds{&s.CreatedAt}, seconds{&s.ConfirmedAt},
		seconds{&s.UsedAt}, seconds{&s.ExpiresAt})
	return s, err
}

// TokenHash is the SHA-256 hash of a token of a session or of a link that signs in.
type TokenHash [access.HashSize]byte

func (h TokenHash) text() string { return hex.EncodeToString(h[:]) }

// SessionByToken returns the session whose token has a hash, or ErrNotFound. It may have
// ended.
func (q *queries) SessionByToken(ctx context.Context, token TokenHash) (access.Session, error) {
	return queryRow(ctx, q, scanSession, "SELECT "+sessionColumns+" FROM sessions WHERE token_hash = $1", token.text())
}

// Session returns a session, or ErrNotFound. It may have ended.
func (q *queries) Session(ctx context.Context, id string) (access.Session, error) {
	return queryRow(ctx, q, scanSession, "SELECT "+sessionColumns+" FROM sessions WHERE id = $1", id)
}

// SessionFilter selects sessions of a key or, without a key, of a merchant, or of the
// operator if both are empty.
type SessionFilter struct {
	KeyID, MerchantID string
	Before            string // a session's id; those listed began before it
	Limit             int
}

// Sessions lists sessions, the last that began first. Some may have ended.
func (q *queries) Sessions(ctx context.Context, f SessionFilter) ([]access.Session, error) {
	w := where{}
	switch {
	case f.KeyID != "":
		w.equal("key_id", f.KeyID)
	case f.MerchantID != "":
		w.equal("merchant_id", f.MerchantID)
	default:
		w.conditions = append(w.conditions, "merchant_id IS NULL")
	}
	w.below("id", f.Before)
	return queryAll(ctx, q, scanSession, "SELECT "+sessionColumns+" FROM sessions"+w.text()+" ORDER BY id DESC LIMIT "+parameter(w.next()), append(w.args, f.Limit)...)
}

// InsertSession stores a new session, and deletes the oldest of its key beyond
// access.MaxSessions.
func (tx *Tx) InsertSession(ctx context.Context, s access.Session, token TokenHash) error {
	if err := tx.insert(ctx, insertion{table: "sessions", columns: append(strings.Split(sessionColumns, ", "), "token_hash")}, [][]any{{
		s.ID, s.KeyID, string(s.ParentKeys), orNull(s.MerchantID), s.Client, s.Browser, s.Language, s.CreatedAt.Unix(), s.ConfirmedAt.Unix(), s.UsedAt.Unix(), s.ExpiresAt.Unix(),
		token.text(),
	}}); err != nil {
		return err
	}
	_, err := tx.exec(ctx, `DELETE FROM sessions WHERE key_id = $1 AND id <=
		(SELECT id FROM sessions WHERE key_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)`, s.KeyID, access.MaxSessions)
	return err
}

// RecordSessionUse stores when a session was last used, except if a use within the last
// minute is stored.
func (s *Store) RecordSessionUse(ctx context.Context, id string, at time.Time) error {
	return s.Update(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, "UPDATE sessions SET used_at = $2 WHERE id = $1 AND used_at <= $3", id, at.Unix(), at.Unix()-sessionUseInterval)
		return err
	})
}

// ConfirmSession stores that the person of a session proved to hold the key.
func (s *Store) ConfirmSession(ctx context.Context, id string, at time.Time) error {
	return s.updateSession(ctx, "UPDATE sessions SET confirmed_at = $2 WHERE id = $1", id, at.Unix())
}

// SetSessionLanguage stores the language that the person of a session chose.
func (s *Store) SetSessionLanguage(ctx context.Context, id, language string) error {
	return s.updateSession(ctx, "UPDATE sessions SET language = $2 WHERE id = $1", id, language)
}

// TakeForm stores the form that a session has sent last, and reports whether it was not the last
// one before.
func (s *Store) TakeForm(ctx context.Context, id string, form TokenHash) (first bool, err error) {
	err = s.updateSession(ctx, "UPDATE sessions SET last_form = $2 WHERE id = $1 AND (last_form IS NULL OR last_form <> $2)", id, form.text())
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// updateSession executes a statement that changes one session, or returns ErrNotFound.
func (s *Store) updateSession(ctx context.Context, statement string, args ...any) error {
	return s.Update(ctx, func(tx *Tx) error {
		n, err := tx.exec(ctx, statement, args...)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		return err
	})
}

// DeleteSession deletes a session, and reports whether there was one.
func (tx *Tx) DeleteSession(ctx context.Context, id string) (bool, error) {
	n, err := tx.exec(ctx, "DELETE FROM sessions WHERE id = $1", id)
	return n > 0, err
}

// SignInLink has the stored data of a link by which a person signs in, except its token.
type SignInLink struct {
	KeyID      string        // of the person
	ParentKeys access.KeyIDs // the other keys that gave its maker access
	ExpiresAt  time.Time
}

func scanSignInLink(row scanner) (l SignInLink, err error) {
	err = row.Scan(&l.KeyID, &l.ParentKeys, seconds{&l.ExpiresAt})
	return l, err
}

// InsertSignInLink stores a link.
func (tx *Tx) InsertSignInLink(ctx context.Context, token TokenHash, l SignInLink) error {
	return tx.insert(ctx, insertion{table: "sign_in_links", columns: []string{"token_hash", "key_id", "parent_keys", "expires_at"}}, [][]any{{
		token.text(), l.KeyID, string(l.ParentKeys), l.ExpiresAt.Unix(),
	}})
}

// SignInLink returns a link that has not expired, or ErrNotFound.
func (q *queries) SignInLink(ctx context.Context, token TokenHash, now time.Time) (SignInLink, error) {
	return queryRow(ctx, q, scanSignInLink, "SELECT key_id, parent_keys, expires_at FROM sign_in_links WHERE token_hash = $1 AND expires_at > $2", token.text(), now.Unix())
}

// TakeSignInLink deletes a link that has not expired, and returns it, or ErrNotFound.
func (tx *Tx) TakeSignInLink(ctx context.Context, token TokenHash, now time.Time) (SignInLink, error) {
	return queryRow(ctx, &tx.queries, scanSignInLink, "DELETE FROM sign_in_links WHERE token_hash = $1 AND expires_at > $2 RETURNING key_id, parent_keys, expires_at",
		token.text(), now.Unix())
}

// CleanSessions deletes up to limit sessions that have ended, and as many links that have
// expired.
func (s *Store) CleanSessions(ctx context.Context, now time.Time, limit int) error {
	idle := now.Add(-access.SessionIdle)
	return s.Update(ctx, func(tx *Tx) error {
		if _, err := tx.exec(ctx, "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at <= $1 OR used_at <= $2 LIMIT $3)", now.Unix(), idle.Unix(), limit); err != nil {
			return err
		}
		_, err := tx.exec(ctx, "DELETE FROM sign_in_links WHERE token_hash IN (SELECT token_hash FROM sign_in_links WHERE expires_at <= $1 LIMIT $2)", now.Unix(), limit)
		return err
	})
}

// Visits are when the person of a session last opened the dashboard's first page, and when
// the visit before ended. They are zero if there was none.
type Visits struct{ Last, Before time.Time }

// SessionVisits returns the visits of a session, and the last one of any session of its
// key.
func (q *queries) SessionVisits(ctx context.Context, s access.Session) (own Visits, last time.Time, err error) {
	own, err = queryRow(ctx, q, func(row scanner) (v Visits, err error) {
		err = row.Scan(seconds{&v.Last}, seconds{&v.Before})
		return v, err
	}, "SELECT visited_at, visited_before FROM sessions WHERE id = $1", s.ID)
	if err != nil {
		return Visits{}, time.Time{}, err
	}
	last, err = queryRow(ctx, q, func(row scanner) (at time.Time, err error) {
		err = row.Scan(seconds{&at})
		return at, err
	}, "SELECT max(visited_at) FROM sessions WHERE key_id = $1", s.KeyID)
	return own, last, err
}

// SetSessionVisits stores the visits of a session.
func (tx *Tx) SetSessionVisits(ctx context.Context, id string, v Visits) error {
	_, err := tx.exec(ctx, "UPDATE sessions SET visited_at = $2, visited_before = $3 WHERE id = $1", id, orNull(v.Last), orNull(v.Before))
	return err
}

// EndSessions ends all sessions and links that sign in.
func (tx *Tx) EndSessions(ctx context.Context) error {
	for _, table := range []string{"sessions", "sign_in_links"} {
		if _, err := tx.exec(ctx, "DELETE FROM "+table); err != nil {
			return fmt.Errorf("end the %s: %w", table, err)
		}
	}
	return nil
}
