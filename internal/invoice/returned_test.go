package invoice_test

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

// TestReturning checks how much of a payment stops counting in each state of its invoice.
func TestReturning(t *testing.T) {
	t.Parallel()
	n := invoice.NewAmount
	open := invoice.Invoice{Status: invoice.Open, Terms: invoice.Terms{Amount: n(100), ExpiresAt: invoice.Unix(10)}}
	inTime := invoice.Payment{Transfer: invoice.Transfer{Amount: n(60), Position: invoice.Position{BlockTime: invoice.Unix(10)}}, Returned: n(20)}
	late := inTime
	late.BlockTime = invoice.Unix(11)
	for name, test := range map[string]struct {
		status            invoice.Status
		p                 invoice.Payment
		back, early, want uint64
	}{
		"open":                              {invoice.Open, inTime, 30, 0, 30},
		"open, all of it":                   {invoice.Open, inTime, 60, 0, 60},
		"open, more than it":                {invoice.Open, inTime, 61, 0, 60},
		"open, nothing any more":            {invoice.Open, inTime, 0, 0, 0},
		"open, late":                        {invoice.Open, late, 30, 0, 0},
		"paid, refunded afterwards":         {invoice.Paid, inTime, 60, 0, 20},
		"paid, refunded before":             {invoice.Paid, inTime, 60, 50, 50},
		"paid, refunded before, but late":   {invoice.Paid, late, 60, 50, 0},
		"paid, not sent back after all":     {invoice.Paid, inTime, 5, 0, 5},
		"expired, refunded afterwards":      {invoice.Expired, inTime, 60, 0, 20},
		"expired, not sent back after all":  {invoice.Expired, inTime, 0, 0, 0},
		"void, whatever is done afterwards": {invoice.Void, inTime, 60, 0, 20},
	} {
		inv := open
		inv.Status = test.status
		if got := inv.Returning(test.p, n(test.back), n(test.early)); got != n(test.want) {
			t.Errorf("%s: %s, want %d", name, got, test.want)
		}
	}
}

// TestRefundedEarly puts refunds before and after the end of an invoice over 100.
func TestRefundedEarly(t *testing.T) {
	t.Parallel()
	n := invoice.NewAmount
	at := func(block uint64) invoice.Position {
		return invoice.Position{BlockNumber: block, BlockTime: invoice.Unix(int64(block))}
	}
	pay := func(id string, block, amount uint64) invoice.Payment {
		return invoice.Payment{ID: id, InvoiceID: "inv", Status: invoice.Confirmed, Transfer: invoice.Transfer{Position: at(block), Amount: n(amount), TxHash: invoice.Hash{byte(block)}}}
	}
	for name, test := range map[string]struct {
		status   invoice.Status
		payments []invoice.Payment // the last one paid it; refunds are of the first
		refunds  map[uint64]uint64 // by block
		want     uint64
	}{
		"paid by another":              {invoice.Paid, []invoice.Payment{pay("a", 5, 60), pay("b", 9, 100)}, map[uint64]uint64{7: 20, 9: 30, 10: 5}, 50},
		"paid by both":                 {invoice.Paid, []invoice.Payment{pay("a", 5, 60), pay("b", 9, 50)}, map[uint64]uint64{7: 20}, 0},
		"paid by an earlier one":       {invoice.Paid, []invoice.Payment{pay("a", 5, 60), pay("c", 6, 40), pay("b", 9, 100)}, map[uint64]uint64{6: 0, 7: 60}, 0},
		"paid with what was left":      {invoice.Paid, []invoice.Payment{pay("a", 5, 60), pay("b", 9, 80)}, map[uint64]uint64{7: 40}, 40},
		"paid by it":                   {invoice.Paid, []invoice.Payment{pay("a", 5, 120)}, map[uint64]uint64{5: 20, 6: 10}, 20},
		"expired":                      {invoice.Expired, []invoice.Payment{pay("a", 5, 60)}, map[uint64]uint64{7: 20, 100: 5, 101: 30}, 25},
		"void above block 50":          {invoice.Void, []invoice.Payment{pay("a", 5, 60)}, map[uint64]uint64{50: 20, 51: 30}, 20},
		"open, where all of it counts": {invoice.Open, []invoice.Payment{pay("a", 5, 60)}, map[uint64]uint64{7: 20}, 0},
	} {
		inv := invoice.Invoice{ID: "inv", Status: test.status, ClosedBlock: 50, Terms: invoice.Terms{Amount: n(100), ExpiresAt: invoice.Unix(100)}}
		last := test.payments[len(test.payments)-1]
		inv.SettledTx, inv.SettledAt = last.TxHash, last.BlockTime
		if test.status == invoice.Open {
			inv.ClosedBlock = 0
		}
		var refunds []invoice.Refund
		for block, amount := range test.refunds {
			refunds = append(refunds, invoice.Refund{PaymentID: "a", Status: invoice.Confirmed, Transfer: invoice.Transfer{Position: at(block), Amount: n(amount)}})
		}
		refunds = append(refunds, invoice.Refund{PaymentID: "a", Status: invoice.Orphaned, Transfer: invoice.Transfer{Position: at(6), Amount: n(1)}})
		if got := inv.RefundedEarly(test.payments[0], refunds, test.payments); got != n(test.want) {
			t.Errorf("%s: %s, want %d", name, got, test.want)
		}
	}
}

// TestSettleWithoutReturned counts partly returned payments: the amount that settles the invoice, and the excess.
func TestSettleWithoutReturned(t *testing.T) {
	t.Parallel()
	n := invoice.NewAmount
	base := invoice.Invoice{ID: "inv", Status: invoice.Open, Terms: invoice.Terms{Amount: n(1_000_000), ExpiresAt: invoice.Unix(100)}}
	pay := func(block, amount, returned uint64) invoice.Payment {
		return invoice.Payment{
			Transfer:  invoice.Transfer{Position: invoice.Position{BlockNumber: block}, TxHash: invoice.Hash{byte(block)}, Amount: n(amount)},
			InvoiceID: "inv", Status: invoice.Confirmed, Returned: n(returned),
		}
	}
	for name, test := range map[string]struct {
		payments  []invoice.Payment
		status    invoice.Status
		exception invoice.Exception
		settled   byte
		surplus   uint64
		missing   uint64
	}{
		"the rest after all was returned":    {[]invoice.Payment{pay(1, 985_000, 985_000), pay(2, 15_000, 0)}, invoice.Open, invoice.Underpaid, 0, 0, 985_000},
		"all was returned":                   {[]invoice.Payment{pay(1, 985_000, 985_000)}, invoice.Open, "", 0, 0, 1_000_000},
		"the whole after a part returned":    {[]invoice.Payment{pay(1, 985_000, 400_000), pay(2, 415_000, 0)}, invoice.Paid, "", 2, 0, 0},
		"more than the whole after returned": {[]invoice.Payment{pay(1, 985_000, 985_000), pay(2, 1_100_000, 0)}, invoice.Paid, invoice.Overpaid, 2, 100_000, 0},
		"a second time":                      {[]invoice.Payment{pay(1, 985_000, 985_000), pay(2, 1_000_000, 0), pay(3, 500_000, 0)}, invoice.Paid, invoice.Duplicate, 2, 500_000, 0},
	} {
		running := base
		for _, p := range test.payments {
			running = running.WithPayment(p)
			var ok bool
			if running, ok = running.WithConfirmed(p); !ok {
				t.Errorf("%s: a payment in order has to be recounted", name)
			}
		}
		for how, got := range map[string]invoice.Invoice{"running": running, "recounted": base.Recount(test.payments)} {
			if got.Status != test.status || got.Exception != test.exception || got.SettledTx != (invoice.Hash{test.settled}) || got.Missing() != n(test.missing) {
				t.Errorf("%s, %s: it is %s, %q, settled by %x and lacks %s", name, how, got.Status, got.Exception, got.SettledTx[0], got.Missing())
			}
			if got.Status == invoice.Paid && got.Surplus() != n(test.surplus) {
				t.Errorf("%s, %s: the surplus is %s", name, how, got.Surplus())
			}
		}
	}
}
