package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// candidatesOfFirst returns the candidate invoices of a transfer to the address of the
// first schema.
func candidatesOfFirst(t *testing.T, s *store.Store, amount, block uint64) []string {
	t.Helper()
	moved := samplePayment(1).Transfer
	moved.ChainKey, moved.BlockNumber, moved.BlockTime, moved.Amount = "base", block, invoice.Unix(1500), invoice.NewAmount(amount)
	var err error
	moved.To, err = invoice.ParseAddress(address)
	must(t, err)
	moved.Token = moved.To
	key := store.AmountKey{ChainKey: moved.ChainKey, Merchant: moved.To, Token: moved.Token, Amount: moved.Amount}
	lists, err := s.InvoicesByAmount(t.Context(), []store.AmountLookup{{AmountKey: key, FirstBlock: block, LastBlock: block, FirstTime: moved.BlockTime}}, 100)
	must(t, err)
	assigned, err := s.InvoicesByTransferAmount(t.Context(), []invoice.Transfer{moved})
	must(t, err)
	found := append([]string{}, lists[0]...)
	if assigned[0] != "" {
		found = append(found, assigned[0])
	}
	return sorted(found)
}

// TestUpgradeForgetsRoundAmounts upgrades transfer amounts in whole cents, which an older
// version assigned. They no longer identify their open invoices and are not shown, because
// they are the prices of others. A closed invoice keeps its own as a record.
func TestUpgradeForgetsRoundAmounts(t *testing.T) {
	t.Parallel()
	eachURL(t, func(t *testing.T, url string) {
		statements := append([]string{}, firstSchema...)
		for n, told := range []string{"1010000", "1000007", "2000000", "1010000"} {
			statements = append(statements, firstInvoice(n), fmt.Sprintf(
				"UPDATE invoices SET amount = '%s', transfer_amount = '%s', status = '%s' WHERE id = 'inv_%d'",
				[]string{"1009500", "1000000", "1999500", "1009000"}[n], told, []string{"open", "open", "expired", "expired"}[n], n))
		}
		s := upgrade(t, url, 2, statements...)
		for n, want := range []uint64{0, 1_000_007, 2_000_000, 1_010_000} {
			inv, err := s.Invoice(t.Context(), fmt.Sprint("inv_", n))
			must(t, err)
			if got := inv.TransferAmount; want == 0 && !got.IsZero() || want > 0 && got != invoice.NewAmount(want) {
				t.Errorf("%s: transfer amount %s, want %d", inv.ID, got, want)
			}
		}
		for amount, want := range map[uint64][]string{1_010_000: {}, 1_000_007: {"inv_1"}, 2_000_000: {}} {
			if diff := cmp.Diff(want, candidatesOfFirst(t, s, amount, 200)); diff != "" {
				t.Errorf("candidates of %d (-want +got):\n%s", amount, diff)
			}
		}
		var left int
		must(t, storetest.SQL(t, url).QueryRowContext(t.Context(), "SELECT count(*) FROM told_amounts").Scan(&left))
		if left != 1 {
			t.Errorf("%d transfer amounts are left, want 1", left)
		}
	})
}

// TestUpgradeKnowsWhenRemaindersClosed checks that an older remainder is a candidate only
// in blocks at which its invoice was open.
func TestUpgradeKnowsWhenRemaindersClosed(t *testing.T) {
	t.Parallel()
	eachURL(t, func(t *testing.T, url string) {
		statements := append([]string{}, firstSchema[:2]...)
		for n, status := range []string{"open", "expired"} {
			live := map[string]int{"open": 1}[status]
			statements = append(statements, firstInvoice(n), fmt.Sprintf("UPDATE invoices SET status = '%s', closed_block = %s WHERE id = 'inv_%d'",
				status, map[int]string{0: "100", 1: "NULL"}[live], n),
				fmt.Sprintf(`INSERT INTO told_amounts VALUES ('inv_%d', '60', NULL, '%s', 'base', '%s', 1, 2000, 1, %d)`, n, address, address, live))
		}
		s := upgrade(t, url, 18, statements...)
		for block, want := range map[uint64][]string{100: {"inv_0", "inv_1"}, 101: {"inv_0"}} {
			if diff := cmp.Diff(want, candidatesOfFirst(t, s, 60, block)); diff != "" {
				t.Errorf("in block %d (-want +got):\n%s", block, diff)
			}
		}
		var closed int
		must(t, storetest.SQL(t, url).QueryRowContext(t.Context(), "SELECT count(*) FROM told_amounts WHERE closed_block = 100").Scan(&closed))
		if closed != 1 {
			t.Errorf("%d remainders are closed, want 1", closed)
		}
	})
}

// TestUpgradeKnowsKeysOfToldAmounts checks that PostgreSQL expects few rows for a key of the index that an upgrade makes.
// Without statistics it would expect one in 200, and prefer other plans where there are many.
func TestUpgradeKnowsKeysOfToldAmounts(t *testing.T) {
	t.Parallel()
	const many = 5000
	url := storetest.Postgres(t)
	upgrade(t, url, 2, append(firstSchema, fmt.Sprintf(`INSERT INTO invoices (id, commitment_id, merchant_id, merchant_address, chain_key, token, currency, amount, transfer_amount, line_items,
			status, created_at, expires_at)
		SELECT 'inv_' || i, '0x' || md5(i::text) || md5(i::text), 'm', '%s', 'base', '%[1]s', 'USDC', '10000', (10000 + i)::text, '[]', 'open', 1000, 2000 FROM generate_series(1, %d) AS i`,
		address, many))...)
	var plan string
	must(t, storetest.SQL(t, url).QueryRowContext(t.Context(),
		"EXPLAIN (FORMAT JSON) SELECT FROM told_amounts WHERE hashtextextended(amount || merchant_address || chain_key || token, 0) = 1").Scan(&plan))
	if !strings.Contains(plan, `"told_amounts_by_key"`) || !strings.Contains(plan, `"Plan Rows": 1,`) {
		t.Errorf("the plan is %s", plan)
	}
}

// TestUpgradeWaitsBrieflyForReaders reads invoices while an upgrade drops a constraint, for which it waits and all others
// behind it. It gives up, and the next start goes on.
func TestUpgradeWaitsBrieflyForReaders(t *testing.T) {
	t.Parallel()
	const before, after = 73, 74
	url := storetest.Postgres(t)
	must(t, store.MigrateTo(t.Context(), url, before))
	reading, err := storetest.SQL(t, url).BeginTx(t.Context(), nil)
	must(t, err)
	_, err = reading.ExecContext(t.Context(), "SELECT FROM invoices")
	must(t, err)
	if err := store.MigrateTo(t.Context(), url, after); err == nil || !strings.Contains(err.Error(), "lock timeout") {
		t.Errorf("the upgrade ended with %v", err)
	}
	must(t, reading.Rollback())
	must(t, store.MigrateTo(t.Context(), url, after))
}
