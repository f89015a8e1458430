package report

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

const (
	// summaryPage is how many payments or refunds of a summary are read at once.
	summaryPage = 2000
	// maxPasts bounds the summaries of past days that are kept.
	maxPasts = 1000
)

// SummaryReader reads from the database. *store.Store implements it.
type SummaryReader interface {
	// SettledAmounts returns confirmed payments of invoices.
	SettledAmounts(ctx context.Context, f store.ReportFilter) ([]store.SettledAmount, error)
	ReportedRefunds(ctx context.Context, f store.ReportFilter) ([]invoice.Refund, error)
	// CountSettled counts such payments and refunds in a period.
	CountSettled(ctx context.Context, merchantID string, from, to time.Time) (payments, refunds int64, err error)
}

// Summaries adds up days, and keeps the sums of past days. It is safe for
// concurrent use.
type Summaries struct {
	db SummaryReader

	mu    sync.Mutex
	pasts map[pastKey]past
}

// pastKey says which past days a past is of. All of it is in the key, so that a past is
// never changed.
type pastKey struct {
	merchantID, zone string
	from, to         int64 // Unix seconds
}

// past is the sums of past days. Payments and refunds are only ever added to a period, so
// the sums are right as long as their numbers are.
type past struct {
	payments, refunds int64
	lines             map[Key]*Line // not changed
}

// NewSummaries returns a Summaries of a database.
func NewSummaries(db SummaryReader) *Summaries {
	return &Summaries{db: db, pasts: make(map[pastKey]past)}
}

// Days returns a line for each day, chain and currency in which something was confirmed from
// From on and before To, in order. Its figures but Payments, Refunds, Gross, Refunded and Net
// are zero. GroupBy is not used.
func (s *Summaries) Days(ctx context.Context, r Request) ([]*Line, error) {
	at := r.To.In(r.Location)
	today := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, r.Location)
	earlier, later := r, r
	earlier.To, later.From = today, today
	if !r.From.Before(today) {
		later.From = r.From
	}
	lines := make(map[Key]*Line)
	if r.From.Before(today) {
		known, err := s.past(ctx, earlier)
		if err != nil {
			return nil, err
		}
		maps.Copy(lines, known)
	}
	fresh, err := s.read(ctx, later)
	if err != nil {
		return nil, err
	}
	for key, l := range fresh {
		if earlier := lines[key]; earlier != nil { // clocks skip midnight, and the day began before today
			l.Payments += earlier.Payments
			l.Refunds += earlier.Refunds
			l.Gross.Add(&l.Gross, &earlier.Gross)
			l.Refunded.Add(&l.Refunded, &earlier.Refunded)
			l.Net.Add(&l.Net, &earlier.Net)
		}
		lines[key] = l
	}
	return sorted(lines), nil
}

// past returns the lines of past days.
func (s *Summaries) past(ctx context.Context, r Request) (map[Key]*Line, error) {
	key := pastKey{r.MerchantID, r.Location.String(), r.From.Unix(), r.To.Unix()}
	payments, refunds, err := s.db.CountSettled(ctx, r.MerchantID, r.From, r.To)
	if err != nil {
		return nil, fmt.Errorf("count payments: %w", err)
	}
	s.mu.Lock()
	known, ok := s.pasts[key]
	s.mu.Unlock()
	if ok && known.payments == payments && known.refunds == refunds {
		return known.lines, nil
	}
	lines, err := s.read(ctx, r)
	if err != nil {
		return nil, err
	}
	known = past{lines: lines}
	for _, l := range lines {
		known.payments += l.Payments
		known.refunds += l.Refunds
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pasts) >= maxPasts {
		clear(s.pasts)
	}
	s.pasts[key] = known
	return lines, nil
}

// read adds up a period.
func (s *Summaries) read(ctx context.Context, r Request) (map[Key]*Line, error) {
	lines := make(map[Key]*Line)
	lineAt := func(at time.Time, chainKey, currency string) *Line {
		key := Key{Day: at.In(r.Location).Format(time.DateOnly), ChainKey: chainKey, Currency: currency, Decimals: -1}
		if decimals, ok := r.Decimals(chainKey, currency); ok {
			key.Decimals = decimals
		}
		return lineOf(lines, key)
	}
	for f := (store.ReportFilter{MerchantID: r.MerchantID, From: r.From, To: r.To, Limit: summaryPage}); ; {
		page, err := s.db.SettledAmounts(ctx, f)
		if err != nil {
			return nil, fmt.Errorf("add payments up: %w", err)
		}
		for _, p := range page {
			lineAt(p.ConfirmedAt, p.ChainKey, p.Currency).addPayment(p.Amount, invoice.Portion{})
		}
		if len(page) < f.Limit {
			break
		}
		last := page[len(page)-1]
		f.After, f.AfterID = last.ConfirmedAt, last.SeenID
	}
	for f := (store.ReportFilter{MerchantID: r.MerchantID, From: r.From, To: r.To, Limit: summaryPage}); ; {
		page, err := s.db.ReportedRefunds(ctx, f)
		if err != nil {
			return nil, fmt.Errorf("add refunds up: %w", err)
		}
		for _, refund := range page {
			lineAt(refund.ConfirmedAt, refund.ChainKey, refund.Currency).addRefund(refund.Amount)
		}
		if len(page) < f.Limit {
			return lines, nil
		}
		last := page[len(page)-1]
		f.After, f.AfterID = last.ConfirmedAt, last.ID
	}
}

// Sum is the sum of invoices' amounts on a chain, in minor units of a currency.
type Sum struct {
	Key      // without a day
	Invoices int64
	Amount   big.Int
}

// SumInvoices adds up amounts of invoices by chain and currency, in the order of those.
func SumInvoices(amounts []store.InvoicedAmount, decimals func(chainKey, currency string) (int, bool)) []*Sum {
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
