package access_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestAuditQuota writes entries with a merchant's key up to its quota. Others, the operator and acts
// that take access away are not refused. The key may write again after the quota was raised.
func TestAuditQuota(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		entry := func(action access.Action) access.Entry {
			e := rowtest.AuditEntry(1, "acme")
			e.Action, e.After = action, strings.Repeat("x", 1000)
			return e
		}
		write := func(merchantID string, e access.Entry) error {
			ctx := access.WithPrincipal(t.Context(), access.Principal{KeyID: "key_1", MerchantID: merchantID, Scopes: access.Standard})
			return s.Update(ctx, func(tx *db.Tx) error { return access.AppendAudit(ctx, tx, e) })
		}
		quota := func(merchantID string, n int64) {
			t.Helper()
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return access.SetQuotas(ctx, tx, merchantID, n, 0) })
		}
		quota("acme", 5000)
		written := 0
		var err error
		for ; err == nil; written++ {
			err = write("acme", entry(access.ActionEndpointUpdate))
		}
		exceeded := (*limits.ExceededError)(nil)
		if !errors.As(err, &exceeded) || exceeded.Limit != access.AuditQuotaName || written != 4 {
			t.Errorf("after %d entries: %v", written, err)
		}
		for name, err := range map[string]error{
			"another merchant":    write("globex", entry(access.ActionEndpointUpdate)),
			"the operator":        write("", entry(access.ActionEndpointUpdate)),
			"an end of a key":     write("acme", entry(access.ActionKeyRevoke)),
			"an end of a session": write("acme", entry(access.ActionSessionEnd)),
			"a removed passkey":   write("acme", entry(access.ActionPasskeyRemove)),
			"an uninvited person": write("acme", entry(access.ActionUninvite)),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		head, err := access.VerifyAudit(t.Context(), s)
		if err != nil || head.Seq != 9 {
			t.Errorf("the log has %s, %v; want the 9 entries that were not refused", head, err)
		}
		all, err := access.ListStorage(t.Context(), s, "", 10)
		if err != nil || len(all) != 3 || all[0].MerchantID != "" || all[0].AuditQuota != access.DefaultAuditQuota || all[0].InvoiceQuota != access.DefaultInvoiceQuota {
			t.Fatalf("%+v, %v", all, err)
		}
		for i, merchantID := range []string{"acme", "globex"} {
			if got, err := access.NewReader(s).MerchantStorage(t.Context(), merchantID); err != nil || got != all[i+1] {
				t.Errorf("%s alone: %+v, %v; want %+v", merchantID, got, err, all[i+1])
			}
		}
		nothing := access.Storage{MerchantID: "initech", AuditQuota: access.DefaultAuditQuota, InvoiceQuota: access.DefaultInvoiceQuota}
		if got, err := access.NewReader(s).MerchantStorage(t.Context(), "initech"); err != nil || got != nothing {
			t.Errorf("a merchant that stored nothing: %+v, %v", got, err)
		}
		if acme := all[1]; acme.AuditBytes <= 3000 || acme.AuditBytes > 5000 || acme.AuditQuota != 5000 || !acme.OwnAudit || acme.OwnInvoices || acme.InvoiceQuota != access.DefaultInvoiceQuota {
			t.Errorf("%+v", acme)
		}
		quota("acme", -1)
		if err := write("acme", entry(access.ActionEndpointUpdate)); err != nil {
			t.Errorf("with the quota of all: %v", err)
		}
		quota("", 1000)
		for _, merchantID := range []string{"acme", "globex"} {
			if err := write(merchantID, entry(access.ActionEndpointUpdate)); !errors.As(err, &exceeded) {
				t.Errorf("%s, beyond the quota of all: %v", merchantID, err)
			}
		}
		if err := access.RecountAudit(t.Context(), s); err != nil { // no stored key wrote them
			t.Fatal(err)
		}
		if all, err = access.ListStorage(t.Context(), s, "acme", 1); err != nil || all[0].AuditBytes != 0 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// TestRecountAudit counts the remaining entries that a merchant's own keys caused.
func TestRecountAudit(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		key := sampleKey(t, 2, "acme")
		insertKeys(t, s, key)
		ctx := access.WithPrincipal(t.Context(), access.Principal{KeyID: key.ID, MerchantID: "acme", Scopes: access.Standard})
		for n := range 3 {
			e := rowtest.AuditEntry(n, "acme")
			e.Actor, e.After = key.ID, fmt.Sprint(n)
			expect.OK(t, s.Update(ctx, func(tx *db.Tx) error { return access.AppendAudit(ctx, tx, e) }))
		}
		stored := func() int64 {
			t.Helper()
			all, err := access.ListStorage(t.Context(), s, "acme", 1)
			expect.OK(t, err)
			return all[0].AuditBytes
		}
		before := stored()
		if err := access.RecountAudit(t.Context(), s); err != nil || before == 0 || stored() != before {
			t.Errorf("%d bytes were counted, and are %d when counted again, %v", before, stored(), err)
		}
	})
}
