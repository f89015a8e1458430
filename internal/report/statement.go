package report

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
)

// StatementReader reads from the database. Reader implements it.
type StatementReader interface {
	Source
	SummaryReader
	// StatedInvoices returns invoices of a merchant that were issued, by id.
	StatedInvoices(ctx context.Context, f StatedFilter) ([]StatedInvoice, error)
	// EarlierInvoices calls do with pages of earlier invoices. Only some of them may count.
	EarlierInvoices(ctx context.Context, f EarlierFilter, do func([]StatedInvoice) error) error
}

// StatementLine is an account of a period on a chain in a currency, in minor units.
type StatementLine struct {
	Key // without a day

	// Amounts that invoices demand: Closing = Opening + Invoiced − Settled − Canceled − Expired − Waived.
	Opening, Invoiced, Settled, Canceled, Expired, Waived, Closing big.Int

	// Money that was received and not refunded: Held at the end = HeldBefore + Received − Refunded.
	HeldBefore, Received, Refunded, Held big.Int
	Payments, Refunds                    int64
}

// Statement is the account of a period of a merchant.
type Statement struct {
	Lines []*StatementLine // by chain and currency, in order
	Fees  []*FeeLine       // the service's cost of transactions
}

// NewStatement returns the account of a merchant in the period of a request. Its figures of money are
// the figures of Settlement. It reads the invoices of the period, of the two days before it, and older
// ones that had not ended by then.
func NewStatement(ctx context.Context, source StatementReader, r Request) (Statement, error) {
	b := statementBuilder{request: r, db: source, lines: make(map[Key]*StatementLine)}
	if err := b.addMoney(ctx); err != nil {
		return Statement{}, fmt.Errorf("add payments up: %w", err)
	}
	if err := b.addInvoices(ctx); err != nil {
		return Statement{}, fmt.Errorf("add invoices up: %w", err)
	}
	paid, err := fees(ctx, source, r)
	if err != nil {
		return Statement{}, fmt.Errorf("add fees up: %w", err)
	}
	return Statement{Lines: b.sorted(), Fees: paid}, nil
}

// statementBuilder builds a statement.
type statementBuilder struct {
	request Request
	db      StatementReader
	lines   map[Key]*StatementLine
}

func (b *statementBuilder) line(chainKey, currency string) *StatementLine {
	key := Key{ChainKey: chainKey, Currency: currency, Decimals: -1}
	if decimals, ok := b.request.Decimals(chainKey, currency); ok {
		key.Decimals = decimals
	}
	if b.lines[key] == nil {
		b.lines[key] = &StatementLine{Key: key}
	}
	return b.lines[key]
}

// sorted closes the lines, and returns those that are not empty, in order.
func (b *statementBuilder) sorted() []*StatementLine {
	for _, l := range b.lines {
		l.Closing.Add(&l.Opening, &l.Invoiced)
		for _, less := range []*big.Int{&l.Settled, &l.Canceled, &l.Expired, &l.Waived} {
			l.Closing.Sub(&l.Closing, less)
		}
		l.Held.Sub(l.Held.Add(&l.HeldBefore, &l.Received), &l.Refunded)
	}
	all := slices.SortedFunc(maps.Values(b.lines), func(a, c *StatementLine) int { return compareKeys(a.Key, c.Key) })
	return slices.DeleteFunc(all, func(l *StatementLine) bool {
		return l.Opening.Sign() == 0 && l.Invoiced.Sign() == 0 && l.Settled.Sign() == 0 && l.Closing.Sign() == 0 && l.Payments == 0 && l.Refunds == 0 && l.HeldBefore.Sign() == 0
	})
}

// addMoney adds the received and refunded amounts until the end of the period.
func (b *statementBuilder) addMoney(ctx context.Context) error {
	r := b.request
	r.From, r.To = time.Unix(0, 0), b.request.From
	before, err := Total(ctx, b.db, r)
	if err != nil {
		return err
	}
	for _, l := range before {
		line := b.line(l.ChainKey, l.Currency)
		line.HeldBefore.Add(&line.HeldBefore, &l.Net)
	}
	made, err := Total(ctx, b.db, b.request)
	if err != nil {
		return err
	}
	for _, l := range made {
		line := b.line(l.ChainKey, l.Currency)
		line.Received.Add(&line.Received, &l.Gross)
		line.Refunded.Add(&line.Refunded, &l.Refunded)
		line.Payments, line.Refunds = line.Payments+l.Payments, line.Refunds+l.Refunds
	}
	return nil
}

// statedSlack is how far the time in an invoice's id may differ from its creation.
const statedSlack = time.Minute

// addInvoices adds the changes of the merchant's invoices until the end of the period.
func (b *statementBuilder) addInvoices(ctx context.Context) error {
	r := b.request
	f := StatedFilter{MerchantID: r.MerchantID, From: r.From, To: r.To, End: invoice.FirstID(invoice.PrefixInvoice, r.To.Add(statedSlack)), Limit: summaryPage}
	if since := r.From.Add(-UsualLifetime - UsualDelay - statedSlack); since.Unix() > 0 {
		f.After = invoice.FirstID(invoice.PrefixInvoice, since)
		if err := b.db.EarlierInvoices(ctx, EarlierFilter{MerchantID: r.MerchantID, From: r.From, To: r.To, End: f.After, Limit: pageSize}, func(page []StatedInvoice) error { return b.addAll(ctx, page) }); err != nil {
			return err
		}
	}
	return b.addStated(ctx, f)
}

// addStated adds the invoices of a filter. It reads both halves of the period in parallel.
func (b *statementBuilder) addStated(ctx context.Context, f StatedFilter) error {
	middle := invoice.FirstID(invoice.PrefixInvoice, f.From.Add(f.To.Sub(f.From)/2))
	first, second := f, f
	first.End, second.After = middle+"0", middle // the first half has the invoice with that id
	group, ctx := errgroup.WithContext(ctx)
	var adding sync.Mutex
	for _, half := range []StatedFilter{first, second} {
		group.Go(func() error {
			for {
				page, err := b.db.StatedInvoices(ctx, half)
				if err != nil {
					return err
				}
				adding.Lock()
				err = b.addAll(ctx, page)
				adding.Unlock()
				if err != nil || len(page) < half.Limit {
					return err
				}
				half.After = page[len(page)-1].ID
			}
		})
	}
	return group.Wait()
}

// addAll adds invoices.
func (b *statementBuilder) addAll(ctx context.Context, page []StatedInvoice) error {
	for _, inv := range page {
		if err := b.addInvoice(ctx, inv); err != nil {
			return err
		}
	}
	return nil
}

// entry is an amount by which an invoice's demand changes at a time.
type entry struct {
	at     time.Time
	amount invoice.Amount
}

// addInvoice adds the changes of the sum that an invoice demands. No change is before the invoice was
// issued, not even a payment that is older than the invoice to which it was attributed.
func (b *statementBuilder) addInvoice(ctx context.Context, inv StatedInvoice) error {
	paid, err := b.counted(ctx, inv)
	if err != nil {
		return err
	}
	l := b.line(inv.ChainKey, inv.Currency)
	b.add(l, entry{inv.OpenedAt, inv.Amount}, 1, &l.Invoiced)
	left, last := inv.Amount, inv.OpenedAt
	for _, p := range paid {
		p.at = clock.Later(p.at, inv.OpenedAt)
		b.add(l, p, -1, &l.Settled)
		left, last = left.Minus(p.amount), clock.Later(last, p.at)
	}
	if left.IsZero() {
		return nil
	}
	// The open rest ends with the invoice, and not before its payments. An invoice that became void after
	// expiresAt, because the chain was not read to there, ends as if it had expired.
	ended := func(at time.Time) entry { return entry{clock.Later(at, last), left} }
	switch inv.Status {
	case invoice.Paid:
		b.add(l, ended(last), -1, &l.Waived)
	case invoice.Expired:
		b.add(l, ended(inv.ExpiresAt), -1, &l.Expired)
	case invoice.Void:
		b.add(l, ended(clock.Earlier(inv.VoidedAt, inv.ExpiresAt)), -1, &l.Canceled)
	case invoice.Open, invoice.Drafted:
	}
	return nil
}

// add adds an entry to the opening balance with a sign if it is from before the period, and to a sum
// if it is in the period.
func (b *statementBuilder) add(l *StatementLine, e entry, sign int, sum *big.Int) {
	switch n := number(e.amount); {
	case !e.at.Before(b.request.To):
	case !e.at.Before(b.request.From):
		sum.Add(sum, n)
	case sign < 0:
		l.Opening.Sub(&l.Opening, n)
	default:
		l.Opening.Add(&l.Opening, n)
	}
}

// counted returns which amounts of confirmed payments counted toward the invoice's amount, and when.
// Payments that were all confirmed before the period, or all in it, are one entry.
func (b *statementBuilder) counted(ctx context.Context, inv StatedInvoice) ([]entry, error) {
	if inv.ConfirmedAt.IsZero() && !inv.Contained {
		return nil, nil
	}
	if !inv.Sums.Stale && (inv.Contained || inv.Sums.Payments == 1 || inv.ConfirmedAt.Before(b.request.From)) {
		p := invoice.Payment{}
		p.Amount = inv.Sums.Tally.Counted()
		if p.Amount.IsZero() || !inv.Counts(p, invoice.Amount{}) {
			return nil, nil
		}
		return countedPart(inv.Invoice, p, invoice.Amount{}, inv.ConfirmedAt), nil
	}
	var all []entry
	var sum invoice.Amount
	last := invoice.Position{BlockNumber: 1<<63 - 1}
	for at := (invoice.Position{}); sum.Less(inv.Amount); {
		page, err := b.db.ConfirmedPaymentsBetween(ctx, inv.ID, at, last, pageSize)
		if err != nil {
			return nil, err
		}
		for _, p := range page {
			if inv.Counts(p, sum) {
				all = append(all, countedPart(inv.Invoice, p, sum, p.ConfirmedAt)...)
				sum = sum.Plus(p.Counted())
			}
			at = p.Position
		}
		if len(page) < pageSize {
			break
		}
	}
	return all, nil
}

// countedPart returns the part of a payment that counted toward the invoice's amount.
func countedPart(inv invoice.Invoice, p invoice.Payment, before invoice.Amount, at time.Time) []entry {
	portion := inv.Portion(p, before)
	if part := portion.Settled.Plus(portion.Underpaid); !part.IsZero() {
		return []entry{{at, part}}
	}
	return nil
}
