package report

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

const (
	// summaryPage is how many payments or refunds of a summary are read at once, and
	// rollupsPage how many rollups.
	summaryPage, rollupsPage = 2000, 20_000
	// maxStale bounds the stale periods of a summary that are read one by one.
	maxStale = 100
)

// SettledReader reads payments and refunds. Reader implements it.
type SettledReader interface {
	// SettledAmounts returns confirmed payments of invoices.
	SettledAmounts(ctx context.Context, f ReportFilter) ([]SettledAmount, error)
	// ReportedRefunds returns confirmed refunds of such payments.
	ReportedRefunds(ctx context.Context, f ReportFilter) ([]invoice.Refund, error)
}

// SummaryReader reads from the database. Reader implements it.
type SummaryReader interface {
	SettledReader
	// RollupsThrough returns the time before which rollups are complete.
	RollupsThrough(ctx context.Context) (time.Time, error)
	// StaleRollups returns periods with incomplete rollups, the oldest first.
	StaleRollups(ctx context.Context, from, to time.Time, limit int) ([]time.Time, error)
	// Rollups lists rollups in the order of their periods.
	Rollups(ctx context.Context, f RollupFilter) ([]Rollup, error)
	// DayRollups lists the sums of the rollups of days in UTC.
	DayRollups(ctx context.Context, f RollupFilter) ([]Rollup, error)
}

// Days returns a line for each day, chain and currency with a payment or refund that was confirmed
// from From on and before To, in order. Only its figures Payments, Refunds, Gross, Refunded and Net
// are set. GroupBy is not used.
//
// It adds up rollups, and payments where there is no rollup: in the last minutes, in a stale period,
// and in the rest of a period at the beginning.
func Days(ctx context.Context, source SummaryReader, r Request) ([]*Line, error) {
	b := &daysBuilder{Request: r, db: source, byDay: true, lines: make(map[Key]*Line)}
	err := b.add(ctx, r.From, r.To)
	return sorted(b.lines), err
}

// Total returns Days' figures added up: a line for each chain and currency. It adds up stored sums of whole days in UTC, and
// uses Days for the rest of the time and for days of which a stored sum is out of date.
func Total(ctx context.Context, source SummaryReader, r Request) ([]*Line, error) {
	r.Location = time.UTC
	b := &daysBuilder{Request: r, db: source, lines: make(map[Key]*Line)}
	through, err := source.RollupsThrough(ctx)
	if err != nil {
		return nil, fmt.Errorf("read progress of rollups: %w", err)
	}
	from, to := dayStart(r.From.Add(Day-time.Second)), dayStart(clock.Earlier(r.To, through))
	if !from.Before(to) {
		err := b.add(ctx, r.From, r.To)
		return sorted(b.lines), err
	}
	stale, err := source.StaleRollups(ctx, from, to, maxStale+1)
	if err != nil {
		return nil, fmt.Errorf("find stale rollups: %w", err)
	}
	for i, start := range stale {
		stale[i] = dayStart(start)
	}
	if len(stale) > maxStale {
		to = stale[maxStale]
	}
	stale = slices.DeleteFunc(slices.CompactFunc(stale, time.Time.Equal), func(day time.Time) bool { return !day.Before(to) })
	if err := b.addRollups(ctx, source.DayRollups, from, to, stale); err != nil {
		return nil, err
	}
	for _, day := range stale {
		if err := b.add(ctx, day, day.Add(Day)); err != nil {
			return nil, err
		}
	}
	if err := b.add(ctx, r.From, from); err != nil {
		return nil, err
	}
	err = b.add(ctx, to, r.To)
	return sorted(b.lines), err
}

// add adds what was confirmed from a time on and before another one.
func (b *daysBuilder) add(ctx context.Context, first, end time.Time) error {
	// The time through which rollups are complete and the stale periods are read before the rollups, so
	// that a rollup that is written in between counts once.
	through, err := b.db.RollupsThrough(ctx)
	if err != nil {
		return fmt.Errorf("read progress of rollups: %w", err)
	}
	from, to := ledger.RollupStart(first.Add(ledger.RollupPeriod-time.Second)), ledger.RollupStart(end)
	if through.Before(to) {
		to = through
	}
	if !from.Before(to) || !b.aligned(from) || !b.aligned(to) {
		return b.addSettled(ctx, first, end)
	}
	stale, err := b.db.StaleRollups(ctx, from, to, maxStale+1)
	if err != nil {
		return fmt.Errorf("find stale rollups: %w", err)
	}
	if len(stale) > maxStale {
		to, stale = stale[maxStale], stale[:maxStale]
	}
	if err := b.addRollups(ctx, b.db.Rollups, from, to, stale); err != nil {
		return err
	}
	for _, start := range stale {
		if err := b.addSettled(ctx, start, start.Add(ledger.RollupPeriod)); err != nil {
			return err
		}
	}
	if err := b.addSettled(ctx, first, from); err != nil {
		return err
	}
	return b.addSettled(ctx, to, end)
}

// daysBuilder adds up the settled amounts of a request, by day or in total.
type daysBuilder struct {
	Request
	db    SummaryReader
	byDay bool
	lines map[Key]*Line
}

// aligned reports whether the days of the time zone begin at the beginning of a period.
func (b *daysBuilder) aligned(at time.Time) bool {
	_, offset := at.In(b.Location).Zone()
	return offset%int(ledger.RollupPeriod.Seconds()) == 0
}

// line returns the line of a time, chain and currency.
func (b *daysBuilder) line(at time.Time, chainKey, currency string) *Line {
	key := Key{ChainKey: chainKey, Currency: currency, Decimals: -1}
	if b.byDay {
		key.Day = clock.Format(at, b.Location, time.DateOnly)
	}
	if decimals, ok := b.Decimals(chainKey, currency); ok {
		key.Decimals = decimals
	}
	return lineOf(b.lines, key)
}

// addRollups adds the sums that read returns from a time on and before another one, except stale ones.
func (b *daysBuilder) addRollups(ctx context.Context, read func(context.Context, RollupFilter) ([]Rollup, error), from, to time.Time, stale []time.Time) error {
	for f := (RollupFilter{MerchantID: b.MerchantID, From: from, To: to, Limit: rollupsPage}); ; {
		page, err := read(ctx, f)
		if err != nil {
			return fmt.Errorf("read rollups: %w", err)
		}
		for _, rollup := range page {
			if !slices.ContainsFunc(stale, rollup.Start.Equal) {
				if err := b.line(rollup.Start, rollup.ChainKey, rollup.Currency).addRollup(rollup); err != nil {
					return err
				}
			}
		}
		if len(page) < f.Limit {
			return nil
		}
		f.After = page[len(page)-1]
	}
}

// addRollup adds a rollup to a line.
func (l *Line) addRollup(r Rollup) error {
	var gross, refunded big.Int
	if _, ok := gross.SetString(r.Gross, 10); !ok {
		return fmt.Errorf("rollup of %s has the sum %q", r.Start, r.Gross)
	}
	if _, ok := refunded.SetString(r.Refunded, 10); !ok {
		return fmt.Errorf("rollup of %s has the sum %q of refunds", r.Start, r.Refunded)
	}
	l.Payments += r.Payments
	l.Refunds += r.Refunds
	l.Gross.Add(&l.Gross, &gross)
	l.Refunded.Add(&l.Refunded, &refunded)
	l.Net.Sub(l.Net.Add(&l.Net, &gross), &refunded)
	return nil
}

// addSettled adds the payments and refunds from a time on and before another one.
func (b *daysBuilder) addSettled(ctx context.Context, from, to time.Time) error {
	f := ReportFilter{MerchantID: b.MerchantID, From: from, To: to, Limit: summaryPage}
	if err := eachSettled(ctx, b.db, f, func(p SettledAmount) {
		b.line(p.ConfirmedAt, p.ChainKey, p.Currency).addPayment(p.Amount, invoice.Portion{})
	}); err != nil {
		return err
	}
	return eachRefund(ctx, b.db, f, func(r invoice.Refund) { b.line(r.ConfirmedAt, r.ChainKey, r.Currency).addRefund(r.Amount) })
}

// eachSettled calls do with the payments of a filter, in order.
func eachSettled(ctx context.Context, source SettledReader, f ReportFilter, do func(SettledAmount)) error {
	for f.From.Before(f.To) {
		page, err := source.SettledAmounts(ctx, f)
		if err != nil {
			return fmt.Errorf("read payments: %w", err)
		}
		for _, p := range page {
			do(p)
		}
		if len(page) < f.Limit {
			return nil
		}
		last := page[len(page)-1]
		f.After, f.AfterID = last.ConfirmedAt, last.SeenID
	}
	return nil
}

// eachRefund calls do with the refunds of a filter, in order.
func eachRefund(ctx context.Context, source SettledReader, f ReportFilter, do func(invoice.Refund)) error {
	for f.From.Before(f.To) {
		page, err := source.ReportedRefunds(ctx, f)
		if err != nil {
			return fmt.Errorf("read refunds: %w", err)
		}
		for _, r := range page {
			do(r)
		}
		if len(page) < f.Limit {
			return nil
		}
		last := page[len(page)-1]
		f.After, f.AfterID = last.ConfirmedAt, last.ID
	}
	return nil
}

// Sum is the sum of invoices' amounts on a chain, in minor units of a currency.
type Sum struct {
	Key      // without a day
	Invoices int64
	Amount   big.Int
}

// SumInvoices adds up amounts of invoices by chain and currency, in that order.
func SumInvoices(amounts []InvoicedAmount, decimals func(chainKey, currency string) (int, bool)) []*Sum {
	sums := make(map[Key]*Sum)
	for _, a := range amounts {
		key := Key{ChainKey: a.ChainKey, Currency: a.Currency, Decimals: -1}
		if n, ok := decimals(a.ChainKey, a.Currency); ok {
			key.Decimals = n
		}
		if sums[key] == nil {
			sums[key] = &Sum{Key: key}
		}
		sums[key].Invoices++
		sums[key].Amount.Add(&sums[key].Amount, number(a.Amount))
	}
	return slices.SortedFunc(maps.Values(sums), func(a, b *Sum) int { return compareKeys(a.Key, b.Key) })
}
