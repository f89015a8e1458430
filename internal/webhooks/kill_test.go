package webhooks_test

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// Numbers of kills and of events of TestExtraKilledOften.
var (
	kills      = flag.Int("kills", 8, "how often a worker is killed")
	killEvents = flag.Int("kill-events", 1000, "over how many events")
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

// TestExtraKilledOften checks that workers that are killed repeatedly lose no event, and post only events twice that were in
// flight.
func TestExtraKilledOften(t *testing.T) {
	const merchants = 20
	database := dbtest.SQLite(t)
	s := dbtest.Open(t, database)
	conn := dbtest.SQL(t, database)
	count := func(query string, args ...any) (n int) {
		t.Helper()
		if err := conn.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	each := *killEvents / merchants
	for i := range merchants {
		dbtest.Schedule(t, s, fmt.Sprintf("m%02d", i), 0, each, epoch.UnixMilli()-int64(each))
	}
	var mu sync.Mutex
	posted := make(map[string]int)
	left, enough := 0, make(chan struct{}, 1)
	r := newReceiver(t, func(_ http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		posted[req.Header.Get("X-Service-Delivery")]++
		if left--; left == 0 {
			enough <- struct{}{}
		}
	})
	now, underWay, killed := epoch, 0, 0
	for killed < *kills {
		unfinished := merchants*each - count("SELECT count(*) FROM finished_deliveries")
		if unfinished == 0 {
			break
		}
		mu.Lock()
		left = 1 + rand.N(max(1, min(unfinished-1, 2*merchants*each / *kills)))
		mu.Unlock()
		cmd := startChild(t, database, r.URL, now)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		receive(t, enough, "requests of a child")
		kill(t, cmd)
		killed++
		underWay += count("SELECT count(*) FROM deliveries WHERE lease_id IS NOT NULL AND due_ms > $1", now.UnixMilli())
		now = now.Add(16 * time.Second) // the leases of the killed worker have ended
	}
	unfinished := merchants*each - count("SELECT count(*) FROM finished_deliveries")
	w := newWorld(t, s, r.URL)
	w.clock.Set(now)
	w.start(t)
	for range unfinished {
		if o := w.outcome(t); o.Status != webhooks.Delivered {
			t.Errorf("outcome %+v", o)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	total := 0
	for _, n := range posted {
		total += n
	}
	t.Logf("%d kills over %d events: %d lost, %d posted twice, %d were under way", killed, merchants*each, merchants*each-len(posted), total-len(posted), underWay)
	if len(posted) != merchants*each {
		t.Errorf("%d of %d events arrived", len(posted), merchants*each)
	}
	if total-len(posted) > underWay {
		t.Errorf("%d were posted twice, want %d at most: those under way at a kill", total-len(posted), underWay)
	}
}
