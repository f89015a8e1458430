package webhooks_test

import (
	"crypto/rand"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
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
					expect.OK(t, err)
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
				expect.OK(t, err)
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
