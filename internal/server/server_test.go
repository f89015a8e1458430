package server

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/testdeps"
	"github.com/quittance/quittance/webhook"
)

func TestMain(m *testing.M) {
	const parallel = 8 // they wait for timeouts
	testdeps.Parallel(parallel)
	goleak.VerifyTestMain(m)
}

// running is a server under test.
type running struct {
	url   string
	stop  context.CancelFunc
	ended chan error // what Run returned
}

// startServer runs a server until the test ends. It sets defaults for missing fields of cfg.
func startServer(t *testing.T, cfg Config) *running {
	t.Helper()
	if cfg.Database == "" {
		cfg.Database = dbtest.Migrated(t)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Access.Mode == "" {
		cfg.Access = Access{Mode: access.Test, Open: true}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Listeners == nil {
		cfg.Listeners = listenOn(t, Address{})
	}
	cfg.Rand = rand.Reader
	ready := make(chan string, 1)
	cfg.Ready = func(url string) { ready <- url }
	ctx, stop := context.WithCancel(t.Context())
	r := &running{stop: stop, ended: make(chan error, 1)}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		r.ended <- Run(ctx, cfg)
	}()
	t.Cleanup(func() {
		stop()
		<-stopped
	})
	select {
	case r.url = <-ready:
	case err := <-r.ended:
		t.Fatalf("it ended: %v", err)
	}
	return r
}

// newReceiver returns the URL of a webhook receiver, and the types of the events that it receives.
func newReceiver(t *testing.T) (url string, events <-chan string) {
	t.Helper()
	received := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		received <- r.Header.Get(webhook.HeaderEvent)
	}))
	t.Cleanup(receiver.Close)
	return receiver.URL, received
}
