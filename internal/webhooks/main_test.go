package webhooks_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/clocktest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
	"github.com/quittance/quittance/internal/webhooks"
)

func TestMain(m *testing.M) {
	const parallel = 4 // the tests wait for leases and timeouts
	testdeps.Parallel(parallel)
	goleak.VerifyTestMain(m)
}

const secret = "whsec_test"

// loopback is a guard that allows the addresses of test servers.
var loopback = webhooks.NewGuard(webhooks.Loopback())

// epoch is the start of the tests' clocks.
var epoch = time.UnixMilli(1_700_000_000_250)

// outcome is a recorded outcome with the id of its delivery.
type outcome struct {
	webhooks.Outcome
	DeliveryID string
}

// recorder is a store that sends each recorded outcome to a channel, and can be made to fail.
type recorder struct {
	webhooks.Tables
	outcomes chan outcome
	mu       sync.Mutex
	failures []error // returned by the next calls of FinishDeliveries
}

func (r *recorder) FinishDeliveries(ctx context.Context, outcomes []webhooks.Outcome) ([]int, error) {
	r.mu.Lock()
	var err error
	if len(r.failures) > 0 {
		err, r.failures = r.failures[0], r.failures[1:]
	}
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	lost, err := r.Tables.FinishDeliveries(ctx, outcomes)
	for i, o := range outcomes {
		if err == nil && !slices.Contains(lost, i) {
			r.outcomes <- outcome{o, o.Delivery.ID}
		}
	}
	return lost, err
}

// world is a worker, its store and its clock.
type world struct {
	webhooks.WorkerConfig
	store  *recorder
	clock  *clocktest.Clock
	wake   chan struct{}
	cancel context.CancelFunc // begins the worker's stop
	stop   func() error       // stops the worker and returns the error of Run
}

// all returns a lookup for several merchants that calls one for each.
func all(one func(merchantID string) (webhooks.Endpoint, bool)) func(context.Context, []string) (map[string]webhooks.Endpoint, error) {
	return func(_ context.Context, merchantIDs []string) (map[string]webhooks.Endpoint, error) {
		found := make(map[string]webhooks.Endpoint)
		for _, id := range merchantIDs {
			if e, ok := one(id); ok {
				found[id] = e
			}
		}
		return found, nil
	}
}

// record is what the store has about the delivery of an event.
type record struct {
	Status        webhooks.Status
	Due, Finished time.Time
	Attempts      []webhooks.Attempt
}

func recordOf(t *testing.T, s *db.DB, eventID string) record {
	t.Helper()
	r, attempts, err := webhooks.NewReader(s).EventRecord(t.Context(), eventID)
	expect.OK(t, err)
	return record{r.Status, r.Due, r.Finished, attempts}
}

// leaseOne leases the one delivery that is due.
func leaseOne(t *testing.T, s *db.DB, leaseID string, now, until time.Time) webhooks.Delivery {
	t.Helper()
	queues, err := webhooks.NewReader(s).Queues(t.Context())
	expect.OK(t, err)
	leased, err := webhooks.NewTables(s).LeaseDeliveries(t.Context(), webhooks.LeaseRequest{
		LeaseID: leaseID, Now: now, Until: until, Queues: queues,
		Healthy: 1, Suspect: 1, PerMerchant: 1,
	})
	if err != nil || len(leased.Deliveries) != 1 {
		t.Fatalf("leased %v, %v", leased.Deliveries, err)
	}
	return leased.Deliveries[0]
}

// newWorld returns a worker that does not run yet. All merchants have the URL.
func newWorld(t *testing.T, s *db.DB, url string) *world {
	t.Helper()
	client := webhooks.NewClient(webhooks.ClientConfig{Guard: loopback, DialTimeout: patience})
	t.Cleanup(client.CloseIdleConnections)
	w := &world{
		store: &recorder{Tables: webhooks.NewTables(s), outcomes: make(chan outcome, 1000)},
		clock: clocktest.New(epoch),
		wake:  make(chan struct{}, 1),
	}
	w.WorkerConfig = webhooks.WorkerConfig{
		Store: w.store, Client: client, Now: w.clock.Now, Rand: rand.Reader, Wake: w.wake,
		Endpoints: all(func(string) (webhooks.Endpoint, bool) { return webhooks.Endpoint{URL: url, Secret: secret}, true }),
		Logger:    slog.New(slog.DiscardHandler),
		Limits:    webhooks.Limits{Timeout: patience}, // so that no exchange fails on a busy machine
	}
	return w
}

// start runs the worker until the test ends or stop is called.
func (w *world) start(t *testing.T) {
	t.Helper()
	w.run(t, webhooks.NewWorker(w.WorkerConfig))
}

func (w *world) run(t *testing.T, worker *webhooks.Worker) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	result := make(chan error, 1)
	go func() { result <- worker.Run(ctx) }()
	w.stop = sync.OnceValue(func() error {
		cancel()
		return <-result
	})
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// advance moves the clock and wakes the worker.
func (w *world) advance(to time.Time) {
	w.clock.Set(to)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// outcome waits for the next outcome to be recorded.
func (w *world) outcome(t *testing.T) outcome {
	t.Helper()
	return receive(t, w.store.outcomes, "an outcome")
}

// patience bounds each wait of a test.
const patience = 2 * time.Minute

func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %s for %s", patience, what)
		panic("unreachable")
	}
}

// request is a request that a receiver got.
type request struct {
	method string
	from   string // address
	header http.Header
	body   []byte
}

// receiver is a merchant's endpoint that answers by the handler.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []request
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("receiver: %v", err)
		}
		r.mu.Lock()
		r.got = append(r.got, request{req.Method, req.RemoteAddr, req.Header.Clone(), body})
		r.mu.Unlock()
		answer(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// status returns a handler that answers with an empty response of a status.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}
