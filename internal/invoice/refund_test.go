package invoice_test

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

func TestAttributeRefund(t *testing.T) {
	t.Parallel()
	payment := func(id string, block uint64, amount uint64) invoice.Payment {
		m := transfer(amount)
		m.BlockNumber = block
		return invoice.Payment{Transfer: m, ID: id, InvoiceID: "inv_" + id, Status: invoice.Confirmed}
	}
	back := func(amount uint64) invoice.Transfer {
		m := transfer(amount)
		m.From, m.To = merchant, payer
		m.BlockNumber, m.LogIndex = 6, 9
		return m
	}
	change := func(p invoice.Payment, by func(*invoice.Payment)) invoice.Payment { by(&p); return p }
	toItself := func(m invoice.Transfer) invoice.Transfer { m.From, m.To = merchant, merchant; return m }
	nobodys := func(p invoice.Payment) invoice.Payment { return p.WithAttribution(invoice.Attribution{}) }
	old, recent := payment("old", 5, 100), payment("recent", 6, 100)
	type payments = []invoice.Payment
	for _, test := range []struct {
		name     string
		refund   invoice.Transfer
		payments payments
		returned map[string]uint64 // of payments that were partly sent back
		tagged   string
		want     string
		exact    bool
	}{
		{"whole", back(100), payments{old}, nil, "", "old", true},
		{"partial", back(1), payments{old}, nil, "", "old", false},
		{"one too much", back(101), payments{old}, nil, "", "", false},
		{"the rest", back(60), payments{old}, map[string]uint64{"old": 40}, "", "old", true},
		{"more than the rest", back(61), payments{old}, map[string]uint64{"old": 40}, "", "", false},
		{"nothing left", back(1), payments{old}, map[string]uint64{"old": 100}, "", "", false},
		{"of nothing", back(0), payments{old}, nil, "", "", false},
		{"nobody paid", back(100), nil, nil, "", "", false},
		{"the newest", back(100), payments{old, recent}, nil, "", "recent", true},
		{"the newest, listed first", back(100), payments{recent, old}, nil, "", "recent", true},
		{"the one whose rest it is", back(60), payments{old, recent}, map[string]uint64{"old": 40}, "", "old", true},
		{"the tagged one before the newest", back(100), payments{old, recent}, nil, "inv_old", "old", true},
		{"the tagged one before the rest", back(60), payments{old, recent}, map[string]uint64{"old": 40}, "inv_recent", "recent", true},
		{"a tag does not make it fit, nor another", back(100), payments{old, recent}, map[string]uint64{"old": 1}, "inv_old", "", false},
		{"the tagged invoice has no payment", back(100), payments{old, recent}, nil, "inv_other", "", false},
		{"an unattributed one is not tagged", back(100), payments{nobodys(old)}, nil, "inv_old", "", false},
		{"an orphaned payment", back(100), payments{change(old, func(p *invoice.Payment) { p.Status = invoice.Orphaned })}, nil, "", "", false},
		{"a pending payment", back(100), payments{change(old, func(p *invoice.Payment) { p.Status = invoice.Pending })}, nil, "", "old", true},
		{"an unattributed payment", back(100), payments{change(old, func(p *invoice.Payment) { p.InvoiceID = "" })}, nil, "", "old", true},
		{"an unattributed one whose rest it is", back(100), payments{payment("large", 5, 900), nobodys(old)}, nil, "", "old", true},
		{"an unattributed one after it, the newest", back(100), payments{old, nobodys(recent)}, nil, "", "recent", true},
		{"a part: the attributed one before the newest", back(70), payments{old, nobodys(recent)}, nil, "", "old", false},
		{"a part: the unattributed one with room", back(70), payments{old, nobodys(recent)}, map[string]uint64{"old": 50}, "", "recent", false},
		{"a part of the tagged one", back(70), payments{old, recent}, nil, "inv_old", "old", true},
		{"another chain", back(100), payments{change(old, func(p *invoice.Payment) { p.ChainKey = "base-sepolia" })}, nil, "", "", false},
		{"another token", back(100), payments{change(old, func(p *invoice.Payment) { p.Token = invoice.Address{1} })}, nil, "", "", false},
		{"a payment that was mined later", back(100), payments{change(recent, func(p *invoice.Payment) { p.LogIndex = 10 })}, nil, "", "", false},
		{"another payer", back(100), payments{change(old, func(p *invoice.Payment) { p.From = invoice.Address{1} })}, nil, "", "", false},
		{"another receiver", back(100), payments{change(old, func(p *invoice.Payment) { p.To = invoice.Address{1} })}, nil, "", "", false},
		{"the payment itself", transfer(100), payments{old}, nil, "", "", false},
		{"from the address to itself", toItself(back(100)), payments{change(old, func(p *invoice.Payment) { p.Transfer = toItself(p.Transfer) })}, nil, "", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, ok := invoice.AttributeRefund(test.refund, test.payments,
				func(p invoice.Payment) invoice.Amount { return p.Amount.Minus(invoice.NewAmount(test.returned[p.ID])) },
				test.tagged)
			if ok != (test.want != "") || got.Payment.ID != test.want || got.Exact != test.exact {
				t.Errorf("pays back %q (exactly: %t), %t, want %q (exactly: %t)", got.Payment.ID, got.Exact, ok, test.want, test.exact)
			}
		})
	}
}
