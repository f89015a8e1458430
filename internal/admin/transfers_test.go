package admin_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestUnrecognizedTransfers marks transfers as checked, one and all others, and refuses an unknown one.
func TestUnrecognizedTransfers(t *testing.T) {
	t.Parallel()
	for name, database := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			checkTransfers(t, database(t))
			checkManyTransfers(t, database(t))
		})
	}
}

// TestUnrecognizedTransfersOfNoDatabase names a database that does not exist. It is not created.
func TestUnrecognizedTransfersOfNoDatabase(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLite(t)
	for range 2 {
		if _, err := unrecognized(t, url); !errors.Is(err, db.ErrNoDatabase) {
			t.Errorf("got %v", err)
		}
	}
}

// unrecognized returns the remaining transfers after some were marked as checked.
func unrecognized(t *testing.T, url string, checked ...string) (left []ledger.UnrecognizedTransfer, err error) {
	t.Helper()
	err = admin.UnrecognizedTransfers(t.Context(), url, checked, time.Now(), func(some []ledger.UnrecognizedTransfer) error {
		if len(some) > admin.UnrecognizedBatch {
			t.Errorf("%d at a time", len(some))
		}
		left = append(left, some...)
		return nil
	})
	return left, err
}

// insertTransfers inserts unrecognized transfers, three in a block.
func insertTransfers(t *testing.T, store *db.DB, n int) {
	t.Helper()
	expect.OK(t, store.Update(t.Context(), func(tx *db.Tx) error {
		var all []invoice.Transfer
		for i := range n {
			transfer := invoice.Transfer{ChainKey: "base", TxHash: invoice.Hash{byte(i), byte(i >> 8), byte(n), byte(n >> 8)}, Token: invoice.Address{1}, Currency: "USDC", Amount: invoice.NewAmount(5)}
			transfer.BlockNumber = uint64(i / 3)
			all = append(all, transfer)
		}
		return ledger.InsertUnrecognizedTransfers(t.Context(), tx, all)
	}))
}

// checkManyTransfers lists more transfers than are read at a time, and marks all of them as checked.
func checkManyTransfers(t *testing.T, url string) {
	t.Helper()
	store := dbtest.Open(t, url)
	for _, n := range []int{admin.UnrecognizedBatch, admin.UnrecognizedBatch + 1} {
		insertTransfers(t, store, n)
		listed := make(map[string]bool)
		all, err := unrecognized(t, url)
		for _, transfer := range all {
			listed[transfer.ID] = true
		}
		if err != nil || len(all) != n || len(listed) != n {
			t.Errorf("%d of %d are listed, %d different ones, %v", len(all), n, len(listed), err)
		}
		if left, err := unrecognized(t, url, admin.CheckAll); err != nil || len(left) != 0 {
			t.Errorf("%d of %d are left, %v", len(left), n, err)
		}
	}
}

func checkTransfers(t *testing.T, url string) {
	t.Helper()
	store := dbtest.Open(t, url)
	insertTransfers(t, store, 3)
	list := func(want int, checked ...string) []ledger.UnrecognizedTransfer {
		t.Helper()
		left, err := unrecognized(t, url, checked...)
		if err != nil || len(left) != want {
			t.Fatalf("%d are left after %v, %v; want %d", len(left), checked, err, want)
		}
		return left
	}
	first := list(3)[0].ID
	list(2, first)
	if _, err := unrecognized(t, url, first); err == nil || !strings.Contains(err.Error(), first) {
		t.Errorf("a checked one: %v", err)
	}
	list(0, admin.CheckAll)
	entries, err := access.NewReader(store).AuditEntries(t.Context(), access.AuditFilter{Limit: 10})
	if err != nil || len(entries) != 3 || entries[2].Action != access.ActionRecoveryTransfer || entries[2].Object != first {
		t.Errorf("the audit log has %+v, %v", entries, err)
	}
}
