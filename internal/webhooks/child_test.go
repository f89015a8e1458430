package webhooks_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/webhooks"
)

// Environment variables of a child process: its database, the URL of all endpoints, its
// time in Unix milliseconds, and whether it blocks before it records an outcome.
const (
	childEnv     = "QUITTANCE_TEST_CHILD_DATABASE"
	childURLEnv  = "QUITTANCE_TEST_CHILD_URL"
	childTimeEnv = "QUITTANCE_TEST_CHILD_TIME"
	childHoldEnv = "QUITTANCE_TEST_CHILD_HOLD"
)

// startChild starts a worker in another process with a clock that does not advance.
func startChild(t *testing.T, database, url string, now time.Time, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+database, childURLEnv+"="+url, childTimeEnv+"="+strconv.FormatInt(now.UnixMilli(), 10))
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// kill kills a child with SIGKILL.
func kill(t *testing.T, child *exec.Cmd) {
	t.Helper()
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
}

// unrecordingStore is a store that signals when an outcome should be recorded, and never records it.
type unrecordingStore struct{ webhooks.Tables }

// FinishDeliveries never returns.
func (unrecordingStore) FinishDeliveries(context.Context, []webhooks.Outcome) ([]int, error) {
	fmt.Println("an outcome is to be recorded")
	select {}
}

// child runs the worker process that tests kill.
func child() int {
	ctx := context.Background()
	ms, err := strconv.ParseInt(os.Getenv(childTimeEnv), 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := db.Open(ctx, os.Getenv(childEnv))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c := webhooks.WorkerConfig{
		Store: webhooks.NewTables(s), Client: webhooks.NewClient(webhooks.ClientConfig{Guard: loopback, DialTimeout: patience}), Rand: rand.Reader, Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.UnixMilli(ms) },
		Endpoints: all(func(string) (webhooks.Endpoint, bool) {
			return webhooks.Endpoint{URL: os.Getenv(childURLEnv), Secret: secret}, true
		}),
		Limits: webhooks.Limits{Timeout: patience},
	}
	if os.Getenv(childHoldEnv) != "" {
		c.Store = unrecordingStore{webhooks.NewTables(s)}
	}
	if err := webhooks.NewWorker(c).Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}
