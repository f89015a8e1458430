package access_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestAuditQuotaOfPeople lets a stolen key use up the audit quota of its merchant. People still sign in and make changes, and
// whatever the key began is still stopped, even with the key.
func TestAuditQuotaOfPeople(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *merchantWorld) {
		b := newSessionWorld(t, w.db).board("acme")
		_, ada := b.join("ada", access.Admin)
		byKey, byAda := access.WithPrincipal(t.Context(), b.owner.Principal()), access.WithPrincipal(t.Context(), ada)
		refused := func(err error) bool { return errors.As(err, new(*limits.ExceededError)) }
		moved := invoice.MerchantChange{DefaultAddresses: map[string]invoice.Address{"base": bank.Address}}
		kept := invoice.MerchantChange{Allowed: []invoice.AllowedAddress{home}, DefaultAddresses: map[string]invoice.Address{"base": home.Address}}
		expect.Success(t)(w.Update(byKey, b.owner.Principal(), "acme", kept))
		expect.Success(t)(w.Update(byKey, b.owner.Principal(), "acme", invoice.MerchantChange{Allowed: []invoice.AllowedAddress{home, bank}}))
		w.pass(access.DefaultDelay)
		kept.Allowed = []invoice.AllowedAddress{home, bank}
		begin := func(ctx context.Context) {
			t.Helper()
			expect.Success(t)(w.Update(ctx, b.owner.Principal(), "acme", invoice.MerchantChange{Allowed: []invoice.AllowedAddress{home, bank, {ChainKey: "base", Address: invoice.Address{3}}}}))
			expect.Success(t)(w.Update(ctx, b.owner.Principal(), "acme", moved))
		}
		begin(byKey)
		write := func(ctx context.Context, action access.Action, text string) error {
			return w.db.Update(ctx, func(tx *db.Tx) error {
				return access.AppendAudit(ctx, tx, access.NewEntry(ctx, w.now, access.Change{MerchantID: "acme", Action: action, Object: "acme", After: text}))
			})
		}
		const quota = 1_000_000
		expect.OK(t, w.db.Update(t.Context(), func(tx *db.Tx) error { return access.SetQuotas(t.Context(), tx, "acme", quota, 0) }))
		var written int
		for err := error(nil); err == nil; written++ {
			err = write(byKey, access.ActionMerchantUpdate, strings.Repeat("a", 8_000))
			if err != nil && !refused(err) || written > quota/8_000 {
				t.Fatalf("after %d entries: %v", written, err)
			}
		}
		for write(byKey, access.ActionSignInLink, "") == nil {
			written++
		}
		if stored, err := access.NewReader(w.db).MerchantStorage(t.Context(), "acme"); err != nil || stored.AuditBytes > quota/10*9 || stored.AuditBytes < quota/10*9-1_000 {
			t.Errorf("after %d entries the key has used %d of %d bytes, %v", written, stored.AuditBytes, quota, err)
		}
		b.mailed("ada@acme.example") // signs in
		if err := write(byAda, access.ActionMerchantUpdate, "her change"); err != nil {
			t.Errorf("a change by a person: %v", err)
		}
		for _, size := range []int{1_000, 0} { // a member takes the rest
			for write(byAda, access.ActionMerchantUpdate, strings.Repeat("a", size)) == nil {
				written++
			}
		}
		b.mailed("ada@acme.example")
		for _, action := range []access.Action{
			access.ActionKeyRevoke, access.ActionSessionEnd, access.ActionUninvite, access.ActionRefundCancel, access.ActionApprovalRefuse,
			access.ActionInboxUndo, access.ActionLinkArchive, access.ActionSecretDrop,
		} {
			if err := write(byKey, action, ""); err != nil {
				t.Errorf("%s: %v", action, err)
			}
		}
		for _, ctx := range []context.Context{byKey, byAda} {
			if err := write(ctx, access.ActionRefundPrepare, ""); !refused(err) {
				t.Errorf("another act of %s: %v", access.FromContext(ctx).Label(), err)
			}
			named := kept
			named.Name = new("Thief")
			if _, err := w.Update(ctx, b.owner.Principal(), "acme", named); !refused(err) {
				t.Errorf("more than a cancellation: %v", err)
			}
			for n, c := range []invoice.MerchantChange{{DefaultAddresses: kept.DefaultAddresses}, {Allowed: kept.Allowed}} {
				is, err := w.Update(ctx, b.owner.Principal(), "acme", c)
				if err != nil || is.PendingDefaults != nil || (is.Pending != nil) != (n == 0) {
					t.Errorf("to cancel a change of addresses: pending %+v and %+v, %v", is.PendingDefaults, is.Pending, err)
				}
			}
			if got := w.actions(t); got[0] != "merchant.pending.drop" || got[1] != "merchant.pending.drop" {
				t.Errorf("the log has %v", got[:2])
			}
			begin(access.WithPrincipal(t.Context(), operator))
		}
	})
}
