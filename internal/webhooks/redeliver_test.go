package webhooks_test

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
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

func TestRedeliver(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		all := listed(t, s)
		for _, c := range []struct {
			state webhooks.Status
			want  error
		}{
			{webhooks.Failed, nil}, {webhooks.Delivered, nil}, {webhooks.Pending, webhooks.ErrPending}, {webhooks.None, webhooks.ErrNoDelivery},
		} {
			for _, r := range all {
				if r.Status != c.state {
					continue
				}
				if err := webhooks.RedeliverOnce(t.Context(), s, r.ID, time.UnixMilli(now+5)); !errors.Is(err, c.want) {
					t.Errorf("%s, %s: %v, want %v", r.ID, r.Status, err, c.want)
				}
				break
			}
		}
		if err := webhooks.RedeliverOnce(t.Context(), s, "evt_none", time.UnixMilli(now)); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("an event that is not there: %v, want ErrNotFound", err)
		}
	})
}

// TestRedelivered checks that a redelivery is due immediately, and that its
// endpoint's breaker lets it through.
func TestRedelivered(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		events := dbtest.Schedule(t, s, "m", 0, 1, now)
		finish(t, s, success("l1"), lease(t, s, storedRequest("l1"))...)
		rowtest.Must(t, webhooks.SaveBreaker(t.Context(), s, "m", webhooks.Breaker{State: webhooks.BreakerOpen, Allowed: 1, Pauses: 1, Until: rowtest.AtMS(now + 1_000_000)}))
		rowtest.Must(t, webhooks.RedeliverOnce(t.Context(), s, events[0].ID, time.UnixMilli(now+5)))
		r := storedRequest("l2")
		r.Now = rowtest.AtMS(now + 5)
		want := []webhooks.Delivery{{
			ID: events[0].DeliveryID, Seq: 1, EventID: events[0].ID, MerchantID: "m", EventType: "payment.received", Body: events[0].Body,
			Attempts: 1, PriorAttempts: 1, Due: rowtest.AtMS(now + 5), Deadline: rowtest.AtMS(now + 5).Add(webhooks.RetryWindow), Suspect: true,
		}}
		expect.NoDiff(t, gocmp.Diff(want, lease(t, s, r)), "leased")
	})
}

// TestRedeliverLocksInOrder checks that the breakers of all merchants are locked in one order.
func TestRedeliverLocksInOrder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		merchants := []string{"c", "a", "d", "b"}
		var seqs []int64
		for _, m := range merchants {
			seqs = append(seqs, dbtest.Schedule(t, s, m, 0, 1, now)[0].Seq)
		}
		trust(t, s, merchants...)
		finish(t, s, success("l"), lease(t, s, storedRequest("l"))...)
		for _, m := range merchants {
			rowtest.Must(t, webhooks.SaveBreaker(t.Context(), s, m, webhooks.Breaker{State: webhooks.BreakerOpen, Allowed: 1, Pauses: 1, Until: rowtest.AtMS(now + 1_000_000)}))
		}
		var locked [][]any
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return webhooks.RedeliverInTransaction(ctx, db.RecordedTx(tx, func(query string, args []any) {
				if strings.Contains(query, "breakers") {
					locked = append(locked, slices.Clone(args))
				}
			}), seqs)
		})
		expect.NoDiff(t, gocmp.Diff([][]any{{int64(1), "a", "b", "c", "d"}}, locked), "breakers are changed in the order")
		breakers, err := webhooks.NewReader(s).Breakers(t.Context(), merchants)
		rowtest.Must(t, err)
		for m, b := range breakers {
			if !b.Until.Equal(rowtest.AtMS(1)) {
				t.Errorf("the endpoint of %s is left alone until %s, want %s", m, b.Until, rowtest.AtMS(1))
			}
		}
	})
}

func TestRedeliverMany(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		all := listed(t, s)
		send := func(f webhooks.RedeliverFilter) (total int64) {
			t.Helper()
			for {
				n, next, err := webhooks.RedeliverManyOnce(t.Context(), s, f, time.UnixMilli(now), 3)
				rowtest.Must(t, err)
				total += n
				if next == 0 {
					return total
				}
				if next <= f.After {
					t.Fatalf("behind %d it goes on at %d", f.After, next)
				}
				f.After = next
			}
		}
		count := func(matches func(webhooks.EventRow) bool) (n int64) {
			for _, r := range all {
				if (r.Status == webhooks.Failed || r.Status == webhooks.Delivered) && matches(r) {
					n++
				}
			}
			return n
		}
		if got, want := send(webhooks.RedeliverFilter{After: 2, Through: 9}), count(func(r webhooks.EventRow) bool { return r.Seq > 2 && r.Seq <= 9 }); got != want || want == 0 {
			t.Errorf("of a range: %d, want %d", got, want)
		}
		rest := func(r webhooks.EventRow) bool { return r.Seq <= 2 || r.Seq > 9 }
		if got, want := send(webhooks.RedeliverFilter{MerchantID: "m", OnlyFailed: true}), count(func(r webhooks.EventRow) bool {
			return rest(r) && r.MerchantID == "m" && r.Status == webhooks.Failed
		}); got != want || want == 0 {
			t.Errorf("of a merchant's that failed: %d, want %d", got, want)
		}
		if got, want := send(webhooks.RedeliverFilter{}), count(func(r webhooks.EventRow) bool {
			return rest(r) && (r.MerchantID != "m" || r.Status != webhooks.Failed)
		}); got != want || want == 0 {
			t.Errorf("of the others: %d, want %d", got, want)
		}
		pending, err := webhooks.NewReader(s).Events(t.Context(), webhooks.EventFilter{Delivery: webhooks.Pending, Limit: 100})
		if err != nil || len(pending) != 30 {
			t.Errorf("%d wait in the end, %v; want all 30 that have a delivery", len(pending), err)
		}
	})
}

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
			expect.Success(t)(conn.ExecContext(t.Context(), text, args...))
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

// countingStore counts lease requests.
type countingStore struct {
	*recorder
	leases *atomic.Int64
}

func (s countingStore) LeaseDeliveries(ctx context.Context, r webhooks.LeaseRequest) (webhooks.Leased, error) {
	s.leases.Add(1)
	return s.recorder.LeaseDeliveries(ctx, r)
}

// fresh is a worker and the events that its process commits.
type fresh struct {
	*world
	worker *webhooks.Worker
	leases *atomic.Int64
}

// startFresh runs a worker with merchant m's endpoint in its cache as healthy, so that the breaker allows four attempts
// at the same time.
func startFresh(t *testing.T, s *db.DB, url string) *fresh {
	t.Helper()
	f := &fresh{world: newWorld(t, s, url), leases: new(atomic.Int64)}
	dbtest.Schedule(t, s, "m", 0, 2, epoch.UnixMilli()-1)
	f.WorkerConfig.Store = countingStore{f.store, f.leases}
	f.worker = webhooks.NewWorker(f.WorkerConfig)
	f.run(t, f.worker)
	for range 2 {
		f.outcome(t)
	}
	return f
}

// TestCommitted checks that a fresh event is posted without a resync.
func TestCommitted(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		f := startFresh(t, s, newReceiver(t, status(http.StatusOK)).URL)
		events := []webhooks.Event{{
			ID: "evt_1", Type: invoice.EventReceived, Subject: "fresh", MerchantID: "m", InvoiceID: "inv_m_0",
			Body: []byte("{}"), CreatedAt: invoice.Unix(1), DeliveryID: "dlv_1", Due: f.clock.Now(),
		}}
		expect.OK(t, s.Update(t.Context(), func(tx *db.Tx) error { return webhooks.InsertEvents(t.Context(), tx, events) }))
		f.worker.Committed(events)
		if o := f.outcome(t); o.DeliveryID != "dlv_1" || o.Status != webhooks.Delivered {
			t.Errorf("outcome %+v of %s", o.Status, o.DeliveryID)
		}
	})
}
