package invoice_test

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

// TestItemOfWithoutSentBack: once the payments after the amount was due are refunded, an invoice is the same item as
// before.
func TestItemOfWithoutSentBack(t *testing.T) {
	t.Parallel()
	n := invoice.NewAmount
	type payment struct {
		at, amount uint64
	}
	for name, test := range map[string]struct {
		payments []payment
		refunded uint64
		kind     invoice.ItemKind
		version  string
	}{
		"too little":                              {[]payment{{1, 600_000}}, 0, invoice.ItemUnderpaid, "expired 600000 0"},
		"and some came late":                      {[]payment{{1, 600_000}, {101, 70_000}}, 0, invoice.ItemLate, "expired 670000 0"},
		"of which a part was refunded":            {[]payment{{1, 600_000}, {101, 70_000}}, 69_999, invoice.ItemLate, "expired 670000 69999"},
		"all of which was refunded":               {[]payment{{1, 600_000}, {101, 70_000}}, 70_000, invoice.ItemUnderpaid, "expired 600000 0"},
		"and more was refunded":                   {[]payment{{1, 600_000}, {101, 70_000}}, 70_001, invoice.ItemUnderpaid, "expired 600000 1"},
		"and all was":                             {[]payment{{1, 600_000}, {101, 70_000}}, 670_000, "", ""},
		"and some came again":                     {[]payment{{1, 600_000}, {101, 70_000}, {102, 70_000}}, 70_000, invoice.ItemLate, "expired 740000 70000"},
		"nothing in time, and the rest refunded":  {[]payment{{101, 70_000}}, 70_000, "", ""},
		"too much":                                {[]payment{{1, 1_100_000}}, 0, invoice.ItemOverpaid, "paid 1100000 0"},
		"too much, and twice":                     {[]payment{{1, 1_100_000}, {2, 50_000}}, 0, invoice.ItemDuplicate, "paid 1150000 0"},
		"too much, and twice, which was refunded": {[]payment{{1, 1_100_000}, {2, 50_000}}, 50_000, invoice.ItemOverpaid, "paid 1100000 0"},
		"twice, which was refunded":               {[]payment{{1, 1_000_000}, {2, 50_000}}, 50_000, "", ""},
	} {
		inv := invoice.Invoice{ID: "inv", Status: invoice.Open, Terms: invoice.Terms{Amount: n(1_000_000), ExpiresAt: invoice.Unix(100)}}
		var all []invoice.Payment
		for _, p := range test.payments {
			all = append(all, invoice.Payment{Transfer: invoice.Transfer{
				Position: invoice.Position{BlockNumber: p.at, BlockTime: invoice.Unix(int64(p.at))}, Amount: n(p.amount),
			}, InvoiceID: "inv", Status: invoice.Confirmed})
		}
		inv = inv.Recount(all)
		if expired, ok := inv.Expire(invoice.Unix(101)); ok {
			inv = expired.Recount(all)
		}
		inv.AmountRefunded = n(test.refunded)
		if kind, version := invoice.ItemOf(inv); kind != test.kind || version != test.version {
			t.Errorf("%s: %q %q, want %q %q", name, kind, version, test.kind, test.version)
		}
	}
}

// TestItemOfReturned: a refund made while the invoice was open does not refund a late payment.
func TestItemOfReturned(t *testing.T) {
	t.Parallel()
	n := invoice.NewAmount
	inv := invoice.Invoice{
		ID: "inv", Status: invoice.Expired, Exception: invoice.Late, AmountPaid: n(670_000), AmountRefunded: n(100_000), Terms: invoice.Terms{Amount: n(1_000_000)},
		Sums: invoice.Sums{Tally: invoice.Tally{Due: n(600_000), Returned: n(100_000)}},
	}
	if kind, version := invoice.ItemOf(inv); kind != invoice.ItemLate || version != "expired 670000 100000" {
		t.Errorf("%q %q, though nothing of what came late was refunded", kind, version)
	}
	inv.AmountRefunded = n(170_000)
	if kind, version := invoice.ItemOf(inv); kind != invoice.ItemUnderpaid || version != "expired 600000 100000" {
		t.Errorf("%q %q, after it was refunded", kind, version)
	}
}
