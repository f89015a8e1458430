package report_test

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/test/expect"
)

// account has the invoices of a merchant with their confirmed payments and refunds.
type account struct {
	confirmedLedger
	stated  []report.StatedInvoice
	refunds []invoice.Refund
	newer   bool // a payment was confirmed before its invoice was issued
}

func (b *account) StatedInvoices(_ context.Context, f report.StatedFilter) (page []report.StatedInvoice, err error) {
	for _, inv := range b.stated {
		if inv.ID > f.After && inv.ID < f.End && len(page) < f.Limit {
			page = append(page, inv)
		}
	}
	return page, nil
}

func (b *account) EarlierInvoices(_ context.Context, f report.EarlierFilter, do func([]report.StatedInvoice) error) error {
	i := slices.IndexFunc(b.stated, func(inv report.StatedInvoice) bool { return inv.ID >= f.End })
	if i < 0 {
		i = len(b.stated)
	}
	return do(b.stated[:i])
}

func (b *account) ReportedRefunds(_ context.Context, f report.ReportFilter) (page []invoice.Refund, err error) {
	for _, r := range b.refunds {
		behind := f.AfterID == "" || r.ConfirmedAt.After(f.After) || r.ConfirmedAt.Equal(f.After) && r.ID > f.AfterID
		if behind && !r.ConfirmedAt.Before(f.From) && r.ConfirmedAt.Before(f.To) && len(page) < f.Limit {
			page = append(page, r)
		}
	}
	return page, nil
}

// ConfirmedPaymentsBetween returns payments in the order of the chain.
func (b *account) ConfirmedPaymentsBetween(_ context.Context, id string, after, before invoice.Position, limit int) (page []invoice.Payment, err error) {
	all := paymentsOf(&b.confirmedLedger, id)
	slices.SortFunc(all, func(x, y invoice.Payment) int { return x.Position.Compare(y.Position) })
	for _, p := range all {
		if after.Before(p.Position) && p.Before(before) && len(page) < limit {
			page = append(page, p)
		}
	}
	return page, nil
}

func (b *account) SettledAmounts(ctx context.Context, f report.ReportFilter) (page []report.SettledAmount, err error) {
	payments, err := b.ReportedPayments(ctx, f)
	for _, p := range payments {
		page = append(page, report.SettledAmount{SeenID: p.SeenID, ConfirmedAt: p.ConfirmedAt, Currency: p.Currency, Amount: p.Amount})
	}
	return page, err
}

func (b *account) RollupsThrough(context.Context) (time.Time, error) { return time.Time{}, nil }

func (b *account) StaleRollups(context.Context, time.Time, time.Time, int) ([]time.Time, error) {
	return nil, nil
}

func (b *account) DayRollups(context.Context, report.RollupFilter) ([]report.Rollup, error) {
	return nil, nil
}

func (b *account) Rollups(context.Context, report.RollupFilter) ([]report.Rollup, error) {
	return nil, nil
}

// newAccount returns invoices in any state, with payments and refunds at any time.
func newAccount(r *rapid.T) *account {
	b := &account{}
	block := uint64(0)
	for i := range rapid.IntRange(1, 4).Draw(r, "invoices") {
		opened := hour(rapid.Int64Range(1, 300).Draw(r, "opened"))
		inv := invoice.Invoice{ID: invoice.FirstID(invoice.PrefixInvoice, opened.Add(time.Duration(i)*time.Millisecond)), Status: invoice.Open, Currency: "USDC"}
		inv.Amount = invoice.NewAmount(rapid.Uint64Range(5, 30).Draw(r, "amount"))
		inv.Tolerance = invoice.NewAmount(rapid.Uint64Range(0, 3).Draw(r, "tolerance"))
		inv.ExpiresAt = opened.Add(time.Duration(rapid.IntRange(1, 300).Draw(r, "lifetime")) * time.Hour)
		mined := opened
		if rapid.IntRange(0, 4).Draw(r, "attributed payments of before") == 0 {
			mined = hour(1)
		}
		for range rapid.IntRange(0, 4).Draw(r, "payments") {
			block++
			mined = mined.Add(time.Duration(rapid.IntRange(0, 200).Draw(r, "later")) * time.Hour)
			p := ledger.PaymentRow{SeenID: fmt.Sprintf("%09d", block), Payment: invoice.Payment{
				InvoiceID: inv.ID, Status: invoice.Confirmed, ConfirmedAt: mined.Add(time.Duration(rapid.IntRange(0, 100).Draw(r, "confirmed")) * time.Hour),
				Transfer: invoice.Transfer{Currency: "USDC", Amount: invoice.NewAmount(rapid.Uint64Range(1, 20).Draw(r, "paid"))},
			}}
			p.BlockNumber, p.BlockTime = block, mined
			inv.Sums.Payments++
			b.payments = append(b.payments, report.ReportedPayment{PaymentRow: p})
			b.newer = b.newer || p.ConfirmedAt.Before(opened)
			if rapid.Bool().Draw(r, "refunded") {
				b.refunds = append(b.refunds, invoice.Refund{ID: p.SeenID, ConfirmedAt: p.ConfirmedAt.Add(time.Minute), Transfer: invoice.Transfer{Currency: "USDC", Amount: p.Amount}})
			}
		}
		stated := report.StatedInvoice{Invoice: inv.Settle(paymentsOf(&b.confirmedLedger, inv.ID)), OpenedAt: opened}
		switch {
		case stated.Status == invoice.Open && rapid.Bool().Draw(r, "expired"), rapid.IntRange(0, 9).Draw(r, "found late") == 0:
			stated.Status = invoice.Expired
		case stated.Status == invoice.Open && rapid.Bool().Draw(r, "void"):
			stated.Status, stated.ClosedBlock = invoice.Void, block
			stated.VoidedAt = clock.Later(mined, opened).Add(time.Hour)
		}
		for n, p := range b.payments {
			if p.InvoiceID == inv.ID {
				b.payments[n].Invoice = stated.Invoice
				if stated.ConfirmedAt.Before(p.ConfirmedAt) {
					stated.ConfirmedAt = p.ConfirmedAt
				}
			}
		}
		if rapid.IntRange(0, 3).Draw(r, "stale") == 0 {
			stated.Sums.Stale = true
		}
		b.stated = append(b.stated, stated)
	}
	slices.SortFunc(b.stated, func(x, y report.StatedInvoice) int { return strings.Compare(x.ID, y.ID) })
	slices.SortFunc(b.payments, func(x, y report.ReportedPayment) int {
		return cmp.Or(x.ConfirmedAt.Compare(y.ConfirmedAt), strings.Compare(x.SeenID, y.SeenID))
	})
	slices.SortFunc(b.refunds, func(x, y invoice.Refund) int {
		return cmp.Or(x.ConfirmedAt.Compare(y.ConfirmedAt), strings.Compare(x.ID, y.ID))
	})
	return b
}

// demanded is the model: the amounts that the invoices demand at a time, one by one.
func (b *account) demanded(at time.Time) (sum int64) {
	for _, inv := range b.stated {
		amount, due, counted, ended := int64(small(inv.Amount)), int64(0), int64(0), inv.OpenedAt
		payments := paymentsOf(&b.confirmedLedger, inv.ID)
		slices.SortFunc(payments, func(x, y invoice.Payment) int { return cmp.Compare(x.BlockNumber, y.BlockNumber) })
		for _, p := range payments {
			if p.BlockTime.After(inv.ExpiresAt) || inv.Status == invoice.Expired && small(inv.Sums.Tally.Due) >= small(inv.Amount)-small(inv.Tolerance) {
				continue // late
			}
			part := min(int64(small(p.Amount)), amount-due)
			due += part
			if part > 0 && ended.Before(p.ConfirmedAt) {
				ended = p.ConfirmedAt
			}
			if clock.Later(p.ConfirmedAt, inv.OpenedAt).Before(at) {
				counted += part
			}
		}
		if inv.OpenedAt.Before(at) {
			sum += amount
		}
		sum -= counted
		switch inv.Status {
		case invoice.Expired:
			ended = clock.Later(ended, inv.ExpiresAt)
		case invoice.Void:
			if inv.VoidedAt.Before(inv.ExpiresAt) {
				ended = clock.Later(ended, inv.VoidedAt)
			} else {
				ended = clock.Later(ended, inv.ExpiresAt)
			}
		case invoice.Open, invoice.Drafted:
			continue
		case invoice.Paid:
		}
		if ended.Before(at) {
			sum -= amount - due
		}
	}
	return sum
}

// hour returns a time in hours since 1970.
func hour(n int64) time.Time { return time.Unix(n*3600, 0) }

// TestStatement compares statements of periods that follow each other with the model, and with
// the settlement reports of the periods.
func TestStatement(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		b := newAccount(r)
		cuts := rapid.SliceOfN(rapid.Int64Range(1, 1500), 1, 4).Draw(r, "cuts")
		slices.Sort(cuts)
		from, closing, held := int64(0), int64(0), int64(0)
		for _, to := range append(slices.Compact(cuts), 2000) {
			request := report.Request{
				MerchantID: "m", From: hour(from), To: hour(to), GroupBy: report.ByChain, Location: time.UTC, Decimals: func(string, string) (int, bool) { return 6, true },
			}
			made, err := report.NewStatement(r.Context(), b, request)
			expect.OK(r, err)
			var l report.StatementLine
			if len(made.Lines) > 0 {
				l = *made.Lines[0]
			}
			if l.Opening.Int64() != closing || l.HeldBefore.Int64() != held {
				r.Fatalf("%d to %d opens with %s and %s, the period before closed with %d and %d", from, to, &l.Opening, &l.HeldBefore, closing, held)
			}
			closing, held = l.Closing.Int64(), l.Held.Int64()
			if want := b.demanded(request.To); closing != want {
				r.Fatalf("%d to %d closes with %d, want %d: %+v", from, to, closing, want, l)
			}
			settled, err := report.Settlement(r.Context(), b, request)
			expect.OK(r, err)
			for _, s := range settled.Lines {
				if counted := new(big.Int).Add(&s.Settled, &s.Underpaid); counted.Cmp(&l.Settled) != 0 && !b.newer || s.Gross.Cmp(&l.Received) != 0 || s.Refunded.Cmp(&l.Refunded) != 0 || s.Payments != l.Payments {
					r.Fatalf("%d to %d has %+v, the settlement report %+v", from, to, l, s)
				}
			}
			from = to
		}
	})
}
