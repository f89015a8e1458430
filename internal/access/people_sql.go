package access

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
)

var personTable = db.NewTable("people", func(p *Person) []db.Column {
	return []db.Column{
		db.Col("id", db.Text(&p.ID)),
		db.Col("email", db.Text(&p.Email)),
		db.Col("name", db.Text(&p.Name)),
		db.Col("created_at", db.Seconds(&p.CreatedAt)),
		db.Col("language", db.Text(&p.Language)),
	}
})

// setPersonLanguage stores the language in which a person reads the pages.
func setPersonLanguage(ctx context.Context, tx *db.Tx, id, language string) error {
	return tx.Do(ctx, "UPDATE people SET language = $2 WHERE id = $1 AND language <> $2", id, language)
}

// findPerson returns a person, or ErrNotFound.
func findPerson(ctx context.Context, q db.Querier, id string) (Person, error) {
	return db.QueryRow(ctx, q, personTable.Scan, personTable.Select()+" WHERE id = $1", id)
}

// PersonWithPasskeys returns a person and the person's passkeys, the first one first, or ErrNotFound.
func (q Reader) PersonWithPasskeys(ctx context.Context, id string) (Person, []Passkey, error) {
	p, err := findPerson(ctx, q, id)
	if err != nil {
		return p, nil, err
	}
	keys, err := passkeysOf(ctx, q, id)
	return p, keys, err
}

// ofFormer selects the rows of people without an active membership at the time $1.
var ofFormer = " WHERE person_id NOT IN (SELECT person_id FROM api_keys WHERE person_id IS NOT NULL AND " + activeAt("$1") + ")"

// RemoveFormerPasskeys deletes the passkeys of people without an active membership.
func RemoveFormerPasskeys(ctx context.Context, tx *db.Tx, now time.Time) error {
	return tx.Do(ctx, "DELETE FROM passkeys"+ofFormer, now.Unix())
}

// endFormerAccounts deletes the accounts of people without an active membership, and writes that to the audit log of the
// merchant that made them former ones, or else of the operator.
func endFormerAccounts(ctx context.Context, tx *db.Tx, merchantID string, now time.Time) error {
	ended, err := db.QueryAll(ctx, tx, accountTable.Scan, "DELETE FROM accounts"+ofFormer+" RETURNING "+accountTable.List(), now.Unix())
	if err != nil {
		return err
	}
	entries := db.Each(ended, func(a Account) Entry {
		return NewEntry(ctx, now, Change{MerchantID: merchantID, Action: ActionAccountRemove, Object: a.PersonID, Before: a})
	})
	return AppendAudit(ctx, tx, entries...)
}

// personByEmail returns the person with an e-mail address in lower case, or ErrNotFound.
func personByEmail(ctx context.Context, q db.Querier, email string) (Person, error) {
	return db.QueryRow(ctx, q, personTable.Scan, personTable.Select()+" WHERE email = $1", email)
}

var accountTable = db.NewTable("accounts", func(a *Account) []db.Column {
	return []db.Column{
		db.Col("person_id", db.Text(&a.PersonID)),
		db.Col("issuer", db.Text(&a.Issuer)),
		db.Col("subject", db.Text(&a.Subject)),
		db.Col("name", db.Text(&a.Name)),
		db.Col("connected_at", db.Seconds(&a.ConnectedAt)),
		db.Col("used_at", db.Null(db.Seconds(&a.UsedAt))),
	}
})

// findAccount returns the account of a provider, or ErrNotFound.
func findAccount(ctx context.Context, q db.Querier, issuer, subject string) (Account, error) {
	return db.QueryRow(ctx, q, accountTable.Scan, accountTable.Select()+" WHERE issuer = $1 AND subject = $2", issuer, subject)
}

// accountsOf returns the account of a person, if there is one.
func accountsOf(ctx context.Context, q db.Querier, personID string) ([]Account, error) {
	return db.QueryAll(ctx, q, accountTable.Scan, accountTable.Select()+" WHERE person_id = $1", personID)
}

// insertAccount stores an account. It returns ErrConflict if it is a person's, or the person has one.
func insertAccount(ctx context.Context, tx *db.Tx, a Account) error {
	return tx.InsertNew(ctx, accountTable.Insertion("ON CONFLICT DO NOTHING"), accountTable.Values(a))
}

// deleteAccount deletes the account of a person, and returns it, or ErrNotFound.
func deleteAccount(ctx context.Context, tx *db.Tx, personID string) (Account, error) {
	return db.QueryRow(ctx, tx, accountTable.Scan, "DELETE FROM accounts WHERE person_id = $1 RETURNING "+accountTable.List(), personID)
}

// useAccount stores that an account was used. It returns ErrAccount if it was removed since it was found.
func useAccount(ctx context.Context, tx *db.Tx, a Account) error {
	n, err := accountTable.Only("used_at").Update(ctx, tx, a, "person_id = $1 AND issuer = $2 AND subject = $3", a.PersonID, a.Issuer, a.Subject)
	if err == nil && n == 0 {
		err = ErrAccount
	}
	return err
}

// lockPerson keeps other transactions from adding passkeys of a person, and from signing in by mail.
func lockPerson(ctx context.Context, tx *db.Tx, id string) error {
	_, err := db.QueryAll(ctx, tx, db.ScanID, "SELECT id FROM people WHERE id = $1"+tx.ForUpdate(), id)
	return err
}

// forgetSignIns deletes the passkeys, sessions and links of a person, and returns the passkeys, and the entries of the
// audit log of the sessions.
func forgetSignIns(ctx context.Context, tx *db.Tx, personID string, now time.Time) ([]Passkey, []Entry, error) {
	entries, err := endOtherSessions(ctx, tx, Session{PersonID: personID}, now)
	if err != nil {
		return nil, nil, err
	}
	passkeys, err := db.QueryAll(ctx, tx, passkeyTable.Scan, "DELETE FROM passkeys WHERE person_id = $1 RETURNING "+passkeyTable.List(), personID)
	return passkeys, entries, err
}

// insertPerson stores a new person.
func insertPerson(ctx context.Context, tx *db.Tx, p Person) error {
	return personTable.Insert(ctx, tx, "", p)
}

var membershipTable = db.NewTable("api_keys", func(m *Membership) []db.Column {
	return []db.Column{
		db.Col("id", db.Text(&m.KeyID)),
		db.Col("merchant_id", db.Null(db.Text(&m.MerchantID))),
		db.Col("scopes", db.Code(&m.Scopes, parseScopes, Scopes.String)),
		db.Expr("p.name", db.Null(db.Text(&m.MerchantName))),
	}
})

// memberships returns a person's active memberships, the operator's first, and then in the order in which they began.
func memberships(ctx context.Context, q db.Querier, personID string, now time.Time) ([]Membership, error) {
	return db.QueryAll(ctx, q, membershipTable.Scan, "SELECT "+membershipTable.Of("k")+` FROM api_keys k
		LEFT JOIN merchant_profiles p ON p.merchant_id = k.merchant_id
		WHERE k.person_id = $1 AND `+activeAt("$2")+`
		ORDER BY k.merchant_id IS NOT NULL, k.id LIMIT $3`,
		personID, now.Unix(), MaxMemberships)
}

// unrevokedKeys returns the keys of a person for a merchant, or the operator, that were not revoked.
func unrevokedKeys(ctx context.Context, q db.Querier, personID, merchantID string) ([]Record, error) {
	return db.QueryAll(ctx, q, keyTable.Scan, keyTable.Select()+" WHERE person_id = $1 AND coalesce(merchant_id, '') = $2 AND revoked_at IS NULL", personID, merchantID)
}

var invitationTable = db.NewTable("invitations", func(i *Invitation) []db.Column {
	return []db.Column{
		db.Col("id", db.Text(&i.ID)),
		db.Col("email", db.Text(&i.Email)),
		db.Col("name", db.Text(&i.Name)),
		db.Col("merchant_id", db.Null(db.Text(&i.MerchantID))),
		db.Expr("(SELECT p.name FROM merchant_profiles p WHERE p.merchant_id = invitations.merchant_id)", db.Null(db.Text(&i.Merchant))),
		db.Col("scopes", db.Code(&i.Scopes, parseScopes, Scopes.String)),
		db.Col("key_id", db.Text(&i.KeyID)),
		db.Col("parent_keys", db.Text(&i.ParentKeys)),
		db.Col("created_at", db.Seconds(&i.CreatedAt)),
		db.Col("expires_at", db.Seconds(&i.ExpiresAt)),
	}
})

// deleteInvitations deletes the invitations of an address by a merchant, or by the operator, and returns them.
func deleteInvitations(ctx context.Context, tx *db.Tx, merchantID, email string) ([]Invitation, error) {
	return db.QueryAll(ctx, tx, invitationTable.Scan, "DELETE FROM invitations WHERE coalesce(merchant_id, '') = $1 AND email = $2 RETURNING "+invitationTable.List(), merchantID, email)
}

// insertInvitation stores an invitation.
func insertInvitation(ctx context.Context, tx *db.Tx, i Invitation, token TokenHash) error {
	return tx.Insert(ctx, invitationTable.Insertion("", "token_hash"), [][]any{invitationTable.Values(i, token.text())})
}

// invitations lists the invitations of a merchant, or of the operator, that have not expired, newest first.
func invitations(ctx context.Context, q db.Querier, merchantID string, now time.Time, limit int) ([]Invitation, error) {
	return db.QueryAll(ctx, q, invitationTable.Scan, invitationTable.Select()+
		" WHERE coalesce(merchant_id, '') = $1 AND expires_at > $2 ORDER BY id DESC LIMIT $3", merchantID, now.Unix(), limit)
}

// findInvitation returns an invitation that has not expired, or ErrNotFound.
func findInvitation(ctx context.Context, q db.Querier, token TokenHash, now time.Time) (Invitation, error) {
	return db.QueryRow(ctx, q, invitationTable.Scan, invitationTable.Select()+" WHERE token_hash = $1 AND expires_at > $2", token.text(), now.Unix())
}

// takeInvitation deletes an invitation that has not expired, and returns it, or ErrNotFound.
func takeInvitation(ctx context.Context, tx *db.Tx, token TokenHash, now time.Time) (Invitation, error) {
	return db.QueryRow(ctx, tx, invitationTable.Scan, "DELETE FROM invitations WHERE token_hash = $1 AND expires_at > $2 RETURNING "+invitationTable.List(),
		token.text(), now.Unix())
}

// deleteInvitation deletes an invitation of a merchant, or of the operator, and returns it, or ErrNotFound.
func deleteInvitation(ctx context.Context, tx *db.Tx, merchantID, id string) (Invitation, error) {
	return db.QueryRow(ctx, tx, invitationTable.Scan, "DELETE FROM invitations WHERE id = $1 AND coalesce(merchant_id, '') = $2 RETURNING "+invitationTable.List(), id, merchantID)
}
