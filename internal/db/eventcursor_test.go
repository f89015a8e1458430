package db_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

const (
	// cursorWriters insert events at the same time, cursorTransactions each.
	cursorWriters, cursorTransactions = 16, 40
	// cursorKills is the mean number of transactions between two lost connections.
	cursorKills = 12
)

// errGivenUp ends a transaction that its writer rolls back.
var errGivenUp = errors.New("the writer gave up")

// cursorRun is a run of TestCursorOfEventsMissesNone.
type cursorRun struct {
	t        *testing.T
	ctx      context.Context
	writing  *db.DB // through a proxy
	reading  *db.DB
	finished atomic.Int64  // transactions
	written  chan struct{} // closed after the last
	settled  chan struct{} // closed when no transaction can be committed any more

	mu      sync.Mutex
	kept    []string // ids of the events of transactions that were acknowledged
	refused map[string]bool
	failed  map[string]int // transactions by how they ended
}

// TestCursorOfEventsMissesNone checks that a reader that pages by cursor sees each committed
// event once and in order, while many transactions insert events: some stay open long before
// or after they insert, some are rolled back, and connections are lost at any time.
func TestCursorOfEventsMissesNone(t *testing.T) {
	t.Parallel()
	direct := dbtest.MigratedPostgres(t)
	proxy, through, err := dbtest.StartProxy(t.Context(), direct, 0)
	rowtest.Must(t, err)
	t.Cleanup(func() { rowtest.Must(t, proxy.Close()) })
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := &cursorRun{
		t: t, ctx: t.Context(), writing: dbtest.Open(t, through), reading: dbtest.Open(t, direct),
		written: make(chan struct{}), settled: make(chan struct{}), refused: make(map[string]bool), failed: make(map[string]int),
	}
	rowtest.Insert(t, r.reading, rowtest.Sample("inv_m0", "m0"), rowtest.Sample("inv_m1", "m1"))
	var writers, killer, readers sync.WaitGroup
	for w := range cursorWriters {
		writers.Go(func() { r.write(w, rand.New(rand.NewPCG(seed, uint64(w)))) })
	}
	killer.Go(func() { r.kill(direct, proxy, rand.New(rand.NewPCG(seed, 1<<32))) })
	for i, f := range []webhooks.EventFilter{{}, {}, {MerchantID: "m1"}, {Type: invoice.EventPaid}, {Delivery: "none"}, {Delivery: "pending", MerchantID: "m0"}} {
		readers.Go(func() { r.read(f, rand.New(rand.NewPCG(seed, 1<<33+uint64(i)))) })
	}
	writers.Wait()
	close(r.written)
	killer.Wait()
	r.awaitLostSessions(direct)
	close(r.settled)
	readers.Wait()
	r.checkKept()
	t.Logf("%d transactions with %d events were acknowledged, %d given up, %d lost", cursorWriters*cursorTransactions-r.failed["given up"]-r.failed["lost"],
		len(r.kept), r.failed["given up"], r.failed["lost"])
}

// write runs the transactions of a writer.
func (r *cursorRun) write(w int, random *rand.Rand) {
	for n := range cursorTransactions {
		var events []webhooks.Event
		for i := range 1 + random.IntN(4) {
			e := webhooks.Event{
				ID: fmt.Sprintf("evt_%d_%d_%d", w, n, i), Type: []invoice.EventType{invoice.EventCreated, invoice.EventPaid}[random.IntN(2)],
				MerchantID: fmt.Sprint("m", random.IntN(2)), Body: []byte("{}"),
			}
			e.Subject = "inv_" + e.ID
			e.InvoiceID = "inv_" + e.MerchantID
			if random.IntN(2) == 0 {
				e.DeliveryID = "dlv_" + e.ID
			}
			events = append(events, e)
		}
		before, after, giveUp := random.IntN(8) == 0, random.IntN(4) == 0, random.IntN(10) == 0
		pause := time.Duration(random.IntN(20)) * time.Millisecond
		err := r.writing.Update(r.ctx, func(tx *db.Tx) error {
			if before { // a long transaction with a snapshot that is older than many events
				if _, err := webhooks.NewReader(tx).LastSeq(r.ctx); err != nil {
					return err
				}
				clock.Sleep(r.ctx, 5*pause, nil)
			}
			if err := webhooks.InsertEvents(r.ctx, tx, slices.Clone(events)); err != nil {
				return err
			}
			if after || giveUp { // the statements run before the commit is sent
				if _, err := webhooks.NewReader(tx).LastSeq(r.ctx); err != nil {
					return err
				}
				clock.Sleep(r.ctx, pause, nil)
			}
			if giveUp {
				return errGivenUp
			}
			return nil
		})
		r.record(events, err)
	}
}

// record keeps how a transaction ended.
func (r *cursorRun) record(events []webhooks.Event, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished.Add(1)
	for _, e := range events {
		if err == nil {
			r.kept = append(r.kept, e.ID)
		}
		r.refused[e.ID] = errors.Is(err, errGivenUp)
	}
	switch {
	case err == nil:
	case errors.Is(err, errGivenUp):
		r.failed["given up"]++
	case db.Unavailable(err): // it may have been committed
		r.failed["lost"]++
	default:
		r.t.Errorf("insert events: %v", err)
	}
}

// kill ends connections while there are writers: through the server, in a transaction or during a
// statement, and through the network.
func (r *cursorRun) kill(direct string, proxy *dbtest.Proxy, random *rand.Rand) {
	admin, err := pgx.Connect(r.ctx, direct)
	if err != nil {
		r.t.Error(err)
		return
	}
	defer func() { rowtest.Must(r.t, admin.Close(r.ctx)) }()
	states := []string{"idle in transaction", "active"}
	for next := int64(0); ; {
		select {
		case <-r.written:
			return
		default:
		}
		if r.finished.Load() < next {
			clock.Sleep(r.ctx, time.Millisecond, nil)
			continue
		}
		next = r.finished.Load() + int64(random.IntN(2*cursorKills))
		if kind := random.IntN(3); kind < len(states) {
			_, err := admin.Exec(r.ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = $1 ORDER BY random() LIMIT 1`, states[kind])
			if err != nil {
				r.t.Errorf("end a session: %v", err)
			}
		} else {
			proxy.Cut(1)
		}
	}
}

// awaitLostSessions waits until the server has ended the sessions of lost connections: it notices a
// lost client only when it answers, and may have committed by then.
func (r *cursorRun) awaitLostSessions(direct string) {
	admin, err := pgx.Connect(r.ctx, direct)
	rowtest.Must(r.t, err)
	defer func() { rowtest.Must(r.t, admin.Close(r.ctx)) }()
	for busy := 1; busy > 0; {
		rowtest.Must(r.t, admin.QueryRow(r.ctx, `SELECT count(*) FROM pg_stat_activity, pg_sleep(0.01)
			WHERE datname = current_database() AND state = 'active' AND (query NOT LIKE 'SELECT%' OR query LIKE '%advisory%') AND pid <> pg_backend_pid()`).Scan(&busy))
	}
}

// read pages through the events by cursor until all are written, and compares them with the stored ones.
func (r *cursorRun) read(f webhooks.EventFilter, random *rand.Rand) {
	var cursor int64
	var seen []string
	for last := false; ; {
		select {
		case <-r.settled:
			last = true
		default:
		}
		f.After, f.Limit = &cursor, 1+random.IntN(20)
		page, err := webhooks.NewReader(r.reading).Events(r.ctx, f)
		if db.Unavailable(err) { // the session was ended
			continue
		}
		if err != nil {
			r.t.Errorf("read events: %v", err)
			return
		}
		for _, e := range page {
			if e.Seq <= cursor {
				r.t.Errorf("%+v: event %s has the number %d, not above %d", f, e.ID, e.Seq, cursor)
			}
			cursor = e.Seq
			seen = append(seen, e.ID)
		}
		if last && len(page) == 0 {
			break
		}
	}
	var start int64
	f.After, f.Limit = &start, cursorWriters*cursorTransactions*10
	rows, err := webhooks.NewReader(r.reading).Events(r.ctx, f)
	if err != nil {
		r.t.Errorf("read events: %v", err)
	}
	stored := make([]string, len(rows))
	for i, e := range rows {
		stored[i] = e.ID
	}
	if diff := cmp.Diff(stored, seen, rowtest.Equal); diff != "" || len(seen) == 0 {
		r.t.Errorf("%+v: %d events seen (-stored +seen):\n%.2000s", f, len(seen), diff)
	}
}

// checkKept checks that each acknowledged event is stored, and no event that was rolled back.
func (r *cursorRun) checkKept() {
	var start int64
	rows, err := webhooks.NewReader(r.reading).Events(r.ctx, webhooks.EventFilter{After: &start, Limit: cursorWriters * cursorTransactions * 10})
	rowtest.Must(r.t, err)
	stored := make(map[string]bool, len(rows))
	for _, e := range rows {
		stored[e.ID] = true
		if r.refused[e.ID] {
			r.t.Errorf("event %s was rolled back, and is stored", e.ID)
		}
	}
	for _, id := range r.kept {
		if !stored[id] {
			r.t.Errorf("event %s was committed, and is lost", id)
		}
	}
}
