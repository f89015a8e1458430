package admin_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestUnrecognizedTransfers marks transfers as checked, one and all others, and refuses an unknown one.
func TestUnrecognizedTransfers(t *testing.T) {
	t.Parallel()
	for name, database := range storetest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) { checkTransfers(t, database(t)) })
	}
}

// TestUnrecognizedTransfersOfNoDatabase names a database that does not exist. None is created.
func TestUnrecognizedTransfersOfNoDatabase(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	for range 2 {
		if _, err := admin.UnrecognizedTransfers(t.Context(), url, nil, time.Now()); !errors.Is(err, store.ErrNoDatabase) {
			t.Errorf("got %v", err)
		}
	}
}

func checkTransfers(t *testing.T, url string) {
	t.Helper()
	db := storetest.Open(t, url)
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		var all []invoice.Transfer
		for i := range byte(3) {
			all = append(all, invoice.Transfer{ChainKey: "base", TxHash: invoice.Hash{i}, Token: invoice.Address{1}, Currency: "USDC", Amount: invoice.NewAmount(5)})
		}
		return tx.InsertUnrecognizedTransfers(t.Context(), all)
	}); err != nil {
		t.Fatal(err)
	}
	list := func(want int, checked ...string) []store.UnrecognizedTransfer {
		t.Helper()
		left, err := admin.UnrecognizedTransfers(t.Context(), url, checked, time.Now())
		if err != nil || len(left) != want {
			t.Fatalf("%d are left after %v, %v; want %d", len(left), checked, err, want)
		}
		return left
	}
	first := list(3)[0].ID
	list(2, first)
	if _, err := admin.UnrecognizedTransfers(t.Context(), url, []string{first}, time.Now()); err == nil || !strings.Contains(err.Error(), first) {
		t.Errorf("a checked one: %v", err)
	}
	list(0, admin.CheckAll)
	entries, err := db.AuditEntries(t.Context(), store.AuditFilter{Limit: 10})
	if err != nil || len(entries) != 3 || entries[2].Action != access.ActionRecoveryTransfer || entries[2].Object != first {
		t.Errorf("the audit log has %+v, %v", entries, err)
	}
}
