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

// TestTimelines starts the first timeline twice, as two replicas do, and then another one.
func TestTimelines(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		ctx := t.Context()
		rowtest.Must(t, webhooks.BeginFirstTimeline(ctx, s, "tml_1", time.Unix(1000, 7)))
		rowtest.Must(t, webhooks.BeginFirstTimeline(ctx, s, "tml_other", time.Unix(1001, 0)))
		want := []webhooks.Timeline{{Number: 1, ID: "tml_1", StartedAt: invoice.Unix(1000)}}
		got, err := webhooks.Timelines(ctx, s)
		rowtest.Must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the first timeline (-want +got):\n%s", diff)
		}
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return access.AppendAudit(ctx, tx, rowtest.AuditEntry(1, "m"), rowtest.AuditEntry(2, "m"))
		})
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return webhooks.InsertEvents(ctx, tx, []webhooks.Event{{ID: "evt_1", Type: invoice.EventCreated, Subject: "inv_1", MerchantID: "m", InvoiceID: "inv_1", Body: []byte("{}")}})
		})
		for _, id := range []string{"tml_2", "tml_3"} {
			var started webhooks.Timeline
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) (err error) {
				started, err = webhooks.StartTimeline(ctx, tx, id, time.Unix(2000, 7))
				return err
			})
			want = append(want, webhooks.Timeline{Number: int64(len(want) + 1), ID: id, StartedAt: invoice.Unix(2000), LastSeq: 1, LastAudit: 2})
			expect.NoDiff(t, cmp.Diff(want[len(want)-1], started), "the new timeline")
		}
		got, err = webhooks.Timelines(ctx, s)
		rowtest.Must(t, err)
		expect.NoDiff(t, cmp.Diff(want, got), "all timelines")
	})
}

// wantLogState checks the state of the log after the first timeline was started.
func wantLogState(t *testing.T, s *db.DB, head, removed, before int64) {
	t.Helper()
	rowtest.Must(t, webhooks.BeginFirstTimeline(t.Context(), s, "tml_1", time.Unix(1000, 0)))
	got, err := webhooks.NewReader(s).LogState(t.Context(), "")
	rowtest.Must(t, err)
	want := webhooks.LogState{Timelines: []webhooks.Timeline{{Number: 1, ID: "tml_1", StartedAt: invoice.Unix(1000)}}, Head: head, Oldest: got.Oldest, Removed: removed}
	if before != 0 {
		want.RemovedBefore = invoice.Unix(before)
	}
	expect.NoDiff(t, cmp.Diff(want, got), "the state of the log")
}

// TestLogState asks without a timeline, and after a program of an older version removed events.
func TestLogState(t *testing.T) {
	t.Parallel()
	for _, fresh := range dbtest.MigratedDatabases() {
		url := fresh(t)
		s, conn := dbtest.Open(t, url), dbtest.SQL(t, url)
		if _, err := webhooks.NewReader(s).LogState(t.Context(), ""); err == nil {
			t.Error("a database without a timeline has a state")
		}
		wantLogState(t, s, 0, 0, 0)
		dbtest.Schedule(t, s, "m", 0, 3, now)
		wantLogState(t, s, 3, 0, 0)
		for _, table := range []string{"deliveries", "events"} {
			_, err := conn.ExecContext(t.Context(), "DELETE FROM "+table+" WHERE seq = 1")
			rowtest.Must(t, err)
		}
		wantLogState(t, s, 3, 1, 0)
		if got, err := webhooks.NewReader(s).LogState(t.Context(), "m"); got.Removed != 0 || got.Oldest != 2 || err != nil {
			t.Errorf("for a merchant: %+v, %v", got, err) // the merchants of removed events are unknown
		}
	}
}

// TestRemovedByMerchant removes the events of one of two merchants.
func TestRemovedByMerchant(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Must(t, webhooks.BeginFirstTimeline(t.Context(), s, "tml_1", time.Unix(1000, 0)))
		rowtest.Insert(t, s, rowtest.Sample("inv_m", "m"), rowtest.Sample("inv_n", "n"))
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			var events []webhooks.Event
			for i, merchant := range []string{"m", "m", "n", "m"} {
				id := string(rune('a' + i))
				events = append(events, webhooks.Event{ID: "evt_" + id, Type: invoice.EventReceived, Subject: id, MerchantID: merchant, InvoiceID: "inv_" + merchant, Body: []byte("{}"), CreatedAt: invoice.Unix(int64(i))})
			}
			return webhooks.InsertEvents(ctx, tx, events)
		})
		_, _, err := webhooks.NewTables(s).CleanEvents(t.Context(), time.Unix(2, 0), 0, 10)
		rowtest.Must(t, err)
		for merchant, want := range map[string]int64{"": 2, "m": 2, "n": 0} {
			if got, err := webhooks.NewReader(s).LogState(t.Context(), merchant); got.Removed != want || err != nil {
				t.Errorf("of %q were removed up to %d, %v; want %d", merchant, got.Removed, err, want)
			}
		}
	})
}

// TestTimelineOfAnOlderBackup recovers a backup of a version without timelines.
func TestTimelineOfAnOlderBackup(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		dbtest.Schedule(t, s, "m", 0, 3, now)
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			_, err := webhooks.StartTimeline(ctx, tx, "tml_2", time.Unix(2000, 0))
			return err
		})
		got, err := webhooks.Timelines(t.Context(), s)
		rowtest.Must(t, err)
		want := []webhooks.Timeline{{Number: 1, ID: "tml_2_1", StartedAt: invoice.Unix(2000)}, {Number: 2, ID: "tml_2", StartedAt: invoice.Unix(2000), LastSeq: 3}}
		expect.NoDiff(t, cmp.Diff(want, got), "")
	})
}

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
