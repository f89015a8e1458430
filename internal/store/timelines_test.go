package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestTimelines starts the first timeline twice, as two replicas do, and then another one.
func TestTimelines(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		must(t, s.BeginFirstTimeline(ctx, "tml_1", time.Unix(1000, 7)))
		must(t, s.BeginFirstTimeline(ctx, "tml_other", time.Unix(1001, 0)))
		want := []store.Timeline{{Number: 1, ID: "tml_1", StartedAt: invoice.Unix(1000)}}
		got, err := s.Timelines(ctx)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the first timeline (-want +got):\n%s", diff)
		}
		insert(t, s, sample("inv_1", "m"))
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.AppendAudit(ctx, auditEntry(1, "m"), auditEntry(2, "m"))
		})
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.InsertEvents(ctx, []store.Event{{ID: "evt_1", Type: invoice.EventCreated, Subject: "inv_1", MerchantID: "m", InvoiceID: "inv_1", Body: []byte("{}")}})
		})
		for _, id := range []string{"tml_2", "tml_3"} {
			var started store.Timeline
			update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
				started, err = tx.StartTimeline(ctx, id, time.Unix(2000, 7))
				return err
			})
			want = append(want, store.Timeline{Number: int64(len(want) + 1), ID: id, StartedAt: invoice.Unix(2000), LastSeq: 1, LastAudit: 2})
			if diff := cmp.Diff(want[len(want)-1], started); diff != "" {
				t.Errorf("the new timeline (-want +got):\n%s", diff)
			}
		}
		got, err = s.Timelines(ctx)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("all timelines (-want +got):\n%s", diff)
		}
	})
}

// wantLogState checks the state of the log after the first timeline was started.
func wantLogState(t *testing.T, s *store.Store, head, removed, before int64) {
	t.Helper()
	must(t, s.BeginFirstTimeline(t.Context(), "tml_1", time.Unix(1000, 0)))
	got, err := s.LogState(t.Context())
	must(t, err)
	want := store.LogState{Timelines: []store.Timeline{{Number: 1, ID: "tml_1", StartedAt: invoice.Unix(1000)}}, Head: head, Removed: removed}
	if before != 0 {
		want.RemovedBefore = invoice.Unix(before)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the state of the log (-want +got):\n%s", diff)
	}
}

// TestLogState asks without a timeline, and after a program of an older version removed events.
func TestLogState(t *testing.T) {
	t.Parallel()
	for _, fresh := range storetest.MigratedDatabases() {
		url := fresh(t)
		s, db := storetest.Open(t, url), storetest.SQL(t, url)
		if _, err := s.LogState(t.Context()); err == nil {
			t.Error("a database without a timeline has a state")
		}
		wantLogState(t, s, 0, 0, 0)
		storetest.Schedule(t, s, "m", 0, 3, now)
		wantLogState(t, s, 3, 0, 0)
		for _, table := range []string{"deliveries", "events"} {
			_, err := db.ExecContext(t.Context(), "DELETE FROM "+table+" WHERE seq = 1")
			must(t, err)
		}
		wantLogState(t, s, 3, 1, 0)
	}
}
