package store_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestFullDisk fills a SQLite database to a limit. Every write without room returns an
// error that is retryable, also when it shares a commit with a failed one. Acknowledged
// writes are stored, and writes succeed once there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	must(t, s.LimitPages(t.Context(), 1))
	const writers, most = 16, 10_000
	var mu sync.Mutex
	var acknowledged []invoice.Address
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			for j := range most {
				address := invoice.Address{1, byte(i), byte(j >> 8), byte(j)}
				err := s.Update(t.Context(), func(tx *store.Tx) error {
					return tx.InsertSettlementAddresses(t.Context(), []store.SettlementAddress{{ChainKey: "a", Address: address, MerchantID: "m"}}, invoice.Unix(1))
				})
				if err != nil {
					if !store.Unavailable(err) || strings.Contains(err.Error(), "\n") {
						t.Errorf("a full disk gives %v, want an error that counts as unavailable and says nothing else", err)
					}
					return
				}
				mu.Lock()
				acknowledged = append(acknowledged, address)
				mu.Unlock()
			}
			t.Error("the disk never was full")
		})
	}
	group.Wait()
	must(t, s.LimitPages(t.Context(), 1<<30))
	insert(t, s, sample("inv_after", "m"))
	known, err := s.SettlementAddresses(t.Context(), "a", acknowledged)
	must(t, err)
	if len(known) != len(acknowledged) {
		t.Errorf("of %d writes that were acknowledged %d are there", len(acknowledged), len(known))
	}
}
