package access

import (
	"context"
	"errors"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/quittance/quittance/internal/db"
)

var passkeyTable = db.NewTable("passkeys", func(k *Passkey) []db.Column {
	return []db.Column{
		db.Col("id", db.Text(&k.ID)),
		db.Col("person_id", db.Text(&k.PersonID)),
		db.Col("name", db.Text(&k.Name)),
		db.Col("credential", db.JSON(&k.Credential)),
		db.Col("created_at", db.Seconds(&k.CreatedAt)),
		db.Col("used_at", db.Null(db.Seconds(&k.UsedAt))),
	}
})

// passkeysOf returns the passkeys of a person, the first one first.
func passkeysOf(ctx context.Context, q db.Querier, personID string) ([]Passkey, error) {
	return db.QueryAll(ctx, q, passkeyTable.Scan, passkeyTable.Select()+" WHERE person_id = $1 ORDER BY created_at, id LIMIT $2", personID, MaxPasskeys)
}

// countPasskeys returns how many passkeys a person has.
func countPasskeys(ctx context.Context, q db.Querier, personID string) (int, error) {
	return db.QueryRow(ctx, q, db.ScanCount, "SELECT count(*) FROM passkeys WHERE person_id = $1", personID)
}

// insertPasskey stores a new passkey. It returns ErrTooManyPasskeys beyond MaxPasskeys, and ErrConflict if
// there is a passkey with its id.
func insertPasskey(ctx context.Context, tx *db.Tx, k Passkey) error {
	if err := lockPerson(ctx, tx, k.PersonID); err != nil {
		return err
	}
	n, err := countPasskeys(ctx, tx, k.PersonID)
	if err != nil {
		return err
	}
	if n >= MaxPasskeys {
		return ErrTooManyPasskeys
	}
	return tx.InsertNew(ctx, passkeyTable.Insertion("ON CONFLICT DO NOTHING"), passkeyTable.Values(k))
}

// usePasskey stores a passkey after a use, with its new counter. It returns ErrPasskey if the passkey was
// removed, or a copy of it was used, since the answer was checked.
func usePasskey(ctx context.Context, tx *db.Tx, personID string, c webauthn.Credential, at time.Time) error {
	k, err := db.QueryRow(ctx, tx, passkeyTable.Scan, passkeyTable.Select()+" WHERE id = $1 AND person_id = $2"+tx.ForUpdate(), passkeyID(c.ID), personID)
	count := c.Authenticator.SignCount
	if errors.Is(err, db.ErrNotFound) || err == nil && count > 0 && count <= k.Credential.Authenticator.SignCount {
		return ErrPasskey
	}
	if err != nil {
		return err
	}
	k.Credential, k.UsedAt = c, at
	_, err = passkeyTable.Only("credential", "used_at").Update(ctx, tx, k, "id = $1", k.ID)
	return err
}

// deletePasskey deletes a passkey of a person, and returns it, or ErrNotFound.
func deletePasskey(ctx context.Context, tx *db.Tx, personID, id string) (Passkey, error) {
	return db.QueryRow(ctx, tx, passkeyTable.Scan, "DELETE FROM passkeys WHERE id = $1 AND person_id = $2 RETURNING "+passkeyTable.List(), id, personID)
}

// unconfirmOtherSessions makes the person of a session confirm dangerous changes in all other sessions anew.
func unconfirmOtherSessions(ctx context.Context, tx *db.Tx, s Session) error {
	return tx.Do(ctx, "UPDATE sessions SET confirmed_at = 0 WHERE person_id = $1 AND id <> $2", s.PersonID, s.ID)
}

// endOtherSessions deletes the sessions and the links of the person of a session, except the session, as
// endSessions does.
func endOtherSessions(ctx context.Context, tx *db.Tx, s Session, now time.Time) ([]Entry, error) {
	if _, err := tx.Exec(ctx, "DELETE FROM sign_in_links WHERE person_id = $1", s.PersonID); err != nil {
		return nil, err
	}
	return endSessions(ctx, tx, now, "person_id = $1 AND id <> $2", s.PersonID, s.ID)
}

var ceremonyTable = db.NewTable("passkey_ceremonies", func(c *Ceremony) []db.Column {
	return []db.Column{
		db.Col("purpose", db.Text(&c.Purpose)),
		db.Col("session_id", db.Null(db.Text(&c.SessionID))),
		db.Col("data", db.JSON(&c.Data)),
		db.Col("expires_at", db.Seconds(&c.ExpiresAt)),
	}
})

// insertCeremony stores a ceremony, and deletes those that have expired. In a session it replaces the
// earlier one. To sign in, it deletes the oldest beyond MaxCeremonies, so that strangers who begin many do
// not keep others from signing in, nor people with a session from confirming.
func insertCeremony(ctx context.Context, tx *db.Tx, c Ceremony, token TokenHash, now time.Time) error {
	if _, err := tx.Exec(ctx, "DELETE FROM passkey_ceremonies WHERE expires_at <= $1 OR session_id = $2", now.Unix(), db.OrNull(c.SessionID)); err != nil {
		return err
	}
	if c.SessionID == "" {
		_, err := tx.Exec(ctx, `DELETE FROM passkey_ceremonies WHERE token_hash IN (SELECT token_hash FROM passkey_ceremonies
			WHERE session_id IS NULL ORDER BY expires_at DESC, token_hash LIMIT $1 OFFSET $2)`, MaxCeremonies, MaxCeremonies-1)
		if err != nil {
			return err
		}
	}
	return tx.Insert(ctx, ceremonyTable.Insertion("", "token_hash"), [][]any{ceremonyTable.Values(c, token.text())})
}

// takeCeremony deletes a ceremony that has not expired, and returns it, or ErrNotFound.
func takeCeremony(ctx context.Context, tx *db.Tx, token TokenHash, now time.Time) (Ceremony, error) {
	return db.QueryRow(ctx, tx, ceremonyTable.Scan, "DELETE FROM passkey_ceremonies WHERE token_hash = $1 AND expires_at > $2 RETURNING "+ceremonyTable.List(),
		token.text(), now.Unix())
}
