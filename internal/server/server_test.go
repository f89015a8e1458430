package server

import (
	"context"
	"crypto/rand"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quittance/quittance/internal/testdeps"
)

func TestMain(m *testing.M) {
	testdeps.Short("TestReadOnlyDatabase", "TestHalfOpenConnections", "TestStopWithLostDatabase")
	goleak.VerifyTestMain(m,
		// go-ethereum starts these once for the process.
		goleak.IgnoreTopFunction("github.com/ethereum/go-ethereum/core.(*txSenderCacher).cache"),
		// goleveldb does not wait for this one, which ends within a second.
		goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"),
	)
}

// running is a server of a test.
type running struct {
	url   string
	stop  context.CancelFunc
	ended chan error // what Run returned
}

// startServer runs a server until the test ends. What the configuration leaves
// out is filled in.
func startServer(t *testing.T, cfg Config) *running {
	t.Helper()
	if cfg.Database == "" {
		cfg.Database = "sqlite:" + filepath.Join(t.TempDir(), "quittance.db")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	listener, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listener, cfg.Rand = listener, rand.Reader
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
