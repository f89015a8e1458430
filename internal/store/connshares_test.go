package store_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestRequestsLeaveConnections has many more requests read than there are connections, none of which ends.
// Transactions, the service's own reads and its health are not delayed, payers still read,
// requests that write have a part of their own, and the requests beyond the shares get ErrBusy.
func TestRequestsLeaveConnections(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		merchants, readers, all := s.ConnShares()
		const requests = 60
		var reading [3]atomic.Int64
		release, refused := make(chan struct{}), make(chan error, 3*requests)
		var group sync.WaitGroup
		flood := func(of store.ConnShare, n *atomic.Int64, want int64) {
			for range requests {
				group.Go(func() {
					err := s.Read(store.WithShare(t.Context(), of), func() { n.Add(1); <-release })
					if err != nil {
						refused <- err
					}
				})
			}
			awaitConns(t, n, want)
		}
		began := time.Now()
		flood(store.MerchantReads, &reading[0], merchants)
		flood(store.PayerReads, &reading[1], readers-merchants)
		flood(store.Writes, &reading[2], all-readers)

		ctx, cancel := context.WithTimeout(t.Context(), store.ShareWait)
		defer cancel()
		must(t, s.Update(ctx, func(tx *store.Tx) error { _, err := tx.LastSeq(ctx); return err }))
		must(t, s.Read(ctx, func() {}))
		must(t, s.Ping(ctx))

		for range 3*requests - int(all) {
			if err := <-refused; !errors.Is(err, store.ErrBusy) || store.Unavailable(err) {
				t.Fatalf("a request beyond the shares: %v, want ErrBusy, and no outage", err)
			}
		}
		if took := time.Since(began); took < store.ShareWait {
			t.Errorf("requests were refused after %v, want %v", took, store.ShareWait)
		}
		if m, p, w := reading[0].Load(), reading[1].Load(), reading[2].Load(); m != merchants || p != readers-merchants || w != all-readers {
			t.Errorf("%d merchants, %d payers and %d writes read at a time, want %d, %d and %d", m, p, w, merchants, readers-merchants, all-readers)
		}
		close(release)
		group.Wait()
		must(t, s.Read(store.WithShare(t.Context(), store.MerchantReads), func() {}))
	})
}

// TestTransactionsOfRequests has requests keep as many transactions open as they may. The next one does
// not begin, and the service's own do.
func TestTransactionsOfRequests(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Postgres(t))
	_, _, all := s.ConnShares()
	request := store.WithShare(t.Context(), store.Writes)
	release := hold(t, int(all), func(fn func(*store.Tx) error) error { return s.Update(request, fn) })
	err := s.Update(request, func(*store.Tx) error {
		t.Error("a transaction beyond the share began")
		return nil
	})
	if !errors.Is(err, store.ErrBusy) {
		t.Errorf("a transaction beyond the share: %v, want ErrBusy", err)
	}
	must(t, s.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.LastSeq(t.Context()); return err }))
	release()
	must(t, s.Update(request, func(*store.Tx) error { return nil }))
}

// TestReadsDuringTransactionsOfRequests has other requests use the requests' share of the connections. A request reads on
// another connection while it has a transaction open, and not after it.
func TestReadsDuringTransactionsOfRequests(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, _, all := s.ConnShares()
		others := all
		if s.Shared() {
			others-- // the transaction has one
		}
		defer hold(t, int(others), func(fn func(*store.Tx) error) (err error) {
			read := s.Read(store.WithShare(t.Context(), store.Writes), func() { err = fn(nil) })
			return errors.Join(err, read)
		})()
		request := store.WithShare(t.Context(), store.Writes)
		must(t, s.Update(request, func(*store.Tx) error {
			if err := s.Read(request, func() {}); err != nil {
				t.Errorf("a read in the transaction: %v", err)
			}
			return nil
		}))
		if s.Shared() {
			defer hold(t, 1, func(fn func(*store.Tx) error) error { return s.Update(store.WithShare(t.Context(), store.Writes), fn) })()
		}
		brief, cancel := context.WithTimeout(request, 100*time.Millisecond)
		defer cancel()
		if err := s.Read(brief, func() {}); !errors.Is(err, store.ErrBusy) {
			t.Errorf("a read after the transaction: %v, want ErrBusy", err)
		}
	})
}

// TestHeartbeats has the service's own transactions hold all other connections. The check of its health,
// its clock and its share of the work do not wait.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Postgres(t))
	defer hold(t, store.PostgresConns, func(fn func(*store.Tx) error) error { return s.Update(t.Context(), fn) })()
	ctx, cancel := context.WithTimeout(t.Context(), store.ShareWait)
	defer cancel()
	must(t, s.Ping(ctx))
	_, err := s.ReadClock(ctx, at(1), func(_ store.ClockReading, source time.Time) store.ClockReading {
		return store.ClockReading{Now: source}
	})
	must(t, err)
	_, err = s.ShareWork(ctx, "holder", []string{"work"}, []string{"work"}, at(1), at(2))
	must(t, err)
}

// TestHeartbeatsKeepTheirConnections has the service open the connections of its heartbeats before
// other programs have all that the server accepts.
func TestHeartbeatsKeepTheirConnections(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Postgres(t))
	must(t, s.Ping(t.Context()))
	if n := s.OpenHeartbeats(); n != store.HeartbeatConns {
		t.Errorf("%d connections after the first heartbeat, want %d", n, store.HeartbeatConns)
	}
}

// hold keeps n transactions, or reads, open until release is called, which returns when they have ended.
func hold(t *testing.T, n int, update func(fn func(*store.Tx) error) error) (release func()) {
	t.Helper()
	var group sync.WaitGroup
	var begun atomic.Int64
	released := make(chan struct{})
	for range n {
		group.Go(func() {
			err := update(func(*store.Tx) error {
				begun.Add(1)
				<-released
				return nil
			})
			if err != nil {
				t.Error(err)
			}
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
	for deadline := time.After(store.ShareWait); n.Load() < want; {
		select {
		case <-deadline:
			t.Fatalf("%d at a time, want %d", n.Load(), want)
		case <-time.After(time.Millisecond):
		}
	}
}
