package store_test

import (
	"fmt"
	"testing"

	"github.com/quittance/quittance/internal/store/storetest"
)

// boundSchema returns rows of a merchant and two chains.
func boundSchema() []string {
	statements := append([]string{}, firstSchema...)
	for _, chain := range []string{"quiet", "silent"} {
		statements = append(statements,
			"INSERT INTO settlement_addresses VALUES ('"+chain+"', '"+address+"', 'm', 1)",
			"INSERT INTO chains VALUES ('"+chain+"', 100, 'h', 9000, 90, 'g', 9000, '', NULL, NULL, NULL)")
	}
	n := 0
	payment := func(chain string, block, at int64, status string) {
		n++
		statements = append(statements, firstPayment(n, ""), fmt.Sprintf(
			"UPDATE payments SET chain_key = '%s', block_number = %d, block_time = %d, status = '%s', confirmed_at = %s WHERE id = 'pay_%d'",
			chain, block, at, status, map[bool]string{true: "9000", false: "NULL"}[status == "confirmed"], n))
	}
	payment("base", 10, 1000, "confirmed")
	payment("base", 30, 1500, "confirmed")
	payment("base", 20, 1600, "confirmed") // a lower block with a later time: block times prove nothing
	payment("base", 70, 1700, "orphaned")
	payment("base", 80, 1700, "pending")
	payment("base", 40, 3000, "confirmed")
	payment("quiet", 50, 2000, "confirmed")
	return statements
}

// TestUpgradeBindsInvoices checks that an invoice from before heights were stored is
// bound to the highest final payment that is two minutes older, as are the amounts
// that its payer was shown, and that without such a payment it stays unbound.
func TestUpgradeBindsInvoices(t *testing.T) {
	t.Parallel()
	want := []struct {
		chain     string
		createdAt int64
		fromBlock uint64
	}{
		{"base", 1119, 0}, {"base", 1120, 10}, {"base", 1619, 10}, {"base", 1620, 30}, {"base", 1900, 30}, {"base", 3120, 40},
		{"base", 5000, 40}, {"quiet", 2119, 0}, {"quiet", 2120, 50}, {"silent", 5000, 0},
	}
	eachURL(t, func(t *testing.T, url string) {
		statements := boundSchema()
		for i, w := range want {
			statements = append(statements, firstInvoice(100+i), fmt.Sprintf(
				"UPDATE invoices SET chain_key = '%s', created_at = %d, expires_at = 9999, transfer_amount = '%d' WHERE id = 'inv_%d'",
				w.chain, w.createdAt, 101+i, 100+i))
		}
		s := upgrade(t, url, 2, statements...)
		db := storetest.SQL(t, url)
		for i, w := range want {
			inv, err := s.Invoice(t.Context(), fmt.Sprint("inv_", 100+i))
			must(t, err)
			var told uint64
			must(t, db.QueryRowContext(t.Context(), "SELECT from_block FROM told_amounts WHERE invoice_id = $1", inv.ID).Scan(&told))
			if inv.FromBlock != w.fromBlock || told != w.fromBlock || inv.Sums.Stale {
				t.Errorf("of %s, created at %d: bound to %d, transfer amount from %d, want %d", w.chain, w.createdAt, inv.FromBlock, told, w.fromBlock)
			}
		}
	})
}

// TestUpgradeKnowsWhatWasSeen checks that payments that can still be attributed count as
// seen before all events after the upgrade.
func TestUpgradeKnowsWhatWasSeen(t *testing.T) {
	t.Parallel()
	eachURL(t, func(t *testing.T, url string) {
		statements := append([]string{}, firstSchema...)
		statements = append(statements, firstInvoice(1), firstPayment(1, ""), firstPayment(2, ""), firstPayment(3, "inv_1"),
			"UPDATE payments SET status = 'orphaned' WHERE id = 'pay_2'",
			"UPDATE payments SET status = 'confirmed', confirmed_at = 1 WHERE id = 'pay_3'",
			"INSERT INTO events VALUES ('evt_1', 7, 'invoice.created', 'inv_1', 'm', 'inv_1', '{}', 1, NULL)")
		s := upgrade(t, url, 1, statements...)
		for id, want := range map[string]int64{"pay_1": 7, "pay_2": 7, "pay_3": 0} {
			p, err := s.Payment(t.Context(), id)
			must(t, err)
			if p.SeenAfter != want {
				t.Errorf("%s was seen after event %d, want %d", id, p.SeenAfter, want)
			}
		}
		if got, err := s.CreatedSeqs(t.Context(), []string{"inv_1", "inv_2"}); err != nil || len(got) != 1 || got["inv_1"] != 7 {
			t.Errorf("invoices were created by the events %v, %v, want inv_1 by 7", got, err)
		}
	})
}
