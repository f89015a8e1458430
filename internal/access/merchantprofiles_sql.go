package access

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

const profileColumns = `p.merchant_id, p.name, p.color, p.support_contact, p.statement, p.tolerance, p.default_addresses, p.allowed_addresses,
	p.pending_addresses, p.pending_at, p.created_at, p.changed_at, p.return_hosts, p.collection, p.embed_origins, p.timezone, l.sha256, l.width, l.height`

const profileTables = " FROM merchant_profiles p LEFT JOIN merchant_logos l ON l.merchant_id = p.merchant_id"

// storedAddress is the JSON of an address in a merchant's list.
type storedAddress struct {
	ChainKey string `json:"chainKey"`
	Address  string `json:"address"`
}

func allowedText(all []invoice.AllowedAddress) (string, error) {
	stored := make([]storedAddress, len(all))
	for i, a := range all {
		stored[i] = storedAddress{a.ChainKey, a.Address.String()}
	}
	text, err := json.Marshal(stored)
	return string(text), err
}

func parseAllowed(text string) ([]invoice.AllowedAddress, error) {
	var stored []storedAddress
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, err
	}
	var all []invoice.AllowedAddress
	for _, s := range stored {
		a, err := invoice.ParseAddress(s.Address)
		if err != nil {
			return nil, err
		}
		all = append(all, invoice.AllowedAddress{ChainKey: s.ChainKey, Address: a})
	}
	return all, nil
}

func defaultsText(all map[string]invoice.Address) (string, error) {
	stored := make(map[string]string, len(all))
	for key, a := range all {
		stored[key] = a.String()
	}
	text, err := json.Marshal(stored)
	return string(text), err
}

func parseDefaults(text string) (map[string]invoice.Address, error) {
	var stored map[string]string
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, err
	}
	all := make(map[string]invoice.Address, len(stored))
	for key, s := range stored {
		a, err := invoice.ParseAddress(s)
		if err != nil {
			return nil, err
		}
		all[key] = a
	}
	return all, nil
}

func parseTexts(text string) (all []string, err error) {
	if text == "[]" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(text), &all)
	return all, err
}

func scanMerchant(row db.Scanner) (m invoice.Merchant, err error) {
	var pending invoice.PendingAddresses
	var logo invoice.Logo
	var width, height int64
	err = row.Scan(&m.ID, &m.Name, &m.Color, &m.SupportContact, &m.Statement, db.Parsed(&m.Tolerance, invoice.ParseTolerance),
		db.Parsed(&m.DefaultAddresses, parseDefaults),
		db.Parsed(&m.Allowed, parseAllowed), db.Parsed(&pending.Allowed, parseAllowed),
		db.Seconds(&pending.EffectiveAt), db.Seconds(&m.CreatedAt), db.Seconds(&m.ChangedAt),
		db.Parsed(&m.ReturnHosts, parseTexts), &m.Collection, db.Parsed(&m.EmbedOrigins, parseTexts), &m.Timezone, db.NullText(&logo.SHA256), db.NullInt(&width), db.NullInt(&height))
	if !pending.EffectiveAt.IsZero() {
		m.Pending = &pending
	}
	if logo.SHA256 != "" {
		logo.Width, logo.Height = int(width), int(height)
		m.Logo = &logo
	}
	return m, err
}

// Merchant returns a merchant that was created by command or through the API, or ErrNotFound. Its
// pending addresses may be due already.
func Merchant(ctx context.Context, q db.Querier, id string) (invoice.Merchant, error) {
	m, err := db.QueryRow(ctx, q, scanMerchant, "SELECT "+profileColumns+profileTables+" WHERE p.merchant_id = $1", id)
	if err != nil {
		return m, fmt.Errorf("merchant %s: %w", id, err)
	}
	return m, nil
}

// lockMerchant locks a merchant's profile until the transaction ends, and returns it, or
// ErrNotFound.
func lockMerchant(ctx context.Context, tx *db.Tx, id string) (invoice.Merchant, error) {
	if _, err := db.QueryAll(ctx, tx, db.ScanID, "SELECT merchant_id FROM merchant_profiles WHERE merchant_id = $1"+tx.ForUpdate(), id); err != nil {
		return invoice.Merchant{}, err
	}
	return Merchant(ctx, tx, id)
}

// merchants returns the merchants with ids greater than after, in the order of the ids.
func merchants(ctx context.Context, q db.Querier, after string, limit int) ([]invoice.Merchant, error) {
	all, err := db.QueryAll(ctx, q, scanMerchant, "SELECT "+profileColumns+profileTables+" WHERE p.merchant_id > $1 ORDER BY p.merchant_id LIMIT $2", after, limit)
	if err != nil {
		return nil, fmt.Errorf("list merchants: %w", err)
	}
	return all, nil
}

// InsertMerchant inserts a merchant's profile without its logo. It returns ErrConflict if
// the merchant has one. The merchant may own invoices already.
func InsertMerchant(ctx context.Context, tx *db.Tx, m invoice.Merchant) error {
	row, err := profileRow(m)
	if err != nil {
		return err
	}
	if err := tx.Insert(ctx, db.Insertion{Table: "merchants", Columns: []string{"id", "created_at"}, Conflict: "ON CONFLICT DO NOTHING"}, [][]any{{m.ID, m.CreatedAt.Unix()}}); err != nil {
		return err
	}
	n, err := tx.Exec(ctx, `INSERT INTO merchant_profiles (name, color, support_contact, statement, tolerance, default_addresses, allowed_addresses,
		pending_addresses, pending_at, changed_at, return_hosts, collection, embed_origins, timezone, merchant_id, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
		ON CONFLICT DO NOTHING`, append(row, m.CreatedAt.Unix())...)
	if err == nil && n == 0 {
		err = db.ErrConflict
	}
	return err
}

// updateMerchant stores a merchant's profile, except its logo. It returns ErrNotFound if the merchant
// has no profile.
func updateMerchant(ctx context.Context, tx *db.Tx, m invoice.Merchant) error {
	row, err := profileRow(m)
	if err != nil {
		return err
	}
	n, err := tx.Exec(ctx, `UPDATE merchant_profiles SET name = $1, color = $2, support_contact = $3, statement = $4, tolerance = $5,
		default_addresses = $6, allowed_addresses = $7, pending_addresses = $8, pending_at = $9, changed_at = $10, return_hosts = $11, collection = $12, embed_origins = $13, timezone = $14 WHERE merchant_id = $15`, row...)
	if err == nil && n == 0 {
		err = db.ErrNotFound
	}
	return err
}

// profileRow returns the columns of a profile that UpdateMerchant stores, and the id.
func profileRow(m invoice.Merchant) ([]any, error) {
	defaults, err := defaultsText(m.DefaultAddresses)
	if err != nil {
		return nil, err
	}
	allowed, err := allowedText(m.Allowed)
	if err != nil {
		return nil, err
	}
	var pending, pendingAt any
	if m.Pending != nil {
		text, err := allowedText(m.Pending.Allowed)
		if err != nil {
			return nil, err
		}
		pending, pendingAt = text, m.Pending.EffectiveAt.Unix()
	}
	hosts, err := textsText(m.ReturnHosts)
	if err != nil {
		return nil, err
	}
	origins, err := textsText(m.EmbedOrigins)
	if err != nil {
		return nil, err
	}
	return []any{m.Name, m.Color, m.SupportContact, m.Statement, m.Tolerance.String(), defaults, allowed, pending, pendingAt, m.ChangedAt.Unix(),
		hosts, string(cmp.Or(m.Collection, invoice.Direct)), origins, m.Timezone, m.ID}, nil
}

// textsText returns the JSON array of texts.
func textsText(all []string) (string, error) {
	if len(all) == 0 {
		return "[]", nil
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// putLogo stores a merchant's logo, a PNG.
func putLogo(ctx context.Context, tx *db.Tx, merchantID string, l invoice.Logo, png []byte) error {
	_, err := tx.Exec(ctx, `INSERT INTO merchant_logos (merchant_id, png, sha256, width, height) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (merchant_id) DO UPDATE SET png = excluded.png, sha256 = excluded.sha256, width = excluded.width, height = excluded.height`,
		merchantID, base64.StdEncoding.EncodeToString(png), l.SHA256, l.Width, l.Height)
	return err
}

// deleteLogo deletes a merchant's logo, if it has one.
func deleteLogo(ctx context.Context, tx *db.Tx, merchantID string) error {
	_, err := tx.Exec(ctx, "DELETE FROM merchant_logos WHERE merchant_id = $1", merchantID)
	return err
}

// LogoPNG returns a merchant's logo, or ErrNotFound.
func (q Reader) LogoPNG(ctx context.Context, merchantID string) ([]byte, error) {
	text, err := db.QueryRow(ctx, q, func(row db.Scanner) (text string, err error) {
		var found sql.NullString
		err = row.Scan(&found)
		return found.String, err
	}, "SELECT png FROM merchant_logos WHERE merchant_id = $1", merchantID)
	if err != nil {
		return nil, fmt.Errorf("logo of %s: %w", merchantID, err)
	}
	return base64.StdEncoding.DecodeString(text)
}
