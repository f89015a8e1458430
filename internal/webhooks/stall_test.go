package webhooks_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/webhooks"
)

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
	w.Limits = webhooks.Limits{First: 1, Retries: 1, Suspect: 1, PerMerchant: 1, Timeout: patience, Lease: time.Second, Stall: 50 * time.Millisecond}
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
