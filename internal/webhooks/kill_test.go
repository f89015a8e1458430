package webhooks_test

import (
	"bufio"
	"net/http"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestKilled kills a worker between the receiver's 2xx and its recording. The event must be posted again with the same
// id.
func TestKilled(t *testing.T) {
	for name, url := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			database := url(t)
			s := dbtest.Open(t, database)
			dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
			r := newReceiver(t, status(http.StatusOK))
			cmd := startChild(t, database, r.URL, epoch, childHoldEnv+"=1")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if !bufio.NewScanner(out).Scan() {
				t.Error("the child ended before it had an outcome")
			}
			kill(t, cmd)

			w := newWorld(t, s, r.URL)
			w.clock.Set(epoch.Add(15 * time.Second)) // the child's lease has ended
			w.start(t)
			if o := w.outcome(t); o.Status != webhooks.Delivered || o.Attempt.Number != 1 {
				t.Errorf("outcome %+v, %+v", o, o.Attempt)
			}
			got := r.requests()
			if len(got) != 2 {
				t.Fatalf("received %d requests, want 2", len(got))
			}
			if a, b := got[0].header.Get("X-Service-Delivery"), got[1].header.Get("X-Service-Delivery"); a != b || string(got[0].body) != string(got[1].body) {
				t.Errorf("delivery %s with %q, then %s with %q", a, got[0].body, b, got[1].body)
			}
		})
	}
}
