package admin

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/keyring"
	"github.com/quittance/quittance/internal/store"
)

// AuditEntries returns the matching entries of the audit log in a service's database, newest
// first.
func AuditEntries(ctx context.Context, database string, f store.AuditFilter) (entries []access.Entry, err error) {
	err = withStore(ctx, database, func(db *store.Store) error {
		entries, err = db.AuditEntries(ctx, f)
		return err
	})
	return entries, err
}

// VerifyAudit reads the audit log in a service's database and returns its head. The error is
// an *access.FaultError if an entry was changed or removed, or is not one that the heads name. k
// verifies checkpoints, and may be nil. With archives, which are files in their order, the
// verification begins at the first entry of these.
func VerifyAudit(ctx context.Context, database string, k *keyring.Keyring, archives []string, heads ...access.Head) (head access.Head, err error) {
	with := store.AuditSources{Heads: heads}
	if k != nil {
		with.Signer = k
	}
	if len(archives) > 0 {
		with.Archive = readArchives(archives)
	}
	err = withStore(ctx, database, func(db *store.Store) error {
		head, err = db.VerifyAuditWith(ctx, with)
		return err
	})
	return head, err
}

// Storage lists what merchants have stored and their quotas. The first entry has the quotas of all
// other merchants.
func Storage(ctx context.Context, database string, limit int) (all []store.Storage, err error) {
	err = withStore(ctx, database, func(db *store.Store) error {
		all, err = db.Storage(ctx, "", limit)
		return err
	})
	return all, err
}

// SetQuotas sets the quotas of a merchant, or of all others if merchantID is empty; see
// store.Tx.SetQuotas.
func SetQuotas(ctx context.Context, database, merchantID string, auditBytes, invoices int64) error {
	return withStore(ctx, database, func(db *store.Store) error {
		return db.Update(ctx, func(tx *store.Tx) error {
			if err := tx.SetQuotas(ctx, merchantID, auditBytes, invoices); err != nil {
				return err
			}
			return tx.AppendAudit(ctx, access.NewEntry(ctx, time.Now(), access.Change{
				Action: access.ActionMerchantQuotas, Object: merchantID, After: auditedQuotas{auditBytes, invoices},
			}))
		})
	})
}

// auditedQuotas is the form of quotas in the audit log. A quota that did not change is 0.
type auditedQuotas struct {
	AuditBytes int64 `json:"auditBytes"`
	Invoices   int64 `json:"invoices"`
}
