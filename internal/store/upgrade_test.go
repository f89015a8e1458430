package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// upgrade migrates a database to a version, runs the statements, and returns the store
// after the remaining migrations.
func upgrade(t *testing.T, url string, from int64, statements ...string) *store.Store {
	t.Helper()
	must(t, store.MigrateTo(t.Context(), url, from))
	db := storetest.SQL(t, url)
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%v\n%s", err, s)
		}
	}
	return storetest.Open(t, url)
}

// eachURL runs the test with the URL of an empty database of each kind.
func eachURL(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	for name, url := range storetest.Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, url(t))
		})
	}
}

// Rows of the first schema: a merchant, a chain, and its invoices and payments.
var (
	address     = "0x" + strings.Repeat("a", 40)
	firstSchema = []string{
		"INSERT INTO merchants VALUES ('m', 1)",
		"INSERT INTO settlement_addresses VALUES ('base', '" + address + "', 'm', 1)",
		"INSERT INTO chains VALUES ('base', 100, 'h', 1000, 90, 'g', 900, '', NULL, NULL, NULL)",
	}
)

// hash returns a hash whose halves differ from those of other numbers.
func hash(n int) string { return fmt.Sprintf("0x%032x%032x", n, n) }

// firstInvoice inserts an open invoice over 100 into the first schema.
func firstInvoice(n int) string {
	return fmt.Sprintf(`INSERT INTO invoices (id, commitment_id, merchant_id, merchant_address, chain_key, token, currency, amount, line_items, status, created_at, expires_at)
		VALUES ('inv_%d', '%s', 'm', '%s', 'base', '%s', 'USDC', '100', '[]', 'open', 1000, 2000)`, n, hash(n), address, address)
}

// firstPayment inserts a pending payment of 60 into the first schema.
func firstPayment(n int, invoiceID string) string {
	of := "NULL, NULL, NULL"
	if invoiceID != "" {
		of = "'" + invoiceID + "', 'm', 'calldata'"
	}
	return fmt.Sprintf(`INSERT INTO payments (id, seen_id, chain_key, tx_hash, ordinal, log_index, block_number, block_hash, block_time, token, currency,
		from_address, to_address, amount, status, invoice_id, merchant_id, method, observed_at)
		VALUES ('pay_%d', 'seen_%d', 'base', '%s', 0, 1, %d, '%s', 1500, '%s', 'USDC', '%s', '%s', '60', 'pending', %s, 1500)`,
		n, n, hash(n), 90+n, hash(n), address, address, address, of)
}

// TestUpgradeKnowsWhichSumsItLacks checks that exactly the invoices with payments older
// than the stored sums are marked.
func TestUpgradeKnowsWhichSumsItLacks(t *testing.T) {
	t.Parallel()
	eachURL(t, func(t *testing.T, url string) {
		s := upgrade(t, url, 2, append(firstSchema, firstInvoice(1), firstInvoice(2), firstPayment(1, "inv_1"), firstPayment(2, ""))...)
		if untold, err := s.InvoicesLackingTransferAmounts(t.Context(), "base", "", 9); err != nil || len(untold) != 1 || untold[0] != "inv_1" {
			t.Errorf("to be told of the rest of: %q, %v", untold, err)
		}
		for id, want := range map[string]bool{"inv_1": true, "inv_2": false} {
			inv, err := s.Invoice(t.Context(), id)
			must(t, err)
			if inv.Sums.Stale != want {
				t.Errorf("%s: stale %t, want %t", id, inv.Sums.Stale, want)
			}
			inv.Sums.Stale = false
			must(t, s.Update(t.Context(), func(tx *store.Tx) error {
				return tx.UpdateInvoices(context.WithoutCancel(t.Context()), []invoice.Invoice{inv})
			}))
		}
	})
}

// TestUpgradeKeepsRefunds checks that an older refund keeps its payment and, through it,
// its invoice.
func TestUpgradeKeepsRefunds(t *testing.T) {
	t.Parallel()
	eachURL(t, func(t *testing.T, url string) {
		s := upgrade(t, url, 2, append(firstSchema, firstInvoice(1), firstPayment(1, "inv_1"),
			fmt.Sprintf(`INSERT INTO refunds (id, chain_key, tx_hash, ordinal, log_index, block_number, block_hash, block_time, token, currency,
				from_address, to_address, amount, status, payment_id, invoice_id, merchant_id, observed_at, confirmed_at)
				VALUES ('ref_1', 'base', '%s', 0, 1, 95, '%s', 1500, '%s', 'USDC', '%s', '%s', '60', 'confirmed', 'pay_1', 'inv_1', 'm', 1500, 1600)`,
				hash(9), hash(9), address, address, address))...)
		refunds, err := s.RefundsOfInvoices(t.Context(), []string{"inv_1"})
		must(t, err)
		if len(refunds) != 1 || refunds[0].ID != "ref_1" || refunds[0].PaymentID != "pay_1" || refunds[0].InvoiceID != "inv_1" || refunds[0].MerchantID != "m" {
			t.Errorf("the refund is %+v", refunds)
		}
		_, unknown, err := s.RefundedSums(t.Context(), []string{"pay_1"})
		must(t, err)
		if len(unknown) != 1 {
			t.Errorf("what was paid back of the payment is taken for known")
		}
	})
}

// TestUpgradeLeavesRegistriesUnknown checks that invoices and intents from before the
// upgrade have no registry until SetRegistries stores it.
func TestUpgradeLeavesRegistriesUnknown(t *testing.T) {
	t.Parallel()
	eachURL(t, func(t *testing.T, url string) {
		s := upgrade(t, url, 2, append(firstSchema, firstInvoice(1), fmt.Sprintf(`INSERT INTO intents
			(id, chain_key, invoice_id, commitment_id, kind, status, created_at)
			VALUES ('int_1', 'base', 'inv_1', '%s', 'open', 'due', 1000)`, hash(1)))...)
		ctx := t.Context()
		if due, elsewhere, err := s.DueCount(ctx, "base", testRegistry); err != nil || due != 0 || elsewhere != 1 {
			t.Errorf("%d are due and %d elsewhere (%v), want 0 and 1", due, elsewhere, err)
		}
		unknown, err := s.InvoicesWithoutRegistry(ctx, "", 10)
		must(t, err)
		if len(unknown) != 1 || unknown[0].ID != "inv_1" || !unknown[0].Registry.IsZero() {
			t.Fatalf("the invoices without a registry are %+v", unknown)
		}
		unknown[0].Registry = testRegistry
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.SetRegistries(ctx, unknown) })
		inv, err := s.Invoice(ctx, "inv_1")
		must(t, err)
		due, err := s.DueIntents(ctx, "base", testRegistry, "", 10)
		must(t, err)
		if inv.Registry != testRegistry || len(due) != 1 || due[0].Registry != testRegistry {
			t.Errorf("the invoice names %s, and due are %+v", inv.Registry, due)
		}
		unknown[0].Registry = invoice.Address{1} // a known registry stays
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.SetRegistries(ctx, unknown) })
		if inv, err = s.Invoice(ctx, "inv_1"); err != nil || inv.Registry != testRegistry {
			t.Errorf("the invoice names %s, %v", inv.Registry, err)
		}
	})
}
