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
	got, err := s.LogState(t.Context(), "")
	must(t, err)
	want := store.LogState{Timelines: []store.Timeline{{Number: 1, ID: "tml_1", StartedAt: invoice.Unix(1000)}}, Head: head, Oldest: got.Oldest, Removed: removed}
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
		if _, err := s.LogState(t.Context(), ""); err == nil {
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
		if got, err := s.LogState(t.Context(), "m"); got.Removed != 0 || got.Oldest != 2 || err != nil {
			t.Errorf("for a merchant: %+v, %v", got, err) // it is not known whose was removed
		}
	}
}

// TestRemovedByMerchant removes the events of one of two merchants.
func TestRemovedByMerchant(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		must(t, s.BeginFirstTimeline(t.Context(), "tml_1", time.Unix(1000, 0)))
		insert(t, s, sample("inv_m", "m"), sample("inv_n", "n"))
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			var events []store.Event
			for i, merchant := range []string{"m", "m", "n", "m"} {
				id := string(rune('a' + i))
				events = append(events, store.Event{ID: "evt_" + id, Type: invoice.EventReceived, Subject: id, MerchantID: merchant, InvoiceID: "inv_" + merchant, Body: []byte("{}"), CreatedAt: invoice.Unix(int64(i))})
			}
			return tx.InsertEvents(ctx, events)
		})
		_, _, err := s.CleanEvents(t.Context(), time.Unix(2, 0), 0, 10)
		must(t, err)
		for merchant, want := range map[string]int64{"": 2, "m": 2, "n": 0} {
			if got, err := s.LogState(t.Context(), merchant); got.Removed != want || err != nil {
				t.Errorf("of %q were removed up to %d, %v; want %d", merchant, got.Removed, err, want)
			}
		}
	})
}

// TestTimelineOfAnOlderBackup recovers a backup of a version without timelines.
func TestTimelineOfAnOlderBackup(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		storetest.Schedule(t, s, "m", 0, 3, now)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.StartTimeline(ctx, "tml_2", time.Unix(2000, 0))
			return err
		})
		got, err := s.Timelines(t.Context())
		must(t, err)
		want := []store.Timeline{{Number: 1, ID: "tml_2_1", StartedAt: invoice.Unix(2000)}, {Number: 2, ID: "tml_2", StartedAt: invoice.Unix(2000), LastSeq: 3}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
