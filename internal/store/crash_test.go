package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// crashEnv names the database that the child process of TestCrash fills.
const crashEnv = "QUITTANCE_STORE_TEST_CRASH"

// TestCrash kills a process that creates invoices, and checks that each acknowledged
// invoice is stored.
func TestCrash(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	kept := make(map[string]bool)
	for round := range 3 {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCrashChild$")
		child.Env = append(os.Environ(), crashEnv+"="+url, fmt.Sprint("ROUND=", round))
		out, err := child.StdoutPipe()
		must(t, err)
		must(t, child.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if id, ok := strings.CutPrefix(lines.Text(), "kept "); ok {
				kept[id] = true
			}
			if n == 40 {
				must(t, child.Process.Kill())
			}
		}
		if err := child.Wait(); err == nil {
			t.Fatal("the child ended before it was killed")
		}
		if len(kept) < 40*(round+1) {
			t.Fatalf("round %d: only %d invoices were made", round, len(kept))
		}
		s, err := store.Open(t.Context(), url)
		must(t, err)
		for id := range kept {
			if !has(t, s, id) {
				t.Errorf("round %d: %s was kept, and is lost", round, id)
			}
		}
		found, _, err := s.Invoices(t.Context(), store.InvoiceFilter{MerchantID: "m", Limit: 100_000})
		must(t, err)
		for _, inv := range found {
			if r, _, err := s.EventRecord(t.Context(), "evt_"+inv.ID); err != nil || r.Status != delivery.Pending {
				t.Errorf("round %d: %s is there without its event: %v", round, inv.ID, err)
			}
		}
		must(t, s.Close())
	}
}

// TestCrashChild is the process that TestCrash kills. Without crashEnv it does
// nothing.
func TestCrashChild(t *testing.T) {
	url := os.Getenv(crashEnv)
	if url == "" {
		return
	}
	s := storetest.Open(t, url)
	insertMerchant(t, s)
	for worker := range 8 {
		t.Run(fmt.Sprint(worker), func(t *testing.T) {
			t.Parallel()
			for i := 0; ; i++ {
				id := fmt.Sprintf("inv_%s_%d_%d", os.Getenv("ROUND"), worker, i)
				update(t, s, func(ctx context.Context, tx *store.Tx) error {
					if err := add(ctx, tx, id); err != nil {
						return err
					}
					return tx.InsertEvents(ctx, []store.Event{{
						ID: "evt_" + id, Type: "invoice.created", Subject: id, MerchantID: "m", InvoiceID: id, Body: []byte("{}"), DeliveryID: "dlv_" + id,
					}})
				})
				fmt.Println("kept", id)
			}
		})
	}
}

func insertMerchant(t testing.TB, s *store.Store) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		return tx.InsertSettlementAddresses(ctx, []store.SettlementAddress{{ChainKey: "base", Address: sample("", "m").Merchant, MerchantID: "m"}}, invoice.Unix(1))
	})
}
