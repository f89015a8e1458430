package webhooks_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// listed inserts events of two merchants: events of every type, and in every state of a delivery.
func listed(t *testing.T, s *db.DB) []webhooks.EventRow {
	t.Helper()
	types := []invoice.EventType{invoice.EventCreated, invoice.EventReceived, invoice.EventPaid}
	rowtest.Insert(t, s, rowtest.Sample("inv_m", "m"), rowtest.Sample("inv_n", "n"))
	var events []webhooks.Event
	for i := range 36 {
		m := []string{"m", "n"}[i%2]
		e := webhooks.Event{
			ID: invoice.FirstID(invoice.PrefixEvent, invoice.Unix(9000+int64(i))), Type: types[i%3], Subject: fmt.Sprint(i), MerchantID: m, InvoiceID: "inv_" + m,
			Body: []byte("{}"), CreatedAt: invoice.Unix(9000 + int64(i)), DeliveryID: fmt.Sprintf("dlv_%02d", i), Due: rowtest.AtMS(now - 100 + int64(i)),
		}
		if i >= 30 {
			e.DeliveryID = ""
		}
		events = append(events, e)
	}
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return webhooks.InsertEvents(ctx, tx, events) })
	trust(t, s, "m", "n")
	r := storedRequest("l")
	r.Healthy, r.PerMerchant = 20, 10
	for i, d := range lease(t, s, r) {
		o := success("l")
		if i%2 == 0 {
			o.Status = webhooks.Failed
		}
		finish(t, s, o, d)
	}
	all, err := webhooks.NewReader(s).Events(t.Context(), webhooks.EventFilter{After: new(int64), Limit: 100})
	rowtest.Must(t, err)
	if len(all) != len(events) {
		t.Fatalf("listed %d events, want %d", len(all), len(events))
	}
	states := map[webhooks.Status]int{}
	for i, r := range all {
		states[r.Status]++
		if r.Seq != int64(i+1) || r.ID != events[i].ID || r.DeliveryID != events[i].DeliveryID || string(r.Body) != "{}" {
			t.Errorf("event %d is %+v, want %+v", i, r, events[i])
		}
	}
	want := map[webhooks.Status]int{webhooks.Pending: 10, webhooks.Delivered: 10, webhooks.Failed: 10, webhooks.None: 6}
	if diff := gocmp.Diff(want, states); diff != "" {
		t.Fatalf("states (-want +got):\n%s", diff)
	}
	return all
}

// TestEventsFilters compares every combination of filters, pages and directions with a scan of all events.
func TestEventsFilters(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		all := listed(t, s)
		after, before := int64(7), int64(29)
		for _, f := range []webhooks.EventFilter{{}, {After: &after}, {Before: before}} {
			for _, f.MerchantID = range []string{"", "m", "nobody"} {
				for _, f.Type = range []invoice.EventType{"", invoice.EventPaid, invoice.EventRefunded} {
					for _, f.InvoiceID = range []string{"", "inv_n"} {
						for _, f.Delivery = range []webhooks.Status{"", "pending", "delivered", "failed", "none"} {
							for _, f.Created = range []db.Span{{}, {From: invoice.Unix(9010), To: invoice.Unix(9030)}} {
								for _, f.Limit = range []int{4, 100} {
									checkEvents(t, s, f, all)
								}
							}
						}
					}
				}
			}
		}
	})
}

func checkEvents(t *testing.T, s *db.DB, f webhooks.EventFilter, all []webhooks.EventRow) {
	t.Helper()
	want := []string{}
	for _, r := range all {
		if (f.MerchantID == "" || r.MerchantID == f.MerchantID) && (f.Type == "" || r.Type == f.Type) &&
			(f.InvoiceID == "" || r.InvoiceID == f.InvoiceID) && (f.Delivery == "" || r.Status == f.Delivery) &&
			!r.CreatedAt.Before(f.Created.From) && (f.Created.To.IsZero() || r.CreatedAt.Before(f.Created.To)) &&
			(f.After == nil || r.Seq > *f.After) && (f.After != nil || f.Before == 0 || r.Seq < f.Before) {
			want = append(want, r.ID)
		}
	}
	if f.After == nil {
		slices.Reverse(want)
	}
	want = want[:min(len(want), f.Limit)]
	for i, list := range []func(context.Context, webhooks.EventFilter) ([]webhooks.EventRow, error){
		webhooks.NewReader(s).Events,
		func(ctx context.Context, f webhooks.EventFilter) ([]webhooks.EventRow, error) {
			return webhooks.EventsInParts(ctx, s, f)
		},
	} {
		rows, err := list(t.Context(), f)
		got := []string{}
		for _, r := range rows {
			got = append(got, r.ID)
		}
		if diff := gocmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%+v, way %d: %v (-want +got):\n%s", f, i, err, diff)
		}
	}
}

// TestEventsRecordedDuringList checks that a reader who follows a merchant's events, with any filter
// by type, misses no event that is inserted while a page is read.
func TestEventsRecordedDuringList(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_m", "m"))
		n := 0
		record := func() { // an event of the last type, and then one of the first
			for _, typ := range []invoice.EventType{invoice.EventCreated, invoice.EventRefunded} {
				n++
				e := webhooks.Event{ID: fmt.Sprint("evt_", n), Type: typ, Subject: fmt.Sprint(n), MerchantID: "m", InvoiceID: "inv_m", Body: []byte("{}")}
				rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
					return webhooks.InsertEvents(ctx, tx, []webhooks.Event{e})
				})
			}
		}
		record()
		queries := 0
		read := db.Recorded(s, func(string, []any) {
			if queries++; queries < 40 {
				record()
			}
		})
		last := int64(0)
		for {
			rows, err := webhooks.NewReader(read).Events(t.Context(), webhooks.EventFilter{MerchantID: "m", After: &last, Limit: 1000})
			rowtest.Must(t, err)
			if len(rows) == 0 && queries >= 40 {
				break
			}
			for _, r := range rows {
				if r.Seq != last+1 {
					t.Fatalf("number %d comes after %d", r.Seq, last)
				}
				last = r.Seq
			}
		}
		if last != int64(n) {
			t.Errorf("followed to %d, want %d", last, n)
		}
	})
}

// TestEventsOfFewDeliveries checks the number of deliveries in a state up to which they are read one by one.
func TestEventsOfFewDeliveries(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		dbtest.Schedule(t, s, "other", 0, 1, now)
		dbtest.Schedule(t, s, "m", 0, webhooks.FewDeliveries, now)
		for _, want := range []bool{false, true} {
			inParts := false
			read := db.Recorded(s, func(query string, _ []any) {
				inParts = inParts || strings.Contains(query, "FROM events s")
			})
			rows, err := webhooks.NewReader(read).Events(t.Context(), webhooks.EventFilter{MerchantID: "m", Type: invoice.EventReceived, Delivery: webhooks.Pending, Limit: 7})
			rowtest.Must(t, err)
			seq, err := webhooks.NewReader(s).LastSeq(t.Context())
			rowtest.Must(t, err)
			for i, r := range rows {
				if r.Seq != seq-int64(i) {
					t.Errorf("event %d has the number %d, want %d", i, r.Seq, seq-int64(i))
				}
			}
			if len(rows) != 7 || inParts != want {
				t.Errorf("listed %d events, among all events %t; want 7, %t", len(rows), inParts, want)
			}
			if !want { // one more than the limit
				dbtest.Schedule(t, s, "m", webhooks.FewDeliveries, 1, now)
			}
		}
	})
}

// TestEventsBehindAnOutage checks that a list of delivered events of a type does not read the
// newer ones that were not delivered.
func TestEventsBehindAnOutage(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		dbtest.Schedule(t, s, "m", 0, 3, now)
		trust(t, s, "m")
		r := storedRequest("l")
		r.Now = rowtest.AtMS(now + 9)
		leased := lease(t, s, r)
		finish(t, s, success("l"), leased...)
		last, err := webhooks.NewReader(s).LastSeq(t.Context())
		rowtest.Must(t, err)
		dbtest.Schedule(t, s, "m", 3, 20, now)
		var bound []any
		read := db.Recorded(s, func(query string, args []any) {
			if strings.Contains(query, "FROM events s") {
				bound = args
			}
		})
		rows, err := webhooks.NewReader(read).Events(t.Context(), webhooks.EventFilter{MerchantID: "m", Type: invoice.EventReceived, Delivery: webhooks.Delivered, Limit: 2})
		rowtest.Must(t, err)
		if len(rows) != 2 || rows[0].Seq != last || !slices.Contains(bound, any(last+1)) {
			t.Errorf("listed %d events, read with %v; want the 2 newest from number %d on", len(rows), bound, last)
		}
	})
}

// TestCleanEvents checks that old finished events are removed with their attempts, and that
// pending ones and the newest event stay.
func TestCleanEvents(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		all := listed(t, s) // of the seconds 9000 to 9035; 10 are pending
		done, more, err := webhooks.NewTables(s).CleanEvents(t.Context(), time.Unix(9030, 0), 0, 12)
		if done != 12 || !more || err != nil {
			t.Errorf("the first batch: up to %d, %t, %v; want 12, and more", done, more, err)
		}
		for more {
			done, more, err = webhooks.NewTables(s).CleanEvents(t.Context(), time.Unix(9030, 0), done, 12)
			rowtest.Must(t, err)
		}
		if done != 30 {
			t.Errorf("swept up to %d, want 30", done)
		}
		left, err := webhooks.NewReader(s).Events(t.Context(), webhooks.EventFilter{After: new(int64), Limit: 100})
		rowtest.Must(t, err)
		want := slices.DeleteFunc(slices.Clone(all), func(r webhooks.EventRow) bool { return r.CreatedAt.Unix() < 9030 && r.Status != webhooks.Pending })
		expect.NoDiff(t, gocmp.Diff(want, left), "left")
		wantLogState(t, s, 36, 20, 9030) // 21 to 30 are pending
		for more = true; more; {
			done, more, err = webhooks.NewTables(s).CleanEvents(t.Context(), time.Unix(10_000, 0), done, 12)
			rowtest.Must(t, err)
		}
		if seq, err := webhooks.NewReader(s).LastSeq(t.Context()); seq != 36 || err != nil || done != 35 {
			t.Errorf("of all, the newest left is %d, %v; swept up to %d; want the newest to stay", seq, err, done)
		}
		wantLogState(t, s, 36, 35, 10_000)
		_, _, err = webhooks.NewTables(s).CleanEvents(t.Context(), time.Unix(10_001, 0), 0, 12) // another process, which removes no event
		rowtest.Must(t, err)
		wantLogState(t, s, 36, 35, 10_000)
	})
}

// TestEventsWithFutureDates checks that events created while a clock was ahead do not keep older
// events that follow, however many they are, and stay until their own date has passed.
func TestEventsWithFutureDates(t *testing.T) {
	t.Parallel()
	for name, fresh := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const limit = 10
			url := fresh(t)
			s := dbtest.Open(t, url)
			dbtest.Schedule(t, s, "old", 0, 15, 1_000_000)
			dbtest.Schedule(t, s, "ahead", 0, 45, 1_000_000_000)
			dbtest.Schedule(t, s, "old", 15, 65, 1_000_000)
			dbtest.Schedule(t, s, "young", 0, 400, 2_000_000)
			_, err := dbtest.SQL(t, url).ExecContext(t.Context(), "DELETE FROM deliveries")
			rowtest.Must(t, err)
			calls := 0
			for done, more := int64(0), true; more; calls++ {
				done, more, err = webhooks.NewTables(s).CleanEvents(t.Context(), time.Unix(1500, 0), done, limit)
				rowtest.Must(t, err)
			}
			left, err := webhooks.NewReader(s).Events(t.Context(), webhooks.EventFilter{After: new(int64), Limit: 1000})
			rowtest.Must(t, err)
			kept := make(map[string]int)
			for _, e := range left {
				kept[e.MerchantID]++
			}
			expect.NoDiff(t, gocmp.Diff(map[string]int{"ahead": 45, "young": 400}, kept), "kept")
			if want := (15+45+65)/limit + 2; calls > want {
				t.Errorf("%d batches were read, want at most %d: the young events are not searched", calls, want)
			}
		})
	}
}

func TestCleanAttempts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		dbtest.Schedule(t, s, "m", 0, 3, now)
		trust(t, s, "m")
		r := storedRequest("l")
		r.Now = rowtest.AtMS(now + 9)
		leased := lease(t, s, r)
		finish(t, s, success("l"), leased[0])
		finish(t, s, again("l", now), leased[1])
		finish(t, s, success("l"), leased[2])
		_, _, err := webhooks.NewTables(s).CleanAttempts(t.Context(), time.Unix(now, 0), 0, 10)
		rowtest.Must(t, err)
		for i, want := range []int{0, 1, 1} { // finished; pending; the newest
			if got := storedRecord(t, s, leased[i].EventID); len(got.Attempts) != want || got.Count != 1 {
				t.Errorf("%s: %+v, want %d attempts in the log", leased[i].EventID, got, want)
			}
		}
		r.Lane = webhooks.Retry
		o := success("l")
		o.Attempt.Number = 2
		finish(t, s, o, lease(t, s, r)...)
		_, _, err = webhooks.NewTables(s).CleanAttempts(t.Context(), time.Unix(now, 0), 0, 10)
		rowtest.Must(t, err)
		if got := storedRecord(t, s, leased[1].EventID); len(got.Attempts) != 0 || got.Count != 2 {
			t.Errorf("%s, finished since: %+v, want no attempts in the log", leased[1].EventID, got)
		}
	})
}
