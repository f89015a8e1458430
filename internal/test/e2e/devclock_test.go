package e2e

import (
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/webhook"
)

// TestExtraDevClock advances the clock of a world by an hour. An invoice that lives for an hour expires at once, and a
// failed delivery is retried at once. The receiver's clock is not advanced, and it accepts the delivery.
func TestExtraDevClock(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	failed := make(chan struct{})
	var once sync.Once
	r.behave(func(w http.ResponseWriter, _ *http.Request, _ event) {
		code := http.StatusNoContent
		once.Do(func() {
			code = http.StatusServiceUnavailable
			close(failed)
		})
		w.WriteHeader(code)
	})
	w, _ := startWorld(t, "--block-time", quick, "--webhook-url", r.URL)
	r.setSecret(w.info.Load().Merchant.WebhookSecret)
	ctx := within(t, patience)
	base := w.info.Load().BaseURL
	before, err := dev.Clock(ctx, base)
	if err != nil || before.AheadSeconds != 0 {
		t.Fatalf("the clock is %+v: %v", before, err)
	}
	draft := w.draft("4900000")
	draft.ExpiresAt = before.Now + 3600
	made := w.create(draft)
	select {
	case <-failed:
	case <-ctx.Done():
		t.Fatal("no delivery was attempted")
	}
	after, err := dev.Advance(ctx, base, time.Hour)
	if err != nil || after.AheadSeconds != 3600 || after.Now < before.Now+3600 {
		t.Fatalf("the clock is %+v after it was %+v: %v", after, before, err)
	}
	r.await(ctx, webhook.InvoiceCreated, made.ID)
	r.await(ctx, webhook.InvoiceExpired, made.ID)
	r.clean()
	if got, err := w.api().Invoice(ctx, made.ID); err != nil || got.Status != apitypes.StatusExpired {
		t.Errorf("the invoice is %s: %v", got.Status, err)
	}
	if head := w.newWallet("").head(ctx); head == nil || int64(head.Time) < after.Now {
		t.Errorf("the chain's head is %+v, want one dated %d or later", head, after.Now)
	}
	ready := string(w.do(http.MethodGet, "/readyz", "").body)
	if !strings.Contains(ready, `"ready":true`) || strings.Contains(ready, "skewSeconds") {
		t.Errorf("/readyz is %s", ready)
	}
}

// TestExtraDevControl calls each route that changes a world with values at and beyond its
// limits, and from another origin.
func TestExtraDevControl(t *testing.T) {
	t.Parallel()
	w, _ := startWorld(t, "--block-time", quick)
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
		if got := string(w.do(http.MethodPost, "/dev/"+c.path, c.body).body); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %s, want %s", c.path, c.body, got, c.want)
		}
		if got := string(w.do(http.MethodPost, "/dev/"+c.path, c.body, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").body); !strings.Contains(got, "forbidden") {
			t.Errorf("%s from another origin: %s", c.path, got)
		}
	}
}

// TestExtraDevClockAfterRestart checks that the clock does not go back when a world restarts,
// nor the clock of deliveries.
func TestExtraDevClockAfterRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--block-time", quick)
	for i := range int64(3) {
		c := w.start()
		at, err := dev.Clock(t.Context(), w.info.Load().BaseURL)
		if err != nil || at.AheadSeconds != i*7200 {
			t.Fatalf("the clock is %d s ahead, want %d: %v", at.AheadSeconds, i*7200, err)
		}
		if _, err := dev.Advance(t.Context(), w.info.Load().BaseURL, 2*time.Hour); err != nil {
			t.Fatal(err)
		}
		if code := c.stop(t, os.Interrupt, patience); code != 0 {
			t.Errorf("it ended with %d", code)
		}
	}
}
