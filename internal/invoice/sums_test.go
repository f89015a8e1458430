package invoice_test

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
)

// over34 asks for 34 USDC. Its dust limit is a cent.
func over34() invoice.Invoice {
	inv := openInvoice("a")
	inv.Amount, inv.TransferAmount = invoice.NewAmount(34_000_000), invoice.NewAmount(34_000_123)
	return inv
}

// byTransferAmount returns the payment as one that was attributed by its transfer amount.
func byTransferAmount(p invoice.Payment) invoice.Payment {
	p.Method = invoice.ByTransferAmount
	return p
}

func TestDustLimit(t *testing.T) {
	t.Parallel()
	for amount, want := range map[uint64]uint64{1: 0, 99: 0, 100: 1, 999_999: 9_999, 1_000_000: 10_000, 34_000_000: 340_000, 1_000_000_000: 10_000_000} {
		inv := openInvoice("a")
		inv.Amount = invoice.NewAmount(amount)
		if got := inv.DustLimit(); got != invoice.NewAmount(want) {
			t.Errorf("the dust limit of an invoice over %d is %s, want %d", amount, got, want)
		}
	}
}

func TestDustChangesNoException(t *testing.T) {
	t.Parallel()
	type payments = []invoice.Payment
	many := func(n int, amount uint64, of ...invoice.Payment) payments {
		for i := range n {
			of = append(of, paid(uint64(10+i), 1700, amount))
		}
		return of
	}
	for name, test := range map[string]struct {
		payments  payments
		status    invoice.Status // before
		settledBy byte           // last byte of the transaction
		exception invoice.Exception
	}{
		"dust alone":                            {payments{paid(1, 1500, 339_999)}, invoice.Open, 0, ""},
		"a hundredth alone":                     {payments{paid(1, 1500, 340_000)}, invoice.Open, 0, invoice.Underpaid},
		"dust, then the amount":                 {payments{paid(1, 1500, 1), paid(2, 1500, 34_000_000)}, invoice.Open, 2, ""},
		"dust, then the transfer amount":        {payments{paid(1, 1500, 9_999), byTransferAmount(paid(2, 1500, 34_000_999))}, invoice.Open, 2, ""},
		"the amount, then dust":                 {payments{paid(1, 1500, 34_000_000), paid(2, 1500, 1)}, invoice.Open, 1, ""},
		"the amount, then dust too late":        {payments{paid(1, 1500, 34_000_000), paid(2, 2001, 1)}, invoice.Open, 1, ""},
		"the amount, then a hundredth":          {payments{paid(1, 1500, 34_000_000), paid(2, 1500, 340_000)}, invoice.Open, 1, invoice.Duplicate},
		"50 for 34, then dust":                  {payments{paid(1, 1500, 50_000_000), paid(2, 1500, 1)}, invoice.Open, 1, invoice.Overpaid},
		"dust, then 50 for 34":                  {payments{paid(1, 1500, 1), paid(2, 1500, 50_000_000)}, invoice.Open, 2, invoice.Overpaid},
		"twice, with dust between":              {payments{paid(1, 1500, 34_000_000), paid(2, 1500, 1), paid(3, 1500, 34_000_000)}, invoice.Open, 1, invoice.Duplicate},
		"one unit short, and dust":              {payments{paid(1, 1500, 33_999_999), paid(2, 1500, 1)}, invoice.Open, 2, ""},
		"one unit short, and more dust":         {payments{paid(1, 1500, 33_999_999), paid(2, 1500, 9_999)}, invoice.Open, 2, ""},
		"too little, and dust":                  {payments{paid(1, 1500, 33_000_000), paid(2, 1500, 1)}, invoice.Open, 0, invoice.Underpaid},
		"too little, and dust too late":         {payments{paid(1, 1500, 33_000_000), paid(2, 2001, 1)}, invoice.Expired, 0, invoice.Underpaid},
		"dust on an expired invoice":            {payments{paid(1, 2001, 1)}, invoice.Expired, 0, ""},
		"a missing cent by its transfer amount": {payments{paid(1, 1500, 33_990_500), byTransferAmount(paid(2, 1500, 9_777))}, invoice.Open, 2, ""},
		"a remainder once more":                 {payments{paid(1, 1500, 34_000_000), byTransferAmount(paid(2, 1500, 9_777))}, invoice.Open, 1, invoice.Duplicate},
		"a remainder too late":                  {payments{paid(1, 1500, 33_990_500), byTransferAmount(paid(2, 2001, 9_777))}, invoice.Expired, 0, invoice.Late},
		"dust below a hundredth":                {many(33, 9_999, paid(1, 1500, 34_000_000)), invoice.Open, 1, ""},
		"dust that is a hundredth":              {many(35, 9_999, paid(1, 1500, 34_000_000)), invoice.Open, 1, invoice.Duplicate},
		"dust alone that is a hundredth":        {many(35, 9_999), invoice.Open, 0, invoice.Underpaid},
		"a hundredth in dust, then in full":     {append(many(35, 9_999), paid(100, 1700, 34_000_000)), invoice.Open, 100, invoice.Overpaid},
		"less than that, and then in full":      {append(many(33, 9_999), paid(100, 1700, 34_000_000)), invoice.Open, 100, ""},
		"dust makes up for what was missing":    {many(33, 9_999, paid(1, 1500, 33_800_000)), invoice.Open, 30, ""},
	} {
		inv := over34()
		inv.Status = test.status
		got := inv.Settle(test.payments)
		if got.Exception != test.exception || got.SettledTx[31] != test.settledBy {
			t.Errorf("%s: %s by %d, %q; want by %d, %q", name, got.Status, got.SettledTx[31], got.Exception, test.settledBy, test.exception)
		}
		var sum invoice.Amount
		for _, p := range test.payments {
			sum = sum.Plus(p.Amount)
		}
		if got.AmountPaid != sum {
			t.Errorf("%s: amountPaid %s, want all of %s", name, got.AmountPaid, sum)
		}
	}
}

// TestDustChangesNoHistory removes the dust from random histories. The rest of the result does not change, unless the
// dust made up for a missing amount.
func TestDustChangesNoHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		inv := over34()
		inv.Status = rapid.SampledFrom([]invoice.Status{invoice.Open, invoice.Expired}).Draw(t, "status")
		var all, others []invoice.Payment
		blockTime, dust := int64(1990), uint64(0)
		for block := range rapid.Uint64Range(0, 12).Draw(t, "payments") {
			blockTime += rapid.Int64Range(0, 4).Draw(t, "seconds")
			amount := rapid.SampledFrom([]uint64{1, 500, 9_999, 34_000_000, 34_000_123, 17_000_000, 50_000_000, 10_000}).Draw(t, "amount")
			p := paid(block+1, blockTime, amount)
			all = append(all, p)
			if inv.IsDust(p) {
				dust += amount
			} else {
				others = append(others, p)
			}
		}
		with, without := inv.Settle(all), inv.Settle(others)
		if with.AmountPaid != without.AmountPaid.Plus(invoice.NewAmount(dust)) {
			t.Fatalf("amountPaid %s with %d of dust, %s without", with.AmountPaid, dust, without.AmountPaid)
		}
		if with.SettledTx == without.SettledTx && with.Exception != without.Exception {
			t.Fatalf("%q with %d of dust, %q without", with.Exception, dust, without.Exception)
		}
	})
}

// TestNoExceptionMeansExactAmount bounds the amount that an invoice without an exception may have received.
func TestNoExceptionMeansExactAmount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		inv := over34()
		var all []invoice.Payment
		for block := range rapid.Uint64Range(1, 80).Draw(t, "payments") {
			p := paid(block+1, 1995, rapid.SampledFrom([]uint64{9_999, 9_998, 5_000, 17_000_000, 34_000_999}).Draw(t, "amount"))
			p.BlockTime = p.BlockTime.Add(rapid.SampledFrom([]time.Duration{0, 0, 0, 0, 10 * time.Second}).Draw(t, "late"))
			all = append(all, p)
		}
		got := inv.Settle(all)
		if got.Exception != "" || got.Status != invoice.Paid {
			return
		}
		if most := inv.Ceiling().Plus(invoice.NewAmount(340_000)); got.AmountPaid.Less(inv.Amount) || !got.AmountPaid.Less(most) {
			t.Fatalf("%s was paid of %s, and there is no exception", got.AmountPaid, inv.Amount)
		}
	})
}

func TestSurplus(t *testing.T) {
	t.Parallel()
	type payments = []invoice.Payment
	for name, test := range map[string]struct {
		payments payments
		want     uint64
	}{
		"nothing":                       {nil, 0},
		"the amount":                    {payments{paid(1, 1500, 34_000_000)}, 0},
		"the transfer amount":           {payments{paid(1, 1500, 34_000_123)}, 0},
		"the largest suffix":            {payments{paid(1, 1500, 34_000_999)}, 0},
		"one more":                      {payments{paid(1, 1500, 34_001_000)}, 1_000},
		"the amount twice":              {payments{paid(1, 1500, 34_000_000), paid(2, 1500, 34_000_000)}, 34_000_000},
		"the transfer amount twice":     {payments{paid(1, 1500, 34_000_123), paid(2, 1500, 34_000_123)}, 34_000_123},
		"the transfer amount, and dust": {payments{paid(1, 1500, 34_000_123), paid(2, 1500, 1)}, 1},
		"too little":                    {payments{paid(1, 1500, 33_000_000)}, 0},
		"50 for 34":                     {payments{paid(1, 1500, 50_000_000)}, 16_000_000},
	} {
		if got := over34().Settle(test.payments).Surplus(); got != invoice.NewAmount(test.want) {
			t.Errorf("%s: a surplus of %s, want %d", name, got, test.want)
		}
	}
}

// TestExcess checks the excess of a late overpayment. Its exception is late.
func TestExcess(t *testing.T) {
	t.Parallel()
	type payments = []invoice.Payment
	for name, test := range map[string]struct {
		status    invoice.Status
		payments  payments
		exception invoice.Exception
		want      uint64
	}{
		"exact":                             {invoice.Open, payments{paid(1, 1500, 34_000_000)}, "", 0},
		"the largest suffix":                {invoice.Open, payments{paid(1, 1500, 34_000_999)}, "", 0},
		"dust after it":                     {invoice.Open, payments{paid(1, 1500, 34_000_123), paid(2, 1500, 1)}, "", 0},
		"50 for 34":                         {invoice.Open, payments{paid(1, 1500, 50_000_000)}, invoice.Overpaid, 16_000_000},
		"twice":                             {invoice.Open, payments{paid(1, 1500, 34_000_123), paid(2, 1500, 34_000_123)}, invoice.Duplicate, 34_000_123},
		"too little":                        {invoice.Open, payments{paid(1, 1500, 33_000_000)}, invoice.Underpaid, 0},
		"late":                              {invoice.Expired, payments{paid(1, 9_000_000_000, 34_000_000)}, invoice.Late, 0},
		"late, with the largest suffix":     {invoice.Expired, payments{paid(1, 9_000_000_000, 34_000_999)}, invoice.Late, 0},
		"late, and one more":                {invoice.Expired, payments{paid(1, 9_000_000_000, 34_001_000)}, invoice.Late, 1_000},
		"late, 50 for 34":                   {invoice.Expired, payments{paid(1, 9_000_000_000, 50_000_000)}, invoice.Late, 16_000_000},
		"a part in time, the rest and more": {invoice.Expired, payments{paid(1, 1500, 20_000_000), paid(2, 9_000_000_000, 20_000_000)}, invoice.Late, 6_000_000},
	} {
		inv := over34()
		inv.Status = test.status
		inv = inv.Settle(test.payments)
		if got := inv.Excess(); got != invoice.NewAmount(test.want) || inv.Exception != test.exception {
			t.Errorf("%s: an excess of %s with the exception %q, want %d with %q", name, got, inv.Exception, test.want, test.exception)
		}
	}
}

func TestPartial(t *testing.T) {
	t.Parallel()
	pending := paid(1, 1500, 20_000_000)
	pending.Status = invoice.Pending
	orphaned := pending
	orphaned.Status = invoice.Orphaned
	for name, test := range map[string]struct {
		payment invoice.Payment
		want    bool
	}{
		"pending":                       {pending, true},
		"confirmed":                     {paid(1, 1500, 20_000_000), true},
		"orphaned":                      {orphaned, false},
		"late":                          {paid(1, 2001, 20_000_000), false},
		"all of it":                     {paid(1, 1500, 34_000_000), false},
		"dust":                          {paid(1, 1500, 9_999), false},
		"a cent by its transfer amount": {byTransferAmount(paid(1, 1500, 9_999)), true},
		"just no dust":                  {paid(1, 1500, 340_000), true},
	} {
		if got := over34().Recount([]invoice.Payment{test.payment}).Partial(); got != test.want {
			t.Errorf("%s: partial %t, want %t", name, got, test.want)
		}
	}
}

// TestRunningSumsAreThoseOfAllPayments changes payments one after the other. After each change the running sums must
// equal a recount.
func TestRunningSumsAreThoseOfAllPayments(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		inv := over34()
		var all []invoice.Payment
		confirmed := 0 // number of confirmed payments, from below
		check := func(t *rapid.T) {
			want := over34().Recount(all)
			want.Sums.Newest = inv.Sums.Newest // only a bound is promised
			if inv.Sums.Newest.Before(over34().Recount(all).Sums.Newest) {
				t.Fatalf("a payment is above %+v", inv.Sums.Newest)
			}
			if !reflect.DeepEqual(inv, want) {
				t.Fatalf("kept\n%+v, recounted\n%+v", inv, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"see": func(t *rapid.T) {
				amount := rapid.SampledFrom([]uint64{1, 9_999, 17_000_000, 34_000_123}).Draw(t, "amount")
				p := paid(uint64(len(all)+1), 1990+2*int64(len(all)), amount)
				p.Status = invoice.Pending
				all, inv = append(all, p), inv.WithPayment(p)
			},
			"replace": func(t *rapid.T) {
				if confirmed == len(all) {
					return
				}
				i := rapid.IntRange(confirmed, len(all)-1).Draw(t, "which")
				p := all[i]
				p.Status = rapid.SampledFrom([]invoice.PaymentStatus{invoice.Pending, invoice.Orphaned}).Draw(t, "status")
				p.BlockTime = p.BlockTime.Add(time.Duration(rapid.Int64Range(0, 5).Draw(t, "later")) * time.Second)
				inv = inv.WithoutPayment(all[i]).WithPayment(p)
				all[i] = p
			},
			"confirm": func(*rapid.T) {
				if confirmed == len(all) || all[confirmed].Status == invoice.Orphaned {
					return
				}
				p := &all[confirmed]
				p.Status = invoice.Confirmed
				confirmed++
				var ok bool
				if inv, ok = inv.WithConfirmed(*p); !ok {
					t.Fatalf("payment %s does not follow %+v", p.ID, inv.Sums.Tally.Last)
				}
			},
			"": check,
		})
	})
}

func TestSaturatedSumsAreStale(t *testing.T) {
	t.Parallel()
	huge, small := paid(1, 1500, 0), paid(2, 1500, 5)
	huge.Amount = invoice.MaxAmount
	inv := over34().WithPayment(huge).WithPayment(small)
	if inv = inv.WithoutPayment(huge); !inv.Sums.Stale {
		t.Error("what is left of a sum that was held at the largest amount is believed")
	}
	if _, ok := inv.WithConfirmed(small); ok {
		t.Error("stale sums are used")
	}
	if inv = inv.Recount([]invoice.Payment{small}); inv.Sums.Stale || inv.Sums.InTime != small.Amount {
		t.Errorf("recounted: %+v", inv.Sums)
	}
}

func TestWithConfirmedRequiresChainOrder(t *testing.T) {
	t.Parallel()
	first, second := paid(1, 1500, 17_000_000), paid(2, 1600, 17_000_000)
	inv, ok := over34().WithConfirmed(second)
	if !ok {
		t.Fatal("the first payment is refused")
	}
	for _, p := range []invoice.Payment{first, second} {
		if _, ok := inv.WithConfirmed(p); ok {
			t.Errorf("payment %s is counted after %s", p.ID, second.ID)
		}
	}
}

// TestWithConfirmedInAnyOrder confirms payments in an order that is not the chain's. If the order matters WithConfirmed
// refuses, and otherwise the invoice is the same as after Settle.
func TestWithConfirmedInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		inv := over34()
		inv.Tolerance = invoice.NewAmount(rapid.SampledFrom([]uint64{0, 1_000_000}).Draw(r, "tolerance"))
		var all []invoice.Payment
		for n := range rapid.IntRange(1, 6).Draw(r, "payments") {
			p := paid(uint64(n+1), rapid.SampledFrom([]int64{1500, 2000, 2001}).Draw(r, "time"),
				rapid.SampledFrom([]uint64{1, 9_999, 5_000_000, 33_500_000, 34_000_000}).Draw(r, "amount"))
			all = append(all, p)
		}
		var counted []invoice.Payment
		for _, p := range rapid.Permutation(all).Draw(r, "order") {
			inv = inv.WithPayment(p)
			counted = append(counted, p)
			next, ok := inv.WithConfirmed(p)
			want := inv.Settle(counted)
			if !ok {
				next = want
			}
			if !reflect.DeepEqual(want, next) {
				r.Fatalf("after payments %+v: one by one %+v, counted again %+v", counted, next, want)
			}
			inv = next
		}
	})
}

func TestWithoutBlocksAbove(t *testing.T) {
	t.Parallel()
	p := paid(7, 1500, 5)
	p.Status = invoice.Pending
	inv := over34().WithPayment(p)
	if got := inv.WithoutBlocksAbove(7).Sums.Newest; got != inv.Sums.Newest {
		t.Errorf("leaving what is above block 7 moves the newest payment from there to %+v", got)
	}
	if got := inv.WithoutBlocksAbove(6).Sums.Newest; got.BlockNumber != 6 || got.Before(invoice.Position{BlockNumber: 6, LogIndex: 99_999}) {
		t.Errorf("after leaving what is above block 6 the newest payment may be at %+v", got)
	}
}
