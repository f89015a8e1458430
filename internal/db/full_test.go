package db_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestFullDisk fills a SQLite database to a limit. Every write without room returns an error that is retryable, also
// when it shares a commit with a failed one. Acknowledged writes are stored, and writes succeed once there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := dbtest.Open(t, dbtest.SQLite(t))
	rowtest.Must(t, s.LimitPages(t.Context(), 1))
	const writers, most = 16, 10_000
	var mu sync.Mutex
	var acknowledged []invoice.Address
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			for j := range most {
				address := invoice.Address{1, byte(i), byte(j >> 8), byte(j)}
				err := s.Update(t.Context(), func(tx *db.Tx) error {
					return access.InsertSettlementAddresses(t.Context(), tx, []access.SettlementAddress{{ChainKey: "a", Address: address, MerchantID: "m"}}, invoice.Unix(1))
				})
				if err != nil {
					if !db.Unavailable(err) || strings.Contains(err.Error(), "\n") {
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
	rowtest.Must(t, s.LimitPages(t.Context(), 1<<30))
	rowtest.Insert(t, s, rowtest.Sample("inv_after", "m"))
	known, err := access.SettlementAddresses(t.Context(), s, "a", acknowledged)
	rowtest.Must(t, err)
	if len(known) != len(acknowledged) {
		t.Errorf("of %d writes that were acknowledged %d are there", len(acknowledged), len(known))
	}
}
