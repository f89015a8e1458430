package report

import (
	"context"
	"maps"
	"math/big"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

const (
	// invoicePage is how many invoices are read at once.
	invoicePage = 500
	// maxInvoicePages bounds the reads for one report, some of which may find few invoices.
	maxInvoicePages = 20
)

// InvoiceReader reads invoices from the database. ledger.Reader implements it.
type InvoiceReader interface {
	Invoices(ctx context.Context, f ledger.InvoiceFilter) (found []invoice.Invoice, examined string, err error)
}

// InvoiceLine has the sums of invoices of a chain and currency, in minor units. Drafts and void
// invoices count only in Paid and Refunded.
type InvoiceLine struct {
	Key                             // without a day
	Invoices, Open, Expired         int64
	Amount, OpenAmount, ExpiredLeft big.Int // OpenAmount and ExpiredLeft exclude payments
	Paid, Refunded                  big.Int
}

// Invoices has a line for each chain and currency, in order.
type Invoices struct {
	Lines     []*InvoiceLine
	Truncated bool // there are more, older invoices
}

// SumFiltered adds up the newest invoices of a filter, up to a limit.
func SumFiltered(ctx context.Context, source InvoiceReader, f ledger.InvoiceFilter, limit int, decimals func(chainKey, currency string) (int, bool)) (Invoices, error) {
	lines := make(map[Key]*InvoiceLine)
	out := Invoices{Truncated: true}
	added := 0
	for range maxInvoicePages {
		f.Limit = min(invoicePage, limit+1-added)
		page, examined, err := source.Invoices(ctx, f)
		if err != nil {
			return Invoices{}, err
		}
		for _, inv := range page[:min(len(page), limit-added)] {
			key := Key{ChainKey: inv.ChainKey, Currency: inv.Currency, Decimals: -1}
			if n, ok := decimals(inv.ChainKey, inv.Currency); ok {
				key.Decimals = n
			}
			if lines[key] == nil {
				lines[key] = &InvoiceLine{Key: key}
			}
			lines[key].add(inv)
		}
		if added += len(page); added > limit {
			break
		}
		if len(page) < f.Limit && examined == "" {
			out.Truncated = false
			break
		}
		if f.Before = examined; examined == "" {
			f.Before = page[len(page)-1].ID
		}
	}
	out.Lines = slices.SortedFunc(maps.Values(lines), func(a, b *InvoiceLine) int { return compareKeys(a.Key, b.Key) })
	return out, nil
}

// add adds an invoice.
func (l *InvoiceLine) add(inv invoice.Invoice) {
	l.Paid.Add(&l.Paid, number(inv.AmountPaid))
	l.Refunded.Add(&l.Refunded, number(inv.AmountRefunded))
	if inv.Status == invoice.Drafted || inv.Status == invoice.Void {
		return
	}
	l.Invoices++
	l.Amount.Add(&l.Amount, number(inv.Amount))
	var left big.Int
	if kept := inv.Kept(); kept.Less(inv.Amount) {
		left.Set(number(inv.Amount.Minus(kept)))
	}
	switch inv.Status {
	case invoice.Open:
		l.Open++
		l.OpenAmount.Add(&l.OpenAmount, &left)
	case invoice.Expired:
		l.Expired++
		l.ExpiredLeft.Add(&l.ExpiredLeft, &left)
	case invoice.Drafted, invoice.Void, invoice.Paid:
	}
}
