package store_test

import (
	"context"
	"testing"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// On PostgreSQL each statement is a round trip. After its own transaction, an
// event at rest takes the read of new events and two transactions: one leases,
// with three statements, and one records, with one. The endpoint of a merchant
// that is not in the configuration is read as well.
func TestStatementsForOneEvent(t *testing.T) {
	s := storetest.Open(t, storetest.Postgres(t))
	storetest.Schedule(t, s, "m", 0, 1, now)
	trust(t, s, "m")
	must(t, s.RegisterWorker(t.Context(), store.Worker{ID: "w"}, now, now+60_000))
	var texts []string
	report := func(query string, _ []any) { texts = append(texts, query) }
	queues, _, _, err := store.Recorded(s, report).QueuesSince(t.Context(), 0)
	must(t, err)
	r := request("l")
	r.Worker, r.Queues = "w", queues
	count := 2 * 2 // BEGIN and COMMIT
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		return store.RecordedTx(tx, report).LeaseInTransaction(ctx, r)
	})
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		return store.RecordedTx(tx, report).FinishInTransaction(ctx, []delivery.Outcome{{
			Delivery: delivery.Delivery{Seq: 1, MerchantID: "m"}, LeaseID: "l", Attempt: &delivery.Attempt{Number: 1, StatusCode: 200},
			Status: delivery.Delivered, FinishedMS: now, Change: func(b delivery.Breaker) delivery.Breaker { return b },
		}})
	})
	if e := record(t, s, "evt_m_000000"); e.Status != delivery.Delivered {
		t.Errorf("it ended as %+v", e)
	}
	if count += len(texts); count != 9 {
		t.Errorf("%d statements, want 9:\n%q", count, texts)
	}
}
