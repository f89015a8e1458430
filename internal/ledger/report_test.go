package ledger_test

import (
	"math/big"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/test/expect"
)

// figures are the figures of a line of a report.
type figures struct {
	Payments, Refunds                                                        int64
	Gross, Settled, Underpaid, Suffixes, Overpaid, Late, Duplicate, Refunded uint64
	Net                                                                      int64
}

// checkReport compares reports on the merchant with sums over the list of payments.
func (m *machine) checkReport(r *rapid.T) {
	from := time.Unix(m.seconds.Load()-rapid.Int64Range(0, 100).Draw(r, "from"), 0)
	to := from.Add(time.Duration(rapid.IntRange(1, 100).Draw(r, "length")) * time.Second)
	group := rapid.SampledFrom(report.Groups).Draw(r, "group")
	made, err := report.Settlement(m.t.Context(), report.NewReader(m.db.store), report.Request{
		MerchantID: m.merchant, From: from, To: to, GroupBy: group, Location: time.UTC, Decimals: func(string, string) (int, bool) { return 6, true },
	})
	expect.OK(r, err)
	want := m.addUp(r, func(at time.Time) bool { return !at.Before(from) && at.Before(to) })
	for name, lines := range map[string][]*report.Line{"lines": made.Lines, "totals": made.Totals} {
		var got figures
		for _, l := range lines {
			got.Payments, got.Refunds = got.Payments+l.Payments, got.Refunds+l.Refunds
			for sum, figure := range map[*uint64]*big.Int{
				&got.Gross: &l.Gross, &got.Settled: &l.Settled, &got.Underpaid: &l.Underpaid, &got.Suffixes: &l.Suffixes, &got.Overpaid: &l.Overpaid,
				&got.Late: &l.Late, &got.Duplicate: &l.Duplicate, &got.Refunded: &l.Refunded,
			} {
				*sum += figure.Uint64()
			}
			got.Net += l.Net.Int64()
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			r.Errorf("%s by %s from %v to %v (-list +report):\n%s", name, group, from.Unix(), to.Unix(), diff)
		}
		if parts := got.Settled + got.Underpaid + got.Suffixes + got.Overpaid + got.Late + got.Duplicate; parts != got.Gross {
			r.Errorf("the parts add up to %d, gross is %d", parts, got.Gross)
		}
	}
}

// addUp adds up the listed payments that were confirmed in a period, and the refunds that were
// confirmed in it, also of earlier or later payments.
func (m *machine) addUp(r *rapid.T, within func(time.Time) bool) (f figures) {
	listed, _, err := ledger.NewReader(m.db.store).Payments(m.t.Context(), ledger.PaymentFilter{MerchantID: m.merchant, IncludePending: true, Limit: 1000})
	expect.OK(r, err)
	slices.SortFunc(listed, func(a, b ledger.PaymentRow) int { return a.Compare(b.Position) })
	due := make(map[string]uint64)
	for _, p := range listed {
		inv, err := ledger.NewReader(m.db.store).Invoice(m.t.Context(), p.InvoiceID)
		expect.OK(r, err)
		if p.Status == invoice.Confirmed {
			f.add(within(p.ConfirmedAt), inv, p, due)
		}
		refunds, err := ledger.RefundsOfPayments(m.t.Context(), m.db.store, []string{p.ID})
		expect.OK(r, err)
		for _, back := range refunds {
			if back.Status == invoice.Confirmed && within(back.ConfirmedAt) {
				f.Refunds, f.Refunded = f.Refunds+1, f.Refunded+number(back.Amount)
			}
		}
	}
	f.Net = int64(f.Gross) - int64(f.Refunded)
	return f
}

// add adds a payment; one outside the period only reduces what is due.
func (f *figures) add(within bool, inv invoice.Invoice, p ledger.PaymentRow, due map[string]uint64) {
	amount, price, paid := number(p.Amount), number(inv.Amount), inv.Status == invoice.Paid
	var counted, excess, returned uint64
	whole := &f.Late
	switch before := due[inv.ID]; {
	case p.BlockTime.After(inv.ExpiresAt), inv.Status == invoice.Void && p.BlockNumber > inv.ClosedBlock:
	case before >= price:
		if whole = &f.Duplicate; inv.Exception == invoice.Late {
			whole = &f.Late
		}
	default:
		due[inv.ID] += number(p.Counted())
		if inv.Exception == invoice.Late && number(inv.Sums.Tally.Counted())+number(inv.Tolerance) >= price {
			break
		}
		whole, counted, returned = nil, min(number(p.Counted()), price-before), amount-number(p.Counted())
		excess = amount - returned - counted
	}
	if !within {
		return
	}
	f.Payments, f.Gross = f.Payments+1, f.Gross+amount
	switch {
	case whole != nil:
		*whole += amount
	case due[inv.ID] > price+invoice.MaxSuffix:
		f.Overpaid += excess
	default:
		f.Suffixes += excess
	}
	f.Underpaid += returned
	if paid {
		f.Settled += counted
	} else {
		f.Underpaid += counted
	}
}
