package webhooks_test

import (
	"context"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestStatementsForOneEvent bounds the statements on PostgreSQL, where each is a round trip. If the event
// goes straight to its process's worker, it takes one statement after its own transaction, which
// records the outcome. Otherwise a transaction of four statements leases it. Reading the endpoint of a
// merchant that is not in the configuration takes another statement.
func TestStatementsForOneEvent(t *testing.T) {
	s := dbtest.Open(t, dbtest.MigratedPostgres(t))
	dbtest.Schedule(t, s, "m", 0, 2, now)
	trust(t, s, "m")
	var texts []string
	report := func(query string, _ []any) { texts = append(texts, query) }
	r := storedRequest("l")
	r.Queues, r.Healthy = []webhooks.Queue{{MerchantID: "m", Head: rowtest.AtMS(now), HeadSeq: 1}}, 1
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
		return webhooks.LeaseInTransaction(ctx, db.RecordedTx(tx, report), r)
	})
	if len(texts) > 4 {
		t.Errorf("%d statements lease one, want at most 4:\n%q", len(texts), texts)
	}
	texts = nil
	lost, err := webhooks.NewTables(db.Recorded(s, report)).FinishDeliveries(t.Context(), []webhooks.Outcome{{
		Delivery: webhooks.Delivery{Seq: 1, MerchantID: "m"}, LeaseID: "l", Attempt: &webhooks.Attempt{Number: 1, StatusCode: 200},
		Status: webhooks.Delivered, Finished: rowtest.AtMS(now), Change: func(b webhooks.Breaker) webhooks.Breaker { return b },
	}})
	if e := storedRecord(t, s, "evt_m_000000"); e.Status != webhooks.Delivered || len(lost) > 0 || err != nil {
		t.Errorf("it ended as %+v, lost %v, %v", e, lost, err)
	}
	if len(texts) > 1 {
		t.Errorf("%d statements record one, want at most 1:\n%q", len(texts), texts)
	}
}
