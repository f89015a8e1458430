package store_test

import (
	"context"
	"testing"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestStatementsForOneEvent counts statements on PostgreSQL, where each is a round trip.
// An event that is handed to its process's worker takes one after its own transaction,
// which records the outcome. Otherwise a transaction of four statements leases it. Reading
// the endpoint of a merchant that is not in the configuration takes another one.
func TestStatementsForOneEvent(t *testing.T) {
	s := storetest.Open(t, storetest.MigratedPostgres(t))
	storetest.Schedule(t, s, "m", 0, 2, now)
	trust(t, s, "m")
	var texts []string
	report := func(query string, _ []any) { texts = append(texts, query) }
	r := request("l")
	r.Queues, r.Healthy = []delivery.Queue{{MerchantID: "m", Head: atMS(now), HeadSeq: 1}}, 1
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		return store.RecordedTx(tx, report).LeaseInTransaction(ctx, r)
	})
	if len(texts) != 4 {
		t.Errorf("%d statements lease one, want 4:\n%q", len(texts), texts)
	}
	texts = nil
	lost, err := store.Recorded(s, report).FinishDeliveries(t.Context(), []delivery.Outcome{{
		Delivery: delivery.Delivery{Seq: 1, MerchantID: "m"}, LeaseID: "l", Attempt: &delivery.Attempt{Number: 1, StatusCode: 200},
		Status: delivery.Delivered, Finished: atMS(now), Change: func(b delivery.Breaker) delivery.Breaker { return b },
	}})
	if e := record(t, s, "evt_m_000000"); e.Status != delivery.Delivered || len(lost) > 0 || err != nil {
		t.Errorf("it ended as %+v, lost %v, %v", e, lost, err)
	}
	if len(texts) != 1 {
		t.Errorf("%d statements record one, want 1:\n%q", len(texts), texts)
	}
}
