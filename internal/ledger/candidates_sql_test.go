package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestInvoicesOfAmounts looks up several amounts at once, and compares the result with a scan of all invoices.
func TestInvoicesOfAmounts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.StartChain(t, s, "base")
		round := 0
		rapid.Check(t, func(r *rapid.T) {
			round++
			address := invoice.Address{0xee, byte(round >> 8), byte(round)}
			made, had := drawInvoices(t, r, s, address, round)
			var lookups []ledger.AmountLookup
			var transfers []invoice.Transfer
			for i := range rapid.IntRange(1, 20).Draw(r, "lookups") {
				l := rowtest.Lookup(rapid.SampledFrom([]uint64{7, 60, 98, 99, 100, 101, 102, 103, 960, 999, 1001}).Draw(r, "amount"),
					rapid.SampledFrom([]uint64{5, 6, 8}).Draw(r, "block"), rapid.SampledFrom([]int64{900, 1400, 1600, 2500}).Draw(r, "time"))
				l.Merchant, l.LastBlock = address, l.FirstBlock+rapid.SampledFrom([]uint64{0, 0, 3}).Draw(r, "blocks")
				lookups = append(lookups, l)
				moved := rowtest.SamplePayment(i).Transfer
				moved.To, moved.Amount, moved.BlockNumber = address, l.Amount, l.FirstBlock
				transfers = append(transfers, moved)
			}
			byAmount, err := ledger.InvoicesByAmount(t.Context(), s, lookups, 100)
			rowtest.Must(t, err)
			tolerant, err := ledger.InvoicesWithTolerance(t.Context(), s, lookups, 100)
			rowtest.Must(t, err)
			assigned, err := ledger.InvoicesByTransferAmount(t.Context(), s, transfers)
			rowtest.Must(t, err)
			for n, l := range lookups {
				var wantByAmount, wantTolerant []string
				var last invoice.Invoice
				for i, inv := range made {
					payable := inv.FromBlock < l.LastBlock && inv.ExpiresAt.Unix() >= l.FirstTime.Unix() && (inv.Status == invoice.Open || inv.ClosedBlock >= l.FirstBlock)
					hadRemainder := had[i] == l.Amount && inv.ExpiresAt.Unix() >= l.FirstTime.Unix() && (inv.Status == invoice.Open || inv.ClosedBlock >= l.FirstBlock)
					if payable && inv.Amount == l.Amount || hadRemainder {
						wantByAmount = append(wantByAmount, inv.ID)
					}
					if payable && !inv.Tolerance.IsZero() && l.Amount.Less(inv.Amount) && !l.Amount.Plus(l.Amount).Less(inv.Amount) {
						wantTolerant = append(wantTolerant, inv.ID)
					}
					newer := last.FromBlock < inv.FromBlock || last.FromBlock == inv.FromBlock && last.ID < inv.ID
					if inv.TransferAmount == l.Amount && inv.FromBlock < l.FirstBlock && newer {
						last = inv
					}
				}
				expect.NoDiff(r, cmp.Diff(wantByAmount, sorted(byAmount[n])), "by amount %+v", l)
				expect.NoDiff(r, cmp.Diff(wantTolerant, sorted(tolerant[n])), "with a tolerance %+v", l)
				if assigned[n] != last.ID {
					r.Errorf("transfer amount %s in block %d is of %q, want %q", l.Amount, l.FirstBlock, assigned[n], last.ID)
				}
			}
		})
	})
}

// drawInvoices inserts invoices of an address in the order of their ids. Some had a remainder.
func drawInvoices(t *testing.T, r *rapid.T, s *db.DB, address invoice.Address, round int) (made []invoice.Invoice, had []invoice.Amount) {
	t.Helper()
	taken := make(map[invoice.Amount]bool)
	var remainders []ledger.TransferAmount
	for i := range rapid.IntRange(1, 12).Draw(r, "invoices") {
		inv := rowtest.Sample(fmt.Sprintf("inv_%d_%02d", round, i), "m")
		inv.Merchant = address
		inv.Amount = invoice.NewAmount(rapid.SampledFrom([]uint64{99, 100, 101, 105, 1000}).Draw(r, "amount"))
		inv.Tolerance = invoice.NewAmount(rapid.SampledFrom([]uint64{0, 0, 1, 40}).Draw(r, "tolerance"))
		inv.ExpiresAt = invoice.Unix(rapid.SampledFrom([]int64{1500, 2000}).Draw(r, "expires"))
		inv.FromBlock = rapid.SampledFrom([]uint64{0, 5, 7}).Draw(r, "from")
		inv.Status = rapid.SampledFrom([]invoice.Status{invoice.Open, invoice.Open, invoice.Expired}).Draw(r, "status")
		if inv.Status != invoice.Open {
			inv.ClosedBlock = rapid.SampledFrom([]uint64{5, 9}).Draw(r, "closed")
		}
		if a := inv.Amount.Plus(invoice.NewAmount(rapid.Uint64Range(1, 3).Draw(r, "suffix"))); inv.Status != invoice.Open || !taken[a] {
			inv.TransferAmount, taken[a] = a, taken[a] || inv.Status == invoice.Open
		}
		made = append(made, inv)
		remainder := invoice.NewAmount(rapid.SampledFrom([]uint64{0, 0, 7, 60}).Draw(r, "remainder"))
		had = append(had, remainder)
		if !remainder.IsZero() {
			remainders = append(remainders, ledger.TransferAmount{Invoice: inv, Base: remainder, FromBlock: 1, Remainder: true})
		}
	}
	rowtest.Insert(t, s, made...)
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.InsertBareRemainders(ctx, tx, remainders) })
	return made, had
}

func sorted(ids []string) []string {
	slices.Sort(ids)
	return ids
}

// TestListsEndAtTheirLimit looks up an amount that more invoices have than the limit.
func TestListsEndAtTheirLimit(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		var made []invoice.Invoice
		for i := range 50 {
			inv := rowtest.Sample(fmt.Sprintf("inv_%02d", i), "m")
			inv.Tolerance = invoice.NewAmount(1)
			if i%2 == 0 {
				inv.Status, inv.ClosedBlock = invoice.Expired, 9
			}
			made = append(made, inv)
		}
		rowtest.Insert(t, s, made...)
		for limit, want := range map[int]int{16: 16, 50: 50, 51: 50} {
			byAmount, err := ledger.InvoicesByAmount(t.Context(), s, []ledger.AmountLookup{rowtest.Lookup(100, 8, 1500), rowtest.Lookup(1, 8, 1500)}, limit)
			rowtest.Must(t, err)
			tolerant, err := ledger.InvoicesWithTolerance(t.Context(), s, []ledger.AmountLookup{rowtest.Lookup(99, 8, 1500), rowtest.Lookup(1, 8, 1500)}, limit)
			rowtest.Must(t, err)
			if len(byAmount[0]) != want || len(tolerant[0]) != want || len(byAmount[1])+len(tolerant[1]) > 0 {
				t.Errorf("up to %d: %d by amount, %d with a tolerance; want %d", limit, len(byAmount[0]), len(tolerant[0]), want)
			}
		}
	})
}
