package dev_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/devtest"
	"github.com/quittance/quittance/webhook"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// As in devchain.
		goleak.IgnoreTopFunction("github.com/ethereum/go-ethereum/core.(*txSenderCacher).cache"),
		goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"),
	)
}

// receiver returns the URL of a receiver that verifies events by real time, and has the
// types of those it accepted. It fails the first attempt of each invoice.created.
func receiver(t *testing.T) (url string, secret *atomic.Pointer[string], events <-chan string) {
	t.Helper()
	received := make(chan string, 100)
	secret = new(atomic.Pointer[string])
	verifier := webhook.Verifier{Lookup: func(*http.Request) ([]string, error) { return []string{*secret.Load()}, nil }}
	failed := new(atomic.Bool)
	server := httptest.NewServer(verifier.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		event := r.Header.Get(webhook.HeaderEvent)
		if event == webhook.InvoiceCreated && failed.CompareAndSwap(false, true) {
			received <- "failed " + event
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		received <- event
	})))
	t.Cleanup(server.Close)
	return server.URL, secret, received
}

// TestAdvance lets an invoice of an hour expire at once. The retry of a failed delivery
// comes at once as well, and the receiver, whose clock is not advanced, accepts it.
func TestAdvance(t *testing.T) {
	t.Parallel()
	w := devtest.Start(t)
	url, secret, events := receiver(t)
	made := w.Merchant(t, "shop", url)
	secret.Store(&made.Secret)
	before, err := dev.Clock(t.Context(), w.Info.BaseURL)
	if err != nil || before.AheadSeconds != 0 {
		t.Fatalf("the clock is %+v: %v", before, err)
	}
	inv, err := w.Operator.CreateInvoice(t.Context(), apitypes.CreateInvoiceRequest{
		MerchantID: "shop", Amount: "4900000", Currency: "USDC", ChainKey: dev.ChainKey, ExpiresAt: before.Now + 3600,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := <-events; got != "failed invoice.created" {
		t.Fatalf("the receiver got %s", got)
	}
	after, err := dev.Advance(t.Context(), w.Info.BaseURL, time.Hour)
	if err != nil || after.AheadSeconds != 3600 || after.Now < before.Now+3600 {
		t.Fatalf("the clock is %+v after it was %+v: %v", after, before, err)
	}
	want := map[string]bool{webhook.InvoiceCreated: true, webhook.InvoiceExpired: true}
	for len(want) > 0 {
		delete(want, <-events)
	}
	if got, err := w.Operator.Invoice(t.Context(), inv.ID); err != nil || got.Status != apitypes.StatusExpired {
		t.Errorf("the invoice is %s: %v", got.Status, err)
	}
	head, err := w.Node.Client().HeaderByNumber(t.Context(), nil)
	if err != nil || int64(head.Time) < after.Now {
		t.Errorf("the chain's head is dated %d, want %d or later: %v", head.Time, after.Now, err)
	}
	ready := get(t, w.Info.BaseURL+"/readyz")
	if !strings.Contains(ready, `"ready":true`) || strings.Contains(ready, "skewSeconds") {
		t.Errorf("/readyz is %s", ready)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	return send(t, http.MethodGet, url, "", http.Header{})
}

func send(t *testing.T, method, url, body string, header http.Header) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header.Clone()
	answer := httptest.NewRecorder()
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	if _, err := answer.Body.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return answer.Body.String()
}

// TestLimits calls each route that changes the world with values at and beyond its limits,
// and from another origin.
func TestLimits(t *testing.T) {
	t.Parallel()
	w := devtest.Start(t)
	for _, c := range []struct{ path, body, want string }{
		{"clock/advance", `{"seconds":0}`, `"field":"seconds"`},
		{"clock/advance", `{"seconds":1}`, `"aheadSeconds":1}`},
		{"clock/advance", `{"seconds":2592000}`, `"aheadSeconds":2592001}`},
		{"clock/advance", `{"seconds":2592001}`, `"field":"seconds"`},
		{"clock/advance", `{"second":1}`, `unknown field \"second\"`},
		{"clock/advance", `{"seconds":1.5}`, `"code":"invalid_json"`},
		{"chain/hold", `{"seconds":601}`, `"field":"seconds"`},
		{"chain/hold", `{"seconds":600}`, `"head":`},
		{"chain/hold", `{"seconds":-1}`, `"field":"seconds"`},
		{"chain/hold", `{"seconds":0}`, `"head":`},
		{"chain/mine", `{"blocks":0}`, `"field":"blocks"`},
		{"chain/mine", `{"blocks":10}`, `"head":`},
		{"chain/mine", `{"blocks":11}`, `"field":"blocks"`},
		{"chain/reorg", `{"depth":0}`, `"field":"depth"`},
		{"chain/reorg", `{"depth":3}`, `"field":"depth"`},
		{"chain/reorg", `{"depth":2,"drop":true}`, `"head":`},
		{"chain/outage", `{"seconds":0}`, `"field":"seconds"`},
		{"chain/outage", `{"seconds":61}`, `"field":"seconds"`},
		{"chain/outage", `{"seconds":60}`, `"head":`},
		{"chain/outage", `{"seconds":1}`, `refuses requests already`},
	} {
		if got := send(t, http.MethodPost, w.Info.BaseURL+"/dev/"+c.path, c.body, http.Header{}); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %s, want %s", c.path, c.body, got, c.want)
		}
		foreign := http.Header{"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}}
		if got := send(t, http.MethodPost, w.Info.BaseURL+"/dev/"+c.path, c.body, foreign); !strings.Contains(got, "forbidden") {
			t.Errorf("%s from another origin: %s", c.path, got)
		}
	}
}

// TestRestart checks that the clock does not go back at a restart, also that of deliveries.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range int64(3) {
		run(t, dir, func(w *dev.World) error {
			c, err := dev.Clock(t.Context(), w.Info.BaseURL)
			if err == nil && c.AheadSeconds != i*7200 {
				err = fmt.Errorf("the clock is %d s ahead, want %d", c.AheadSeconds, i*7200)
			}
			if err != nil {
				return err
			}
			_, err = dev.Advance(t.Context(), w.Info.BaseURL, 2*time.Hour)
			return err
		})
	}
}

// run runs a world for as long as do takes.
func run(t *testing.T, dir string, do func(*dev.World) error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	err := dev.Run(ctx, dev.Config{
		Dir: dir, Listen: "127.0.0.1:0", RPCListen: "127.0.0.1:0", BlockTime: 200 * time.Millisecond,
		Now: time.Now, Rand: rand.Reader, Logger: slog.New(slog.DiscardHandler),
	}, func(w *dev.World) {
		go func() {
			defer stop()
			done <- do(w)
		}()
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
