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
		status     invoice.Status
		p          invoice.Payment
		back, want uint64
	}{
		"open":                              {invoice.Open, inTime, 30, 30},
		"open, all of it":                   {invoice.Open, inTime, 60, 60},
		"open, more than it":                {invoice.Open, inTime, 61, 60},
		"open, nothing any more":            {invoice.Open, inTime, 0, 0},
		"open, late":                        {invoice.Open, late, 30, 0},
		"paid, refunded afterwards":         {invoice.Paid, inTime, 60, 20},
		"paid, not sent back after all":     {invoice.Paid, inTime, 5, 5},
		"expired, refunded afterwards":      {invoice.Expired, inTime, 60, 20},
		"expired, not sent back after all":  {invoice.Expired, inTime, 0, 0},
		"void, whatever is done afterwards": {invoice.Void, inTime, 60, 20},
	} {
		inv := open
		inv.Status = test.status
		if got := inv.Returning(test.p, n(test.back)); got != n(test.want) {
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
