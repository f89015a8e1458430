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

// TestReadersLeaveConnections has many more requests read than there are connections, none of which ends.
// Transactions, the service's own reads and its health are not delayed, payers still read, and
// the requests beyond the shares get ErrBusy.
func TestReadersLeaveConnections(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		merchants, all := s.ReadShares()
		const requests = 60
		var reading [2]atomic.Int64
		release, refused := make(chan struct{}), make(chan error, 2*requests)
		var group sync.WaitGroup
		flood := func(r store.ReadShare, n *atomic.Int64, want int64) {
			for range requests {
				group.Go(func() {
					err := s.Read(store.ForReads(t.Context(), r), func() { n.Add(1); <-release })
					if err != nil {
						refused <- err
					}
				})
			}
			for deadline := time.After(store.ReadWait); n.Load() < want; {
				select {
				case <-deadline:
					t.Fatalf("%d requests read at a time, want %d", n.Load(), want)
				case <-time.After(time.Millisecond):
				}
			}
		}
		began := time.Now()
		flood(store.MerchantReads, &reading[0], merchants)
		flood(store.PayerReads, &reading[1], all-merchants)

		ctx, cancel := context.WithTimeout(t.Context(), store.ReadWait)
		defer cancel()
		must(t, s.Update(ctx, func(tx *store.Tx) error { _, err := tx.LastSeq(ctx); return err }))
		must(t, s.Read(ctx, func() {}))
		must(t, s.Ping(ctx))

		for range 2*requests - int(all) {
			if err := <-refused; !errors.Is(err, store.ErrBusy) || store.Unavailable(err) {
				t.Fatalf("a request beyond the shares: %v, want ErrBusy, and no outage", err)
			}
		}
		if took := time.Since(began); took < store.ReadWait {
			t.Errorf("requests were refused after %v, want %v", took, store.ReadWait)
		}
		if m, p := reading[0].Load(), reading[1].Load(); m != merchants || p != all-merchants {
			t.Errorf("%d merchants and %d payers read at a time, want %d and %d", m, p, merchants, all-merchants)
		}
		close(release)
		group.Wait()
		must(t, s.Read(store.ForReads(t.Context(), store.MerchantReads), func() {}))
	})
}
