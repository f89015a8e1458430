package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
	"github.com/quittance/quittance/internal/wait"
)

// TestMeasureHold checks that a transaction's hold on events is all of its time on SQLite, which has one
// writer, and on PostgreSQL the time since it has the lock, without the wait for it.
func TestMeasureHold(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const before = 300 * time.Millisecond
		insert(t, s, sample("inv_m", "m"))
		var held time.Duration
		must(t, s.Update(t.Context(), func(tx *store.Tx) error {
			wait.Sleep(t.Context(), before, nil)
			err := tx.InsertEvents(t.Context(), []store.Event{{ID: "evt_1", Type: invoice.EventCreated, Subject: "inv_m", MerchantID: "m", InvoiceID: "inv_m", Body: []byte("{}"), CreatedAt: at(1)}})
			if err != nil {
				return err
			}
			return tx.MeasureHold(t.Context(), &held)
		}))
		if isPostgres := strings.HasSuffix(t.Name(), "postgres"); held <= 0 || isPostgres == (held >= before) {
			t.Errorf("on PostgreSQL %v: held others for %v, of which %v were before its events", isPostgres, held, before)
		}
	})
}
