package access_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// TestFindWithinTheShare occupies all connections that requests may use. Another request cannot read a
// merchant, but the service itself can.
func TestFindWithinTheShare(t *testing.T) {
	t.Parallel()
	w := &merchantWorld{db: dbtest.Open(t, dbtest.Postgres(t)), now: time.Unix(1_764_000_000, 0)}
	w.MerchantManager = w.open()
	const requests = 60 // more than there are connections
	released, full := make(chan struct{}), make(chan struct{}, requests)
	var group sync.WaitGroup
	for range requests {
		group.Go(func() {
			err := w.db.Update(db.WithShare(t.Context(), db.Writes), func(*db.Tx) error { <-released; return nil })
			if errors.Is(err, db.ErrBusy) {
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
	case <-time.After(2 * db.ShareWait):
		t.Fatal("requests have no share of the connections")
	}

	brief, cancel := context.WithTimeout(db.WithShare(t.Context(), db.MerchantReads), 100*time.Millisecond)
	defer cancel()
	if _, _, err := w.Find(brief, "acme"); !errors.Is(err, db.ErrBusy) {
		t.Errorf("a request beyond the share: %v, want ErrBusy", err)
	}
	if _, known, err := w.Find(t.Context(), "acme"); known || err != nil {
		t.Errorf("the service: %t, %v", known, err)
	}
}
