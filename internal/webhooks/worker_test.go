package webhooks_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/webhook"
)

func TestDelivers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		r := newReceiver(t, status(http.StatusNoContent))
		events := dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
		w := newWorld(t, s, r.URL)
		w.start(t)
		w.outcome(t)

		got := r.requests()
		if len(got) != 1 || got[0].method != http.MethodPost || !bytes.Equal(got[0].body, events[0].Body) {
			t.Fatalf("received %q, want one POST of %q", got, events[0].Body)
		}
		header := map[string]string{}
		for _, name := range []string{"Content-Type", "User-Agent", "X-Service-Event", "X-Service-Delivery", "X-Service-Timestamp", "Content-Length"} {
			header[name] = got[0].header.Get(name)
		}
		want := map[string]string{
			"Content-Type": "application/json", "User-Agent": "Quittance", "X-Service-Event": "payment.received",
			"X-Service-Delivery": events[0].DeliveryID, "X-Service-Timestamp": "1700000000", "Content-Length": strconv.Itoa(len(events[0].Body)),
		}
		expect.NoDiff(t, cmp.Diff(want, header), "headers")
		if err := webhook.Verify(secret, got[0].header.Get("X-Service-Signature"), got[0].body, epoch); err != nil {
			t.Error(err)
		}
		wantRecord := record{
			Status: webhooks.Delivered, Finished: epoch,
			Attempts: []webhooks.Attempt{{Number: 1, Started: epoch, StatusCode: 204}},
		}
		expect.NoDiff(t, cmp.Diff(wantRecord, recordOf(t, s, events[0].ID)), "record")
	})
}

// TestRetries checks that a retry has the id and body of the first attempt, and is signed with its time and the secret
// of that time.
func TestRetries(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		var calls atomic.Int32
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) == 1 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
		w := newWorld(t, s, r.URL)
		current := atomic.Pointer[string]{}
		first, second := "whsec_1", "whsec_2"
		current.Store(&first)
		w.Endpoints = all(func(string) (webhooks.Endpoint, bool) {
			return webhooks.Endpoint{URL: r.URL, Secret: *current.Load()}, true
		})
		w.start(t)
		failed := w.outcome(t)
		if failed.Status != webhooks.Pending || failed.Attempt.StatusCode != http.StatusInternalServerError || failed.Attempt.Error != "answered 500, expected 2xx" {
			t.Errorf("first outcome %+v, %+v", failed, failed.Attempt)
		}
		current.Store(&second)
		again := failed.NextDue
		w.advance(again)
		if o := w.outcome(t); o.Status != webhooks.Delivered || o.Attempt.Number != 2 || o.DeliveryID != failed.DeliveryID {
			t.Errorf("second outcome %+v, %+v", o, o.Attempt)
		}
		got := r.requests()
		if len(got) != 2 {
			t.Fatalf("received %d requests, want 2", len(got))
		}
		if !bytes.Equal(got[0].body, got[1].body) {
			t.Errorf("the bodies differ: %q and %q", got[0].body, got[1].body)
		}
		if a, b := got[0].header.Get("X-Service-Delivery"), got[1].header.Get("X-Service-Delivery"); a != b {
			t.Errorf("the delivery ids differ: %s and %s", a, b)
		}
		for i, at := range []time.Time{epoch, again} {
			want := webhook.Sign([]string{first, second}[i], at, got[i].body)
			if sig := got[i].header.Get("X-Service-Signature"); sig != want {
				t.Errorf("signature %d is %s, want %s", i+1, sig, want)
			}
			if ts := got[i].header.Get("X-Service-Timestamp"); ts != fmt.Sprint(at.Unix()) {
				t.Errorf("timestamp %d is %s, want %d", i+1, ts, at.Unix())
			}
		}
	})
}

// TestDeadlinePassed checks that a delivery past its deadline fails if it was attempted
// before, and gets one attempt if no worker ran.
func TestDeadlinePassed(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	r := newReceiver(t, status(http.StatusOK))
	dead := newReceiver(t, status(http.StatusInternalServerError))
	due := epoch.Add(-24 * time.Hour).UnixMilli()
	first := dbtest.Schedule(t, s, "tried", 0, 1, due-1)
	tried := leaseOne(t, s, "first", time.UnixMilli(due), time.UnixMilli(due+1))
	if _, err := webhooks.NewTables(s).FinishDeliveries(t.Context(), []webhooks.Outcome{{
		Delivery: tried, LeaseID: "first", Status: webhooks.Pending, NextDue: time.UnixMilli(due + 1),
		Attempt: &webhooks.Attempt{Number: 1, Started: time.UnixMilli(due), Error: "refused"},
	}}); err != nil {
		t.Fatal(err)
	}
	dbtest.Schedule(t, s, "late", 0, 1, due-1)
	dbtest.Schedule(t, s, "dead", 0, 1, due-1)
	w := newWorld(t, s, r.URL)
	w.Endpoints = all(func(merchantID string) (webhooks.Endpoint, bool) {
		url := r.URL
		if merchantID == "dead" {
			url = dead.URL
		}
		return webhooks.Endpoint{URL: url, Secret: secret}, true
	})
	w.start(t)
	got := map[string]outcome{}
	for len(got) < 2 { // the delivery that was attempted before may have an outcome, too
		if o := w.outcome(t); o.Attempt != nil {
			got[o.DeliveryID] = o
		}
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range patience / time.Millisecond {
		if recordOf(t, s, first[0].ID).Status == webhooks.Failed {
			break
		}
		<-tick.C
	}
	if r := recordOf(t, s, first[0].ID); r.Status != webhooks.Failed || len(r.Attempts) != 1 || !r.Finished.Equal(epoch) {
		t.Errorf("tried before, a millisecond behind the deadline: %+v", r)
	}
	if o := got["dlv_late_000000"]; o.Status != webhooks.Delivered || o.Attempt.Number != 1 {
		t.Errorf("never tried, to a receiver that takes it: %+v", o)
	}
	if o := got["dlv_dead_000000"]; o.Status != webhooks.Failed || o.Attempt == nil || o.Attempt.Number != 1 {
		t.Errorf("never tried, to a receiver that does not: %+v", o)
	}
}

// TestRecordsWhenTheDatabaseRecovers checks that an outcome is recorded once the database accepts it.
func TestRecordsWhenTheDatabaseRecovers(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	r := newReceiver(t, status(http.StatusOK))
	dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
	w := newWorld(t, s, r.URL)
	w.store.failures = []error{errors.New("disk full"), errors.New("disk full")}
	w.start(t)
	if o := w.outcome(t); o.Status != webhooks.Delivered || len(r.requests()) != 1 {
		t.Errorf("%s after %d requests, want delivered after 1", o.Status, len(r.requests()))
	}
}
