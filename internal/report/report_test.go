package report_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/txmgr"
)

// confirmedLedger has the confirmed payments of invoices, in the order of the chain. Each was
// confirmed a second after its block.
type confirmedLedger struct {
	invoices []invoice.Invoice
	payments []report.ReportedPayment
	reads    int // rows of ConfirmedPaymentsBetween
	shares   []txmgr.TxShare
}

func (l *confirmedLedger) TxShares(_ context.Context, f report.ReportFilter) (page []txmgr.TxShare, err error) {
	txs := make(map[string]bool)
	for _, s := range l.shares {
		behind := f.AfterID == "" || s.Cost.At.After(f.After) || s.Cost.At.Equal(f.After) && s.TxID > f.AfterID
		if behind && !s.Cost.At.Before(f.From) && s.Cost.At.Before(f.To) && (f.MerchantID == "" || f.MerchantID == s.MerchantID) && (txs[s.TxID] || len(txs) < f.Limit) {
			txs[s.TxID] = true
			page = append(page, s)
		}
	}
	return page, nil
}

func (l *confirmedLedger) ReportedPayments(_ context.Context, f report.ReportFilter) (page []report.ReportedPayment, err error) {
	for _, p := range l.payments {
		behind := f.AfterID == "" || p.ConfirmedAt.After(f.After) || p.ConfirmedAt.Equal(f.After) && p.SeenID > f.AfterID
		if behind && !p.ConfirmedAt.Before(f.From) && p.ConfirmedAt.Before(f.To) && len(page) < f.Limit {
			page = append(page, p)
		}
	}
	return page, nil
}

func (l *confirmedLedger) ReportedRefunds(context.Context, report.ReportFilter) ([]invoice.Refund, error) {
	return nil, nil
}

func (l *confirmedLedger) ConfirmedPaymentsBetween(_ context.Context, id string, after, before invoice.Position, limit int) (page []invoice.Payment, err error) {
	for _, p := range l.payments {
		if p.InvoiceID == id && after.Before(p.Position) && p.Before(before) && len(page) < limit {
			page = append(page, p.Payment)
			l.reads++
		}
	}
	return page, nil
}

// newLedger returns a confirmedLedger of invoices with many payments each.
func newLedger(r *rapid.T, payments int) *confirmedLedger {
	l := &confirmedLedger{}
	for i := range rapid.IntRange(1, 3).Draw(r, "invoices") {
		l.invoices = append(l.invoices, invoice.Invoice{
			ID: fmt.Sprint("inv_", i), Status: rapid.SampledFrom([]invoice.Status{invoice.Open, invoice.Expired}).Draw(r, "status"),
			Terms: invoice.Terms{Amount: invoice.NewAmount(rapid.Uint64Range(1000, 5000).Draw(r, "amount")), ExpiresAt: time.Unix(rapid.Int64Range(0, 400).Draw(r, "expires"), 0)},
		})
	}
	for n := range payments {
		i := rapid.IntRange(0, len(l.invoices)-1).Draw(r, "invoice")
		inv := &l.invoices[i]
		p := ledger.PaymentRow{SeenID: fmt.Sprintf("%09d", n), Payment: invoice.Payment{
			InvoiceID: inv.ID, Status: invoice.Confirmed, ConfirmedAt: time.Unix(int64(n/2)+1, 0),
			Transfer: invoice.Transfer{Currency: "USDC", Amount: invoice.NewAmount(rapid.Uint64Range(1, 9).Draw(r, "paid"))},
		}}
		p.BlockNumber, p.LogIndex, p.BlockTime = uint64(n/2)+1, n%2, time.Unix(int64(n/2), 0)
		if rapid.IntRange(0, 99).Draw(r, "large") == 0 {
			p.Amount = inv.Amount
		}
		inv.Sums.Payments++
		l.payments = append(l.payments, report.ReportedPayment{PaymentRow: p})
	}
	for i, inv := range l.invoices {
		l.invoices[i] = inv.Settle(paymentsOf(l, inv.ID))
	}
	for n, p := range l.payments {
		i := slices.IndexFunc(l.invoices, func(inv invoice.Invoice) bool { return inv.ID == p.InvoiceID })
		l.payments[n].Invoice = l.invoices[i]
	}
	return l
}

func paymentsOf(l *confirmedLedger, id string) (all []invoice.Payment) {
	for _, p := range l.payments {
		if p.InvoiceID == id {
			all = append(all, p.Payment)
		}
	}
	return all
}

// TestPeriodsAddUp cuts a time with more payments than a page into two periods. Their figures add up
// to the figures of the whole, and the parts of each to its gross.
func TestPeriodsAddUp(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := newLedger(r, rapid.IntRange(400, 700).Draw(r, "payments"))
		cut := rapid.Int64Range(1, 350).Draw(r, "cut")
		sums := func(from, to int64) (all [7]uint64) {
			made, err := report.Settlement(r.Context(), l, report.Request{
				From: time.Unix(from, 0), To: time.Unix(to, 0), GroupBy: report.ByDay, Location: time.UTC, Decimals: func(string, string) (int, bool) { return 0, false },
			})
			expect.OK(r, err)
			for _, line := range made.Totals {
				all = [7]uint64{line.Gross.Uint64(), line.Settled.Uint64(), line.Underpaid.Uint64(), line.Suffixes.Uint64(), line.Overpaid.Uint64(), line.Late.Uint64(), line.Duplicate.Uint64()}
				if all[0] != all[1]+all[2]+all[3]+all[4]+all[5]+all[6] || line.Decimals != -1 {
					r.Errorf("the parts do not add up: %v", all)
				}
			}
			return all
		}
		before, after, whole := sums(0, cut), sums(cut, 10_000), sums(0, 10_000)
		for i := range whole {
			if before[i]+after[i] != whole[i] {
				r.Errorf("figure %d is %d and %d, in all %d", i, before[i], after[i], whole[i])
			}
		}
		if l.reads > 3*len(l.payments) {
			r.Errorf("read %d rows for %d payments", l.reads, len(l.payments))
		}
	})
}

// TestFees adds up more transactions than a page has, of two chains and all kinds.
func TestFees(t *testing.T) {
	t.Parallel()
	var l confirmedLedger
	for i := range 1200 {
		add := func(chainKey string, kind txmgr.TxKind, merchant string, items, gwei int64) {
			l.shares = append(l.shares, txmgr.TxShare{
				TxID: fmt.Sprintf("ctx_%05d", i), ChainKey: chainKey, Kind: kind, MerchantID: merchant, Items: items,
				Cost: ledger.TxCost{Gwei: gwei, At: time.Unix(int64(i/100), 0)},
			})
		}
		switch {
		case i%100 == 0:
			add("arbitrum", txmgr.TxSweep, "", 0, 7) // by an earlier release
		case i%100 == 1:
			add("base", txmgr.TxAuthorization, "a", 1, 3)
		case i%100 < 4:
			add("base", []txmgr.TxKind{txmgr.TxOpen, txmgr.TxClose}[i%2], "a", 2, 5)
		case i%2 == 0:
			add("base", txmgr.TxSweep, "b", 4, 7)
		default:
			add("base", txmgr.TxSweep, "a", 1, 2)
			add("base", txmgr.TxSweep, "b", 2, 5)
		}
	}
	for merchant, want := range map[string]string{
		"":  "[arbitrum/sweep/ 0 77] [base/commitment/a 44 110] [base/authorization/a 11 33] [base/sweep/a 528 1056] [base/sweep/b 3168 6336]",
		"a": "[base/commitment/a 44 110] [base/authorization/a 11 33] [base/sweep/a 528 1056]",
		"c": "",
	} {
		made, err := report.Settlement(t.Context(), &l, report.Request{
			MerchantID: merchant, From: time.Unix(0, 0), To: time.Unix(11, 0), GroupBy: report.ByDay, Location: time.UTC, Decimals: func(string, string) (int, bool) { return 0, false },
		})
		expect.OK(t, err)
		var got []string
		for _, line := range made.Fees {
			got = append(got, fmt.Sprintf("[%s/%s/%s %d %s]", line.ChainKey, line.Kind, line.MerchantID, line.Items, &line.Gwei))
		}
		if merchant == "c" && len(got) > 0 || merchant != "c" && strings.Join(got, " ") != want {
			t.Errorf("%q: %s, want %s", merchant, got, want)
		}
	}
}
