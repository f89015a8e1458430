package deliver_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/quittance/quittance/internal/deliver"
	"github.com/quittance/quittance/internal/store"
)

// child is the process that TestKilled kills: a worker whose time stands
// still.
func child() int {
	ctx := context.Background()
	s, err := store.Open(ctx, os.Getenv(childEnv))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	w := &deliver.Worker{
		Store: s, Client: deliver.NewClient(nil), Rand: rand.Reader, Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return epoch },
		Endpoints: func(string) (deliver.Endpoint, bool) {
			return deliver.Endpoint{URL: os.Getenv(childURLEnv), Secret: secret}, true
		},
		Limits: deliver.Limits{Timeout: patience},
	}
	if err := w.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}
