package webhooks

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// EndpointRow is the webhook endpoint of a merchant.
type EndpointRow struct {
	MerchantID string
	URL        string
	Optional   []invoice.EventType // optional types of events that it is sent
	ChangedAt  time.Time
	Secrets    []SecretRow // the newest first
	Headers    SecretRow   // encrypted under HeadersVersion; zero without any
}

// SecretState is the state of a secret.
type SecretState string

// A secret becomes active, and retires when another one replaces it.
const (
	SecretStaged   SecretState = "staged"
	SecretActive   SecretState = "active"
	SecretRetiring SecretState = "retiring"
)

// SecretRow is a version of a merchant's webhook secret.
type SecretRow struct {
	MerchantID string
	Version    int64  // from 1
	Sealed     []byte // encrypted for the merchant and version
	KeyID      string // of the master key that it is encrypted under
	State      SecretState
	CreatedAt  time.Time
	ValidUntil time.Time // how long a retiring one still signs; zero for others
	// ReplacedAt is when it replaced others, because their master key was lost. It is zero for others, and
	// once the endpoint has answered a ping.
	ReplacedAt time.Time
}

// endpoints returns the endpoints of the merchants that have one, with their secrets.
func endpoints(ctx context.Context, q db.Querier, merchantIDs []string) (map[string]EndpointRow, error) {
	found := make(map[string]EndpointRow)
	err := db.InBatches(merchantIDs, "", func(part []string) error {
		rows, err := db.QueryAll(ctx, q, db.Fields(func(e *EndpointRow) []any {
			return []any{&e.MerchantID, &e.URL, db.Seconds(&e.ChangedAt), eventTypes{&e.Optional}}
		}), "SELECT merchant_id, url, changed_at, optional_events FROM endpoints WHERE merchant_id IN "+db.ParameterList(0, len(part)), db.ToAny(part)...)
		for _, e := range rows {
			found[e.MerchantID] = e
		}
		return err
	})
	if err != nil || len(found) == 0 {
		return found, err
	}
	having := make([]string, 0, len(found))
	for id := range found {
		having = append(having, id)
	}
	secrets, err := Secrets(ctx, q, having)
	if err != nil {
		return nil, err
	}
	headers, err := headers(ctx, q, having)
	for id, e := range found {
		e.Secrets, e.Headers = secrets[id], headers[id]
		found[id] = e
	}
	return found, err
}

// OptionalEvents returns the optional event types that the merchants' stored endpoints receive. It
// leaves out merchants without any.
func OptionalEvents(ctx context.Context, q db.Querier, merchantIDs []string) (map[string][]invoice.EventType, error) {
	found := make(map[string][]invoice.EventType)
	return found, db.InBatches(merchantIDs, "", func(part []string) error {
		_, err := db.QueryAll(ctx, q, func(row db.Scanner) (id string, err error) {
			var types []invoice.EventType
			err = row.Scan(&id, eventTypes{&types})
			found[id] = types
			return id, err
		}, "SELECT merchant_id, optional_events FROM endpoints WHERE optional_events <> '' AND merchant_id IN "+db.ParameterList(0, len(part)), db.ToAny(part)...)
		return err
	})
}

// eventTypes is a column of event types, separated by commas.
type eventTypes struct{ dst *[]invoice.EventType }

// Scan sets the types, to nil for an empty text.
func (e eventTypes) Scan(value any) error {
	var text sql.NullString
	if err := text.Scan(value); err != nil {
		return err
	}
	*e.dst = nil
	for name := range strings.SplitSeq(text.String, ",") {
		if name != "" {
			*e.dst = append(*e.dst, invoice.EventType(name))
		}
	}
	return nil
}

// eventTypesText returns what eventTypes reads: the types in order, each once.
func eventTypesText(types []invoice.EventType) string {
	names := db.Each(types, func(t invoice.EventType) string { return string(t) })
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// Seal creates and encrypts a new secret for a version.
type Seal func(version int64) (sealed []byte, keyID string, err error)

// PutEndpoint stores a merchant's endpoint. Another URL resets its circuit breaker; the same one ends a pause. If the
// merchant has no active secret, PutEndpoint creates one and reports that. A nil e.Optional keeps the stored optional
// types. e.Secrets is ignored.
func PutEndpoint(ctx context.Context, tx *db.Tx, e EndpointRow, seal Seal) (first bool, err error) {
	var optional any // NULL keeps what is stored
	if e.Optional != nil {
		optional = eventTypesText(e.Optional)
	}
	if err = resumeBreaker(ctx, tx, e); err != nil {
		return false, fmt.Errorf("set the endpoint of %s: %w", e.MerchantID, err)
	}
	if _, err = tx.Exec(ctx, `INSERT INTO endpoints (merchant_id, url, changed_at, optional_events) VALUES ($1, $2, $3, COALESCE(CAST($4 AS TEXT), ''))
		ON CONFLICT (merchant_id) DO UPDATE SET url = excluded.url, changed_at = excluded.changed_at,
			optional_events = COALESCE(CAST($4 AS TEXT), endpoints.optional_events)`, e.MerchantID, e.URL, invoice.UnixSeconds(e.ChangedAt), optional); err == nil {
		_, err = insertSecret(ctx, tx, SecretRow{MerchantID: e.MerchantID, State: SecretActive, CreatedAt: e.ChangedAt}, seal)
		first = err == nil
	}
	if err != nil && !errors.Is(err, db.ErrConflict) {
		return false, fmt.Errorf("set the endpoint of %s: %w", e.MerchantID, err)
	}
	return first, nil
}

// lockEndpoint locks a merchant's endpoint, if it has one, until the transaction ends.
func lockEndpoint(ctx context.Context, tx *db.Tx, merchantID string) error {
	_, err := db.QueryAll(ctx, tx, db.ScanID, "SELECT merchant_id FROM endpoints WHERE merchant_id = $1"+tx.ForUpdate(), merchantID)
	return err
}

// resumeBreaker forgets the breaker of another URL than the endpoint's, and ends a pause of the same URL.
func resumeBreaker(ctx context.Context, tx *db.Tx, e EndpointRow) error {
	n, err := tx.Exec(ctx, "UPDATE breakers SET until_ms = 0 WHERE merchant_id = $1 AND EXISTS (SELECT 1 FROM endpoints WHERE merchant_id = $1 AND url = $2)", e.MerchantID, e.URL)
	if err != nil || n > 0 {
		return err
	}
	return forgetBreaker(ctx, tx, e.MerchantID)
}

func forgetBreaker(ctx context.Context, tx *db.Tx, merchantID string) error {
	return tx.Do(ctx, "DELETE FROM breakers WHERE merchant_id = $1", merchantID)
}

var secretTable = db.NewTable("endpoint_secrets", func(r *SecretRow) []db.Column {
	return []db.Column{
		db.Col("merchant_id", db.Text(&r.MerchantID)),
		db.Col("version", db.Int(&r.Version)),
		db.Col("sealed", db.Base64(&r.Sealed)),
		db.Col("key_id", db.Text(&r.KeyID)),
		db.Col("state", db.Text(&r.State)),
		db.Col("created_at", db.Seconds(&r.CreatedAt)),
		db.Col("valid_until", db.Null(db.Seconds(&r.ValidUntil))),
		db.Col("replaced_at", db.Null(db.Seconds(&r.ReplacedAt))),
	}
})

// Secrets returns the merchants' secrets, the newest first.
func Secrets(ctx context.Context, q db.Querier, merchantIDs []string) (map[string][]SecretRow, error) {
	found := make(map[string][]SecretRow)
	return found, db.InBatches(merchantIDs, "", func(part []string) error {
		rows, err := db.QueryAll(ctx, q, secretTable.Scan, secretTable.Select()+" WHERE merchant_id IN "+
			db.ParameterList(0, len(part))+" ORDER BY merchant_id, version DESC", db.ToAny(part)...)
		for _, r := range rows {
			found[r.MerchantID] = append(found[r.MerchantID], r)
		}
		return err
	})
}

// stageSecret inserts a staged secret under the merchant's next version, which
// it returns. It returns ErrConflict if the merchant has a staged secret.
func stageSecret(ctx context.Context, tx *db.Tx, merchantID string, now time.Time, seal Seal) (version int64, err error) {
	version, err = insertSecret(ctx, tx, SecretRow{MerchantID: merchantID, State: SecretStaged, CreatedAt: now}, seal)
	if err != nil {
		return 0, fmt.Errorf("stage a webhook secret of %s: %w", merchantID, err)
	}
	return version, nil
}

// insertSecret inserts a secret under the merchant's next version. It returns
// ErrConflict if the merchant has a secret in that state.
func insertSecret(ctx context.Context, tx *db.Tx, r SecretRow, seal Seal) (version int64, err error) {
	last, err := db.QueryRow(ctx, tx, db.One(db.Int[int64]), "SELECT max(version) FROM endpoint_secrets WHERE merchant_id = $1", r.MerchantID)
	if err != nil {
		return 0, err
	}
	r.Version = last + 1
	if r.Sealed, r.KeyID, err = seal(r.Version); err != nil {
		return 0, err
	}
	return r.Version, tx.InsertNew(ctx, secretTable.Insertion("ON CONFLICT DO NOTHING"), secretTable.Values(r))
}

// ErrURLChanged is returned by PromoteSecret if the endpoint's URL was changed.
var ErrURLChanged = errors.New("the endpoint has another URL by now")

// promoteSecret activates the staged secret, after the endpoint at the URL has proved that it knows it. The previously
// active secret still signs until a time. Of the secrets that it replaced, only the newest maxRetiring are kept.
// PromoteSecret returns ErrConflict if that secret is not staged, even if another secret has its version, because
// versions of dropped secrets are reused. It returns ErrURLChanged if the endpoint has another URL.
func promoteSecret(ctx context.Context, tx *db.Tx, staged SecretRow, url string, validUntil time.Time) error {
	sealed := base64.StdEncoding.EncodeToString(staged.Sealed)
	at, err := db.QueryRow(ctx, tx, db.ScanID, "SELECT url FROM endpoints WHERE merchant_id = $1"+tx.ForUpdate(), staged.MerchantID)
	switch {
	case err != nil:
		return fmt.Errorf("endpoint of %s: %w", staged.MerchantID, err)
	case at != url:
		return fmt.Errorf("promote webhook secret %d of %s: %w", staged.Version, staged.MerchantID, ErrURLChanged)
	}
	if _, err := tx.Exec(ctx, `UPDATE endpoint_secrets SET state = 'retiring', valid_until = $3, replaced_at = NULL WHERE merchant_id = $1 AND state = 'active'
		AND EXISTS (SELECT 1 FROM endpoint_secrets AS staged WHERE staged.merchant_id = $1 AND staged.version = $2 AND staged.state = 'staged' AND staged.sealed = $4)`,
		staged.MerchantID, staged.Version, invoice.UnixSeconds(validUntil), sealed); err != nil {
		return err
	}
	n, err := tx.Exec(ctx, "UPDATE endpoint_secrets SET state = 'active' WHERE merchant_id = $1 AND version = $2 AND state = 'staged' AND sealed = $3",
		staged.MerchantID, staged.Version, sealed)
	if err == nil && n == 0 {
		err = fmt.Errorf("promote webhook secret %d of %s: %w", staged.Version, staged.MerchantID, db.ErrConflict)
	}
	if err == nil {
		_, err = tx.Exec(ctx, `DELETE FROM endpoint_secrets WHERE merchant_id = $1 AND state = 'retiring' AND version <= (SELECT version
			FROM endpoint_secrets WHERE merchant_id = $1 AND state = 'retiring' ORDER BY version DESC LIMIT 1 OFFSET $2)`, staged.MerchantID, maxRetiring)
	}
	return err
}

// dropStagedSecret deletes the merchant's staged secret. It returns ErrNotFound if no secret is staged.
func dropStagedSecret(ctx context.Context, tx *db.Tx, merchantID string) error {
	return tx.Change(ctx, "DELETE FROM endpoint_secrets WHERE merchant_id = $1 AND state = 'staged'", merchantID)
}

// DropRetiredSecrets deletes the secrets that no longer sign and returns their number.
func (s Tables) DropRetiredSecrets(ctx context.Context, now time.Time) (n int64, err error) {
	err = s.DB.Update(ctx, func(tx *db.Tx) (err error) {
		n, err = tx.Exec(ctx, "DELETE FROM endpoint_secrets WHERE state = 'retiring' AND valid_until < $1", now.Unix())
		return err
	})
	return n, err
}

// masterKeyIDs returns the ids of the master keys under which secrets and headers of endpoints are encrypted.
func masterKeyIDs(ctx context.Context, q db.Querier) ([]string, error) {
	return db.QueryAll(ctx, q, db.ScanID, "SELECT key_id FROM endpoint_secrets UNION SELECT key_id FROM endpoint_headers ORDER BY key_id")
}

// merchantsSealedUnder returns up to limit merchants, in the order of their ids after the given one,
// that have secrets or headers encrypted under one of the master keys.
func merchantsSealedUnder(ctx context.Context, q db.Querier, after string, keyIDs []string, limit int) ([]string, error) {
	of := "SELECT merchant_id FROM %s WHERE merchant_id > $1 AND key_id IN " + db.ParameterList(1, len(keyIDs))
	return db.QueryAll(ctx, q, db.ScanID, fmt.Sprintf(of+" UNION "+of+" ORDER BY merchant_id LIMIT %d", "endpoint_secrets", "endpoint_headers", limit),
		append([]any{after}, db.ToAny(keyIDs)...)...)
}

// replaceLostSecrets deletes the merchant's secrets and headers that are encrypted under one of the master keys.
// If the merchant has no active secret then, it creates one and reports that.
func replaceLostSecrets(ctx context.Context, tx *db.Tx, merchantID string, keyIDs []string, now time.Time, seal Seal) (replaced bool, err error) {
	args := append([]any{merchantID}, db.ToAny(keyIDs)...)
	for _, table := range []string{"endpoint_secrets", "endpoint_headers"} {
		if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE merchant_id = $1 AND key_id IN "+db.ParameterList(1, len(keyIDs)), args...); err != nil {
			return false, err
		}
	}
	_, err = insertSecret(ctx, tx, SecretRow{MerchantID: merchantID, State: SecretActive, CreatedAt: now, ReplacedAt: now}, seal)
	if errors.Is(err, db.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

// confirmSecret records that the merchant's endpoint knows the active secret, which has replaced others.
func confirmSecret(ctx context.Context, tx *db.Tx, merchantID string) error {
	return tx.Do(ctx, "UPDATE endpoint_secrets SET replaced_at = NULL WHERE merchant_id = $1 AND state = 'active'", merchantID)
}

// secretsNotUnder returns up to limit secrets, and then headers, that are not
// encrypted under the master key, for replaceSealed.
func secretsNotUnder(ctx context.Context, q db.Querier, keyID string, limit int) ([]SecretRow, error) {
	found, err := db.QueryAll(ctx, q, secretTable.Scan, secretTable.Select()+" WHERE key_id <> $1 ORDER BY merchant_id, version LIMIT $2", keyID, limit)
	if err != nil || len(found) > 0 {
		return found, err
	}
	return db.QueryAll(ctx, q, headersTable.Scan, headersTable.Select()+" WHERE key_id <> $1 ORDER BY merchant_id LIMIT $2", keyID, limit)
}

// replaceSealed stores the new encryption of a secret or of headers. It returns ErrConflict if the
// stored encryption is not old.
func replaceSealed(ctx context.Context, tx *db.Tx, r, old SecretRow) error {
	text, args := "UPDATE endpoint_headers SET sealed = $2, key_id = $3 WHERE merchant_id = $1 AND sealed = $4",
		[]any{r.MerchantID, base64.StdEncoding.EncodeToString(r.Sealed), r.KeyID, base64.StdEncoding.EncodeToString(old.Sealed)}
	if r.Version != HeadersVersion {
		text, args = "UPDATE endpoint_secrets SET sealed = $2, key_id = $3 WHERE merchant_id = $1 AND sealed = $4 AND version = $5", append(args, r.Version)
	}
	n, err := tx.Exec(ctx, text, args...)
	if err == nil && n == 0 {
		err = db.ErrConflict
	}
	return err
}

// HeadersVersion is the version under which the headers of an endpoint are encrypted. Versions of secrets begin with 1.
const HeadersVersion = 0

// headersTable has the headers of endpoints, as secrets.
var headersTable = db.NewTable("endpoint_headers", func(r *SecretRow) []db.Column {
	return []db.Column{
		db.Col("merchant_id", db.Text(&r.MerchantID)),
		db.Col("sealed", db.Base64(&r.Sealed)),
		db.Col("key_id", db.Text(&r.KeyID)),
	}
})

// headers returns the encrypted headers of the merchants' endpoints that have headers.
func headers(ctx context.Context, q db.Querier, merchantIDs []string) (map[string]SecretRow, error) {
	found := make(map[string]SecretRow)
	return found, db.InBatches(merchantIDs, "", func(part []string) error {
		rows, err := db.QueryAll(ctx, q, headersTable.Scan, headersTable.Select()+" WHERE merchant_id IN "+db.ParameterList(0, len(part)), db.ToAny(part)...)
		for _, r := range rows {
			found[r.MerchantID] = r
		}
		return err
	})
}

// putHeaders replaces the encrypted headers of a merchant's endpoint. Without r.Sealed, it removes them.
func putHeaders(ctx context.Context, tx *db.Tx, r SecretRow) error {
	var err error
	if len(r.Sealed) > 0 {
		err = headersTable.Insert(ctx, tx, "ON CONFLICT (merchant_id) DO UPDATE SET "+headersTable.Without("merchant_id").Excluded(), r)
	} else {
		_, err = tx.Exec(ctx, "DELETE FROM endpoint_headers WHERE merchant_id = $1", r.MerchantID)
	}
	if err != nil {
		return fmt.Errorf("set the headers of the endpoint of %s: %w", r.MerchantID, err)
	}
	return nil
}
