package webhooks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
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
		expect.NoError(t, webhook.Verify(secret, got[0].header.Get("X-Service-Signature"), got[0].body, epoch))
		wantRecord := record{
			Status: webhooks.Delivered, Finished: epoch,
			Attempts: []webhooks.Attempt{{Number: 1, Started: epoch, StatusCode: 204}},
		}
		expect.NoDiff(t, cmp.Diff(wantRecord, recordOf(t, s, events[0].ID)), "record")
	})
}

// TestRetries checks that a retry has the id and body of the first attempt, is signed with its time and the secret
// of that time, and uses the connection again.
func TestRetries(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		var calls atomic.Int32
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) == 1 {
				http.Error(w, "later", http.StatusInternalServerError)
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
		if got[0].from != got[1].from {
			t.Error("the retry opened a connection")
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
	expect.Success(t)(webhooks.NewTables(s).FinishDeliveries(t.Context(), []webhooks.Outcome{{
		Delivery: tried, LeaseID: "first", Status: webhooks.Pending, NextDue: time.UnixMilli(due + 1),
		Attempt: &webhooks.Attempt{Number: 1, Started: time.UnixMilli(due), Error: "refused"},
	}}))
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

// failingExpiry is a store with a FailOverdueDeliveries that returns an error until it is repaired.
type failingExpiry struct {
	*recorder
	asked    chan struct{}
	repaired atomic.Bool
}

func (f *failingExpiry) FailOverdueDeliveries(ctx context.Context, r webhooks.OverdueRequest) (map[string]int, bool, error) {
	if f.repaired.Load() {
		return f.recorder.FailOverdueDeliveries(ctx, r)
	}
	select {
	case f.asked <- struct{}{}:
	default:
	}
	return nil, false, errors.New("disk full")
}

// TestFailsOverdueDeliveries checks that the worker fails deliveries that it cannot attempt for a day, and that others
// do not wait until it can. It logs one line for each merchant, with a count, for these failures and for attempts.
func TestFailsOverdueDeliveries(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	long := epoch.Add(-2 * webhooks.RetryWindow)
	none := dbtest.Schedule(t, s, "none", 0, 2, long.UnixMilli())
	paused := dbtest.Schedule(t, s, "paused", 0, 3, long.UnixMilli())
	dbtest.Schedule(t, s, "busy", 0, 4, epoch.UnixMilli()-4)
	expect.OK(t, webhooks.SaveBreaker(t.Context(), s, "paused", webhooks.Breaker{State: webhooks.BreakerOpen, Allowed: 1, Pauses: 1, Since: long, Until: epoch.Add(time.Hour)}))
	w := newWorld(t, s, newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7200")
		w.WriteHeader(http.StatusServiceUnavailable)
	}).URL)
	var log logtest.Buffer
	w.Logger = slog.New(slog.NewTextHandler(&log, nil))
	reg := prometheus.NewRegistry()
	w.Metrics = webhooks.NewMetrics(reg)
	found := w.Endpoints
	w.Endpoints = func(ctx context.Context, ids []string) (map[string]webhooks.Endpoint, error) {
		all, err := found(ctx, ids)
		delete(all, "none")
		return all, err
	}
	store := &failingExpiry{recorder: w.store, asked: make(chan struct{}, 1)}
	w.Store = store
	w.start(t)
	receive(t, store.asked, "a request to fail deliveries")
	for range 4 {
		if o := w.outcome(t); o.Delivery.MerchantID != "busy" || o.Status != webhooks.Pending {
			t.Fatalf("outcome %+v", o)
		}
	}
	store.repaired.Store(true)
	failed := func(e webhooks.Event) bool { return recordOf(t, s, e.ID).Status == webhooks.Failed }
	began := time.Now()
	for now := epoch; !failed(none[1]) || !failed(paused[2]) || measured(t, reg)["quittance_webhook_waiting_merchants"] > 0; now = now.Add(time.Second) {
		if w.advance(now); time.Since(began) > patience {
			t.Fatalf("deliveries wait; it logged\n%s", log.String())
		}
		clock.Sleep(t.Context(), time.Millisecond, nil)
	}
	expect.OK(t, w.stop())
	for _, want := range []string{
		`reason="the merchant has had no usable endpoint for 24 hours (none, or a secret that cannot be decrypted)" merchant=none deliveries=2`, `reason="their deadlines passed while the endpoint was left alone" merchant=paused deliveries=3`,
		"attempts=1 ", "attempts=3 ", "expiry of webhook deliveries failed",
	} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("not one line %q; it logged\n%s", want, log.String())
		}
	}
}

// TestRecordsWhenTheDatabaseRecovers checks that an outcome is recorded once the database accepts it.
func TestRecordsWhenTheDatabaseRecovers(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	r := newReceiver(t, status(http.StatusOK))
	dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
	w := newWorld(t, s, r.URL)
	w.store.failures = []error{db.ErrTimeout, db.ErrTimeout}
	w.start(t)
	if o := w.outcome(t); o.Status != webhooks.Delivered || len(r.requests()) != 1 {
		t.Errorf("%s after %d requests, want delivered after 1", o.Status, len(r.requests()))
	}
}

// refusing is a store that refuses every batch with an outcome of the merchant "bad".
type refusing struct{ *recorder }

func (s refusing) FinishDeliveries(ctx context.Context, outcomes []webhooks.Outcome) ([]int, error) {
	if slices.ContainsFunc(outcomes, func(o webhooks.Outcome) bool { return o.Delivery.MerchantID == "bad" }) {
		return nil, errors.New("a value is refused")
	}
	return s.recorder.FinishDeliveries(ctx, outcomes)
}

// TestRefusedOutcome checks that an outcome that cannot be recorded is dropped, and delays no others. No lease ends,
// because the schedule's clock does not advance.
func TestRefusedOutcome(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	r := newReceiver(t, status(http.StatusOK))
	for _, m := range []string{"a", "b", "bad", "c", "d"} {
		dbtest.Schedule(t, s, m, 0, 1, epoch.UnixMilli())
	}
	w := newWorld(t, s, r.URL)
	var log logtest.Buffer
	w.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.Store = refusing{w.store}
	w.start(t)
	for range 4 {
		wantOutcome(t, w.outcome(t), webhooks.Delivered, http.StatusOK, "")
	}
	expect.OK(t, w.stop())
	if n := strings.Count(log.String(), "it cannot be recorded"); n != 1 || !strings.Contains(log.String(), "merchant=bad") || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("it logged\n%s", log.String())
	}
}

// stuck is a store with a first call of FinishDeliveries that ignores its context and blocks until stuck is closed.
type stuck struct {
	*recorder
	once    sync.Once
	entered chan struct{}
	over    chan struct{}
}

func (s *stuck) FinishDeliveries(ctx context.Context, outcomes []webhooks.Outcome) ([]int, error) {
	first := false
	s.once.Do(func() { first = true })
	if first {
		close(s.entered)
		<-s.over
	}
	return s.recorder.FinishDeliveries(ctx, outcomes)
}

// TestStalledAttempt checks that an attempt without progress is reported, that its slot is
// released, and that the event is delivered by another attempt.
func TestStalledAttempt(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
	w := newWorld(t, s, newReceiver(t, status(http.StatusOK)).URL)
	hung := &stuck{recorder: w.store, entered: make(chan struct{}), over: make(chan struct{})}
	w.Store = hung
	var log logtest.Buffer
	w.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.Watchdog = clock.New(time.Millisecond)
	w.Limits = webhooks.Limits{Healthy: 1, Suspect: 1, PerMerchant: 1, Timeout: patience, Lease: time.Second, Stall: 50 * time.Millisecond}
	w.start(t)
	receive(t, hung.entered, "the first record")
	w.clock.Set(epoch.Add(2 * time.Second)) // the lease has ended
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(w.store.outcomes) == 0 {
		<-tick.C
		w.advance(epoch.Add(2 * time.Second))
	}
	if o := w.outcome(t); o.Status != webhooks.Delivered || o.Attempt.Number != 1 {
		t.Errorf("outcome %+v", o)
	}
	replaced := 0
	for _, stall := range w.Watchdog.Stalled() {
		if stall.Name == "deliveries: attempt" && stall.Replaced {
			replaced++
		}
	}
	if replaced != 1 || !strings.Contains(log.String(), "webhook delivery makes no progress") {
		t.Errorf("%d stalled attempts are shown; the log says\n%s", replaced, log.String())
	}
	close(hung.over)
}

// counting is a store that counts lease requests.
type counting struct {
	*recorder
	leases atomic.Int64
}

func (c *counting) LeaseDeliveries(ctx context.Context, r webhooks.LeaseRequest) (webhooks.Leased, error) {
	c.leases.Add(1)
	return c.recorder.LeaseDeliveries(ctx, r)
}

// TestWithoutEndpoint checks that the events of a merchant without an endpoint wait without attempts, leases or log
// lines, and are delivered once an endpoint is set.
func TestWithoutEndpoint(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		const events = 300
		r := newReceiver(t, status(http.StatusOK))
		all1 := dbtest.Schedule(t, s, "m", 0, events, epoch.UnixMilli()-events)
		w := newWorld(t, s, r.URL)
		var log logtest.Buffer
		w.Logger = slog.New(slog.NewTextHandler(&log, nil))
		conn := &counting{recorder: w.store}
		w.Store = conn
		var configured atomic.Bool
		w.Endpoints = all(func(id string) (webhooks.Endpoint, bool) {
			return webhooks.Endpoint{URL: r.URL, Secret: secret}, id != "m" || configured.Load()
		})
		w.start(t)
		for i := range 3 { // other merchants' deliveries, which show that the worker runs
			dbtest.Schedule(t, s, "n", i, 1, epoch.UnixMilli())
			w.advance(epoch.Add(time.Duration(i) * time.Second))
			if o := w.outcome(t); o.Delivery.MerchantID != "n" {
				t.Fatalf("outcome %+v", o)
			}
		}
		if rec := recordOf(t, s, all1[0].ID); rec.Status != webhooks.Pending || len(rec.Attempts) != 0 {
			t.Errorf("the first event: %+v", rec)
		}
		if b, err := webhooks.NewReader(s).Breakers(t.Context(), []string{"m"}); err != nil || b["m"].Failures != 0 {
			t.Errorf("its breaker: %+v, %v", b["m"], err)
		}
		if n := conn.leases.Load(); n > 20 {
			t.Errorf("%d times something was leased for 3 events", n)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "level=INFO msg=\"events wait") {
			t.Errorf("it logged %d lines:\n%s", n, log.String())
		}
		configured.Store(true)
		w.advance(epoch.Add(10 * time.Second))
		for range events {
			if o := w.outcome(t); o.Status != webhooks.Delivered || o.Attempt.Number != 1 {
				t.Fatalf("outcome %+v", o)
			}
		}
	})
}

// byPrefix returns a lookup that gives url to merchants with ids that begin with prefix, and others to all other
// merchants.
func byPrefix(prefix, url, others string) func(string) (webhooks.Endpoint, bool) {
	return func(merchantID string) (webhooks.Endpoint, bool) {
		if strings.HasPrefix(merchantID, prefix) {
			return webhooks.Endpoint{URL: url, Secret: secret}, true
		}
		return webhooks.Endpoint{URL: others, Secret: secret}, true
	}
}

// TestEndpointAnswers410 checks that an endpoint that answers 410 is probed once an hour,
// and that its events stay pending.
func TestEndpointAnswers410(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	var code atomic.Int32
	code.Store(http.StatusGone)
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(code.Load())) })
	dbtest.Schedule(t, s, "m", 0, 3, epoch.UnixMilli()-3)
	w := newWorld(t, s, r.URL)
	w.start(t)
	if o := w.outcome(t); o.Status != webhooks.Pending || o.Attempt.StatusCode != http.StatusGone || o.URL != r.URL {
		t.Errorf("outcome %+v, %+v", o, o.Attempt)
	}
	if b, err := webhooks.NewReader(s).Breakers(t.Context(), []string{"m"}); err != nil || b["m"].State != webhooks.BreakerGone {
		t.Errorf("breaker %+v, %v; want it gone", b["m"], err)
	}
	code.Store(http.StatusOK)
	w.advance(epoch.Add(73 * time.Minute))
	for range 3 {
		if o := w.outcome(t); o.Status != webhooks.Delivered || o.Attempt.Started.Before(epoch.Add(48*time.Minute)) {
			t.Errorf("outcome %+v, %+v", o, o.Attempt)
		}
	}
}

// TestRedeliveryAfterFailure checks that a failed delivery that is redelivered has a new
// deadline, the same id, and attempt numbers that continue.
func TestRedeliveryAfterFailure(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		var code atomic.Int32
		code.Store(http.StatusBadGateway)
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(code.Load())) })
		events := dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
		w := newWorld(t, s, r.URL)
		w.start(t)
		o := w.outcome(t)
		for o.Status == webhooks.Pending {
			w.advance(o.NextDue)
			o = w.outcome(t)
		}
		number := o.Attempt.Number
		again := epoch.Add(100 * time.Hour)
		w.clock.Set(again)
		expect.OK(t, s.Update(t.Context(), func(tx *db.Tx) error {
			_, err := webhooks.Redeliver(t.Context(), tx, events[0].ID, again)
			return err
		}))
		w.advance(again)
		o = w.outcome(t)
		next := o.NextDue.Sub(again)
		if o.Status != webhooks.Pending || o.Attempt.Number != number+1 || next < 4*time.Second || next > 6*time.Second {
			t.Errorf("the first attempt of the new schedule: %+v, %+v; want it tried again in 5s", o, o.Attempt)
		}
		code.Store(http.StatusOK)
		w.advance(again.Add(time.Hour))
		if o := w.outcome(t); o.Status != webhooks.Delivered || o.Attempt.Number != number+2 || o.DeliveryID != events[0].DeliveryID {
			t.Errorf("outcome %+v, %+v", o, o.Attempt)
		}
		for _, got := range r.requests() {
			expect.Equal(t, got.header.Get("X-Service-Delivery"), events[0].DeliveryID, "posted as")
		}
	})
}

// TestStop checks that a stopping worker lets an exchange finish within its grace period,
// and releases the lease of one that does not.
func TestStop(t *testing.T) {
	t.Run("within the grace", func(t *testing.T) {
		s := dbtest.Open(t, dbtest.SQLite(t))
		dbtest.Schedule(t, s, "m", 0, 2, epoch.UnixMilli()-1)
		arrived, answer := make(chan struct{}, 2), make(chan struct{})
		r := newReceiver(t, func(http.ResponseWriter, *http.Request) {
			arrived <- struct{}{}
			<-answer
		})
		w := newWorld(t, s, r.URL)
		w.Limits = webhooks.Limits{PerMerchant: 1, Timeout: patience, Grace: patience}
		w.start(t)
		receive(t, arrived, "the request")
		w.cancel() // before the answer, after which the second delivery would begin
		close(answer)
		expect.NoError(t, w.stop())
		if o := w.outcome(t); o.Status != webhooks.Delivered {
			t.Errorf("outcome %+v", o)
		}
		expect.Equal(t, len(r.requests()), 1, "requests:")
	})
	t.Run("given back", func(t *testing.T) {
		dbtest.Each(t, func(t *testing.T, s *db.DB) {
			events := dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
			events = append(events, dbtest.Schedule(t, s, "n", 0, 1, epoch.UnixMilli())...)
			arrived, never := make(chan struct{}, 2), make(chan struct{})
			r := newReceiver(t, func(http.ResponseWriter, *http.Request) {
				arrived <- struct{}{}
				<-never
			})
			t.Cleanup(func() { close(never) })
			w := newWorld(t, s, r.URL)
			w.Limits = webhooks.Limits{Timeout: patience, Grace: time.Millisecond}
			w.start(t)
			receive(t, arrived, "a request")
			receive(t, arrived, "another")
			expect.NoError(t, w.stop())
			for _, e := range events {
				if r := recordOf(t, s, e.ID); len(r.Attempts) != 0 || r.Status != webhooks.Pending {
					t.Errorf("record %+v; want no attempt", r)
				}
			}
			// The time is the same, so a lease that was not released would still be valid.
			ok := newReceiver(t, status(http.StatusOK))
			w = newWorld(t, s, ok.URL)
			w.start(t)
			w.outcome(t)
			w.outcome(t)
		})
	})
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := dbtest.Open(t, dbtest.SQLite(t))
	dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli()-3000)
	var calls atomic.Int32
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	w := newWorld(t, s, r.URL)
	w.Metrics = webhooks.NewMetrics(reg)
	w.start(t)
	w.advance(w.outcome(t).NextDue)
	w.outcome(t)
	expect.OK(t, w.stop())
	got := measured(t, reg)
	want := map[string]float64{
		"quittance_webhook_attempts_total delivered": 1, "quittance_webhook_attempts_total pending": 1,
		"quittance_webhook_attempt_duration_seconds": 2, "quittance_webhook_failed_total": 0, "quittance_webhook_in_flight first": 0, "quittance_webhook_in_flight retry": 0,
		"quittance_webhook_endpoints gone": 0, "quittance_webhook_endpoints open": 0,
		"quittance_webhook_oldest_due_seconds": 0,
		"quittance_webhook_stalled_total":      0,
		"quittance_webhook_put_back_total":     0,
		"quittance_webhook_waiting_merchants":  0,
	}
	delete(got, "quittance_webhook_endpoints closed") // counted at the last resync, which was before or after the attempts
	expect.NoDiff(t, cmp.Diff(want, got), "metrics")
}

// measured returns the values of metrics.
func measured(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	expect.OK(t, err)
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return got
}

// resyncs is a store that counts its resyncs.
type resyncs struct {
	*recorder
	n *atomic.Int64
}

func (r resyncs) BreakerCounts(ctx context.Context) (map[webhooks.BreakerState]int64, error) {
	r.n.Add(1)
	return r.recorder.BreakerCounts(ctx)
}

// TestWakesShareResyncs wakes a worker many times. The last wake leads to a resync, too.
func TestWakesShareResyncs(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	r := newReceiver(t, status(http.StatusOK))
	w := newWorld(t, s, r.URL)
	var n atomic.Int64
	w.Store = resyncs{w.store, &n}
	began := time.Now()
	w.start(t)
	const wakes = 200
	for range wakes {
		w.advance(epoch)
		clock.Sleep(t.Context(), time.Millisecond, nil)
	}
	dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli()-1)
	w.advance(epoch)
	w.outcome(t)
	if most := 2 + int64(time.Since(began)/(250*time.Millisecond)); n.Load() > most {
		t.Errorf("%d resyncs after %d wakes, want %d at most", n.Load(), wakes, most)
	}
}

// machine is the clock of a computer, which can be set.
type machine struct {
	mu      sync.Mutex
	wall    time.Time
	elapsed time.Duration
}

func (m *machine) Wall() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wall
}

func (m *machine) Elapsed() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.elapsed
}

// pass advances the time by d, and sets the clock forward by jump.
func (m *machine) pass(d, jump time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall = m.wall.Add(d + jump)
	m.elapsed += d
}

// TestClockJumps checks that setting the clock back by hours delays no retry, and that setting it forward by two days
// neither speeds up a retry nor fails a pending delivery.
func TestClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"back": -3 * time.Hour, "forward": 48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := dbtest.Open(t, dbtest.SQLite(t))
			var down atomic.Bool
			down.Store(true)
			r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
				if down.Load() {
					w.WriteHeader(http.StatusBadGateway)
				}
			})
			m := &machine{wall: epoch}
			w := newWorld(t, s, r.URL)
			c, err := db.OpenClock(t.Context(), db.ClockConfig{Store: s, Wall: m.Wall, Elapsed: m.Elapsed, Logger: w.Logger})
			expect.OK(t, err)
			w.Now, w.Schedule = m.Wall, c.Now
			events := dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
			w.start(t)
			if o := w.outcome(t); o.Status != webhooks.Pending {
				t.Fatalf("outcome %+v", o)
			}
			m.pass(time.Second, jump)
			// The outcome of another merchant shows that the worker has run.
			dbtest.Schedule(t, s, "n", 0, 1, epoch.UnixMilli()+1000)
			w.advance(epoch) // wakes it
			if o := w.outcome(t); o.Delivery.MerchantID != "n" {
				t.Fatalf("outcome %+v, want n's", o)
			}
			if rec := recordOf(t, s, events[0].ID); rec.Status != webhooks.Pending || len(rec.Attempts) != 1 {
				t.Fatalf("after the jump: %+v", rec)
			}
			m.pass(6*time.Second, 0)
			w.advance(epoch) // wakes it
			for {            // merchant n fails as well
				if o := w.outcome(t); o.Delivery.MerchantID == "m" {
					if o.Status != webhooks.Pending || o.Attempt.Number != 2 || o.Attempt.Duration > time.Minute {
						t.Fatalf("the retry's outcome %+v, %+v", o, o.Attempt)
					}
					break
				}
			}
			down.Store(false)
			m.pass(time.Minute, -jump)
			w.advance(epoch) // wakes it
			for {
				if o := w.outcome(t); o.Delivery.MerchantID == "m" {
					if o.Status != webhooks.Delivered || o.Attempt.Number != 3 {
						t.Fatalf("when the clock has come back: %+v, %+v", o, o.Attempt)
					}
					break
				}
			}
		})
	}
}
