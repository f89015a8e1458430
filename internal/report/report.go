// Package report adds up payments and refunds that were confirmed in a period. docs/reports.md defines
// the figures.
package report

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/txmgr"
)

const (
	// pageSize is how many payments or refunds are read at once.
	pageSize = 500
	// maxRemembered bounds the invoices with cached running sums between pages.
	maxRemembered = 1000
)

// Source reads from the database. Reader implements it.
type Source interface {
	// ReportedPayments returns confirmed payments of invoices.
	ReportedPayments(ctx context.Context, f ReportFilter) ([]ReportedPayment, error)
	// ReportedRefunds returns confirmed refunds of payments that have an invoice.
	ReportedRefunds(ctx context.Context, f ReportFilter) ([]invoice.Refund, error)
	// ConfirmedPaymentsBetween returns confirmed payments of an invoice between positions.
	ConfirmedPaymentsBetween(ctx context.Context, invoiceID string, after, before invoice.Position, limit int) ([]invoice.Payment, error)
	// TxShares returns merchants' parts of the costs of transactions.
	TxShares(ctx context.Context, f ReportFilter) ([]txmgr.TxShare, error)
}

// Group is a group of payments with its own line in a report.
type Group string

// Groups.
const (
	ByDay      Group = "day"
	ByChain    Group = "chain"
	ByCurrency Group = "currency"
)

// Groups are all groups.
var Groups = []Group{ByDay, ByChain, ByCurrency}

// Request selects what to report: everything confirmed from From on and before To.
type Request struct {
	MerchantID string // empty for all
	From, To   time.Time
	GroupBy    Group
	Location   *time.Location // of the days
	// Decimals returns the decimals of a currency on a chain; ok is false if they are not known. Amounts
	// with different decimals are not added.
	Decimals func(chainKey, currency string) (decimals int, ok bool)
}

// Key identifies a line.
type Key struct {
	Day      string // with ByDay, and of a summary: 2006-01-02
	ChainKey string // with ByChain, and of a summary
	Currency string
	Decimals int // -1 if they are not known
}

// Line has the figures of a group, in minor units.
type Line struct {
	Key
	Payments, Refunds                                       int64 // how many
	Settled, Underpaid, Suffixes, Overpaid, Late, Duplicate big.Int
	Gross, Refunded, Net                                    big.Int
}

// Report has a line for each group with a payment or refund, in order, the totals of
// each currency, and the fees by chain, kind and merchant.
type Report struct {
	Lines, Totals []*Line
	Fees          []*FeeLine
}

// Settlement reports on settlements. It reads pages, so that its memory does not grow with
// the number of payments.
func Settlement(ctx context.Context, source Source, r Request) (Report, error) {
	b := builder{request: r, db: source, lines: make(map[Key]*Line), totals: make(map[Key]*Line), tallies: make(map[string]*tally)}
	if err := b.addPayments(ctx); err != nil {
		return Report{}, fmt.Errorf("add payments up: %w", err)
	}
	if err := b.addRefunds(ctx); err != nil {
		return Report{}, fmt.Errorf("add refunds up: %w", err)
	}
	paid, err := fees(ctx, source, r)
	if err != nil {
		return Report{}, fmt.Errorf("add fees up: %w", err)
	}
	return Report{Lines: sorted(b.lines), Totals: sorted(b.totals), Fees: paid}, nil
}

// builder builds a report.
type builder struct {
	request       Request
	db            Source
	lines, totals map[Key]*Line
	tallies       map[string]*tally // by invoice
}

// filter returns the filter of the first page.
func (r Request) filter() ReportFilter {
	return ReportFilter{MerchantID: r.MerchantID, From: r.From, To: r.To, Limit: pageSize}
}

// addPayments adds the payments of the period.
func (b *builder) addPayments(ctx context.Context) error {
	for f := b.request.filter(); ; {
		page, err := b.db.ReportedPayments(ctx, f)
		if err != nil {
			return err
		}
		for _, p := range page {
			before, err := b.before(ctx, p)
			if err != nil {
				return err
			}
			portion := p.Invoice.Portion(p.Payment, before)
			b.add(p.ConfirmedAt, p.ChainKey, p.Currency, func(l *Line) { l.addPayment(p.Amount, portion) })
		}
		if len(page) < f.Limit {
			return nil
		}
		last := page[len(page)-1]
		f.After, f.AfterID = last.ConfirmedAt, last.SeenID
	}
}

// addRefunds adds the refunds of the period.
func (b *builder) addRefunds(ctx context.Context) error {
	for f := b.request.filter(); ; {
		page, err := b.db.ReportedRefunds(ctx, f)
		if err != nil {
			return err
		}
		for _, r := range page {
			b.add(r.ConfirmedAt, r.ChainKey, r.Currency, func(l *Line) { l.addRefund(r.Amount) })
		}
		if len(page) < f.Limit {
			return nil
		}
		last := page[len(page)-1]
		f.After, f.AfterID = last.ConfirmedAt, last.ID
	}
}

// add changes the line of a group, and the total of its currency.
func (b *builder) add(at time.Time, chainKey, currency string, change func(*Line)) {
	key := Key{Currency: currency, Decimals: -1}
	if decimals, ok := b.request.Decimals(chainKey, currency); ok {
		key.Decimals = decimals
	}
	change(lineOf(b.totals, key))
	switch b.request.GroupBy {
	case ByDay:
		key.Day = clock.Format(at, b.request.Location, time.DateOnly)
	case ByChain:
		key.ChainKey = chainKey
	case ByCurrency:
	}
	change(lineOf(b.lines, key))
}

func lineOf(lines map[Key]*Line, key Key) *Line {
	l := lines[key]
	if l == nil {
		l = &Line{Key: key}
		lines[key] = l
	}
	return l
}

// sorted returns the lines in the order of their keys.
func sorted(lines map[Key]*Line) []*Line {
	return slices.SortedFunc(maps.Values(lines), func(a, b *Line) int { return compareKeys(a.Key, b.Key) })
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.ChainKey, b.ChainKey), cmp.Compare(a.Currency, b.Currency), cmp.Compare(a.Decimals, b.Decimals))
}

func (l *Line) addPayment(amount invoice.Amount, p invoice.Portion) {
	l.Payments++
	for _, part := range []struct {
		sum    *big.Int
		amount invoice.Amount
	}{
		{&l.Gross, amount}, {&l.Net, amount}, {&l.Settled, p.Settled}, {&l.Underpaid, p.Underpaid}, {&l.Underpaid, p.Returned}, {&l.Suffixes, p.Suffix},
		{&l.Overpaid, p.Overpaid}, {&l.Late, p.Late}, {&l.Duplicate, p.Duplicate},
	} {
		part.sum.Add(part.sum, number(part.amount))
	}
}

func (l *Line) addRefund(amount invoice.Amount) {
	n := number(amount)
	l.Refunds++
	l.Refunded.Add(&l.Refunded, n)
	l.Net.Sub(&l.Net, n)
}

// number returns an amount as an integer without a bound.
func number(a invoice.Amount) *big.Int {
	word := a.Bytes()
	return new(big.Int).SetBytes(word[:])
}

// tally is the running sum of an invoice's confirmed payments that count toward its
// amount, up to a position.
type tally struct {
	at  invoice.Position
	sum invoice.Amount
}

// before returns the sum of the confirmed payments of the invoice that count toward its amount and are
// before the payment on the chain. Payments mostly come in the order of the chain, so an invoice's
// payments are usually read once.
func (b *builder) before(ctx context.Context, p ReportedPayment) (invoice.Amount, error) {
	if p.Invoice.Sums.Payments == 1 {
		return invoice.Amount{}, nil
	}
	t := b.tallies[p.InvoiceID]
	if t == nil || !t.at.Before(p.Position) {
		if len(b.tallies) >= maxRemembered {
			clear(b.tallies)
		}
		t = &tally{}
		b.tallies[p.InvoiceID] = t
	}
	for t.sum.Less(p.Invoice.Amount) {
		page, err := b.db.ConfirmedPaymentsBetween(ctx, p.InvoiceID, t.at, p.Position, pageSize)
		if err != nil {
			return invoice.Amount{}, err
		}
		for _, earlier := range page {
			if p.Invoice.Counts(earlier, t.sum) {
				t.sum = t.sum.Plus(earlier.Counted())
			}
			t.at = earlier.Position
		}
		if len(page) < pageSize {
			break
		}
	}
	return t.sum, nil
}
