package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// now is the time of these tests, in Unix milliseconds.
const now = 1_700_000_000_000

// request asks for up to 10 first attempts, 4 of one merchant, for 30 s.
func request(leaseID string) store.LeaseRequest {
	return store.LeaseRequest{
		LeaseID: leaseID, NowMS: now, UntilMS: now + 30_000, Lane: store.FirstLane, Limit: 10, PerMerchant: 4,
	}
}

func lease(t *testing.T, s *store.Store, r store.LeaseRequest) []store.Delivery {
	t.Helper()
	leased, err := s.LeaseDeliveries(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return leased
}

func finish(t *testing.T, s *store.Store, o store.Outcome) {
	t.Helper()
	if err := s.FinishDelivery(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func ids(deliveries []store.Delivery) []string {
	found := []string{}
	for _, d := range deliveries {
		found = append(found, d.ID)
	}
	return found
}

func wantIDs(t *testing.T, what string, got []store.Delivery, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), ids(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func record(t *testing.T, s *store.Store, eventID string) store.DeliveryRecord {
	t.Helper()
	r, err := s.DeliveryOf(t.Context(), eventID)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLeaseDeliveries(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		events := storetest.Schedule(t, s, "m", 0, 2, now)
		got := lease(t, s, request("l1"))
		want := []store.Delivery{{
			ID: events[0].DeliveryID, EventID: events[0].ID, MerchantID: "m", EventType: "payment.received",
			Body: events[0].Body, DueMS: now, DeadlineMS: now + 86_400_000,
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("leased, of one that is due and one that is due a millisecond later (-want +got):\n%s", diff)
		}
		wantIDs(t, "leased again", lease(t, s, request("l2")))
		r := request("l3")
		r.NowMS = now + 29_999
		wantIDs(t, "before the lease ends", lease(t, s, r), events[1].DeliveryID)
		r = request("l4")
		r.NowMS, r.UntilMS = now+30_000, now+60_000
		wantIDs(t, "when the lease ended", lease(t, s, r), events[0].DeliveryID, events[1].DeliveryID)
	})
}

func TestLeaseDeliveriesLanes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		events := storetest.Schedule(t, s, "m", 0, 2, now-10)
		retries := request("l1")
		retries.Lane = store.RetryLane
		wantIDs(t, "retries, when nothing was attempted", lease(t, s, retries))
		r := request("l2")
		r.Limit = 1
		wantIDs(t, "the first", lease(t, s, r), events[0].DeliveryID)
		finish(t, s, store.Outcome{
			DeliveryID: events[0].DeliveryID, LeaseID: "l2", Attempt: &store.Attempt{Number: 1},
			Status: store.DeliveryPending, NextDueMS: now,
		})
		retries.LeaseID = "l3"
		wantIDs(t, "retries", lease(t, s, retries), events[0].DeliveryID)
		wantIDs(t, "first attempts", lease(t, s, request("l4")), events[1].DeliveryID)
	})
}

func TestLeaseDeliveriesPerMerchant(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		storetest.Schedule(t, s, "a", 0, 6, now-10)
		storetest.Schedule(t, s, "b", 0, 6, now-10)
		r := request("l1")
		r.Limit = 3
		wantIDs(t, "taking turns", lease(t, s, r), "dlv_a_000000", "dlv_a_000001", "dlv_b_000000")
		wantIDs(t, "up to 4 each", lease(t, s, request("l2")),
			"dlv_a_000002", "dlv_a_000003", "dlv_b_000001", "dlv_b_000002", "dlv_b_000003")
		wantIDs(t, "beyond", lease(t, s, request("l3")))
		finish(t, s, store.Outcome{DeliveryID: "dlv_a_000000", LeaseID: "l1", Status: store.DeliveryDelivered, FinishedMS: now})
		wantIDs(t, "after one of them", lease(t, s, request("l4")), "dlv_a_000004")
	})
}

// One with a long queue, whose deliveries are the oldest, gets its turn as the
// others do.
func TestLeaseDeliveriesTurns(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		storetest.Schedule(t, s, "hog", 0, 100, now-1000)
		for _, m := range []string{"a", "e", "i", "z"} {
			storetest.Schedule(t, s, m, 0, 1, now)
		}
		r := request("")
		r.Limit = 2
		var got [][]string
		for i := range 4 {
			r.LeaseID = fmt.Sprint("l", i)
			leased := lease(t, s, r)
			got = append(got, ids(leased))
			r.After = leased[len(leased)-1].MerchantID
		}
		want := [][]string{
			{"dlv_a_000000", "dlv_e_000000"}, {"dlv_hog_000000", "dlv_i_000000"},
			{"dlv_z_000000", "dlv_hog_000001"}, {"dlv_hog_000002", "dlv_hog_000003"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("turns (-want +got):\n%s", diff)
		}
	})
}

func TestFinishDelivery(t *testing.T) {
	failed := store.Attempt{Number: 1, StartedMS: now, DurationMS: 7, StatusCode: 503, Error: "answered 503"}
	silent := store.Attempt{Number: 1, StartedMS: now, DurationMS: 5000, Error: "no answer"}
	good := store.Attempt{Number: 1, StartedMS: now, StatusCode: 100}
	for _, c := range []struct {
		name    string
		outcome store.Outcome
		want    store.DeliveryRecord
	}{
		{"delivered", store.Outcome{Attempt: &good, Status: store.DeliveryDelivered, FinishedMS: now + 1},
			store.DeliveryRecord{Status: store.DeliveryDelivered, DueMS: now, FinishedMS: now + 1, Attempts: []store.Attempt{good}}},
		{"to be tried again", store.Outcome{Attempt: &failed, Status: store.DeliveryPending, NextDueMS: now + 5000},
			store.DeliveryRecord{Status: store.DeliveryPending, DueMS: now + 5000, Attempts: []store.Attempt{failed}}},
		{"failed", store.Outcome{Attempt: &silent, Status: store.DeliveryFailed, FinishedMS: now + 2},
			store.DeliveryRecord{Status: store.DeliveryFailed, DueMS: now, FinishedMS: now + 2, Attempts: []store.Attempt{silent}}},
		{"failed without an attempt", store.Outcome{Status: store.DeliveryFailed, FinishedMS: now + 2},
			store.DeliveryRecord{Status: store.DeliveryFailed, DueMS: now, FinishedMS: now + 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				storetest.Schedule(t, s, "m", 0, 1, now)
				lease(t, s, request("mine"))
				o := c.outcome
				o.DeliveryID, o.LeaseID = "dlv_m_000000", "another's"
				if err := s.FinishDelivery(t.Context(), o); !errors.Is(err, store.ErrConflict) {
					t.Errorf("under another's lease: got %v, want ErrConflict", err)
				}
				untouched := store.DeliveryRecord{ID: o.DeliveryID, Status: store.DeliveryPending, DueMS: now}
				if diff := cmp.Diff(untouched, record(t, s, "evt_m_000000")); diff != "" {
					t.Errorf("after that (-want +got):\n%s", diff)
				}
				o.LeaseID = "mine"
				finish(t, s, o)
				want := c.want
				want.ID = o.DeliveryID
				if diff := cmp.Diff(want, record(t, s, "evt_m_000000")); diff != "" {
					t.Errorf("record (-want +got):\n%s", diff)
				}
				if err := s.FinishDelivery(t.Context(), o); !errors.Is(err, store.ErrConflict) {
					t.Errorf("a second time: got %v, want ErrConflict", err)
				}
			})
		})
	}
}

// A lease that ended is still its holder's until somebody takes it.
func TestFinishDeliveryLate(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		storetest.Schedule(t, s, "m", 0, 2, now-1)
		lease(t, s, request("old"))
		late := request("new")
		late.NowMS, late.UntilMS, late.Limit = now+30_000, now+60_000, 1
		wantIDs(t, "taken over", lease(t, s, late), "dlv_m_000000")
		o := store.Outcome{DeliveryID: "dlv_m_000000", LeaseID: "old", Status: store.DeliveryDelivered, FinishedMS: now}
		if err := s.FinishDelivery(t.Context(), o); !errors.Is(err, store.ErrConflict) {
			t.Errorf("after another took the lease: got %v, want ErrConflict", err)
		}
		o.DeliveryID = "dlv_m_000001"
		finish(t, s, o)
	})
}

func TestReleaseDeliveries(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		storetest.Schedule(t, s, "m", 0, 4, now-10)
		r := request("l1")
		r.Limit = 3
		lease(t, s, r)
		lease(t, s, request("l2"))
		finish(t, s, store.Outcome{DeliveryID: "dlv_m_000001", LeaseID: "l1", Status: store.DeliveryDelivered, FinishedMS: now})
		n, err := s.ReleaseDeliveries(t.Context(), "l1")
		if n != 2 || err != nil {
			t.Errorf("released %d, %v; want 2", n, err)
		}
		wantIDs(t, "leased at once", lease(t, s, request("l3")), "dlv_m_000000", "dlv_m_000002")
	})
}

func TestDeliveryAgenda(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		agenda := func(what string, nowMS int64, want store.Agenda) {
			t.Helper()
			if got, err := s.DeliveryAgenda(t.Context(), nowMS); got != want || err != nil {
				t.Errorf("%s: got %+v, %v; want %+v", what, got, err, want)
			}
		}
		agenda("nothing", now, store.Agenda{})
		storetest.Schedule(t, s, "m", 0, 2, now)
		agenda("before both", now-1, store.Agenda{OldestMS: now, NextMS: now})
		agenda("between", now, store.Agenda{OldestMS: now, NextMS: now + 1})
		agenda("after both", now+1, store.Agenda{OldestMS: now})
		lease(t, s, request("l1"))
		agenda("leased", now+1, store.Agenda{OldestMS: now, NextMS: now + 30_000})
		agenda("due before the lease ends", now, store.Agenda{OldestMS: now, NextMS: now + 1})
		finish(t, s, store.Outcome{DeliveryID: "dlv_m_000000", LeaseID: "l1", Status: store.DeliveryDelivered, FinishedMS: now})
		agenda("one delivered", now+1, store.Agenda{OldestMS: now + 1})
	})
}

func TestDeliveryOfNone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if _, err := s.DeliveryOf(t.Context(), "evt_none"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
}
