package db_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestMeasureHold checks how long a transaction holds up events: on SQLite, with its one writer, for
// its whole duration, and on PostgreSQL from when it gets the lock, without the wait for it.
func TestMeasureHold(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		const before = 300 * time.Millisecond
		rowtest.Insert(t, s, rowtest.Sample("inv_m", "m"))
		var held time.Duration
		rowtest.Must(t, s.Update(t.Context(), func(tx *db.Tx) error {
			clock.Sleep(t.Context(), before, nil)
			err := webhooks.InsertEvents(t.Context(), tx, []webhooks.Event{{ID: "evt_1", Type: invoice.EventCreated, Subject: "inv_m", MerchantID: "m", InvoiceID: "inv_m", Body: []byte("{}"), CreatedAt: rowtest.At(1)}})
			if err != nil {
				return err
			}
			return webhooks.MeasureHold(t.Context(), tx, &held)
		}))
		if isPostgres := strings.HasSuffix(t.Name(), "postgres"); held <= 0 || isPostgres == (held >= before) {
			t.Errorf("on PostgreSQL %v: held others for %v, of which %v were before its events", isPostgres, held, before)
		}
	})
}
