package webhooks_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// now is the time of these tests, in Unix milliseconds.
const now = 1_700_000_000_000

// storedRequest returns a request for up to 10 first attempts, 4 of one merchant, for 30 s.
func storedRequest(leaseID string) webhooks.LeaseRequest {
	return webhooks.LeaseRequest{
		LeaseID: leaseID, Now: rowtest.AtMS(now), Until: rowtest.AtMS(now + 30_000), Healthy: 10, Suspect: 10, PerMerchant: 4,
	}
}

// queues returns all queues, beginning after a merchant.
func queues(t testing.TB, s *db.DB, after string) []webhooks.Queue {
	t.Helper()
	all, err := webhooks.NewReader(s).Queues(t.Context())
	rowtest.Must(t, err)
	slices.SortFunc(all, func(a, b webhooks.Queue) int { return cmp.Compare(a.MerchantID, b.MerchantID) })
	i, _ := slices.BinarySearchFunc(all, after+"\x00", func(q webhooks.Queue, m string) int { return cmp.Compare(q.MerchantID, m) })
	return append(slices.Clone(all[i:]), all[:i]...)
}

func leaseFrom(t testing.TB, s *db.DB, r webhooks.LeaseRequest) webhooks.Leased {
	t.Helper()
	if r.Queues == nil {
		r.Queues = queues(t, s, "")
	}
	leased, err := webhooks.NewTables(s).LeaseDeliveries(t.Context(), r)
	rowtest.Must(t, err)
	return leased
}

func lease(t testing.TB, s *db.DB, r webhooks.LeaseRequest) []webhooks.Delivery {
	t.Helper()
	return leaseFrom(t, s, r).Deliveries
}

// trust makes the merchants' endpoints healthy.
func trust(t testing.TB, s *db.DB, merchants ...string) {
	t.Helper()
	for _, m := range merchants {
		rowtest.Must(t, webhooks.SaveBreaker(t.Context(), s, m, webhooks.Breaker{State: webhooks.BreakerClosed, Healthy: true, Allowed: 99}))
	}
}

// finish records one outcome for deliveries, which must be leased under its lease.
func finish(t testing.TB, s *db.DB, o webhooks.Outcome, deliveries ...webhooks.Delivery) {
	t.Helper()
	for _, d := range deliveries {
		o.Delivery = d
		lost, err := webhooks.NewTables(s).FinishDeliveries(t.Context(), []webhooks.Outcome{o})
		if err != nil || len(lost) != 0 {
			t.Fatalf("finish %s: lost %v, %v", d.ID, lost, err)
		}
	}
}

// again returns the outcome of a first attempt that failed.
func again(leaseID string, dueMS int64) webhooks.Outcome {
	return webhooks.Outcome{LeaseID: leaseID, Attempt: &webhooks.Attempt{Number: 1}, Status: webhooks.Pending, NextDue: rowtest.AtMS(dueMS)}
}

// success returns the outcome of a first attempt that succeeded.
func success(leaseID string) webhooks.Outcome {
	return webhooks.Outcome{LeaseID: leaseID, Attempt: &webhooks.Attempt{Number: 1, StatusCode: 200}, Status: webhooks.Delivered, Finished: rowtest.AtMS(now)}
}

func ids(deliveries []webhooks.Delivery) []string {
	found := []string{}
	for _, d := range deliveries {
		found = append(found, d.ID)
	}
	return found
}

func wantIDs(t testing.TB, what string, got []webhooks.Delivery, want ...string) {
	t.Helper()
	expect.NoDiff(t, gocmp.Diff(append([]string{}, want...), ids(got)), "%s", what)
}

// state is the stored state of a delivery.
type state struct {
	Status        webhooks.Status
	Count         int
	Due, Finished time.Time
	Attempts      []webhooks.Attempt
}

func storedRecord(t testing.TB, s *db.DB, eventID string) state {
	t.Helper()
	r, attempts, err := webhooks.NewReader(s).EventRecord(t.Context(), eventID)
	rowtest.Must(t, err)
	return state{r.Status, r.Attempts, r.Due, r.Finished, attempts}
}

func TestLeaseDeliveries(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		events := dbtest.Schedule(t, s, "m", 0, 2, now)
		trust(t, s, "m")
		got := leaseFrom(t, s, storedRequest("l1"))
		want := webhooks.Leased{
			Deliveries: []webhooks.Delivery{{
				ID: events[0].DeliveryID, Seq: events[0].Seq, EventID: events[0].ID, MerchantID: "m", EventType: "payment.received",
				Body: events[0].Body, Due: rowtest.AtMS(now), Deadline: rowtest.AtMS(now + 86_400_000),
			}},
			Queues: []webhooks.QueueState{{
				Queue: webhooks.Queue{MerchantID: "m", Head: rowtest.AtMS(now + 1), HeadSeq: events[1].Seq}, Breaker: webhooks.Breaker{State: webhooks.BreakerClosed, Used: true, Healthy: true, Allowed: 99},
			}},
		}
		expect.NoDiff(t, gocmp.Diff(want, got), "leased, of one that is due and one that is due a millisecond later")
		wantIDs(t, "leased again", lease(t, s, storedRequest("l2")))
		r := storedRequest("l3")
		r.Now = rowtest.AtMS(now + 29_999)
		rest := leaseFrom(t, s, r)
		wantIDs(t, "before the lease ends", rest.Deliveries, events[1].DeliveryID)
		if !rest.Queues[0].Head.IsZero() {
			t.Errorf("with everything leased the queue goes on at %s, want it empty", rest.Queues[0].Head)
		}
		r = storedRequest("l4")
		r.Now, r.Until = rowtest.AtMS(now+30_000), rowtest.AtMS(now+60_000)
		wantIDs(t, "when the lease ended", lease(t, s, r), events[0].DeliveryID, events[1].DeliveryID)
	})
}

// TestLeaseDeliveriesFromHead checks that deliveries before the given head are not read.
func TestLeaseDeliveriesFromHead(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		dbtest.Schedule(t, s, "m", 0, 9, now-10)
		trust(t, s, "m")
		r := storedRequest("l1")
		r.Queues = []webhooks.Queue{{MerchantID: "m", Head: rowtest.AtMS(now - 8)}}
		r.Healthy = 2
		got := leaseFrom(t, s, r)
		wantIDs(t, "from the third on", got.Deliveries, "dlv_m_000002", "dlv_m_000003")
		if !got.Queues[0].Head.Equal(rowtest.AtMS(now - 6)) {
			t.Errorf("the queue goes on %s from now, want -6ms", got.Queues[0].Head.Sub(rowtest.AtMS(now)))
		}
	})
}

// TestLeaseRetry checks that a delivery to be tried again is leased when it is due, among those that were not
// attempted.
func TestLeaseRetry(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		events := dbtest.Schedule(t, s, "m", 0, 2, now-10)
		r := storedRequest("l1")
		first := lease(t, s, r)
		wantIDs(t, "the first, of an endpoint that is not known yet", first, events[0].DeliveryID)
		finish(t, s, again("l1", now), first...)
		trust(t, s, "m")
		got := lease(t, s, storedRequest("l2"))
		wantIDs(t, "both", got, events[1].DeliveryID, events[0].DeliveryID)
		if got[1].Attempts != 1 || got[1].Suspect {
			t.Errorf("leased %+v, want the second attempt, to a healthy endpoint", got[1])
		}
	})
}

// TestLeaseDeliveriesByBreaker checks the limits of healthy and of suspect endpoints, and
// that a breaker can lower them.
func TestLeaseDeliveriesByBreaker(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		for _, m := range []string{"good", "new", "slow", "open", "probed"} {
			dbtest.Schedule(t, s, m, 0, 9, now-10)
		}
		trust(t, s, "good")
		for m, b := range map[string]webhooks.Breaker{
			"slow":   {State: webhooks.BreakerClosed, Allowed: 3},
			"open":   {State: webhooks.BreakerOpen, Allowed: 1, Pauses: 1, Until: rowtest.AtMS(now + 1)},
			"probed": {State: webhooks.BreakerGone, Allowed: 1, Pauses: 1, Until: rowtest.AtMS(now)},
		} {
			rowtest.Must(t, webhooks.SaveBreaker(t.Context(), s, m, b))
		}
		r := storedRequest("l1")
		r.Healthy, r.Suspect = 3, 9
		wantIDs(t, "by breaker", lease(t, s, r), "dlv_good_000000", "dlv_good_000001", "dlv_good_000002",
			"dlv_new_000000", "dlv_probed_000000", "dlv_slow_000000", "dlv_slow_000001", "dlv_slow_000002")
		r.LeaseID, r.Healthy, r.Suspect = "l2", 9, 0
		wantIDs(t, "with no room for suspect ones", lease(t, s, r), "dlv_good_000003")
	})
}

// TestLeaseDeliveriesLast checks that a delivery behind an open breaker waits until its
// deadline is near, and then gets its last attempt.
func TestLeaseDeliveriesLast(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		dbtest.Schedule(t, s, "m", 0, 3, now-10)
		r := storedRequest("l1")
		r.Healthy, r.Suspect = 9, 9
		trust(t, s, "m")
		leased := lease(t, s, r)
		finish(t, s, again("l1", now+5), leased[:2]...) // due at now+5, with deadlines one millisecond apart
		rowtest.Must(t, webhooks.SaveBreaker(t.Context(), s, "m", webhooks.Breaker{State: webhooks.BreakerOpen, Allowed: 3, Pauses: 1, Until: rowtest.AtMS(now + 100_000_000)}))
		r = storedRequest("l2")
		r.Now = rowtest.AtMS(now - 11).Add(webhooks.RetryWindow - webhooks.FinalWindow)
		got := leaseFrom(t, s, r)
		wantIDs(t, "a millisecond before the first one's end is near", got.Deliveries)
		if q := got.Queues[0]; !q.Breaker.Until.After(r.Now) || !q.Head.Equal(rowtest.AtMS(now+5)) {
			t.Errorf("left as %+v, want it open and where it was", q)
		}
		r.LeaseID, r.Now = "l3", r.Now.Add(time.Millisecond)
		wantIDs(t, "near the first one's end", lease(t, s, r), leased[0].ID)
		dbtest.Schedule(t, s, "n", 0, 2, now-10)
		rowtest.Must(t, webhooks.SaveBreaker(t.Context(), s, "n", webhooks.Breaker{State: webhooks.BreakerOpen, Allowed: 3, Pauses: 1, Until: rowtest.AtMS(now + 100_000_000)}))
		r.LeaseID = "l4"
		r.Queues = []webhooks.Queue{{MerchantID: "n"}}
		wantIDs(t, "of those never attempted", lease(t, s, r), "dlv_n_000000")
	})
}

func TestFinishDeliveries(t *testing.T) {
	failed := webhooks.Attempt{Number: 1, Started: rowtest.AtMS(now), Duration: 7 * time.Millisecond, StatusCode: 503, Error: "answered 503", Excerpt: "no", Lookup: 1 * time.Millisecond, Connect: 2 * time.Millisecond, Handshake: 3 * time.Millisecond, Answer: 4 * time.Millisecond}
	silent := webhooks.Attempt{Number: 1, Started: rowtest.AtMS(now), Duration: 5000 * time.Millisecond, Error: "no answer"}
	good := webhooks.Attempt{Number: 1, Started: rowtest.AtMS(now), StatusCode: 100}
	for _, c := range []struct {
		name    string
		outcome webhooks.Outcome
		want    state
	}{
		{"delivered", webhooks.Outcome{Attempt: &good, Status: webhooks.Delivered, Finished: rowtest.AtMS(now + 1)},
			state{Status: webhooks.Delivered, Count: 1, Finished: rowtest.AtMS(now + 1), Attempts: []webhooks.Attempt{good}}},
		{"to be tried again", webhooks.Outcome{Attempt: &failed, Status: webhooks.Pending, NextDue: rowtest.AtMS(now + 5000)},
			state{Status: webhooks.Pending, Count: 1, Due: rowtest.AtMS(now + 5000), Attempts: []webhooks.Attempt{failed}}},
		{"failed", webhooks.Outcome{Attempt: &silent, Status: webhooks.Failed, Finished: rowtest.AtMS(now + 2)},
			state{Status: webhooks.Failed, Count: 1, Finished: rowtest.AtMS(now + 2), Attempts: []webhooks.Attempt{silent}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, s *db.DB) {
				dbtest.Schedule(t, s, "m", 0, 1, now)
				o := c.outcome
				o.Delivery, o.LeaseID = lease(t, s, storedRequest("mine"))[0], "another's"
				o.Change = func(b webhooks.Breaker) webhooks.Breaker { b.Allowed++; return b }
				if lost, err := webhooks.NewTables(s).FinishDeliveries(t.Context(), []webhooks.Outcome{o}); len(lost) != 1 || err != nil {
					t.Errorf("under another's lease: lost %v, %v; want the one", lost, err)
				}
				untouched := state{Status: webhooks.Pending, Due: rowtest.AtMS(now + 30_000)}
				expect.NoDiff(t, gocmp.Diff(untouched, storedRecord(t, s, "evt_m_000000")), "after that")
				o.LeaseID = "mine"
				finish(t, s, o, o.Delivery)
				expect.NoDiff(t, gocmp.Diff(c.want, storedRecord(t, s, "evt_m_000000")), "record")
				if lost, err := webhooks.NewTables(s).FinishDeliveries(t.Context(), []webhooks.Outcome{o}); len(lost) != 1 || err != nil {
					t.Errorf("a second time: lost %v, %v; want the one", lost, err)
				}
				breakers, err := webhooks.NewReader(s).Breakers(t.Context(), []string{"m"})
				if want := (webhooks.Breaker{State: webhooks.BreakerClosed, Used: true, Allowed: 2}); breakers["m"] != want || err != nil {
					t.Errorf("breaker %+v, %v; want it changed once, %+v", breakers["m"], err, want)
				}
			})
		})
	}
}

// TestOldURL records an attempt at a URL that the merchant has replaced, and one at the present URL that began before
// it was set again, or one at a configured URL. The same URL keeps the breaker.
func TestOldURL(t *testing.T) {
	put := func(t *testing.T, s *db.DB, url string, at int64) {
		_, err := webhooks.PutEndpointOnce(t.Context(), s, webhooks.EndpointRow{MerchantID: "m", URL: url, ChangedAt: rowtest.AtMS(at)}, func(int64) ([]byte, string, error) { return []byte{1}, "k", nil })
		rowtest.Must(t, err)
	}
	for name, c := range map[string]struct {
		first webhooks.Status // of the attempt at the old URL
		url   string          // of the other attempt
	}{
		"successes":        {webhooks.Delivered, "https://b.example/"},
		"a failure":        {webhooks.Failed, "https://b.example/"},
		"a configured URL": {webhooks.Delivered, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, s *db.DB) {
				dbtest.Schedule(t, s, "m", 0, 2, now-1)
				put(t, s, "https://a.example/", now)
				trust(t, s, "m")
				leased := lease(t, s, storedRequest("l1"))
				put(t, s, "https://b.example/", now+5000)
				record := func(d webhooks.Delivery, status webhooks.Status, url string, started int64) webhooks.Breaker {
					o := webhooks.Outcome{LeaseID: "l1", URL: url, Attempt: &webhooks.Attempt{Number: 1, Started: rowtest.AtMS(started), StatusCode: 410}, Status: status, Finished: rowtest.AtMS(now + 9000)}
					o.Change = func(b webhooks.Breaker) webhooks.Breaker {
						return b.After(webhooks.Result{Started: rowtest.AtMS(started), Ended: rowtest.AtMS(now + 9000), Gone: true, Error: "answered 410"}, 8)
					}
					finish(t, s, o, d)
					all, err := webhooks.NewReader(s).Breakers(t.Context(), []string{"m"})
					expect.OK(t, err)
					return all["m"]
				}
				if b := record(leased[0], c.first, "https://a.example/", now+6000); b != webhooks.NewBreaker {
					t.Errorf("an attempt at the old URL: %+v", b)
				}
				put(t, s, "https://b.example/", now+8000)
				gone := record(leased[1], webhooks.Delivered, c.url, now+7000)
				if gone.State != webhooks.BreakerGone {
					t.Errorf("an attempt at the new or the configured URL: %+v", gone)
				}
				put(t, s, "https://b.example/", now+10_000)
				all, err := webhooks.NewReader(s).Breakers(t.Context(), []string{"m"})
				expect.OK(t, err)
				if gone.Until = all["m"].Until; !gone.Until.IsZero() || all["m"] != gone {
					t.Errorf("the same URL again: %+v, want a probe at once and else %+v", all["m"], gone)
				}
			})
		})
	}
}

// TestBreakerCounts expects an open breaker to count while a delivery waits.
func TestBreakerCounts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		dbtest.Schedule(t, s, "a", 0, 1, now-1)
		dbtest.Schedule(t, s, "b", 0, 1, now-1)
		trust(t, s, "b")
		rowtest.Must(t, webhooks.SaveBreaker(t.Context(), s, "a", webhooks.Breaker{State: webhooks.BreakerOpen, Allowed: 1, Pauses: 1}))
		for _, open := range []int64{1, 0} {
			got, err := webhooks.NewReader(s).BreakerCounts(t.Context())
			expect.OK(t, err)
			expect.NoDiff(t, gocmp.Diff(map[webhooks.BreakerState]int64{webhooks.BreakerClosed: 1, webhooks.BreakerOpen: open, webhooks.BreakerGone: 0}, got), "counts")
			if open > 0 {
				r := storedRequest("l1")
				finish(t, s, success("l1"), lease(t, s, r)...)
			}
		}
	})
}

// TestFinishDeliveryWithoutAttempt checks that a second attempt is recorded even if it could not start.
func TestFinishDeliveryWithoutAttempt(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		dbtest.Schedule(t, s, "m", 0, 1, now)
		finish(t, s, again("l1", now), lease(t, s, storedRequest("l1"))...)
		r := storedRequest("l2")
		finish(t, s, webhooks.Outcome{LeaseID: "l2", Status: webhooks.Failed, Finished: rowtest.AtMS(now + 2)}, lease(t, s, r)...)
		want := state{Status: webhooks.Failed, Count: 1, Finished: rowtest.AtMS(now + 2), Attempts: []webhooks.Attempt{{Number: 1}}}
		expect.NoDiff(t, gocmp.Diff(want, storedRecord(t, s, "evt_m_000000")), "record")
	})
}

// TestFinishDeliveriesLate checks that an ended lease belongs to its holder until another worker takes it.
func TestFinishDeliveriesLate(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		dbtest.Schedule(t, s, "m", 0, 2, now-1)
		trust(t, s, "m")
		old := lease(t, s, storedRequest("old"))
		late := storedRequest("new")
		late.Now, late.Until, late.Healthy = rowtest.AtMS(now+30_000), rowtest.AtMS(now+60_000), 1
		wantIDs(t, "taken over", lease(t, s, late), "dlv_m_000000")
		outcomes := make([]webhooks.Outcome, 2)
		for i, d := range old {
			outcomes[i] = success("old")
			outcomes[i].Delivery = d
		}
		lost, err := webhooks.NewTables(s).FinishDeliveries(t.Context(), outcomes)
		if err != nil || !slices.Equal(lost, []int{0}) {
			t.Errorf("after another took one of two leases: lost %v, %v; want the first", lost, err)
		}
		if r := storedRecord(t, s, "evt_m_000001"); r.Status != webhooks.Delivered {
			t.Errorf("the other one is %+v, want it delivered", r)
		}
	})
}

func TestReleaseDeliveries(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		dbtest.Schedule(t, s, "m", 0, 4, now-10)
		trust(t, s, "m")
		r := storedRequest("l1")
		r.Healthy = 3
		mine := lease(t, s, r)
		theirs := lease(t, s, storedRequest("l2"))
		finish(t, s, success("l1"), mine[1])
		n, err := webhooks.NewTables(s).ReleaseDeliveries(t.Context(), "l1", []int64{mine[0].Seq, mine[1].Seq, mine[2].Seq, theirs[0].Seq}, rowtest.AtMS(now))
		if n != 2 || err != nil {
			t.Errorf("released %d, %v; want 2", n, err)
		}
		wantIDs(t, "leased at once", lease(t, s, storedRequest("l3")), "dlv_m_000000", "dlv_m_000002")
	})
}

// TestLeaseDeliveriesInFlight checks that deliveries in flight at the requesting worker
// are not leased to it again, although their lease has ended.
func TestLeaseDeliveriesInFlight(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		events := dbtest.Schedule(t, s, "m", 0, 1, now)
		trust(t, s, "m")
		r := storedRequest("1")
		r.Until = rowtest.AtMS(now + 1)
		leased := lease(t, s, r)
		r.LeaseID, r.Now, r.Until, r.InFlight = "2", rowtest.AtMS(now+2), rowtest.AtMS(now+9), map[string][]int64{"m": {leased[0].Seq}}
		wantIDs(t, "to the same", lease(t, s, r))
		r.LeaseID, r.InFlight = "3", nil
		wantIDs(t, "to another", lease(t, s, r), events[0].DeliveryID)
	})
}

func TestQueues(t *testing.T) {
	const day = int64(webhooks.RetryWindow / time.Millisecond)
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		want := func(what string, want ...webhooks.Queue) {
			t.Helper()
			expect.NoDiff(t, gocmp.Diff(want, queues(t, s, "")), what)
		}
		dbtest.Schedule(t, s, "m", 0, 2, now)
		dbtest.Schedule(t, s, "n", 0, 1, now+7)
		n := webhooks.Queue{MerchantID: "n", Head: rowtest.AtMS(now + 7), End: rowtest.AtMS(now + 7 + day)}
		want("two queues", webhooks.Queue{MerchantID: "m", Head: rowtest.AtMS(now), End: rowtest.AtMS(now + day)}, n)
		finish(t, s, again("l1", now+9), lease(t, s, storedRequest("l1"))...)
		want("the first is to be tried again", webhooks.Queue{MerchantID: "m", Head: rowtest.AtMS(now + 1), End: rowtest.AtMS(now + day)}, n)
	})
}

// TestStatementsForOneEvent bounds the statements on PostgreSQL. A transaction of four statements, each a round trip,
// leases an event. One of four records the outcome: the last three have no result and travel with the commit.
func TestStatementsForOneEvent(t *testing.T) {
	s := dbtest.Open(t, dbtest.MigratedPostgres(t))
	dbtest.Schedule(t, s, "m", 0, 2, now)
	trust(t, s, "m")
	r := storedRequest("l")
	r.Queues, r.Healthy = []webhooks.Queue{{MerchantID: "m", Head: rowtest.AtMS(now), HeadSeq: 1}}, 1
	for _, run := range []func(ctx context.Context, tx *db.Tx) error{
		func(ctx context.Context, tx *db.Tx) error { return webhooks.LeaseInTransaction(ctx, tx, r) },
		func(ctx context.Context, tx *db.Tx) error {
			return webhooks.FinishInTransaction(ctx, tx, []webhooks.Outcome{{
				Delivery: webhooks.Delivery{Seq: 1, MerchantID: "m"}, LeaseID: "l", Attempt: &webhooks.Attempt{Number: 1, StatusCode: 200},
				Status: webhooks.Delivered, Finished: rowtest.AtMS(now), Change: func(b webhooks.Breaker) webhooks.Breaker { return b },
			}})
		},
	} {
		var texts []string
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return run(ctx, db.RecordedTx(tx, func(query string, _ []any) { texts = append(texts, query) }))
		})
		if len(texts) > 4 {
			t.Errorf("%d statements, want at most 4:\n%q", len(texts), texts)
		}
	}
	if e := storedRecord(t, s, "evt_m_000000"); e.Status != webhooks.Delivered {
		t.Errorf("it ended as %+v", e)
	}
}

// TestLeaseDeliveriesAtOnce checks that concurrent processes lease each delivery once, and
// together respect a merchant's limit in flight.
func TestLeaseDeliveriesAtOnce(t *testing.T) {
	const merchants, queued, askers, perMerchant = 5, 20, 8, 3
	dbtest.EachURL(t, func(t *testing.T, dsn string) {
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
					r.Queues = queues(t, stores[a%2], "")
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

// TestExpireDeliveries checks that an attempted delivery fails at its deadline, and that
// one without an attempt gets one first, unless its endpoint was paused for a whole day.
func TestExpireDeliveries(t *testing.T) {
	const day = int64(webhooks.RetryWindow / time.Millisecond)
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		merchants := []string{"well", "fresh", "dead", "busy"}
		for _, m := range merchants {
			dbtest.Schedule(t, s, m, 0, 3, now)
			trust(t, s, m)
			r := storedRequest("first " + m)
			r.Queues = []webhooks.Queue{{MerchantID: m}}
			attempted := lease(t, s, r)
			finish(t, s, again("first "+m, now+5), attempted...) // one of three; the others are due later
		}
		rowtest.Must(t, webhooks.SaveBreaker(t.Context(), s, "fresh", webhooks.Breaker{State: webhooks.BreakerOpen, Allowed: 1, Pauses: 1, Since: rowtest.AtMS(now + 4), Until: rowtest.AtMS(now + 2*day)}))
		for _, m := range []string{"dead", "busy"} {
			rowtest.Must(t, webhooks.SaveBreaker(t.Context(), s, m, webhooks.Breaker{State: webhooks.BreakerOpen, Allowed: 1, Pauses: 1, Since: rowtest.AtMS(now + 3), Until: rowtest.AtMS(now + 2*day)}))
		}
		expire := func(what string, at int64, limit int, wantMore bool, want map[string]int) {
			t.Helper()
			got, more, err := webhooks.NewTables(s).FailOverdueDeliveries(t.Context(), webhooks.OverdueRequest{MerchantIDs: merchants, Now: rowtest.AtMS(at), Limit: limit})
			if diff := gocmp.Diff(want, got); diff != "" || more != wantMore || err != nil {
				t.Errorf("%s: more %t, %v (-want +got):\n%s", what, more, err, diff)
			}
		}
		expire("at the first deadline", now+day, 9, false, map[string]int{})
		// One delivery is in flight. The lease of another one of its merchant has ended.
		r := storedRequest("last")
		r.Now, r.Until, r.Queues = rowtest.AtMS(now+day), rowtest.AtMS(now+day+10), []webhooks.Queue{{MerchantID: "busy"}}
		wantIDs(t, "under way", lease(t, s, r), "dlv_busy_000000")
		r.Until, r.LeaseID, r.PerMerchant = rowtest.AtMS(now+day+2), "ended", 2
		rowtest.Must(t, webhooks.SaveBreaker(t.Context(), s, "busy", webhooks.Breaker{State: webhooks.BreakerOpen, Allowed: 2, Pauses: 1, Since: rowtest.AtMS(now + 3), Until: rowtest.AtMS(now + 2*day)}))
		wantIDs(t, "abandoned", lease(t, s, r), "dlv_busy_000001")

		expire("one, though the limit is reached", now+day+1, 1, true, map[string]int{"well": 1})
		expire("what was attempted", now+day+1, 9, false, map[string]int{"fresh": 1, "dead": 1})
		expire("a day after an endpoint was left alone", now+day+3, 9, false, map[string]int{"dead": 2, "busy": 2})
		r.Queues, r.LeaseID, r.Now, r.Until, r.PerMerchant = []webhooks.Queue{{MerchantID: "well"}, {MerchantID: "fresh"}}, "late", rowtest.AtMS(now+day+3), rowtest.AtMS(now+day+9), 9
		wantIDs(t, "what is owed an attempt", lease(t, s, r), "dlv_well_000001", "dlv_well_000002", "dlv_fresh_000001")
		expire("when the attempts under way are given up", now+day+10, 9, false, map[string]int{"busy": 1, "fresh": 2})
		for id, want := range map[string]state{
			"evt_dead_000002": {Status: webhooks.Failed, Finished: rowtest.AtMS(now + day + 3)},
			"evt_well_000002": {Status: webhooks.Pending, Due: rowtest.AtMS(now + day + 9)},
		} {
			expect.NoDiff(t, gocmp.Diff(want, storedRecord(t, s, id)), "%s", id)
		}
	})
}

// TestGivenUpEndpointIsProbed checks that an endpoint that was given up is still probed, with a
// delivery before its deadline, although many events of its queue pass theirs.
func TestGivenUpEndpointIsProbed(t *testing.T) {
	const day = int64(webhooks.RetryWindow / time.Millisecond)
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		events := dbtest.Schedule(t, s, "dead", 0, 3000, now) // one millisecond apart
		rowtest.Must(t, webhooks.SaveBreaker(t.Context(), s, "dead", webhooks.Breaker{State: webhooks.BreakerOpen, Allowed: 1, Pauses: 9, Since: rowtest.AtMS(now - day), Until: rowtest.AtMS(now + day - 1)}))
		for i, at := range []int64{now + day, now + day + 1000} {
			for more := true; more; {
				var err error
				_, more, err = webhooks.NewTables(s).FailOverdueDeliveries(t.Context(), webhooks.OverdueRequest{MerchantIDs: []string{"dead"}, Now: rowtest.AtMS(at), Limit: 999})
				rowtest.Must(t, err)
			}
			r := storedRequest(fmt.Sprint("first ", i))
			r.Now, r.Until, r.Queues = rowtest.AtMS(at+500), rowtest.AtMS(at+501), []webhooks.Queue{{MerchantID: "dead", Head: rowtest.AtMS(1)}}
			wantIDs(t, "a probe half a second later", lease(t, s, r), events[1000*i+500].DeliveryID)
		}
	})
}

// TestExpireAfterAnOutage checks that an endpoint with an open breaker is tried again after the service was down.
func TestExpireAfterAnOutage(t *testing.T) {
	const day = int64(webhooks.RetryWindow / time.Millisecond)
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		dbtest.Schedule(t, s, "m", 0, 1, now)
		const lastProbe = now + 2*day
		rowtest.Must(t, webhooks.SaveBreaker(t.Context(), s, "m", webhooks.Breaker{State: webhooks.BreakerOpen, Allowed: 1, Pauses: 1, Since: rowtest.AtMS(now - 1), Until: rowtest.AtMS(lastProbe)}))
		for _, c := range []struct{ at, want int64 }{{lastProbe + 300_001, 0}, {lastProbe + 300_000, 1}} {
			expired, _, err := webhooks.NewTables(s).FailOverdueDeliveries(t.Context(), webhooks.OverdueRequest{MerchantIDs: []string{"m"}, Now: rowtest.AtMS(c.at), Limit: 256})
			if err != nil || int64(expired["m"]) != c.want {
				t.Errorf("%d ms after the last probe was due: %d failed, %v; want %d", c.at-lastProbe, expired["m"], err, c.want)
			}
		}
	})
}

// TestExpireWithoutEndpoint checks that deliveries without an endpoint fail at their
// deadline, unless an endpoint was set or another process may know one.
func TestExpireWithoutEndpoint(t *testing.T) {
	const day = int64(webhooks.RetryWindow / time.Millisecond)
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		for _, m := range []string{"a", "b"} {
			dbtest.Schedule(t, s, m, 0, 3, now)
		}
		_, err := webhooks.PutEndpointOnce(t.Context(), s, webhooks.EndpointRow{MerchantID: "b", URL: "https://b.example/", ChangedAt: invoice.Unix(now/1000 + 1)}, func(int64) ([]byte, string, error) { return []byte{1}, "k", nil })
		rowtest.Must(t, err)
		at := now + day + 1
		rowtest.Must(t, webhooks.NewTables(s).RegisterWorker(t.Context(), "me", "x", rowtest.AtMS(at), rowtest.AtMS(at+1000)))
		rowtest.Must(t, webhooks.NewTables(s).RegisterWorker(t.Context(), "other", "y", rowtest.AtMS(at), rowtest.AtMS(at+10)))
		expire := func(what string, at int64, want map[string]int) {
			t.Helper()
			got, _, err := webhooks.NewTables(s).FailOverdueDeliveries(t.Context(), webhooks.OverdueRequest{
				Endpoints: "x", MerchantIDs: []string{"a", "b"}, Unreachable: map[string]bool{"a": true, "b": true}, Now: rowtest.AtMS(at), Limit: 10,
			})
			if diff := gocmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
			}
		}
		expire("another process is configured otherwise", at, map[string]int{})
		rowtest.Must(t, webhooks.NewTables(s).RegisterWorker(t.Context(), "other", "x", rowtest.AtMS(at), rowtest.AtMS(at+10)))
		expire("all are configured alike, and one's day is over", at, map[string]int{"a": 1})
		expire("later", at+10, map[string]int{"a": 2})
		expire("an endpoint was set a day ago, and its secret cannot be decrypted", at+2000, map[string]int{"b": 3})
	})
}
