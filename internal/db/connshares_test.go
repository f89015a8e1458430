package db_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestRequestsLeaveConnections reads in many more requests than there are connections. No read ends.
// Transactions, the service's own reads and its health are not delayed, payers still read, requests
// that write have a separate part, and the requests beyond the shares get ErrBusy.
func TestRequestsLeaveConnections(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		merchants, readers, all := s.ConnShares()
		const requests = 60
		var reading [3]atomic.Int64
		release, refused := make(chan struct{}), make(chan error, 3*requests)
		var group sync.WaitGroup
		flood := func(of db.ConnShare, n *atomic.Int64, want int64) {
			for range requests {
				group.Go(func() {
					err := s.Read(db.WithShare(t.Context(), of), func() { n.Add(1); <-release })
					if err != nil {
						refused <- err
					}
				})
			}
			awaitConns(t, n, want)
		}
		began := time.Now()
		flood(db.MerchantReads, &reading[0], merchants)
		flood(db.PayerReads, &reading[1], readers-merchants)
		flood(db.Writes, &reading[2], all-readers)

		ctx, cancel := context.WithTimeout(t.Context(), db.ShareWait)
		defer cancel()
		rowtest.Must(t, s.Update(ctx, func(tx *db.Tx) error { _, err := webhooks.NewReader(tx).LastSeq(ctx); return err }))
		rowtest.Must(t, s.Read(ctx, func() {}))
		rowtest.Must(t, s.Ping(ctx))

		for range 3*requests - int(all) {
			if err := <-refused; !errors.Is(err, db.ErrBusy) || db.Unavailable(err) {
				t.Fatalf("a request beyond the shares: %v, want ErrBusy, and no outage", err)
			}
		}
		if took := time.Since(began); took < db.ShareWait {
			t.Errorf("requests were refused after %v, want %v", took, db.ShareWait)
		}
		if m, p, w := reading[0].Load(), reading[1].Load(), reading[2].Load(); m != merchants || p != readers-merchants || w != all-readers {
			t.Errorf("%d merchants, %d payers and %d writes read at a time, want %d, %d and %d", m, p, w, merchants, readers-merchants, all-readers)
		}
		close(release)
		group.Wait()
		rowtest.Must(t, s.Read(db.WithShare(t.Context(), db.MerchantReads), func() {}))
	})
}

// TestTransactionsOfRequests keeps as many transactions of requests open as allowed. The next
// request's transaction does not begin, but the service's own do.
func TestTransactionsOfRequests(t *testing.T) {
	t.Parallel()
	s := dbtest.Open(t, dbtest.Postgres(t))
	_, _, all := s.ConnShares()
	request := db.WithShare(t.Context(), db.Writes)
	release := hold(t, int(all), func(fn func(*db.Tx) error) error { return s.Update(request, fn) })
	err := s.Update(request, func(*db.Tx) error {
		t.Error("a transaction beyond the share began")
		return nil
	})
	expect.Error(t, db.ErrBusy, "a transaction beyond the share")(err)
	rowtest.Must(t, s.Update(t.Context(), func(tx *db.Tx) error { _, err := webhooks.NewReader(tx).LastSeq(t.Context()); return err }))
	release()
	rowtest.Must(t, s.Update(request, func(*db.Tx) error { return nil }))
}

// TestReadsDuringTransactionsOfRequests uses up the requests' share of the connections. Another
// request reads on a free connection while it has a transaction open, but not afterwards.
func TestReadsDuringTransactionsOfRequests(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		_, _, all := s.ConnShares()
		others := all
		if s.Shared() {
			others-- // the transaction has one
		}
		defer hold(t, int(others), func(fn func(*db.Tx) error) (err error) {
			read := s.Read(db.WithShare(t.Context(), db.Writes), func() { err = fn(nil) })
			return errors.Join(err, read)
		})()
		request := db.WithShare(t.Context(), db.Writes)
		rowtest.Must(t, s.Update(request, func(*db.Tx) error {
			if err := s.Read(request, func() {}); err != nil {
				t.Errorf("a read in the transaction: %v", err)
			}
			return nil
		}))
		if s.Shared() {
			defer hold(t, 1, func(fn func(*db.Tx) error) error { return s.Update(db.WithShare(t.Context(), db.Writes), fn) })()
		}
		brief, cancel := context.WithTimeout(request, 100*time.Millisecond)
		defer cancel()
		expect.Error(t, db.ErrBusy, "a read after the transaction")(s.Read(brief, func() {}))
	})
}

// TestHeartbeats fills all other connections with the service's own transactions. The health check,
// the clock and the shared work do not wait.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	s := dbtest.Open(t, dbtest.Postgres(t))
	defer hold(t, db.PostgresConns, func(fn func(*db.Tx) error) error { return s.Update(t.Context(), fn) })()
	ctx, cancel := context.WithTimeout(t.Context(), db.ShareWait)
	defer cancel()
	rowtest.Must(t, s.Ping(ctx))
	expect.Success(t)(s.ReadClock(ctx, rowtest.At(1), func(_ db.ClockReading, source time.Time) db.ClockReading {
		return db.ClockReading{Now: source}
	}))
	expect.Success(t)(s.ShareWork(ctx, "holder", []string{"work"}, []string{"work"}, rowtest.At(1), rowtest.At(2)))
}

// TestHeartbeatsKeepTheirConnections checks that the service opens its heartbeat connections before
// other programs use up all that the server accepts.
func TestHeartbeatsKeepTheirConnections(t *testing.T) {
	t.Parallel()
	s := dbtest.Open(t, dbtest.Postgres(t))
	rowtest.Must(t, s.Ping(t.Context()))
	expect.Equal(t, s.OpenHeartbeats(), db.HeartbeatConns, "connections after the first heartbeat:")
}

// hold keeps n transactions, or reads, open until the caller calls release, which returns when they have ended.
func hold(t *testing.T, n int, update func(fn func(*db.Tx) error) error) (release func()) {
	t.Helper()
	var group sync.WaitGroup
	var begun atomic.Int64
	released := make(chan struct{})
	for range n {
		group.Go(func() {
			err := update(func(*db.Tx) error {
				begun.Add(1)
				<-released
				return nil
			})
			expect.NoError(t, err)
		})
	}
	awaitConns(t, &begun, int64(n))
	return func() {
		close(released)
		group.Wait()
	}
}

// awaitConns waits until a number of connections is in use.
func awaitConns(t *testing.T, n *atomic.Int64, want int64) {
	t.Helper()
	for deadline := time.After(db.ShareWait); n.Load() < want; {
		select {
		case <-deadline:
			t.Fatalf("%d at a time, want %d", n.Load(), want)
		case <-time.After(time.Millisecond):
		}
	}
}

// TestMeasureHold checks how long a transaction holds up events: on SQLite, with its one writer, for
// its whole duration, and on PostgreSQL from when it gets the lock, without the wait for it.
func TestMeasureHold(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		const before = 300 * time.Millisecond
		rowtest.Insert(t, s, rowtest.Sample("inv_m", "m"))
		var held time.Duration
		rowtest.Must(t, s.Update(t.Context(), func(tx *db.Tx) error {
			clock.Sleep(t.Context(), before, nil)
			err := webhooks.InsertEvents(t.Context(), tx, []webhooks.Event{{ID: "evt_1", Type: invoice.EventCreated, Subject: "inv_m", MerchantID: "m", InvoiceID: "inv_m", Body: []byte("{}"), CreatedAt: rowtest.At(1)}})
			if err != nil {
				return err
			}
			return webhooks.MeasureHold(t.Context(), tx, &held)
		}))
		if isPostgres := strings.HasSuffix(t.Name(), "postgres"); held <= 0 || isPostgres == (held >= before) {
			t.Errorf("on PostgreSQL %v: held others for %v, of which %v were before its events", isPostgres, held, before)
		}
	})
}

// readClock reads the schedule's clock, as each replica does every few seconds.
func readClock(ctx context.Context, s *db.DB) error {
	_, err := s.ReadClock(ctx, time.Unix(1000, 0), func(db.ClockReading, time.Time) db.ClockReading {
		return db.ClockReading{Now: time.Unix(1000, 0)}
	})
	return err
}

// TestLostBeatIsNoticed sets the database back under a running replica. Another replica, which has
// started since, notices it at its next reading.
func TestLostBeatIsNoticed(t *testing.T) {
	dbtest.EachURL(t, func(t *testing.T, url string) {
		s, other := dbtest.Open(t, url), dbtest.Open(t, url)
		for range 3 {
			rowtest.Must(t, readClock(t.Context(), s))
			rowtest.Must(t, readClock(t.Context(), other))
		}
		if r := s.Noticed(time.Unix(1000, 0)); r.State != db.RecoveryNormal {
			t.Fatalf("two replicas: %+v", r)
		}
		expect.Success(t)(dbtest.SQL(t, url).ExecContext(t.Context(), "UPDATE recovery SET heartbeats = heartbeats - 4"))
		rowtest.Must(t, readClock(t.Context(), s))
		rowtest.Must(t, readClock(t.Context(), other))
		for _, replica := range []*db.DB{s, other} {
			if r := replica.Noticed(time.Unix(1000, 0)); r.State != db.RecoverySuspected || !strings.Contains(r.Reason, "committed") {
				t.Errorf("it noticed %+v", r)
			}
		}
		if r, err := s.Recovery(t.Context()); err != nil || r.State != db.RecoverySuspected {
			t.Errorf("stored is %+v, %v", r, err)
		}
	})
}

// TestReplacedFileIsNoticed replaces or removes the file of a SQLite database that is open.
func TestReplacedFileIsNoticed(t *testing.T) {
	t.Parallel()
	for want, do := range map[string]func(path string) error{
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", expect.Must(os.ReadFile(path)), 0o600), os.Rename(path+".new", path))
		},
		"moved or removed": os.Remove,
	} {
		url := dbtest.SQLite(t)
		s := dbtest.Open(t, url)
		rowtest.Must(t, readClock(t.Context(), s))
		if r := s.Noticed(time.Unix(1000, 0)); r.State != db.RecoveryNormal {
			t.Fatalf("noticed %+v", r)
		}
		rowtest.Must(t, do(strings.TrimPrefix(url, "sqlite:")))
		if r := s.Noticed(time.Unix(1000, 0)); r.State != db.RecoverySuspected || !strings.Contains(r.Reason, want) {
			t.Errorf("%s: noticed %+v", want, r)
		}
	}
}

// TestAnotherClusterIsNoticed starts a service on other PostgreSQL databases than that of its last start.
func TestAnotherClusterIsNoticed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ change, want string }{
		"the same":           {"UPDATE recovery SET heartbeats = heartbeats", ""},
		"a new version":      {"UPDATE recovery SET cluster = NULL, database_oid = NULL, wal_timeline = NULL, wal_position = NULL", ""},
		"another cluster":    {"UPDATE recovery SET cluster = '1'", "system identifier"},
		"a restored dump":    {"UPDATE recovery SET database_oid = 1", "oid"},
		"a failover":         {"UPDATE recovery SET wal_timeline = wal_timeline - 1", ""},
		"a WAL that is back": {"UPDATE recovery SET wal_position = wal_position + 1000000000", "WAL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := dbtest.MigratedPostgres(t)
			s := dbtest.Open(t, url)
			if r, err := s.NoticeRestore(t.Context(), time.Unix(1000, 0)); err != nil || r.State != db.RecoveryNormal {
				t.Fatalf("the first start: %+v, %v", r, err)
			}
			conn := dbtest.SQL(t, url)
			var known int
			rowtest.Must(t, conn.QueryRowContext(t.Context(), "SELECT count(*) FROM recovery WHERE cluster <> '' AND database_oid > 0 AND wal_timeline > 0 AND wal_position > 0").Scan(&known))
			if known != 1 {
				t.Fatal("the first start stored no identity")
			}
			_, err := conn.ExecContext(t.Context(), c.change)
			rowtest.Must(t, err)
			r, err := s.NoticeRestore(t.Context(), time.Unix(2000, 0))
			if err != nil || (r.State == db.RecoverySuspected) != (c.want != "") || !strings.Contains(r.Reason, c.want) {
				t.Errorf("the second start: %+v, %v; want %q", r, err, c.want)
			}
			rowtest.Must(t, s.Update(t.Context(), func(tx *db.Tx) error {
				if err := tx.SetRecovery(t.Context(), db.Recovery{State: db.RecoveryNormal, Since: time.Unix(3000, 0)}); err != nil {
					return err
				}
				return tx.AdoptDatabase(t.Context())
			}))
			if r, err := s.NoticeRestore(t.Context(), time.Unix(4000, 0)); err != nil || r.State != db.RecoveryNormal {
				t.Errorf("after it was accepted: %+v, %v", r, err)
			}
		})
	}
}
