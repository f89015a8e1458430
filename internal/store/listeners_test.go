package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestListeners checks which events a listener gets, and until when.
func TestListeners(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		e := store.Event{MerchantID: "m", Type: invoice.EventPaid, InvoiceID: "inv_1"}
		has := func(now time.Time) bool {
			t.Helper()
			found, err := s.HasListener(t.Context(), e, now)
			must(t, err)
			return found
		}
		for _, c := range []struct {
			listener store.Listener
			gets     bool
		}{
			{store.Listener{}, true},
			{store.Listener{MerchantID: "m"}, true},
			{store.Listener{MerchantID: "m", Type: invoice.EventPaid, InvoiceID: "inv_1"}, true},
			{store.Listener{MerchantID: "n"}, false},
			{store.Listener{Type: invoice.EventExpired}, false},
			{store.Listener{InvoiceID: "inv_2"}, false},
		} {
			c.listener.ID, c.listener.Until = "l", at(10)
			must(t, s.PutListener(t.Context(), c.listener, at(1)))
			if has(at(9)) != c.gets || has(at(10)) {
				t.Errorf("%+v gets the event: %t, after its end: %t", c.listener, has(at(9)), has(at(10)))
			}
			must(t, s.DeleteListener(t.Context(), "l"))
			if has(at(9)) {
				t.Error("a deleted listener gets the event")
			}
		}
		one := store.Listener{ID: "one", Until: at(10)}
		must(t, s.PutListener(t.Context(), one, at(1)))
		one.Until = at(20)
		must(t, s.PutListener(t.Context(), one, at(5)))
		if !has(at(15)) {
			t.Error("a renewed listener has ended")
		}
		must(t, s.PutListener(t.Context(), store.Listener{ID: "two", MerchantID: "n", Until: at(99)}, at(20)))
		if has(at(15)) {
			t.Error("a listener whose time is over is kept")
		}
	})
}

// TestChanges reads what entries of the audit log are about, in parts.
func TestChanges(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			var all []access.Entry
			for _, c := range []access.Change{
				{MerchantID: "m", Action: access.ActionEventRedeliver, Object: "evt_1"},
				{Action: access.ActionChainResume, Object: "base"}, {MerchantID: "n", Action: access.ActionInvoiceVoid, Object: "inv_1"},
			} {
				all = append(all, access.NewEntry(ctx, at(1), c))
			}
			return tx.AppendAudit(ctx, all...)
		})
		var got []store.ChangeRow
		for after := int64(0); after < 3; after = got[len(got)-1].Seq {
			found, err := s.Changes(t.Context(), after, 2)
			must(t, err)
			got = append(got, found...)
		}
		want := []store.ChangeRow{{1, "m", access.ActionEventRedeliver, "evt_1"}, {2, "", access.ActionChainResume, "base"}, {3, "n", access.ActionInvoiceVoid, "inv_1"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
