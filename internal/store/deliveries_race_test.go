package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// Many processes that ask at once get each delivery once, and together no
// more of a merchant's than may be in flight.
func TestLeaseDeliveriesAtOnce(t *testing.T) {
	const merchants, queued, askers, perMerchant = 5, 20, 8, 3
	for name, url := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := url(t)
			stores := []*store.Store{storetest.Open(t, dsn), storetest.Open(t, dsn)}
			for m := range merchants {
				storetest.Schedule(t, stores[0], fmt.Sprint("m", m), 0, queued, now-100)
			}
			var mu sync.Mutex
			holders := map[string]string{}
			delivered := 0
			for round := 0; delivered < merchants*queued; round++ {
				inFlight := map[string]int{}
				var group errgroup.Group
				for a := range askers {
					group.Go(func() error {
						r := request(fmt.Sprintf("l_%d_%d", round, a))
						r.Limit, r.PerMerchant = 4, perMerchant
						leased, err := stores[a%2].LeaseDeliveries(t.Context(), r)
						mu.Lock()
						defer mu.Unlock()
						for _, d := range leased {
							if other, twice := holders[d.ID]; twice {
								t.Errorf("%s is leased by %s and %s", d.ID, other, r.LeaseID)
							}
							holders[d.ID] = r.LeaseID
							inFlight[d.MerchantID]++
						}
						return err
					})
				}
				if err := group.Wait(); err != nil {
					t.Fatal(err)
				}
				if len(inFlight) == 0 {
					t.Fatalf("nothing leased in round %d, %d delivered", round, delivered)
				}
				for m, n := range inFlight {
					if n > perMerchant {
						t.Errorf("%d of %s's in flight, want %d at most", n, m, perMerchant)
					}
				}
				for id, leaseID := range holders {
					if leaseID == "" {
						continue
					}
					finish(t, stores[0], store.Outcome{DeliveryID: id, LeaseID: leaseID, Status: store.DeliveryDelivered, FinishedMS: now})
					holders[id] = ""
					delivered++
				}
			}
		})
	}
}

// While one process leases for a merchant, another passes that merchant over,
// since what is in flight is not known yet; it does not wait, and serves the
// others.
func TestLeaseDeliveriesPassesOver(t *testing.T) {
	url := storetest.Postgres(t)
	one, other := storetest.Open(t, url), storetest.Open(t, url)
	storetest.Schedule(t, one, "a", 0, 9, now-10)
	err := one.Update(t.Context(), func(tx *store.Tx) error {
		if err := tx.LeaseInTransaction(t.Context(), request("l1")); err != nil {
			return err
		}
		storetest.Schedule(t, other, "b", 0, 1, now)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		leased, err := other.LeaseDeliveries(ctx, request("l2"))
		wantIDs(t, "meanwhile", leased, "dlv_b_000000")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wantIDs(t, "afterwards", lease(t, other, request("l3")))
}

// Whatever the queues, limits and turns: no more than asked, no merchant above
// its share, the oldest first, nobody passed over twice by one who had a turn,
// and in the end everything.
func TestLeaseDeliveriesProperties(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		run := 0
		rapid.Check(t, func(rt *rapid.T) {
			run++
			queues := rapid.SliceOfN(rapid.IntRange(1, 6), 1, 6).Draw(rt, "queues")
			waiting, next := map[string]bool{}, map[string]int{}
			left := 0
			for i, n := range queues {
				m := fmt.Sprintf("r%d_%d", run, i)
				storetest.Schedule(t, s, m, 0, n, now-100)
				left += n
				waiting[m] = true
			}
			after := ""
			for turn := 0; left > 0; turn++ {
				r := request(fmt.Sprintf("l%d_%d", run, turn))
				r.Limit = rapid.IntRange(1, 8).Draw(rt, "limit")
				r.PerMerchant = rapid.IntRange(1, 3).Draw(rt, "perMerchant")
				r.After = after
				got := lease(t, s, r)
				if len(got) == 0 || len(got) > r.Limit {
					rt.Fatalf("leased %d, want 1 to %d", len(got), r.Limit)
				}
				share := map[string]int{}
				for _, d := range got {
					after = d.MerchantID
					if share[after]++; share[after] > r.PerMerchant {
						rt.Fatalf("%s got more than its %d", after, r.PerMerchant)
					}
					if want := fmt.Sprintf("dlv_%s_%06d", after, next[after]); d.ID != want {
						rt.Fatalf("leased %s, want %s", d.ID, want)
					}
					next[after]++
					delete(waiting, after)
				}
				if len(got) > len(share) && len(share) < r.Limit && len(waiting) > 0 {
					rt.Fatalf("%v got nothing, and others several: %v", waiting, share)
				}
				for _, d := range got {
					finish(t, s, store.Outcome{DeliveryID: d.ID, LeaseID: r.LeaseID, Status: store.DeliveryDelivered, FinishedMS: now})
				}
				left -= len(got)
				if len(waiting) > 0 && turn+1 >= len(queues) {
					rt.Fatalf("%v still wait after %d turns of %d merchants", waiting, turn+1, len(queues))
				}
			}
		})
	})
}
