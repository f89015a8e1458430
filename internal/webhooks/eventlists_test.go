package webhooks_test

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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
				expect.Equal(t, r.Seq, seq-int64(i), "event %d has the number", i)
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
		expect.Equal(t, done, 30, "swept up to")
		left, err := webhooks.NewReader(s).Events(t.Context(), webhooks.EventFilter{After: new(int64), Limit: 100})
		rowtest.Must(t, err)
		want := slices.DeleteFunc(slices.Clone(all), func(r webhooks.EventRow) bool { return r.CreatedAt.Unix() < 9030 && r.Status != webhooks.Pending })
		expect.NoDiff(t, gocmp.Diff(want, left), "left")
		wantLogState(t, s, 36, 20, 9030) // 21 to 30 are pending
		for more = true; more; {
			done, more, err = webhooks.NewTables(s).CleanEvents(t.Context(), time.Unix(10_000, 0), done, 12)
			rowtest.Must(t, err)
		}
		if seq, err := webhooks.NewReader(s).LastSeq(t.Context()); seq != 36 || err != nil || done != 36 {
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
	dbtest.EachURL(t, func(t *testing.T, url string) {
		const limit = 10
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
		expect.Success(t)(webhooks.NewTables(s).CleanAttempts(t.Context(), time.Unix(now, 0), 0, 10))
		for i, want := range []int{0, 1, 1} { // finished; pending; the newest
			if got := storedRecord(t, s, leased[i].EventID); len(got.Attempts) != want || got.Count != 1 {
				t.Errorf("%s: %+v, want %d attempts in the log", leased[i].EventID, got, want)
			}
		}
		o := success("l")
		o.Attempt.Number = 2
		finish(t, s, o, lease(t, s, r)...)
		expect.Success(t)(webhooks.NewTables(s).CleanAttempts(t.Context(), time.Unix(now, 0), 0, 10))
		if got := storedRecord(t, s, leased[1].EventID); len(got.Attempts) != 0 || got.Count != 2 {
			t.Errorf("%s, finished since: %+v, want no attempts in the log", leased[1].EventID, got)
		}
	})
}

// TestEventsByTime lists events by the time of their creation. The numbers have gaps, the replicas' clocks differ by
// minutes, and two events have wrong dates. The lists have all events with right dates.
func TestEventsByTime(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		const base, n = 1_764_000_000, 900
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
		created := make(map[string]int64)
		rapid.Check(t, func(t *rapid.T) {
			if len(created) > 0 {
				return
			}
			events, at := make([]webhooks.Event, n), int64(base)
			for i := range events {
				at += rapid.Int64Range(0, 400).Draw(t, "pause")
				e := webhooks.Event{ID: fmt.Sprintf("evt_%d", i), Type: invoice.EventReceived, Subject: fmt.Sprint("pay_", i), MerchantID: "m", InvoiceID: "inv_1", Body: []byte("{}")}
				e.CreatedAt = invoice.Unix(at + rapid.Int64Range(0, 299).Draw(t, "skew"))
				if i == 300 || i == 600 {
					e.CreatedAt = invoice.Unix(base + int64(i-450)*1_000_000) // a clock was wrong
				}
				events[i], created[e.ID] = e, e.CreatedAt.Unix()
			}
			for i := 0; i < n; i += 50 { // an event that is left out, because it was inserted before, leaves a gap
				batch := append([]webhooks.Event{events[max(0, i-50)]}, events[i:i+50]...)
				expect.OK(t, s.Update(context.Background(), func(tx *db.Tx) error { return webhooks.InsertEvents(context.Background(), tx, batch) }))
			}
		})
		rapid.Check(t, func(t *rapid.T) {
			from := base + rapid.Int64Range(-1000, 400*n).Draw(t, "from")
			to := from + rapid.Int64Range(1, 20_000).Draw(t, "length")
			span := db.Span{From: time.Unix(from, 0), To: time.Unix(to, 0)}
			want := make(map[string]bool)
			for id, at := range created {
				if at >= from && at < to && id != "evt_300" && id != "evt_600" {
					want[id] = true
				}
			}
			rows, err := webhooks.NewReader(s).Events(context.Background(), webhooks.EventFilter{Created: span, After: new(int64), Limit: n})
			expect.OK(t, err)
			for _, r := range rows {
				delete(want, r.ID)
			}
			if len(want) > 0 {
				t.Errorf("from %d to %d: %d events are listed, but not %v", from, to, len(rows), want)
			}
		})
	})
}

// TestEventsAreInsertedOnce inserts an event with the id of an existing event, in the same transaction and in another.
func TestEventsAreInsertedOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
		event := func(n int) webhooks.Event {
			return webhooks.Event{
				ID: fmt.Sprint("evt_", n), Type: invoice.EventReceived, Subject: fmt.Sprint("pay_", n), MerchantID: "m", InvoiceID: "inv_1", Body: []byte("{}"),
				CreatedAt: invoice.Unix(1000), DeliveryID: fmt.Sprint("dlv_", n), Due: rowtest.AtMS(1),
			}
		}
		for _, want := range [][]int64{{1, 0, 2}, {0, 0, 0}, {0, 4, 0}} {
			events := []webhooks.Event{event(1), event(1), event(2)}
			if want[1] != 0 && want[0] == 0 {
				events = []webhooks.Event{event(2), event(3), event(3)}
			}
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return webhooks.InsertEvents(ctx, tx, events) })
			for i, e := range events {
				expect.Equal(t, e.Seq, want[i], "%s has the number", e.ID)
			}
		}
		rows, err := webhooks.NewReader(s).Events(t.Context(), webhooks.EventFilter{After: new(int64), Limit: 9})
		rowtest.Must(t, err)
		expect.Len(t, rows, 3, "events:")
	})
}

// eventLists are the lists of events of the API, with the indexes that they must use.
var eventLists = []struct {
	filter  webhooks.EventFilter
	inParts bool // listed among the events of the type
	want    []string
}{
	{filter: webhooks.EventFilter{}, want: []string{"events"}},
	{filter: webhooks.EventFilter{MerchantID: "m"}, want: []string{"events_by_merchant", "events_unwanted_by_merchant"}},
	{filter: webhooks.EventFilter{Type: "invoice.paid"}, want: []string{"events_by_type", "events_unwanted_by_type"}},
	{filter: webhooks.EventFilter{MerchantID: "m", Type: "invoice.paid"}, want: []string{"events_by_merchant", "events_unwanted_by_merchant"}},

	{filter: webhooks.EventFilter{Delivery: "none"}, want: []string{"events_unwanted_by_type"}},
	{filter: webhooks.EventFilter{Delivery: "none", MerchantID: "m"}, want: []string{"events_unwanted_by_merchant"}},
	{filter: webhooks.EventFilter{Delivery: "none", Type: "invoice.paid"}, want: []string{"events_unwanted_by_type"}},
	{filter: webhooks.EventFilter{Delivery: "none", MerchantID: "m", Type: "invoice.paid"}, want: []string{"events_unwanted_by_merchant"}},

	{filter: webhooks.EventFilter{Delivery: "delivered"}, want: []string{"delivered_deliveries"}},
	{filter: webhooks.EventFilter{Delivery: "delivered", MerchantID: "m"}, want: []string{"delivered_deliveries_by_merchant"}},
	{filter: webhooks.EventFilter{Delivery: "delivered", Type: "invoice.paid"}, want: []string{"delivered_deliveries"}},
	{filter: webhooks.EventFilter{Delivery: "delivered", MerchantID: "m", Type: "invoice.paid"}, want: []string{"delivered_deliveries_by_merchant"}},
	{filter: webhooks.EventFilter{Delivery: "delivered", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_type"}},
	{filter: webhooks.EventFilter{Delivery: "delivered", MerchantID: "m", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_merchant"}},

	{filter: webhooks.EventFilter{Delivery: "failed"}, want: []string{"failed_deliveries"}},
	{filter: webhooks.EventFilter{Delivery: "failed", MerchantID: "m"}, want: []string{"failed_deliveries_by_merchant"}},
	{filter: webhooks.EventFilter{Delivery: "failed", Type: "invoice.paid"}, want: []string{"failed_deliveries"}},
	{filter: webhooks.EventFilter{Delivery: "failed", MerchantID: "m", Type: "invoice.paid"}, want: []string{"failed_deliveries_by_merchant"}},
	{filter: webhooks.EventFilter{Delivery: "failed", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_type"}},
	{filter: webhooks.EventFilter{Delivery: "failed", MerchantID: "m", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_merchant"}},

	{filter: webhooks.EventFilter{Delivery: "pending"}, want: []string{"deliveries"}},
	{filter: webhooks.EventFilter{Delivery: "pending", MerchantID: "m"}, want: []string{"deliveries_by_merchant"}},
	{filter: webhooks.EventFilter{Delivery: "pending", Type: "invoice.paid"}, want: []string{"deliveries"}},
	{filter: webhooks.EventFilter{Delivery: "pending", MerchantID: "m", Type: "invoice.paid"}, want: []string{"deliveries_by_merchant"}},
	{filter: webhooks.EventFilter{Delivery: "pending", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_type"}},
	{filter: webhooks.EventFilter{Delivery: "pending", MerchantID: "m", Type: "invoice.paid"}, inParts: true, want: []string{"events_by_merchant"}},

	{filter: webhooks.EventFilter{InvoiceID: "inv_1"}, want: []string{"events_by_invoice"}},
	{filter: webhooks.EventFilter{InvoiceID: "inv_1", Delivery: "none", MerchantID: "m", Type: "invoice.paid"}, want: []string{"events_by_invoice"}},
	{filter: webhooks.EventFilter{InvoiceID: "inv_1", Delivery: "delivered", MerchantID: "m", Type: "invoice.paid"}, want: []string{"events_by_invoice"}},
	{filter: webhooks.EventFilter{InvoiceID: "inv_1", Delivery: "pending", MerchantID: "m"}, want: []string{"events_by_invoice"}},
}

// TestEventListsUseTheirIndexes checks that each list of events uses its index and sorts nothing.
func TestEventListsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		url := dbtest.SQLite(t)
		s := dbtest.Open(t, url)
		checkEventLists(t, s, dbtest.SQL(t, url), rowtest.PlanReader{
			Explain: "EXPLAIN QUERY PLAN ", Columns: 4, Parameters: "?", Sort: "TEMP B-TREE",
			Index: regexp.MustCompile(`^(?:SEARCH|SCAN) s(?: USING (?:COVERING )?INDEX (\S+)| USING INTEGER PRIMARY KEY|$)`),
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := dbtest.MigratedPostgres(t)
		s := dbtest.Open(t, url)
		conn := rowtest.IndexesAlone(t, url)
		checkEventLists(t, s, conn, rowtest.PlanReader{
			Explain: "EXPLAIN ", Columns: 1, Parameters: "$", Sort: "Sort",
			Index: regexp.MustCompile(`using (\S+) on \w+ s  `),
			// Both indexes have the order that is asked for; the database chooses by its statistics.
			Names: map[string]string{
				"events_pkey": "events", "deliveries_pkey": "deliveries",
				"events_by_type": "events_by_merchant", "events_unwanted_by_type": "events_unwanted_by_merchant",
			},
		})
	})
}

// tableRead finds the table that a statement lists.
var tableRead = regexp.MustCompile(`FROM (\w+)`)

func checkEventLists(t *testing.T, s *db.DB, conn *sql.DB, r rowtest.PlanReader) {
	t.Helper()
	rowtest.Fill(t, s)
	for _, c := range eventLists {
		c.filter.Limit = 50
		for _, before := range []int64{0, 1000} {
			c.filter.Before = before
			var statements []rowtest.Statement
			read := db.Recorded(s, func(query string, args []any) {
				statements = append(statements, rowtest.Statement{Query: query, Args: slices.Clone(args)})
			})
			list := webhooks.NewReader(read).Events
			if c.inParts {
				list = func(ctx context.Context, f webhooks.EventFilter) ([]webhooks.EventRow, error) {
					return webhooks.EventsInParts(ctx, read, f)
				}
			}
			expect.Success(t)(list(t.Context(), c.filter))
			var got []string
			for _, s := range statements {
				if strings.Contains(s.Query, "seq IN") {
					continue // it reads what other steps found
				}
				for _, step := range rowtest.Explain(t, conn, r.Explain+strings.ReplaceAll(s.Query, "$", r.Parameters), s.Args, r.Columns) {
					if strings.Contains(step, r.Sort) {
						t.Errorf("%+v: %s\n%s", c.filter, step, s.Query)
					}
					if found := r.Index.FindStringSubmatch(step); found != nil {
						// A step without an index name reads the table by its primary key.
						got = append(got, cmp.Or(r.Names[found[1]], found[1], tableRead.FindStringSubmatch(s.Query)[1]))
					}
				}
			}
			want := make([]string, len(c.want))
			for i, name := range c.want {
				want[i] = cmp.Or(r.Names[name], name)
			}
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, want) {
				t.Errorf("%+v, in parts %t: found by %v, want %v\n%v", c.filter, c.inParts, got, want, statements)
			}
		}
	}
}
