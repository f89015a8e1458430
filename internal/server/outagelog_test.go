package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/logtest"
)

func TestOutagesAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(logtest.Buffer)
		logger := limitOutageLogs(slog.New(slog.NewTextHandler(log, nil)))
		outage := fmt.Errorf("lease deliveries: %w", db.ErrTimeout)
		node := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		for range 100 {
			logger.With("chain", "house").Error("leasing failed", "err", outage)
			logger.WithGroup("request").Error("request failed", "err", outage)
			logger.Error("request failed", "err", errors.New("another fault"))
			logger.Warn("a node failed", "err", node)
		}
		if n := strings.Count(log.String(), "leasing failed"); n != 1 {
			t.Errorf("an outage was logged %d times; want once", n)
		}
		if n := strings.Count(log.String(), "another fault"); n != 100 {
			t.Errorf("other errors were logged %d times; want 100", n)
		}
		if n := strings.Count(log.String(), "a node failed"); n != 100 {
			t.Errorf("a node error was logged %d times; want 100", n)
		}
		if n := strings.Count(log.String(), "request failed"); n != 101 {
			t.Errorf("request failed was logged %d times; want 101", n)
		}
		<-time.After(outageInterval)
		logger.Error("leasing failed", "err", outage)
		if !strings.Contains(log.String(), "omitted=99") {
			t.Errorf("the next line does not say how many were omitted:\n%s", log.String())
		}
	})
}
