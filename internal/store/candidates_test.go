package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// idsOf returns those of the invoices, sorted.
func idsOf(invoices []invoice.Candidate) []string {
	all := []string{}
	for _, inv := range invoices {
		all = append(all, inv.ID)
	}
	slices.Sort(all)
	return all
}

// TestCandidatesOfMany asks for the candidates of many transfers at once, and
// of each by itself: they are the same, and those that a look at every invoice
// finds.
func TestCandidatesOfMany(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		round := 0
		rapid.Check(t, func(r *rapid.T) {
			round++
			address := invoice.Address{0xee, byte(round >> 8), byte(round)}
			var made []invoice.Invoice
			taken := make(map[invoice.Amount]bool)
			for i := range rapid.IntRange(1, 12).Draw(r, "invoices") {
				inv := sample(fmt.Sprintf("inv_%d_%d", round, i), "m")
				inv.Merchant = address
				inv.Amount = invoice.NewAmount(rapid.SampledFrom([]uint64{99, 100, 101, 105, 1000}).Draw(r, "amount"))
				inv.Tolerance = invoice.NewAmount(rapid.SampledFrom([]uint64{0, 0, 1, 40}).Draw(r, "tolerance"))
				inv.ExpiresAt = rapid.SampledFrom([]int64{1500, 2000}).Draw(r, "expires")
				inv.FromBlock = rapid.SampledFrom([]uint64{0, 5, 7}).Draw(r, "from")
				inv.Status = rapid.SampledFrom([]invoice.Status{invoice.Open, invoice.Open, invoice.Expired}).Draw(r, "status")
				if inv.Status != invoice.Open {
					inv.ClosedBlock = rapid.SampledFrom([]uint64{5, 9}).Draw(r, "closed")
				}
				if a := inv.Amount.Plus(invoice.NewAmount(rapid.Uint64Range(1, 3).Draw(r, "suffix"))); inv.Status != invoice.Open || !taken[a] {
					inv.TransferAmount, taken[a] = a, taken[a] || inv.Status == invoice.Open
				}
				made = append(made, inv)
			}
			insert(t, s, made...)
			var transfers []invoice.Transfer
			for i := range rapid.IntRange(1, 20).Draw(r, "transfers") {
				moved := samplePayment(i).Transfer
				moved.To = address
				moved.Amount = invoice.NewAmount(rapid.SampledFrom([]uint64{60, 98, 99, 100, 101, 102, 103, 960, 999, 1001}).Draw(r, "moved"))
				moved.BlockNumber = rapid.SampledFrom([]uint64{5, 6, 8}).Draw(r, "block")
				moved.BlockTime = rapid.SampledFrom([]int64{900, 1400, 1600, 2500, 2501 + invoice.LateWindow}).Draw(r, "mined")
				if rapid.IntRange(0, 4).Draw(r, "tagged") == 0 {
					moved.Evidence.Calldata = rapid.SampledFrom(made).Draw(r, "for").CommitmentID
				}
				transfers = append(transfers, moved)
			}
			all, err := s.CandidateInvoices(t.Context(), "base", transfers)
			must(t, err)
			for n, moved := range transfers {
				alone, err := s.CandidateInvoices(t.Context(), "base", []invoice.Transfer{moved})
				must(t, err)
				if diff := cmp.Diff(idsOf(alone[0].Invoices), idsOf(all[n].Invoices)); diff != "" || alone[0].Truncated || all[n].Truncated {
					r.Errorf("transfer %d (-alone +with others):\n%s", n, diff)
				}
				every := make([]invoice.Candidate, len(made))
				last := -1
				for i, inv := range made {
					// What was closed below is covered there, or expired.
					every[i].Invoice, every[i].Covered = inv, inv.Status != invoice.Open && inv.ClosedBlock < moved.BlockNumber
					told := inv.TransferAmount == moved.Amount && inv.FromBlock < moved.BlockNumber
					if told && (last < 0 || made[last].FromBlock < inv.FromBlock || made[last].FromBlock == inv.FromBlock && made[last].ID < inv.ID) {
						last = i
					}
				}
				if last >= 0 {
					every[last].HasTransferAmount = true
				}
				found := all[n].Invoices
				for i, c := range found {
					found[i].Covered = c.Status != invoice.Open && c.ClosedBlock < moved.BlockNumber
				}
				want, wantOK := invoice.Attribute(moved, every, false)
				got, ok := invoice.Attribute(moved, found, false)
				if got.Invoice.ID != want.Invoice.ID || got.Method != want.Method || ok != wantOK {
					r.Errorf("transfer of %s at %d goes to %q by %q, want %q by %q", moved.Amount, moved.BlockTime,
						got.Invoice.ID, got.Method, want.Invoice.ID, want.Method)
				}
			}
		})
	})
}

// TestCandidatesInACrowd finds too many invoices for the transfers together.
func TestCandidatesInACrowd(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		var made []invoice.Invoice
		for i := range store.CandidateLimit + 50 {
			inv := sample(fmt.Sprintf("inv_%03d", i), "m")
			if i >= 50 {
				inv.Amount = invoice.NewAmount(200)
			}
			made = append(made, inv)
		}
		named := sample("inv_named", "m")
		named.Amount, named.TransferAmount = invoice.NewAmount(300), invoice.NewAmount(307)
		insert(t, s, append(made, named)...)
		var transfers []invoice.Transfer
		for i := range 120 {
			moved := samplePayment(i).Transfer
			moved.BlockTime = 1500
			moved.Amount = invoice.NewAmount([]uint64{100, 200, 307}[i%3])
			transfers = append(transfers, moved)
		}
		all, err := s.CandidateInvoices(t.Context(), "base", transfers)
		must(t, err)
		for n, got := range all {
			want, crowded := []int{50, store.CandidateLimit, 1}[n%3], n%3 == 1
			if len(got.Invoices) != want || got.Truncated != crowded {
				t.Errorf("transfer %d has %d candidates, crowded %t, want %d, %t", n, len(got.Invoices), got.Truncated, want, crowded)
			}
		}
	})
}

// TestACrowdIsOneInAnyCompany asks for transfers of an amount that a crowd has,
// open and closed, alone and with others.
func TestACrowdIsOneInAnyCompany(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		var made []invoice.Invoice
		for i := range store.CandidateLimit {
			inv := sample(fmt.Sprintf("inv_%03d", i), "m")
			if i%2 == 0 {
				inv.Status, inv.ClosedBlock = invoice.Expired, 9
			}
			made = append(made, inv)
		}
		insert(t, s, made[1:]...)
		moved := samplePayment(1).Transfer
		moved.BlockNumber, moved.BlockTime = 8, 1500
		for n, want := range []bool{false, true} {
			for _, size := range []int{1, 2, 60} {
				all, err := s.CandidateInvoices(t.Context(), "base", slices.Repeat([]invoice.Transfer{moved}, size))
				must(t, err)
				for _, got := range all {
					if got.Truncated != want {
						t.Fatalf("with %d invoices, one of %d transfers: crowded %t, want %t", store.CandidateLimit-1+n, size, got.Truncated, want)
					}
				}
			}
			if n == 0 {
				insert(t, s, made[0])
			}
		}
	})
}

// TestTolerantCandidatesAreBounded has as many invoices ask for a little more
// than was transferred as are looked at, and one more.
func TestTolerantCandidatesAreBounded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		var made []invoice.Invoice
		for i := range store.NearLimit + 1 {
			inv := sample(fmt.Sprintf("inv_%03d", i), "m")
			inv.Amount = invoice.NewAmount(uint64(9_600 + 2*i)) // 9600 to 10600
			inv.Tolerance = invoice.NewAmount(5)
			made = append(made, inv)
		}
		made[0].Tolerance = invoice.NewAmount(4_800) // half of it, the most
		moved := samplePayment(1).Transfer
		moved.BlockTime = 1500
		moved.Amount = invoice.NewAmount(9_997)
		check := func(want ...string) {
			t.Helper()
			got, err := s.CandidateInvoices(t.Context(), "base", []invoice.Transfer{moved})
			must(t, err)
			if diff := cmp.Diff(append([]string{}, want...), idsOf(got[0].Invoices)); diff != "" {
				t.Errorf("candidates of %s (-want +got):\n%s", moved.Amount, diff)
			}
		}
		insert(t, s, made[:store.NearLimit]...)
		check("inv_199", "inv_200", "inv_201") // 9998, 10000 and 10002
		moved.Amount = invoice.NewAmount(9_590)
		check("inv_000")
		insert(t, s, made[store.NearLimit])
		moved.Amount = invoice.NewAmount(9_997)
		check("inv_199", "inv_200", "inv_201") // the lower ones do not count
		moved.Amount = invoice.NewAmount(9_598)
		check() // one too many
		moved.Amount = invoice.NewAmount(4_800)
		check("inv_000") // the higher ones do not count either
	})
}

func TestPaidPairs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		startChain(t, s, "base")
		p := samplePayment(1)
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.SavePayments(ctx, []store.PaymentRow{p}) })
		pair := store.Pair{Payer: p.From, Receiver: p.To}
		among := []store.Pair{pair, {Payer: p.To, Receiver: p.From}, {Payer: p.From}}
		got, err := s.PaidPairs(t.Context(), "base", among)
		if diff := cmp.Diff(map[store.Pair]bool{pair: true}, got); err != nil || diff != "" {
			t.Errorf("%v, pairs (-want +got):\n%s", err, diff)
		}
		if got, err = s.PaidPairs(t.Context(), "other", among); err != nil || len(got) != 0 {
			t.Errorf("on another chain: %v, %v", got, err)
		}
	})
}

// TestFormerRemaindersAreNotLookedAt has invoices of which an amount remained,
// before they were closed and in the transaction that closes them. A transfer of
// that amount finds them up to the block that they were closed at; in blocks above
// it the index leaves them out, so that they cost nothing.
func TestFormerRemaindersAreNotLookedAt(t *testing.T) {
	t.Parallel()
	eachURL(t, func(t *testing.T, url string) {
		s, db := storetest.Open(t, url), storetest.SQL(t, url)
		startChain(t, s, "base")
		made := []invoice.Invoice{sample("inv_0", "m"), sample("inv_1", "m"), sample("inv_2", "m")}
		insert(t, s, made...)
		remainder := func(inv invoice.Invoice) []store.TransferAmount {
			return []store.TransferAmount{{Invoice: inv, Base: invoice.NewAmount(60), FromBlock: 1, Remainder: true}}
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.InsertBareRemainders(ctx, remainder(made[0])), tx.InsertBareRemainders(ctx, remainder(made[1])))
		})
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			made[1].Status, made[2].Status = invoice.Expired, invoice.Expired
			return errors.Join(tx.InsertBareRemainders(ctx, remainder(made[2])), tx.UpdateInvoices(ctx, made[1:]))
		})
		moved := samplePayment(1).Transfer
		moved.Amount, moved.BlockTime = invoice.NewAmount(60), 1500
		for block, want := range map[uint64][]string{99: {"inv_0", "inv_1", "inv_2"}, 100: {"inv_0", "inv_1", "inv_2"}, 101: {"inv_0"}} {
			moved.BlockNumber = block
			got, err := s.CandidateInvoices(t.Context(), "base", []invoice.Transfer{moved})
			must(t, err)
			if diff := cmp.Diff(want, idsOf(got[0].Invoices)); diff != "" {
				t.Errorf("in block %d (-want +got):\n%s", block, diff)
			}
		}
		var left int
		must(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM told_amounts WHERE remainder = 1 AND (closed_block IS NULL OR closed_block > 100)").Scan(&left))
		if left != 1 {
			t.Errorf("%d remainders are looked at above block 100, want that of the open invoice", left)
		}
	})
}
