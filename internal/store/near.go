package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

const (
	// nearAmounts is how many different amounts above a transfer's, and how
	// many below it, are searched.
	nearAmounts = 3
	// nearLimit bounds the invoices of each amount, of which the newest are
	// taken.
	nearLimit = 10
)

// nearRows selects the unpaid invoices of an address. It repeats the condition
// of the index invoices_near.
const nearRows = " FROM invoices WHERE merchant_address = $1 AND chain_key = $2 AND token = $3 AND status IN ('open', 'expired') AND length(amount) = $4 AND amount "

// NearInvoices returns direct invoices of the transfer's receiver, chain and token
// that it could be meant for though no rule attributes it: unpaid ones with its
// amount or the next amounts above and below, partly paid ones, and closed ones
// with exactly its amount. Of equal amounts it takes the newest that were
// created before a time. The number of rows it reads is
// bounded. Unless merchantID is empty, it leaves out other merchants' invoices.
func (q *queries) NearInvoices(ctx context.Context, t invoice.Transfer, merchantID string, createdBefore time.Time) ([]invoice.NearInvoice, error) {
	n := nearSearch{q: q, t: t, merchantID: merchantID, createdBefore: createdBefore, before: invoice.FirstID(invoice.PrefixInvoice, createdBefore)}
	for _, find := range []func(context.Context) error{n.unpaid, n.partlyPaid, n.closed} {
		if err := find(ctx); err != nil {
			return nil, err
		}
	}
	return n.found, nil
}

// nearSearch collects the results of NearInvoices.
type nearSearch struct {
	q          *queries
	t          invoice.Transfer
	merchantID string // empty for all
	// An invoice must have been created before createdBefore; before is the first id
	// of that time.
	createdBefore time.Time
	before        string
	found         []invoice.NearInvoice
}

// receiver returns the first parameters of the statements.
func (n *nearSearch) receiver() []any {
	return []any{n.t.To.String(), n.t.ChainKey, n.t.Token.String()}
}

func (n *nearSearch) add(invoices []invoice.Invoice, err error) error {
	for _, inv := range invoices {
		known := slices.ContainsFunc(n.found, func(k invoice.NearInvoice) bool { return k.ID == inv.ID })
		wanted := n.merchantID == "" || inv.MerchantID == n.merchantID
		if !known && wanted && !inv.IsDeposit() && inv.ChainKey == n.t.ChainKey && inv.Token == n.t.Token {
			n.found = append(n.found, invoice.NearInvoice{
				Invoice: inv, Asks: []invoice.Amount{inv.Remaining, inv.RemainingTransfer},
				Covered: inv.Status == invoice.Paid || inv.Covered(),
			})
		}
	}
	return err
}

// unpaid adds unpaid invoices by their amounts.
func (n *nearSearch) unpaid(ctx context.Context) error {
	if err := n.of(ctx, n.t.Amount.String()); err != nil {
		return err
	}
	for _, next := range []func(context.Context, string) (string, error){n.above, n.below} {
		amount := n.t.Amount.String()
		for range nearAmounts {
			var err error
			if amount, err = next(ctx, amount); err != nil {
				return err
			}
			if amount == "" {
				break
			}
			if err := n.of(ctx, amount); err != nil {
				return err
			}
		}
	}
	return nil
}

// of adds the newest unpaid invoices with an amount.
func (n *nearSearch) of(ctx context.Context, amount string) error {
	return n.add(queryAll(ctx, n.q, scanInvoice, "SELECT "+invoiceColumns+nearRows+"= $5 AND id < $6 ORDER BY id DESC LIMIT $7",
		append(n.receiver(), len(amount), amount, n.before, nearLimit)...))
}

// above returns the next greater amount, with at most one more digit, or an
// empty text. Numbers of the same length compare like their texts.
func (n *nearSearch) above(ctx context.Context, amount string) (string, error) {
	const query = "SELECT amount" + nearRows + "> $5 ORDER BY amount LIMIT 1"
	found, err := n.first(ctx, query, len(amount), amount)
	if found != "" || err != nil {
		return found, err
	}
	return n.first(ctx, query, len(amount)+1, "")
}

// below returns the next smaller amount, with at most one digit less, or an
// empty text.
func (n *nearSearch) below(ctx context.Context, amount string) (string, error) {
	const query = "SELECT amount" + nearRows + "< $5 ORDER BY amount DESC LIMIT 1"
	found, err := n.first(ctx, query, len(amount), amount)
	if found != "" || err != nil || len(amount) == 1 {
		return found, err
	}
	return n.first(ctx, query, len(amount)-1, strings.Repeat("9", len(amount)))
}

func (n *nearSearch) first(ctx context.Context, query string, digits int, amount string) (string, error) {
	found, err := queryAll(ctx, n.q, scanID, query, append(n.receiver(), digits, amount)...)
	if len(found) == 0 {
		return "", err
	}
	return found[0], err
}

// partlyPaid adds the newest invoices of which a remainder is due.
func (n *nearSearch) partlyPaid(ctx context.Context) error {
	return n.add(queryAll(ctx, n.q, scanInvoice, "SELECT "+invoiceColumns+` FROM invoices
		WHERE merchant_address = $1 AND chain_key = $2 AND token = $3 AND remaining IS NOT NULL AND id < $4 ORDER BY id DESC LIMIT $5`,
		append(n.receiver(), n.before, nearLimit)...))
}

// closed adds the invoices with exactly the amount that were closed last.
func (n *nearSearch) closed(ctx context.Context) error {
	return n.add(queryAll(ctx, n.q, scanInvoice, "SELECT "+invoiceColumns+` FROM invoices
		WHERE amount = $1 AND merchant_address = $2 AND collection = 'direct' AND status <> 'open' AND status <> 'draft' AND created_at < $3 ORDER BY closed_block DESC LIMIT $4`,
		n.t.Amount.String(), n.t.To.String(), invoice.UnixSeconds(n.createdBefore), nearLimit))
}
