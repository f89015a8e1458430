package admin

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
)

// VerifyAudit reads the audit log in a service's database and returns its head. The error is
// an *access.FaultError if an entry was changed or removed, or is not one that the heads name. k
// verifies checkpoints, and may be nil. With archives, which are files in their order, the
// verification begins at the first entry of these.
func VerifyAudit(ctx context.Context, database string, k *access.Keyring, archives []string, heads ...access.Head) (head access.Head, err error) {
	with := access.AuditSources{Signer: k, Heads: heads}
	if len(archives) > 0 {
		with.Archive = readArchives(archives)
	}
	err = WithStore(ctx, database, func(store *db.DB) error {
		head, err = access.VerifyAudit(ctx, store, with)
		return err
	})
	return head, err
}

// SetQuotas sets the quotas of a merchant, or of all others if merchantID is empty; see
// access.SetQuotas.
func SetQuotas(ctx context.Context, database, merchantID string, auditBytes, invoices int64) error {
	return WithStore(ctx, database, func(store *db.DB) error {
		return store.Update(ctx, func(tx *db.Tx) error {
			if err := access.SetQuotas(ctx, tx, merchantID, auditBytes, invoices); err != nil {
				return err
			}
			return access.AppendAudit(ctx, tx, access.NewEntry(ctx, time.Now(), access.Change{
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
