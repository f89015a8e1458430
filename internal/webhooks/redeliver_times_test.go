package webhooks_test

import (
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestRedeliverOfTimes redelivers the events of some seconds. Replicas with different
// clocks inserted them, so the order of their numbers is not the order of their times.
func TestRedeliverOfTimes(t *testing.T) {
	for _, fresh := range dbtest.MigratedDatabases() {
		url := fresh(t)
		s := dbtest.Open(t, url)
		const base = 1_764_000_000
		offsets := []int64{0, 1000, 1090, 1060, 1100, 1050, 1399, 1099}
		events := dbtest.Schedule(t, s, "shop", 0, len(offsets), base*1000)
		conn := dbtest.SQL(t, url)
		exec := func(text string, args ...any) {
			t.Helper()
			if _, err := conn.ExecContext(t.Context(), text, args...); err != nil {
				t.Fatal(err)
			}
		}
		finish := func() {
			exec("DELETE FROM deliveries")
			for _, e := range events {
				exec("INSERT INTO finished_deliveries (seq, merchant_id, status, attempts, finished_ms) VALUES ($1, 'shop', 'delivered', 1, 1) ON CONFLICT DO NOTHING", e.Seq)
			}
		}
		for i, e := range events {
			at := base + offsets[i]
			ids := invoice.NewIDs(func() time.Time { return time.Unix(at, 500) }, rand.Reader)
			exec("UPDATE events SET id = $1, created_at = $2 WHERE seq = $3", ids.New(invoice.PrefixEvent), at, e.Seq)
		}
		bound := func(seconds int64) (at time.Time) {
			if seconds != 0 {
				at = invoice.Unix(seconds)
			}
			return at
		}
		for name, test := range map[string]struct {
			from, to int64 // 0 for no bound
			want     []int
		}{
			"all":               {0, 0, []int{0, 1, 2, 3, 4, 5, 6, 7}},
			"one second":        {base + 1060, base + 1060, []int{3}},
			"both ends":         {base + 1050, base + 1099, []int{2, 3, 5, 7}},
			"from":              {base + 1091, 0, []int{4, 6, 7}},
			"to":                {0, base + 1000, []int{0, 1}},
			"before all":        {0, base - 1, nil},
			"long before all":   {0, 1, nil},
			"behind all":        {base + 1400, 0, nil},
			"in milliseconds":   {0, 1000 * base, []int{0, 1, 2, 3, 4, 5, 6, 7}},
			"as late as it can": {0, math.MaxInt64, []int{0, 1, 2, 3, 4, 5, 6, 7}},
			"nothing in there":  {base + 1, base + 999, nil},
		} {
			for _, limit := range []int{1, 3, 100} {
				finish()
				total, calls := int64(0), 0
				for f := (webhooks.RedeliverFilter{CreatedFrom: bound(test.from), CreatedTo: bound(test.to)}); ; calls++ {
					n, next, err := webhooks.RedeliverManyOnce(t.Context(), s, f, time.Unix(base, 0), limit)
					if err != nil {
						t.Fatal(err)
					}
					total += n
					if next == 0 {
						break
					}
					if next <= f.After || calls > len(events) {
						t.Fatalf("%s: after %d comes %d", name, f.After, next)
					}
					f.After = next
				}
				pending, err := webhooks.NewReader(s).Events(t.Context(), webhooks.EventFilter{Delivery: webhooks.Pending, After: new(int64), Limit: 100})
				if err != nil {
					t.Fatal(err)
				}
				var got []int
				for _, r := range pending {
					got = append(got, slices.IndexFunc(events, func(e webhooks.Event) bool { return e.Seq == r.Seq }))
				}
				if !slices.Equal(got, test.want) || total != int64(len(test.want)) {
					t.Errorf("%s by %d: %d scheduled, %v; want %v", name, limit, total, got, test.want)
				}
			}
		}
	}
}

// TestTailer follows the log of events while several transactions write it, some of them
// slowly. It must read each event once and in one order, for any order of the commits.
func TestTailer(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		const writers, rounds, each = 8, 15, 3
		for w := range writers { // merchants and invoices are inserted first, so that the rounds below insert only events
			dbtest.Schedule(t, s, fmt.Sprint("m", w), 0, 1, 1)
		}
		done := make(chan error, writers)
		for w := range writers {
			go func() {
				for r := range rounds {
					events := make([]webhooks.Event, each)
					for i := range events {
						name := fmt.Sprintf("m%d_%d_%d", w, r, i)
						events[i] = webhooks.Event{
							ID: "evt_" + name, Type: invoice.EventReceived, Subject: name, MerchantID: fmt.Sprint("m", w),
							InvoiceID: fmt.Sprintf("inv_m%d_0", w), Body: []byte(`{}`), CreatedAt: invoice.Unix(1), DeliveryID: "dlv_" + name, Due: rowtest.AtMS(1),
						}
					}
					err := s.Update(t.Context(), func(tx *db.Tx) error { return webhooks.InsertEvents(t.Context(), tx, events) })
					if err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		var seen []webhooks.EventRow
		after, running := int64(0), writers
		for {
			ended := running == 0 // read before the events, so that these include what was committed by then
			found, err := webhooks.NewReader(s).Events(t.Context(), webhooks.EventFilter{After: &after, Limit: 7})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(found); n > 0 {
				after = found[n-1].Seq
			}
			seen = append(seen, found...)
			if ended && len(found) == 0 {
				break
			}
			select {
			case err := <-done:
				running--
				if err != nil {
					t.Fatal(err)
				}
			default:
			}
		}
		if len(seen) != writers*(1+rounds*each) {
			t.Errorf("%d events were seen of %d", len(seen), writers*(1+rounds*each))
		}
		ids := make(map[string]bool)
		for i, r := range seen {
			if r.Seq != int64(i+1) || ids[r.ID] {
				t.Fatalf("event %d is %s with the number %d; seen before: %v", i, r.ID, r.Seq, ids[r.ID])
			}
			ids[r.ID] = true
		}
	})
}
