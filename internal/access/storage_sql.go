package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/limits"
)

// Quotas of merchants without own quotas. The operator can set others.
const (
	// DefaultAuditQuota is how many bytes a merchant's keys may add to the audit log. Everything that a
	// key can do repeatedly writes an entry, except creating invoices.
	DefaultAuditQuota = 1 << 30
	// DefaultInvoiceQuota bounds the invoices of a merchant.
	DefaultInvoiceQuota = 10_000_000
)

// Names of the quotas, in refusals and metrics.
const (
	AuditQuotaName   = "audit_storage"
	InvoiceQuotaName = "invoice_storage"
)

// Quotas are the names of all quotas.
var Quotas = []string{AuditQuotaName, InvoiceQuotaName}

// auditOverhead is about how many bytes an entry of the audit log takes in addition to its texts, for
// hashes, numbers and indexes.
const auditOverhead = 400

// auditSize returns the size of entries in bytes.
func auditSize(entries []Entry) (n int64) {
	for _, e := range entries {
		n += int64(auditOverhead + len(e.Actor) + len(e.Client) + len(e.RequestID) + len(e.Object) + len(e.Before) + len(e.After))
	}
	return n
}

// retryQuota is the Retry-After beyond a quota, in seconds. Only the operator can raise a quota, so this is a guess.
const retryQuota = "3600"

// stopping are the acts that only take access away, or end what another act began.
var stopping = []Action{
	ActionKeyRevoke, ActionSessionEnd, ActionPasskeyRemove, ActionAccountRemove, ActionUninvite, ActionPendingDrop, ActionRefundCancel,
	ActionApprovalRefuse, ActionInboxUndo, ActionLinkArchive, ActionSecretDrop,
}

// countAudit counts entries against a merchant's quota if the merchant's key caused them. A stolen key could use it up.
// So it never refuses an act that only stops something, or the sign-in of a person, and keeps a tenth for people.
func countAudit(ctx context.Context, tx *db.Tx, entries []Entry) error {
	by := FromContext(ctx)
	counts := func(e Entry) bool {
		return !slices.Contains(stopping, e.Action) && (e.Action != ActionSessionBegin || by.PersonID == "")
	}
	if by.MerchantID == "" || !slices.ContainsFunc(entries, counts) {
		return nil
	}
	quota := "coalesce(merchant_storage.audit_quota, (SELECT d.audit_quota FROM merchant_storage AS d WHERE d.merchant_id = ''))"
	if by.PersonID == "" {
		quota += " / 10 * 9"
	}
	n, err := tx.Exec(ctx, `INSERT INTO merchant_storage (merchant_id, audit_bytes) VALUES ($1, $2)
		ON CONFLICT (merchant_id) DO UPDATE SET audit_bytes = merchant_storage.audit_bytes + excluded.audit_bytes
		WHERE merchant_storage.audit_bytes + excluded.audit_bytes <= `+quota, by.MerchantID, auditSize(entries))
	if err != nil {
		return fmt.Errorf("count what the audit log takes: %w", err)
	}
	if n == 0 {
		return &limits.ExceededError{Limit: AuditQuotaName, RetryAfter: retryQuota}
	}
	return nil
}

// Storage is how much a merchant has stored, and its quotas.
type Storage struct {
	MerchantID   string // empty: the quotas of merchants without own ones
	AuditBytes   int64
	AuditQuota   int64
	OwnAudit     bool // the quota is the merchant's own
	Invoices     int64
	InvoiceQuota int64
	OwnInvoices  bool // the quota is the merchant's own
	countedTo    string
}

var storageTable = db.NewTable("merchant_storage", func(s *Storage) []db.Column {
	return []db.Column{
		db.Col("merchant_id", db.Text(&s.MerchantID)),
		db.Col("audit_bytes", db.Int(&s.AuditBytes)),
		db.Expr("coalesce(s.audit_quota, d.audit_quota)", db.Int(&s.AuditQuota)),
		db.Expr("CASE WHEN s.audit_quota > 0 THEN 1 ELSE 0 END", db.Bool(&s.OwnAudit)),
		db.Col("invoices", db.Int(&s.Invoices)),
		db.Expr("coalesce(s.invoice_quota, d.invoice_quota)", db.Int(&s.InvoiceQuota)),
		db.Expr("CASE WHEN s.invoice_quota > 0 THEN 1 ELSE 0 END", db.Bool(&s.OwnInvoices)),
		db.Col("counted_to", db.Text(&s.countedTo)),
	}
})

// selectStorage begins a statement that reads rows of merchant_storage with their quotas.
var selectStorage = "SELECT " + storageTable.Of("s") + " FROM merchant_storage AS s JOIN merchant_storage AS d ON d.merchant_id = '' "

// ListStorage lists up to limit merchants that have stored something or have own quotas, with ids after the
// given one. The first, with the empty id, has the quotas of all others.
func ListStorage(ctx context.Context, q db.Querier, after string, limit int) ([]Storage, error) {
	return db.QueryAll(ctx, q, storageTable.Scan, selectStorage+"WHERE s.merchant_id >= $1 ORDER BY s.merchant_id LIMIT $2", after, limit)
}

// MerchantStorage returns what a merchant has stored, and its quotas.
func (q Reader) MerchantStorage(ctx context.Context, merchantID string) (Storage, error) {
	known, err := db.QueryRow(ctx, q, storageTable.Scan, selectStorage+"WHERE s.merchant_id = $1", merchantID)
	if errors.Is(err, db.ErrNotFound) { // it has not stored anything
		known, err = db.QueryRow(ctx, q, storageTable.Scan, selectStorage+"WHERE s.merchant_id = ''")
		known = Storage{MerchantID: merchantID, AuditQuota: known.AuditQuota, InvoiceQuota: known.InvoiceQuota}
	}
	if err != nil {
		return Storage{}, fmt.Errorf("read the storage of %s: %w", merchantID, err)
	}
	return known, nil
}

// SetQuotas sets the quotas of a merchant, or of all merchants without own ones if merchantID is
// empty. A quota of 0 stays as it is, and a quota below 0 becomes the quota of all.
func SetQuotas(ctx context.Context, tx *db.Tx, merchantID string, auditBytes, invoices int64) error {
	if merchantID != "" {
		if err := addStorage(ctx, tx, merchantID); err != nil {
			return err
		}
	}
	for column, quota := range map[string]int64{"audit_quota": auditBytes, "invoice_quota": invoices} {
		if quota == 0 {
			continue
		}
		if _, err := tx.Exec(ctx, "UPDATE merchant_storage SET "+column+" = $2 WHERE merchant_id = $1", merchantID, db.OrNull(max(quota, 0))); err != nil {
			return err
		}
	}
	return nil
}

// addStorage adds the row of a merchant, unless it exists.
func addStorage(ctx context.Context, tx *db.Tx, merchantID string) error {
	return tx.Do(ctx, "INSERT INTO merchant_storage (merchant_id) VALUES ($1) ON CONFLICT (merchant_id) DO NOTHING", merchantID)
}

// countBatch is the largest number of invoices that one call of CountInvoices counts.
const countBatch = 50_000

// CountInvoices counts the invoices of a merchant that were made since the last call, and returns
// what it has stored. more is set if there may be others. Invoices that are being made are counted
// with the next ones, or not at all: the quota is about millions.
func CountInvoices(ctx context.Context, s *db.DB, merchantID string) (stored Storage, more bool, err error) {
	known, err := NewReader(s).MerchantStorage(ctx, merchantID)
	if err != nil {
		return Storage{}, false, err
	}
	type count struct {
		n    int64
		last string
	}
	found, err := db.QueryRow(ctx, s, db.Fields(func(c *count) []any { return []any{&c.n, db.Text(&c.last)} }), `SELECT count(*), max(id) FROM (SELECT id FROM invoices WHERE merchant_id = $1 AND id > $2 ORDER BY id LIMIT $3) AS newer`,
		merchantID, known.countedTo, countBatch)
	if err != nil || found.n == 0 {
		return known, false, err
	}
	err = s.Update(ctx, func(tx *db.Tx) error { // by one replica
		if err := addStorage(ctx, tx, merchantID); err != nil {
			return err
		}
		return tx.Do(ctx, "UPDATE merchant_storage SET invoices = invoices + $2, counted_to = $3 WHERE merchant_id = $1 AND counted_to = $4",
			merchantID, found.n, found.last, known.countedTo)
	})
	known.Invoices += found.n
	return known, found.n == countBatch, err
}

// RecountAudit counts again how much of the audit log merchants' keys caused, after entries were archived.
func RecountAudit(ctx context.Context, s *db.DB) error {
	return s.Update(ctx, func(tx *db.Tx) error {
		if _, err := readAuditHead(ctx, tx, tx.ForUpdate()); err != nil {
			return err
		}
		return tx.Do(ctx, `UPDATE merchant_storage SET audit_bytes = (SELECT coalesce(sum($1 + length(e.actor) + length(e.client) + length(e.request_id) + length(e.object)
				+ length(e.before) + length(e.after)), 0)
			FROM audit_entries AS e JOIN api_keys AS k ON k.id = e.actor AND k.merchant_id = e.merchant_id
			WHERE e.merchant_id = merchant_storage.merchant_id) WHERE audit_bytes > 0`, auditOverhead)
	})
}

// QuotaInterval is how often the invoices of a merchant are counted while it makes some.
const QuotaInterval = 10 * time.Second
