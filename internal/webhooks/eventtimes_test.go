package webhooks_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

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
				if e.Seq != want[i] {
					t.Errorf("%s has the number %d, want %d", e.ID, e.Seq, want[i])
				}
			}
		}
		rows, err := webhooks.NewReader(s).Events(t.Context(), webhooks.EventFilter{After: new(int64), Limit: 9})
		rowtest.Must(t, err)
		if len(rows) != 3 {
			t.Errorf("there are %d events", len(rows))
		}
	})
}
