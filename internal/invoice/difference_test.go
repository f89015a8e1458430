package invoice

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/test/expect"
)

// nearInvoice asks for an amount from 1000 to 2000 Unix seconds.
func nearInvoice(id string, amount uint64) NearInvoice {
	return NearInvoice{Invoice: Invoice{
		ID: id, ChainKey: "base", Status: Open, CreatedAt: Unix(1000), FromBlock: 4,
		Terms: Terms{Merchant: Address{1}, Token: Address{2}, Amount: NewAmount(amount), ExpiresAt: Unix(2000)},
	}}
}

func nearTransfer(amount uint64, at int64) Transfer {
	return Transfer{ChainKey: "base", Token: Address{2}, To: Address{1}, From: Address{3}, Amount: NewAmount(amount), Position: Position{BlockTime: Unix(at), BlockNumber: uint64(at / 200)}}
}

var sameAmount = cmp.Comparer(func(a, b Amount) bool { return a == b })

func TestDiffer(t *testing.T) {
	told := nearInvoice("inv_1", 34_000_000)
	told.TransferAmount = NewAmount(34_000_123)
	rest := told
	rest.Asks = []Amount{NewAmount(8_500_000), {}}
	covered := told
	covered.Covered = true
	for name, test := range map[string]struct {
		of     NearInvoice
		amount uint64
		at     int64
		want   Difference
	}{
		"a fee was kept":                      {told, 33_990_000, 1500, Difference{Short: NewAmount(10_000)}},
		"too much":                            {told, 35_000_123, 1500, Difference{Over: NewAmount(1_000_000)}},
		"the amount":                          {told, 34_000_000, 1500, Difference{}},
		"another's suffix":                    {told, 34_000_999, 1500, Difference{}},
		"more than any suffix":                {told, 34_001_000, 1500, Difference{Over: NewAmount(877)}},
		"less than the rest":                  {rest, 8_400_000, 1500, Difference{Short: NewAmount(100_000)}},
		"the last second":                     {told, 34_000_000, 2000, Difference{}},
		"late":                                {told, 34_000_000, 2007, Difference{LateBy: 7 * time.Second}},
		"before the invoice":                  {told, 34_000_000, 900, Difference{Early: true}},
		"covered, and a little less than due": {covered, 33_000_000, 1500, Difference{Covered: true, Short: NewAmount(1_000_000)}},
	} {
		expect.NoDiff(t, cmp.Diff(test.want, test.of.Differ(nearTransfer(test.amount, test.at)), sameAmount), "%s", name)
	}
}

func TestSuggest(t *testing.T) {
	exact, twin, late, far, covered := nearInvoice("inv_1", 34_000_000), nearInvoice("inv_2", 34_000_000), nearInvoice("inv_3", 34_000_000),
		nearInvoice("inv_4", 99_000_000), nearInvoice("inv_5", 34_000_000)
	late.ExpiresAt = Unix(1200)
	covered.Covered = true
	void, elsewhere := nearInvoice("inv_6", 33_990_000), nearInvoice("inv_7", 33_990_000)
	void.Status, elsewhere.ChainKey = Void, "optimism"
	got := Suggest(nearTransfer(33_990_000, 1500), []NearInvoice{far, covered, void, late, exact, elsewhere, twin}, 5)
	var order []string
	for _, s := range got {
		order = append(order, s.ID)
		if want := s.ID == "inv_1" || s.ID == "inv_2"; s.Ambiguous != want {
			t.Errorf("%s is ambiguous: %t, want %t", s.ID, s.Ambiguous, want)
		}
	}
	expect.NoDiff(t, cmp.Diff([]string{"inv_2", "inv_1", "inv_5", "inv_3", "inv_4"}, order), "order")
	if got := Suggest(nearTransfer(33_990_000, 1500), []NearInvoice{exact, twin, late}, 2); len(got) != 2 {
		t.Errorf("%d suggestions, want 2", len(got))
	}
}
