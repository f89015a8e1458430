package invoice

import "testing"

// TestPaidInOrder puts payments and refunds in blocks; the last two blocks are not final.
func TestPaidInOrder(t *testing.T) {
	t.Parallel()
	inv := Invoice{ID: "inv", Status: Open, Terms: Terms{Amount: NewAmount(100), ExpiresAt: Unix(1000)}}
	pay := func(id string, block, amount uint64) Payment {
		return Payment{ID: id, InvoiceID: "inv", Status: Confirmed, Transfer: Transfer{Amount: NewAmount(amount), Position: Position{BlockNumber: block, BlockTime: Unix(int64(block))}}}
	}
	back := func(payment string, block, amount uint64, prepared string) Refund {
		return Refund{PaymentID: payment, PreparedID: prepared, Status: Confirmed, Transfer: Transfer{Amount: NewAmount(amount), Position: Position{BlockNumber: block}}}
	}
	late := pay("a", 1001, 100)
	for name, c := range map[string]struct {
		payments []Payment
		refunds  []Refund
		reserved uint64 // of payment a, by refunds that were not sent
		want     map[string]uint64
		paid     bool
	}{
		"not refunded":                        {[]Payment{pay("a", 5, 100)}, nil, 0, nil, true},
		"too little":                          {[]Payment{pay("a", 5, 99)}, nil, 0, nil, false},
		"late":                                {[]Payment{late}, nil, 0, nil, false},
		"refunded while not final":            {[]Payment{pay("a", 5, 100)}, []Refund{back("a", 7, 1, "")}, 0, nil, false},
		"refunded later":                      {[]Payment{pay("a", 5, 100)}, []Refund{back("a", 8, 1, "")}, 0, nil, true},
		"refunded as prepared":                {[]Payment{pay("a", 5, 100)}, []Refund{back("a", 6, 1, "ref")}, 0, nil, true},
		"reserved":                            {[]Payment{pay("a", 5, 100)}, nil, 1, nil, false},
		"in parts":                            {[]Payment{pay("b", 6, 40), pay("a", 5, 60)}, []Refund{back("a", 9, 60, "")}, 0, nil, true},
		"in parts, the first refunded":        {[]Payment{pay("a", 5, 60), pay("b", 9, 40)}, []Refund{back("a", 8, 60, "ref")}, 0, nil, false},
		"in parts, in another order":          {[]Payment{pay("b", 9, 40), pay("a", 5, 60)}, []Refund{back("a", 8, 60, "ref")}, 0, nil, false},
		"refunds in another order":            {[]Payment{pay("a", 5, 60), pay("b", 9, 40)}, []Refund{back("a", 20, 10, ""), back("a", 8, 50, "ref")}, 0, nil, false},
		"in parts, and again":                 {[]Payment{pay("a", 5, 60), pay("b", 9, 40), pay("c", 10, 60)}, []Refund{back("a", 8, 60, "")}, 0, map[string]uint64{"a": 60}, true},
		"in parts, what is left being enough": {[]Payment{pay("a", 5, 70), pay("b", 9, 40)}, []Refund{back("a", 8, 10, "")}, 0, map[string]uint64{"a": 10}, true},
	} {
		sums := map[string]Amount{"a": NewAmount(c.reserved)}
		for _, r := range c.refunds {
			sums[r.PaymentID] = sums[r.PaymentID].Plus(r.Amount)
		}
		returned, ok := inv.PaidInOrder(c.payments, c.refunds, sums, 2)
		if ok != c.paid {
			t.Errorf("%s: paid is %t", name, ok)
		}
		for _, p := range c.payments {
			if got := returned[p.ID]; ok && got != NewAmount(c.want[p.ID]) {
				t.Errorf("%s: %s of the payment %s did not count, want %d", name, got, p.ID, c.want[p.ID])
			}
		}
	}
}
