package access

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

const profileTables = " FROM merchant_profiles p LEFT JOIN merchant_logos l ON l.merchant_id = p.merchant_id"

// storedAddress is the JSON of an address in a merchant's list.
type storedAddress struct {
	ChainKey string `json:"chainKey"`
	Address  string `json:"address"`
}

func allowedText(all []invoice.AllowedAddress) string {
	stored := db.Each(all, func(a invoice.AllowedAddress) storedAddress {
		return storedAddress{a.ChainKey, a.Address.String()}
	})
	return db.JSONText(stored)
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

func defaultsText(all map[string]invoice.Address) string {
	stored := make(map[string]string, len(all))
	for key, a := range all {
		stored[key] = a.String()
	}
	return db.JSONText(stored)
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

// parseList reads a JSON array. An empty one is nil.
func parseList[T any](text string) (all []T, err error) {
	if text == "[]" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(text), &all)
	return all, err
}

var merchantTable = db.NewTable("merchant_profiles", func(m *invoice.Merchant) []db.Column {
	pending, logo := cmp.Or(m.Pending, new(invoice.PendingAddresses)), cmp.Or(m.Logo, new(invoice.Logo))
	defaults := cmp.Or(m.PendingDefaults, new(invoice.PendingDefaults))
	m.Pending, m.PendingDefaults, m.Logo = pending, defaults, logo
	m.Collection = cmp.Or(m.Collection, invoice.Direct)
	return []db.Column{
		db.Col("merchant_id", db.Text(&m.ID)),
		db.Col("name", db.Text(&m.Name)),
		db.Col("color", db.Text(&m.Color)),
		db.Col("support_contact", db.Text(&m.SupportContact)),
		db.Col("statement", db.Text(&m.Statement)),
		db.Col("tolerance", db.Code(&m.Tolerance, invoice.ParseTolerance, invoice.Tolerance.String)),
		db.Col("default_addresses", db.CodeOf(&m.DefaultAddresses, parseDefaults, defaultsText)),
		db.Col("allowed_addresses", db.CodeOf(&m.Allowed, parseAllowed, allowedText)),
		db.Col("pending_addresses", db.NullIf(func() bool { return pending.EffectiveAt.IsZero() }, db.CodeOf(&pending.Allowed, parseAllowed, allowedText))),
		db.Col("pending_at", db.Null(db.Seconds(&pending.EffectiveAt))),
		db.Col("pending_defaults", db.NullIf(func() bool { return defaults.EffectiveAt.IsZero() }, db.CodeOf(&defaults.Addresses, parseDefaults, defaultsText))),
		db.Col("pending_defaults_at", db.Null(db.Seconds(&defaults.EffectiveAt))),
		db.Col("created_at", db.Seconds(&m.CreatedAt)),
		db.Col("changed_at", db.Seconds(&m.ChangedAt)),
		db.Col("return_hosts", db.CodeOf(&m.ReturnHosts, parseList, listText)),
		db.Col("collection", db.Text(&m.Collection)),
		db.Col("embed_origins", db.CodeOf(&m.EmbedOrigins, parseList, listText)),
		db.Col("timezone", db.Text(&m.Timezone)),
		db.Col("reminder_hours", db.CodeOf(&m.ReminderHours, parseList, listText)),
		db.Expr("l.sha256", db.Text(&logo.SHA256)),
		db.Expr("l.width", db.Int(&logo.Width)),
		db.Expr("l.height", db.Int(&logo.Height)),
	}
}).Finished(func(m *invoice.Merchant) {
	if m.Pending.EffectiveAt.IsZero() {
		m.Pending = nil
	}
	if m.PendingDefaults.EffectiveAt.IsZero() {
		m.PendingDefaults = nil
	}
	if m.Logo.SHA256 == "" {
		m.Logo = nil
	}
})

// Merchant returns a merchant that was created by command or through the API, or ErrNotFound. Its
// pending addresses may be due already.
func Merchant(ctx context.Context, q db.Querier, id string) (invoice.Merchant, error) {
	m, err := db.QueryRow(ctx, q, merchantTable.Scan, "SELECT "+merchantTable.Of("p")+profileTables+" WHERE p.merchant_id = $1", id)
	if err != nil {
		return m, fmt.Errorf("merchant %s: %w", id, err)
	}
	return m, nil
}

// lockMerchant locks a merchant's profile until the transaction ends, and returns it, or ErrNotFound.
func lockMerchant(ctx context.Context, tx *db.Tx, id string) (invoice.Merchant, error) {
	if _, err := db.QueryAll(ctx, tx, db.ScanID, "SELECT merchant_id FROM merchant_profiles WHERE merchant_id = $1"+tx.ForUpdate(), id); err != nil {
		return invoice.Merchant{}, err
	}
	return Merchant(ctx, tx, id)
}

// merchants returns the merchants with ids greater than after, in the order of the ids.
func merchants(ctx context.Context, q db.Querier, after string, limit int) ([]invoice.Merchant, error) {
	all, err := db.QueryAll(ctx, q, merchantTable.Scan, "SELECT "+merchantTable.Of("p")+profileTables+" WHERE p.merchant_id > $1 ORDER BY p.merchant_id LIMIT $2", after, limit)
	return all, db.During("list merchants", err)
}

// InsertMerchant inserts a merchant's profile without its logo. It returns ErrConflict if
// the merchant has one. The merchant may own invoices already.
func InsertMerchant(ctx context.Context, tx *db.Tx, m invoice.Merchant) error {
	if err := tx.Insert(ctx, db.Insertion{Table: "merchants", Columns: []string{"id", "created_at"}, Conflict: "ON CONFLICT DO NOTHING"}, [][]any{{m.ID, m.CreatedAt.Unix()}}); err != nil {
		return err
	}
	return tx.InsertNew(ctx, merchantTable.Insertion("ON CONFLICT DO NOTHING"), merchantTable.Values(m))
}

// updateMerchant stores a merchant's profile, except its logo. It returns ErrNotFound if the merchant has no profile.
func updateMerchant(ctx context.Context, tx *db.Tx, m invoice.Merchant) error {
	n, err := merchantTable.Without("merchant_id", "created_at").Update(ctx, tx, m, "merchant_id = $1", m.ID)
	if err == nil && n == 0 {
		err = db.ErrNotFound
	}
	return err
}

// DropPendingAddresses cancels the changes of addresses that were not in force at a time: that of a backup, after which
// their merchants may have canceled them.
func DropPendingAddresses(ctx context.Context, tx *db.Tx, at, now time.Time) error {
	pending, err := db.QueryAll(ctx, tx, merchantTable.Scan, "SELECT "+merchantTable.Of("p")+profileTables+" WHERE p.pending_at > $1 OR p.pending_defaults_at > $1", at.Unix())
	if err != nil {
		return fmt.Errorf("find pending addresses: %w", err)
	}
	for _, was := range pending {
		is := was.At(at)
		is.Pending, is.PendingDefaults = nil, nil
		if err := updateMerchant(ctx, tx, is); err != nil {
			return err
		}
		change := Change{MerchantID: was.ID, Action: ActionPendingDrop, Object: was.ID, Before: merchantForAudit(was), After: merchantForAudit(is)}
		if err := AppendAudit(ctx, tx, NewEntry(ctx, now, change)); err != nil {
			return err
		}
	}
	return nil
}

// listText returns a JSON array.
func listText[T any](all []T) string {
	if len(all) == 0 {
		return "[]"
	}
	return db.JSONText(all)
}

// putLogo stores a merchant's logo, a PNG.
func putLogo(ctx context.Context, tx *db.Tx, merchantID string, l invoice.Logo, png []byte) error {
	return tx.Do(ctx, `INSERT INTO merchant_logos (merchant_id, png, sha256, width, height) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (merchant_id) DO UPDATE SET png = excluded.png, sha256 = excluded.sha256, width = excluded.width, height = excluded.height`,
		merchantID, base64.StdEncoding.EncodeToString(png), l.SHA256, l.Width, l.Height)
}

// deleteLogo deletes a merchant's logo, if it has one.
func deleteLogo(ctx context.Context, tx *db.Tx, merchantID string) error {
	return tx.Do(ctx, "DELETE FROM merchant_logos WHERE merchant_id = $1", merchantID)
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
