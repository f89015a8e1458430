package admin

import (
	"context"

	"github.com/quittance/quittance/internal/access"
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
// an *access.FaultError if an entry was changed or removed, or is not one that the heads name.
func VerifyAudit(ctx context.Context, database string, heads ...access.Head) (head access.Head, err error) {
	err = withStore(ctx, database, func(db *store.Store) error {
		head, err = db.VerifyAudit(ctx, heads...)
		return err
	})
	return head, err
}
