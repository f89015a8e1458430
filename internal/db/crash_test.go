package db_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// crashEnv names the database that the child process of TestExtraCrash fills.
const crashEnv = "QUITTANCE_STORE_TEST_CRASH"

// TestExtraCrash kills a process that creates invoices, and checks that each acknowledged invoice is stored.
func TestExtraCrash(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLite(t)
	kept := make(map[string]bool)
	for round := range 3 {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCrashChild$")
		child.Env = append(os.Environ(), crashEnv+"="+url, fmt.Sprint("ROUND=", round))
		out, err := child.StdoutPipe()
		rowtest.Must(t, err)
		rowtest.Must(t, child.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if id, ok := strings.CutPrefix(lines.Text(), "kept "); ok {
				kept[id] = true
			}
			if n == 40 {
				rowtest.Must(t, child.Process.Kill())
			}
		}
		if err := child.Wait(); err == nil {
			t.Fatal("the child ended before it was killed")
		}
		if len(kept) < 40*(round+1) {
			t.Fatalf("round %d: only %d invoices were made", round, len(kept))
		}
		s, err := db.Open(t.Context(), url)
		rowtest.Must(t, err)
		for id := range kept {
			if !has(t, s, id) {
				t.Errorf("round %d: %s was kept, and is lost", round, id)
			}
		}
		found, _, err := ledger.NewReader(s).Invoices(t.Context(), ledger.InvoiceFilter{MerchantID: "m", Limit: 100_000})
		rowtest.Must(t, err)
		for _, inv := range found {
			if r, _, err := webhooks.NewReader(s).EventRecord(t.Context(), "evt_"+inv.ID); err != nil || r.Status != webhooks.Pending {
				t.Errorf("round %d: %s is there without its event: %v", round, inv.ID, err)
			}
		}
		rowtest.Must(t, s.Close())
	}
}

// TestCrashChild is the process that TestExtraCrash kills. Without crashEnv it has no effect.
func TestCrashChild(t *testing.T) {
	url := os.Getenv(crashEnv)
	if url == "" {
		return
	}
	s := dbtest.Open(t, url)
	insertMerchant(t, s)
	for worker := range 8 {
		t.Run(fmt.Sprint(worker), func(t *testing.T) {
			t.Parallel()
			for i := 0; ; i++ {
				id := fmt.Sprintf("inv_%s_%d_%d", os.Getenv("ROUND"), worker, i)
				rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
					if err := add(ctx, tx, id); err != nil {
						return err
					}
					return webhooks.InsertEvents(ctx, tx, []webhooks.Event{{
						ID: "evt_" + id, Type: "invoice.created", Subject: id, MerchantID: "m", InvoiceID: id, Body: []byte("{}"), DeliveryID: "dlv_" + id,
					}})
				})
				fmt.Println("kept", id)
			}
		})
	}
}

func insertMerchant(t testing.TB, s *db.DB) {
	t.Helper()
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
		return access.InsertSettlementAddresses(ctx, tx, []access.SettlementAddress{{ChainKey: "base", Address: rowtest.Sample("", "m").Merchant, MerchantID: "m"}}, invoice.Unix(1))
	})
}
