package merchant_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestFindWithinTheShare occupies all connections that requests may use. Another request cannot read a
// merchant, but the service itself can.
func TestFindWithinTheShare(t *testing.T) {
	t.Parallel()
	w := &world{db: storetest.Open(t, storetest.Postgres(t)), now: time.Unix(1_764_000_000, 0)}
	w.Manager = w.open()
	const requests = 60 // more than there are connections
	released, full := make(chan struct{}), make(chan struct{}, requests)
	var group sync.WaitGroup
	for range requests {
		group.Go(func() {
			err := w.db.Update(store.WithShare(t.Context(), store.Writes), func(*store.Tx) error { <-released; return nil })
			if errors.Is(err, store.ErrBusy) {
				full <- struct{}{}
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	defer group.Wait()
	defer close(released)
	select {
	case <-full:
	case <-time.After(2 * store.ShareWait):
		t.Fatal("requests have no share of the connections")
	}

	brief, cancel := context.WithTimeout(store.WithShare(t.Context(), store.MerchantReads), 100*time.Millisecond)
	defer cancel()
	if _, _, err := w.Find(brief, "acme"); !errors.Is(err, store.ErrBusy) {
		t.Errorf("a request beyond the share: %v, want ErrBusy", err)
	}
	if _, known, err := w.Find(t.Context(), "acme"); known || err != nil {
		t.Errorf("the service: %t, %v", known, err)
	}
}
