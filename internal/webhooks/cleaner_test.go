package webhooks_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// log is a fake event log with 700 old events, and old attempts of 500 events. It ends the cleaner after space was
// returned twice, which is the last step of a round.
type log struct {
	calls  []string
	spaces int
	before []time.Time
	fail   error
	end    context.CancelFunc
}

func (l *log) clean(what string, before time.Time, after, old int64, limit int) (int64, bool, error) {
	l.calls = append(l.calls, what)
	l.before = append(l.before, before)
	if l.fail != nil {
		return after, false, l.fail
	}
	done := min(after+int64(limit), old)
	return done, done < old, nil
}

func (l *log) CleanEvents(_ context.Context, before time.Time, after int64, limit int) (int64, bool, error) {
	defer func() {
		if l.fail != nil {
			l.end()
		}
	}()
	return l.clean("events", before, after, 700, limit)
}

func (l *log) CleanAttempts(_ context.Context, before time.Time, after int64, limit int) (int64, bool, error) {
	return l.clean("attempts", before, after, 500, limit)
}

func (l *log) DropRetiredSecrets(_ context.Context, now time.Time) (int64, error) {
	l.calls = append(l.calls, "secrets")
	l.before = append(l.before, now)
	return 0, nil
}

func (l *log) ReturnSpace(context.Context, int) (more bool, err error) {
	l.calls = append(l.calls, "space")
	l.before = append(l.before, epoch)
	if l.spaces++; l.spaces == 2 {
		l.end()
	}
	return l.spaces < 2, nil
}

func TestCleaner(t *testing.T) {
	for name, c := range map[string]struct {
		fail error
		want []string
	}{
		"to the end":             {nil, []string{"events", "events", "attempts", "secrets", "space", "space"}},
		"the database is not up": {errors.New("not up"), []string{"events"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			l := &log{fail: c.fail, end: cancel}
			conf := webhooks.CleanerConfig{
				Log: l, KeepEvents: 30 * time.Hour, KeepAttempts: 10 * time.Hour,
				Now: func() time.Time { return epoch }, Logger: slog.New(slog.DiscardHandler),
			}
			webhooks.NewCleaner(conf).Run(ctx)
			expect.List(t, l.calls, c.want, "cleaned")
			for i, what := range l.calls {
				age := map[string]time.Duration{"events": conf.KeepEvents, "attempts": conf.KeepAttempts}[what]
				if want := epoch.Add(-age); !l.before[i].Equal(want) {
					t.Errorf("%s from before %v, want %v", what, l.before[i], want)
				}
			}
		})
	}
}

// rounds is a fake event log with old attempts of 1,200 events. It records where each round starts, and ends the
// cleaner after a number of rounds.
type rounds struct {
	log
	began []int64
	left  int
}

func (r *rounds) CleanAttempts(_ context.Context, _ time.Time, after int64, limit int) (int64, bool, error) {
	r.began = append(r.began, after)
	done := min(after+int64(limit), 1200)
	return done, done < 1200, nil
}

func (r *rounds) ReturnSpace(context.Context, int) (more bool, err error) {
	if r.left--; r.left == 0 {
		r.end()
	}
	return false, nil
}

// TestCleanerContinues checks that a round of the attempts continues where the last one ended, and that one round a day
// starts at the first event, because pending events may have finished.
func TestCleanerContinues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &rounds{log: log{end: cancel}, left: 50}
		s := webhooks.NewCleaner(webhooks.CleanerConfig{Log: r, KeepEvents: 48 * time.Hour, KeepAttempts: 24 * time.Hour, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
		s.Run(ctx)
		var want []int64
		for i := range 50 { // one round an hour
			if i%24 == 0 {
				want = append(want, 0, 500, 1000)
			} else {
				want = append(want, 1200)
			}
		}
		expect.NoDiff(t, cmp.Diff(want, r.began), "the sweeps of the attempts began at")
	})
}

// backlog is a fake event log with batches that take a second. It ends the cleaner after a time.
type backlog struct {
	log

	began time.Time
	ends  []time.Duration // ends of the batches
}

func (b *backlog) CleanEvents(ctx context.Context, _ time.Time, after int64, limit int) (int64, bool, error) {
	clock.Sleep(ctx, time.Second, nil)
	if b.ends = append(b.ends, time.Since(b.began)); b.ends[len(b.ends)-1] >= 4*time.Hour {
		b.end()
	}
	return after + int64(limit), true, nil
}

// TestCleanerCatchesUp expects the cleaner to rest for less time the longer a round lasts.
func TestCleanerCatchesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := &backlog{log: log{end: cancel}, began: time.Now()}
		webhooks.NewCleaner(webhooks.CleanerConfig{Log: b, KeepEvents: time.Hour, KeepAttempts: time.Hour, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}).Run(ctx)
		batches := make([]int, 4)
		for _, end := range b.ends[:len(b.ends)-1] {
			batches[end/time.Hour]++
		}
		for hour, want := range []int{3600 / 11, 3600 / 6, 3600 / 3, 3600 / 2} {
			if got := batches[hour]; got < want-1 || got > want+1 {
				t.Errorf("%d batches in hour %d of a round; want about %d", got, hour, want)
			}
		}
	})
}

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
			expect.Success(t)(conn.ExecContext(t.Context(), "DELETE FROM "+table+" WHERE seq = 1"))
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
		expect.Success(t)(webhooks.NewTables(s).CleanEvents(t.Context(), time.Unix(2, 0), 0, 10))
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
