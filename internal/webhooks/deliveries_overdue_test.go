package webhooks_test

import (
	"fmt"
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
		r.Lane, r.Now, r.Until, r.Queues = webhooks.Retry, rowtest.AtMS(now+day), rowtest.AtMS(now+day+10), []webhooks.Queue{{MerchantID: "busy"}}
		wantIDs(t, "under way", lease(t, s, r), "dlv_busy_000000")
		r.Lane, r.Until, r.LeaseID, r.PerMerchant = webhooks.First, rowtest.AtMS(now+day+2), "ended", 2
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
		// The same applies to its retries.
		for i, at := range []int64{now + day + 2000, now + day + 2100} {
			r := storedRequest(fmt.Sprint("fail ", i))
			r.Now, r.Until, r.Queues = rowtest.AtMS(at), rowtest.AtMS(at+1), []webhooks.Queue{{MerchantID: "dead", Head: rowtest.AtMS(1)}}
			finish(t, s, again(r.LeaseID, at), lease(t, s, r)...)
		}
		r := storedRequest("retry")
		r.Lane, r.Now, r.Until, r.Queues = webhooks.Retry, rowtest.AtMS(now+day+2100), rowtest.AtMS(now+day+2101), []webhooks.Queue{{MerchantID: "dead", Head: rowtest.AtMS(1)}}
		wantIDs(t, "a retry that is in time", lease(t, s, r), events[2100].DeliveryID)
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
		_, err := webhooks.PutEndpointOnce(t.Context(), s, webhooks.EndpointRow{MerchantID: "b", URL: "https://b.example/", ChangedAt: invoice.Unix(now / 1000)}, func(int64) ([]byte, string, error) { return []byte{1}, "k", nil })
		rowtest.Must(t, err)
		me, other := webhooks.Deliverer{ID: "me", Endpoints: "x"}, webhooks.Deliverer{ID: "other", Endpoints: "y"}
		at := now + day + 1
		rowtest.Must(t, webhooks.NewTables(s).RegisterWorker(t.Context(), me, rowtest.AtMS(at), rowtest.AtMS(at+1000)))
		rowtest.Must(t, webhooks.NewTables(s).RegisterWorker(t.Context(), other, rowtest.AtMS(at), rowtest.AtMS(at+10)))
		expire := func(what string, at int64, want map[string]int) {
			t.Helper()
			got, _, err := webhooks.NewTables(s).FailOverdueDeliveries(t.Context(), webhooks.OverdueRequest{
				Worker: me, MerchantIDs: []string{"a", "b"}, Unreachable: map[string]bool{"a": true, "b": true}, Now: rowtest.AtMS(at), Limit: 10,
			})
			if diff := gocmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
			}
		}
		expire("another process is configured otherwise", at, map[string]int{})
		other.Endpoints = me.Endpoints
		rowtest.Must(t, webhooks.NewTables(s).RegisterWorker(t.Context(), other, rowtest.AtMS(at), rowtest.AtMS(at+10)))
		expire("all are configured alike, and one's day is over", at, map[string]int{"a": 1})
		expire("later", at+10, map[string]int{"a": 2})
	})
}
