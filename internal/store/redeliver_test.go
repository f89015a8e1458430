package store_test

import (
	"errors"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

func TestRedeliver(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		all := listed(t, s)
		for _, c := range []struct {
			state store.DeliveryStatus
			want  error
		}{
			{store.DeliveryFailed, nil}, {store.DeliveryDelivered, nil}, {store.DeliveryPending, store.ErrPending}, {store.DeliveryNone, store.ErrNoDelivery},
		} {
			for _, r := range all {
				if r.Status != c.state {
					continue
				}
				if err := s.Redeliver(t.Context(), r.ID, now+5); !errors.Is(err, c.want) {
					t.Errorf("%s, %s: %v, want %v", r.ID, r.Status, err, c.want)
				}
				break
			}
		}
		if err := s.Redeliver(t.Context(), "evt_none", now); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("an event that is not there: %v, want ErrNotFound", err)
		}
	})
}

// What is sent again goes with the retries, in a schedule of its own, and its
// endpoint is tried at once.
func TestRedelivered(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		events := storetest.Schedule(t, s, "m", 0, 1, now)
		finish(t, s, success("l1"), lease(t, s, request("l1"))...)
		must(t, s.SaveBreaker(t.Context(), "m", store.Breaker{State: store.BreakerOpen, Allowed: 1, Pauses: 1, UntilMS: now + 1_000_000}))
		must(t, s.Redeliver(t.Context(), events[0].ID, now+5))
		r := request("l2")
		r.Lane, r.NowMS = store.RetryLane, now+5
		want := []store.Delivery{{
			ID: events[0].DeliveryID, Seq: 1, EventID: events[0].ID, MerchantID: "m", EventType: "payment.received", Body: events[0].Body,
			Attempts: 1, Since: 1, DueMS: now + 5, DeadlineMS: now + 5 + store.RetryWindow, Doubtful: true,
		}}
		if diff := gocmp.Diff(want, lease(t, s, r)); diff != "" {
			t.Errorf("leased (-want +got):\n%s", diff)
		}
	})
}

func TestRedeliverMany(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		all := listed(t, s)
		send := func(f store.RedeliverFilter) (total int64) {
			t.Helper()
			for {
				n, next, err := s.RedeliverMany(t.Context(), f, now, 3)
				must(t, err)
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
		count := func(matches func(store.EventRow) bool) (n int64) {
			for _, r := range all {
				if (r.Status == store.DeliveryFailed || r.Status == store.DeliveryDelivered) && matches(r) {
					n++
				}
			}
			return n
		}
		if got, want := send(store.RedeliverFilter{After: 2, Through: 9}), count(func(r store.EventRow) bool { return r.Seq > 2 && r.Seq <= 9 }); got != want || want == 0 {
			t.Errorf("of a range: %d, want %d", got, want)
		}
		rest := func(r store.EventRow) bool { return r.Seq <= 2 || r.Seq > 9 }
		if got, want := send(store.RedeliverFilter{MerchantID: "m", OnlyFailed: true}), count(func(r store.EventRow) bool {
			return rest(r) && r.MerchantID == "m" && r.Status == store.DeliveryFailed
		}); got != want || want == 0 {
			t.Errorf("of a merchant's that failed: %d, want %d", got, want)
		}
		if got, want := send(store.RedeliverFilter{}), count(func(r store.EventRow) bool {
			return rest(r) && (r.MerchantID != "m" || r.Status != store.DeliveryFailed)
		}); got != want || want == 0 {
			t.Errorf("of the others: %d, want %d", got, want)
		}
		pending, err := s.Events(t.Context(), store.EventFilter{Delivery: store.DeliveryPending, Limit: 100})
		if err != nil || len(pending) != 30 {
			t.Errorf("%d wait in the end, %v; want all 30 that have a delivery", len(pending), err)
		}
	})
}
