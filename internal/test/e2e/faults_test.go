package e2e

import (
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/quittance/quittance/webhook"
)

// TestExtraReceiverFaults uses receivers that fail in every way, each at most twice, because
// the second backoff is 30 s. Every event must arrive with its first id and body, and
// healthy receivers must not be affected.
func TestExtraReceiverFaults(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	w, _ := startWorld(t, "--block-time", quiet, "--webhook-url", r.URL)
	r.setSecret(w.info.Load().Merchant.WebhookSecret)
	status := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(code) }
	}
	hang := func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() } // until the client closes the connection
	stray := make(chan string, 64)
	elsewhere := newUnreachable(t, stray)
	// The responses of each merchant's endpoint to the first attempts.
	plans := map[string][]func(http.ResponseWriter, *http.Request){
		"well":    nil,
		"error":   {status(http.StatusInternalServerError), status(http.StatusServiceUnavailable)},
		"hanging": {hang},
		"redirect": {func(rw http.ResponseWriter, req *http.Request) {
			http.Redirect(rw, req, elsewhere, http.StatusTemporaryRedirect)
		}},
		"dropping": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		"dribbling": {func(rw http.ResponseWriter, req *http.Request) {
			rw.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(rw).Flush() // a status without the end of the body is no response
			hang(rw, req)
			panic(http.ErrAbortHandler)
		}},
	}
	r.behave(func(rw http.ResponseWriter, req *http.Request, e event) {
		if plan := plans[e.MerchantID]; e.attempts <= len(plan) {
			plan[e.attempts-1](rw, req)
			return
		}
		rw.WriteHeader(http.StatusNoContent)
	})
	ctx := within(t, 75*time.Second)
	ids := make(map[string]string)
	for merchant := range plans {
		draft := w.draft("1000000")
		draft.MerchantID = merchant
		ids[merchant] = w.create(draft).ID
	}
	begun := time.Now()
	r.await(ctx, webhook.InvoiceCreated, ids["well"])
	if took := time.Since(begun); took > 4*time.Second { // before the first exchange times out
		t.Errorf("a receiver that is well waited for %s", took)
	}
	for merchant, plan := range plans {
		e := r.await(ctx, webhook.InvoiceCreated, ids[merchant])
		if want := len(plan) + 1; e.attempts != want {
			t.Errorf("%s: %d attempts, want %d", merchant, e.attempts, want)
		}
	}
	select {
	case path := <-stray:
		t.Errorf("a redirect was followed to %s", path)
	default:
	}
	r.clean()
}

// TestExtraStopInFlight stops the program while a receiver hangs. It stops within its grace, and
// the event arrives after the next start.
func TestExtraStopInFlight(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	w, c := startWorld(t, "--block-time", quiet, "--webhook-url", r.URL)
	r.setSecret(w.info.Load().Merchant.WebhookSecret)
	reached := make(chan struct{}, 64)
	r.behave(func(_ http.ResponseWriter, req *http.Request, _ event) {
		reached <- struct{}{}
		<-req.Context().Done()
	})
	made := w.create(w.draft("1000000"))
	select {
	case <-reached:
	case <-within(t, patience).Done():
		t.Fatal("no delivery came")
	}
	begun := time.Now()
	if code := c.stop(t, syscall.SIGTERM, 15*time.Second); code != 0 {
		t.Errorf("exit code %d, it said %q", code, c.stderr.String())
	}
	t.Logf("it took %s to stop", time.Since(begun))
	r.behave(nil)
	w.start()
	if e := r.await(within(t, 60*time.Second), webhook.InvoiceCreated, made.ID); e.attempts < 2 {
		t.Errorf("the event arrived in attempt %d", e.attempts)
	}
	r.clean()
}

// newUnreachable returns the address of a server that must not be called. A request fails
// the test.
func newUnreachable(tb testing.TB, asked chan<- string) string {
	tb.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.Path:
		default:
		}
	}))
	tb.Cleanup(s.Close)
	return s.URL
}
