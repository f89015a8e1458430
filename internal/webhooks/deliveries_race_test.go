package webhooks_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestLeaseDeliveriesAtOnce checks that concurrent processes lease each delivery once, and
// together respect a merchant's limit in flight.
func TestLeaseDeliveriesAtOnce(t *testing.T) {
	const merchants, queued, askers, perMerchant = 5, 20, 8, 3
	for name, url := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := url(t)
			stores := []*db.DB{dbtest.Open(t, dsn), dbtest.Open(t, dsn)}
			for m := range merchants {
				dbtest.Schedule(t, stores[0], fmt.Sprint("m", m), 0, queued, now-100)
				trust(t, stores[0], fmt.Sprint("m", m))
			}
			var mu sync.Mutex
			holders := map[string]string{}
			byID := map[string]webhooks.Delivery{}
			delivered := 0
			for round := 0; delivered < merchants*queued; round++ {
				inFlight := map[string]int{}
				var group errgroup.Group
				for a := range askers {
					group.Go(func() error {
						r := storedRequest(fmt.Sprintf("l_%d_%d", round, a))
						r.Healthy, r.PerMerchant = 4, perMerchant
						r.Queues = queues(t, stores[a%2], r, "")
						leased, err := webhooks.NewTables(stores[a%2]).LeaseDeliveries(t.Context(), r)
						mu.Lock()
						defer mu.Unlock()
						for _, d := range leased.Deliveries {
							if other, twice := holders[d.ID]; twice {
								t.Errorf("%s is leased by %s and %s", d.ID, other, r.LeaseID)
							}
							holders[d.ID], byID[d.ID] = r.LeaseID, d
							inFlight[d.MerchantID]++
						}
						return err
					})
				}
				expect.OK(t, group.Wait())
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
					finish(t, stores[0], success(leaseID), byID[id])
					holders[id] = ""
					delivered++
				}
			}
		})
	}
}

// TestLeaseDeliveriesSkipsLockedMerchants checks that a process skips a merchant for which another process is leasing,
// without waiting for it, because the number in flight is not known yet.
func TestLeaseDeliveriesSkipsLockedMerchants(t *testing.T) {
	url := dbtest.MigratedPostgres(t)
	one, other := dbtest.Open(t, url), dbtest.Open(t, url)
	dbtest.Schedule(t, one, "a", 0, 9, now-10)
	dbtest.Schedule(t, other, "b", 0, 1, now)
	both := []webhooks.Queue{{MerchantID: "a"}, {MerchantID: "b"}}
	err := one.Update(t.Context(), func(tx *db.Tx) error {
		r := storedRequest("l1")
		r.Queues = both[:1]
		if err := webhooks.LeaseInTransaction(t.Context(), tx, r); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		r = storedRequest("l2")
		r.Queues = both
		leased, err := webhooks.NewTables(other).LeaseDeliveries(ctx, r)
		wantIDs(t, "meanwhile", leased.Deliveries, "dlv_b_000000")
		if len(leased.Queues) != 1 || leased.Queues[0].MerchantID != "b" {
			t.Errorf("looked at %+v, want b alone", leased.Queues)
		}
		return err
	})
	expect.OK(t, err)
	wantIDs(t, "afterwards", lease(t, other, storedRequest("l3")))
}
