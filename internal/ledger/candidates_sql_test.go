package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestInvoicesOfAmounts looks up several amounts at once, and compares the result with a
// scan of all invoices.
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
				if diff := cmp.Diff(wantByAmount, sorted(byAmount[n])); diff != "" {
					r.Errorf("by amount %+v (-want +got):\n%s", l, diff)
				}
				if diff := cmp.Diff(wantTolerant, sorted(tolerant[n])); diff != "" {
					r.Errorf("with a tolerance %+v (-want +got):\n%s", l, diff)
				}
				if assigned[n] != last.ID {
					r.Errorf("transfer amount %s in block %d is of %q, want %q", l.Amount, l.FirstBlock, assigned[n], last.ID)
				}
			}
		})
	})
}

// drawInvoices inserts invoices of an address in the order of their ids. Some had a
// remainder.
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

// TestInvoicesByCommitment looks up invoices by their whole commitment. No two have the same.
func TestInvoicesByCommitment(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.StartChain(t, s, "base")
		inv := rowtest.Sample("inv_1", "m")
		rowtest.Insert(t, s, inv)
		near := inv.CommitmentID
		near[len(near)-1]++
		found, err := ledger.InvoicesByCommitment(t.Context(), s, []invoice.Hash{near, inv.CommitmentID, {}})
		if err != nil || len(found) != 1 || found[inv.CommitmentID] != inv.ID {
			t.Errorf("found %v, %v", found, err)
		}
		if got, err := ledger.InvoiceByCommitment(t.Context(), s, inv.CommitmentID); err != nil || got.ID != inv.ID {
			t.Errorf("found %q, %v", got.ID, err)
		}
		if got, err := ledger.InvoiceByCommitment(t.Context(), s, near); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("found %q, %v, want %v", got.ID, err, db.ErrNotFound)
		}
		again := rowtest.Sample("inv_2", "m")
		again.CommitmentID = inv.CommitmentID
		err = s.Update(t.Context(), func(tx *db.Tx) error {
			_, err := ledger.InsertInvoices(t.Context(), tx, []invoice.Invoice{again})
			return err
		})
		if err == nil {
			t.Error("two invoices have the same commitment")
		}
	})
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

// TestInvoicesWithToleranceAreAboveTheAmount looks up invoices with amounts above the
// given one, up to twice as much, also with more digits.
func TestInvoicesWithToleranceAreAboveTheAmount(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		var made []invoice.Invoice
		for _, a := range []uint64{9_600, 9_999, 10_000, 10_001, 19_200} {
			inv := rowtest.Sample(fmt.Sprintf("inv_%05d", a), "m")
			inv.Amount, inv.Tolerance, inv.TransferAmount = invoice.NewAmount(a), invoice.NewAmount(5), invoice.Amount{}
			made = append(made, inv)
		}
		rowtest.Insert(t, s, made...)
		for amount, want := range map[uint64][]string{
			4_799:  nil,
			4_800:  {"inv_09600"},
			9_599:  {"inv_09600", "inv_09999", "inv_10000", "inv_10001"},
			9_600:  {"inv_09999", "inv_10000", "inv_10001", "inv_19200"},
			10_000: {"inv_10001", "inv_19200"},
			19_200: nil,
		} {
			got, err := ledger.InvoicesWithTolerance(t.Context(), s, []ledger.AmountLookup{rowtest.Lookup(amount, 8, 1500)}, 100)
			rowtest.Must(t, err)
			if diff := cmp.Diff(want, sorted(got[0])); diff != "" {
				t.Errorf("above %d (-want +got):\n%s", amount, diff)
			}
		}
	})
}

func TestPaidPairs(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.StartChain(t, s, "base")
		p := rowtest.SamplePayment(1)
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p})
		})
		pair := ledger.Pair{Payer: p.From, Receiver: p.To}
		among := []ledger.Pair{pair, {Payer: p.To, Receiver: p.From}, {Payer: p.From}}
		got, err := ledger.PaidPairs(t.Context(), s, "base", among)
		if diff := cmp.Diff(map[ledger.Pair]bool{pair: true}, got); err != nil || diff != "" {
			t.Errorf("%v, pairs (-want +got):\n%s", err, diff)
		}
		if got, err = ledger.PaidPairs(t.Context(), s, "other", among); err != nil || len(got) != 0 {
			t.Errorf("on another chain: %v, %v", got, err)
		}
	})
}

// TestFormerRemaindersAreNotRead looks up a former remainder of invoices, before and in the
// transaction that closes them. Blocks up to the one that closed an invoice find it. For later blocks
// the index excludes it, so that it has no cost.
func TestFormerRemaindersAreNotRead(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		s, conn := dbtest.Open(t, url), dbtest.SQL(t, url)
		rowtest.StartChain(t, s, "base")
		made := []invoice.Invoice{rowtest.Sample("inv_0", "m"), rowtest.Sample("inv_1", "m"), rowtest.Sample("inv_2", "m")}
		rowtest.Insert(t, s, made...)
		remainder := func(inv invoice.Invoice) []ledger.TransferAmount {
			return []ledger.TransferAmount{{Invoice: inv, Base: invoice.NewAmount(60), FromBlock: 1, Remainder: true}}
		}
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return errors.Join(ledger.InsertBareRemainders(ctx, tx, remainder(made[0])), ledger.InsertBareRemainders(ctx, tx, remainder(made[1])))
		})
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			made[1].Status, made[2].Status = invoice.Expired, invoice.Expired
			return errors.Join(ledger.InsertBareRemainders(ctx, tx, remainder(made[2])), ledger.UpdateInvoices(ctx, tx, made[1:]))
		})
		for block, want := range map[uint64][]string{99: {"inv_0", "inv_1", "inv_2"}, 100: {"inv_0", "inv_1", "inv_2"}, 101: {"inv_0"}} {
			got, err := ledger.InvoicesByAmount(t.Context(), s, []ledger.AmountLookup{rowtest.Lookup(60, block, 1500)}, 100)
			rowtest.Must(t, err)
			if diff := cmp.Diff(want, sorted(got[0])); diff != "" {
				t.Errorf("in block %d (-want +got):\n%s", block, diff)
			}
		}
		var left int
		rowtest.Must(t, conn.QueryRowContext(t.Context(), "SELECT count(*) FROM transfer_amounts WHERE remainder = 1 AND (closed_block IS NULL OR closed_block > 100)").Scan(&left))
		if left != 1 {
			t.Errorf("%d remainders are looked at above block 100, want that of the open invoice", left)
		}
	})
}
