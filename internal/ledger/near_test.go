package ledger_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestNearInvoices looks among many invoices for those with amounts near a transfer's.
func TestNearInvoices(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		at := int64(1000)
		ids := invoice.NewIDs(func() time.Time { return time.Unix(at, 0) }, rand.Reader)
		names := map[string]string{}
		var made []invoice.Invoice
		add := func(name string, amount uint64, change ...func(*invoice.Invoice)) {
			inv := rowtest.Sample(ids.New(invoice.PrefixInvoice), "m")
			inv.Amount, inv.CreatedAt, inv.ExpiresAt = invoice.NewAmount(amount), invoice.Unix(at), invoice.Unix(at+1000)
			for _, by := range change {
				by(&inv)
			}
			names[inv.ID] = name
			made = append(made, inv)
		}
		expired := func(inv *invoice.Invoice) { inv.Status, inv.ClosedBlock = invoice.Expired, 7 }
		paid := func(inv *invoice.Invoice) {
			inv.Status, inv.SettledTx, inv.SettledAt, inv.ClosedBlock = invoice.Paid, invoice.Hash{1}, invoice.Unix(1500), 7
			inv.SettledTx[1] = byte(len(made))
		}
		elsewhere := func(inv *invoice.Invoice) { inv.Merchant = invoice.Address{0xab} }
		for _, a := range []uint64{1, 9, 980, 985, 990, 1005, 1010, 1020, 1030, 99_999, 5_000_000} {
			add(fmt.Sprint(a), a)
		}
		add("expired", 1000, expired)
		add("paid", 1000, paid)
		add("paid, near", 1001, paid)
		add("of another address", 1000, elsewhere)
		for i := range 30 {
			add(fmt.Sprint("crowd ", i), 1005, expired)
		}
		at = 3000
		add("created later", 1000)
		add("created later, expired", 1000, expired)
		settled := slices.DeleteFunc(slices.Clone(made), func(inv invoice.Invoice) bool { return inv.Status != invoice.Paid })
		for i := range made {
			if made[i].Status == invoice.Paid {
				made[i].Status, made[i].ClosedBlock = invoice.Open, 0
			}
		}
		rowtest.Insert(t, s, made...)
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.UpdateInvoices(ctx, tx, settled) })

		moved := rowtest.SamplePayment(1).Transfer
		moved.To, moved.Amount = invoice.Address{0xaa}, invoice.NewAmount(1000)
		other := ledger.NearLookup{Transfer: moved, CreatedBefore: invoice.Unix(2000)}
		other.Transfer.To = invoice.Address{0xab}
		find := func() []string {
			found, err := ledger.NewReader(s).NearInvoices(t.Context(), []ledger.NearLookup{other, {Transfer: moved, CreatedBefore: invoice.Unix(2000)}, other}, "m")
			rowtest.Must(t, err)
			if len(found) != 3 || len(found[0]) != 1 || len(found[2]) != 1 {
				t.Fatalf("of another address: %+v", found)
			}
			var got []string
			for _, inv := range found[1] {
				got = append(got, names[inv.ID])
			}
			slices.Sort(got)
			return got
		}
		// Of the crowd at 1005 only the newest ten are returned.
		want := []string{"1010", "1020", "980", "985", "990", "expired", "paid"}
		for i := 20; i < 30; i++ {
			want = append(want, fmt.Sprint("crowd ", i))
		}
		slices.Sort(want)
		expect.NoDiff(t, cmp.Diff(want, find()), "around 1000")
		found, err := ledger.NewReader(s).NearInvoices(t.Context(), []ledger.NearLookup{{Transfer: moved, CreatedBefore: invoice.Unix(2000)}}, "other")
		if err != nil || len(found) != 1 || len(found[0]) != 0 {
			t.Errorf("another merchant finds %+v, %v", found, err)
		}
		for amount, want := range map[uint64][]string{
			99_999:    {"1010", "1020", "1030", "99999"}, // also with one digit less
			2:         {"1", "9"},
			5_000_001: {"5000000"},
			1025:      {"1010", "1020", "1030", "99999"},
		} {
			moved.Amount = invoice.NewAmount(amount)
			got := slices.DeleteFunc(find(), func(name string) bool { return strings.HasPrefix(name, "crowd") })
			expect.NoDiff(t, cmp.Diff(want, got), "around %d", amount)
		}
	})
}

// TestRoundTripsOfNearInvoices checks that a page of payments takes as many round trips as one payment.
func TestRoundTripsOfNearInvoices(t *testing.T) {
	t.Parallel()
	proxy, through, err := dbtest.StartProxy(t.Context(), dbtest.Postgres(t), 0)
	rowtest.Must(t, err)
	s := dbtest.Open(t, through)
	t.Cleanup(func() { rowtest.Must(t, proxy.Close()) })
	turns := func(lookups int) int64 {
		all := make([]ledger.NearLookup, lookups)
		for i := range all {
			all[i] = ledger.NearLookup{Transfer: rowtest.SamplePayment(i).Transfer, CreatedBefore: invoice.Unix(2000)}
		}
		before := proxy.Turns()
		_, err := ledger.NewReader(s).NearInvoices(t.Context(), all, "m")
		rowtest.Must(t, err)
		return proxy.Turns() - before
	}
	turns(2) // it prepares the statements
	if one, many := turns(1), turns(100); many > one {
		t.Errorf("100 payments take %d round trips, one takes %d", many, one)
	}
}
