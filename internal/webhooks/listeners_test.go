package webhooks_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestListeners checks which events a listener gets, and until when.
func TestListeners(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		e := webhooks.Event{MerchantID: "m", Type: invoice.EventPaid, InvoiceID: "inv_1"}
		has := func(now time.Time) bool {
			t.Helper()
			found, err := webhooks.HasListener(t.Context(), s, e, now)
			rowtest.Must(t, err)
			return found
		}
		for _, c := range []struct {
			listener webhooks.Listener
			gets     bool
		}{
			{webhooks.Listener{}, true},
			{webhooks.Listener{MerchantID: "m"}, true},
			{webhooks.Listener{MerchantID: "m", Type: invoice.EventPaid, InvoiceID: "inv_1"}, true},
			{webhooks.Listener{MerchantID: "n"}, false},
			{webhooks.Listener{Type: invoice.EventExpired}, false},
			{webhooks.Listener{InvoiceID: "inv_2"}, false},
		} {
			c.listener.ID, c.listener.Until = "l", rowtest.At(10)
			rowtest.Must(t, webhooks.PutListener(t.Context(), s, c.listener, rowtest.At(1)))
			if has(rowtest.At(9)) != c.gets || has(rowtest.At(10)) {
				t.Errorf("%+v gets the event: %t, after its end: %t", c.listener, has(rowtest.At(9)), has(rowtest.At(10)))
			}
			rowtest.Must(t, webhooks.NewTables(s).DeleteListener(t.Context(), "l"))
			if has(rowtest.At(9)) {
				t.Error("a deleted listener gets the event")
			}
		}
		one := webhooks.Listener{ID: "one", Until: rowtest.At(10)}
		rowtest.Must(t, webhooks.PutListener(t.Context(), s, one, rowtest.At(1)))
		one.Until = rowtest.At(20)
		rowtest.Must(t, webhooks.PutListener(t.Context(), s, one, rowtest.At(5)))
		if !has(rowtest.At(15)) {
			t.Error("a renewed listener has ended")
		}
		rowtest.Must(t, webhooks.PutListener(t.Context(), s, webhooks.Listener{ID: "two", MerchantID: "n", Until: rowtest.At(99)}, rowtest.At(20)))
		if has(rowtest.At(15)) {
			t.Error("a listener whose time is over is kept")
		}
	})
}

// TestAuditedChanges reads what entries of the audit log are about, in parts.
func TestAuditedChanges(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			var all []access.Entry
			for _, c := range []access.Change{
				{MerchantID: "m", Action: access.ActionEventRedeliver, Object: "evt_1"},
				{Action: access.ActionChainResume, Object: "base"}, {MerchantID: "n", Action: access.ActionInvoiceVoid, Object: "inv_1"},
			} {
				all = append(all, access.NewEntry(ctx, rowtest.At(1), c))
			}
			return access.AppendAudit(ctx, tx, all...)
		})
		var got []access.ChangeRow
		for after := int64(0); after < 3; after = got[len(got)-1].Seq {
			found, err := access.NewReader(s).Changes(t.Context(), after, 2)
			rowtest.Must(t, err)
			got = append(got, found...)
		}
		want := []access.ChangeRow{
			{Seq: 1, MerchantID: "m", Action: access.ActionEventRedeliver, Object: "evt_1"},
			{Seq: 2, Action: access.ActionChainResume, Object: "base"},
			{Seq: 3, MerchantID: "n", Action: access.ActionInvoiceVoid, Object: "inv_1"},
		}
		expect.NoDiff(t, cmp.Diff(want, got), "")
	})
}
