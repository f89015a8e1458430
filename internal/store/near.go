package store

import (
	"context"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
)

const (
	// nearAmounts is how many amounts above a transfer's, and how many below it,
	// are looked at for invoices that it could be meant for.
	nearAmounts = 3
	// nearLimit bounds the invoices that are looked at for each amount: the
	// newest.
	nearLimit = 10
)

// nearRows are the invoices of an address that are not paid. It names the
// condition of the index that holds them by amount.
const nearRows = " FROM invoices WHERE merchant_address = $1 AND chain_key = $2 AND token = $3 AND status IN ('open', 'expired') AND length(amount) = $4 AND amount "

// NearInvoices returns invoices that a transfer could be meant for though it
// has not the amount of one: of its receiver, chain and token, those that are
// not paid and have its amount or the next ones above and below it, those that
// are partly paid, and those that were closed and have its very amount. Of equal
// amounts the newest are taken that were created before a time, in Unix seconds.
// What it reads does not depend on how many there are. Those of other merchants
// are left out unless merchantID is empty.
func (q *queries) NearInvoices(ctx context.Context, t invoice.Transfer, merchantID string, createdBefore int64) ([]invoice.NearInvoice, error) {
	n := near{q: q, t: t, merchantID: merchantID, before: invoice.FirstID(invoice.PrefixInvoice, createdBefore)}
	for _, find := range []func(context.Context) error{n.unpaid, n.partlyPaid, n.closed} {
		if err := find(ctx); err != nil {
			return nil, err
		}
	}
	return n.found, nil
}

// near collects the invoices that a transfer could be meant for.
type near struct {
	q          *queries
	t          invoice.Transfer
	merchantID string // empty for all
	before     string // an invoice's id
	found      []invoice.NearInvoice
}

// receiver returns the first parameters of the statements.
func (n *near) receiver() []any {
	return []any{n.t.To.String(), n.t.ChainKey, n.t.Token.String()}
}

func (n *near) add(invoices []invoice.Invoice, err error) error {
	for _, inv := range invoices {
		known := slices.ContainsFunc(n.found, func(k invoice.NearInvoice) bool { return k.ID == inv.ID })
		wanted := n.merchantID == "" || inv.MerchantID == n.merchantID
		if !known && wanted && inv.ChainKey == n.t.ChainKey && inv.Token == n.t.Token {
			n.found = append(n.found, invoice.NearInvoice{
				Invoice: inv, Asks: []invoice.Amount{inv.Remaining, inv.RemainingTransfer},
				Covered: inv.Status == invoice.Paid || inv.Covered(),
			})
		}
	}
	return err
}

// unpaid finds those that are not paid, by their amounts.
func (n *near) unpaid(ctx context.Context) error {
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

// of finds the newest that are not paid and have an amount.
func (n *near) of(ctx context.Context, amount string) error {
	return n.add(queryAll(ctx, n.q, scanInvoice, "SELECT "+invoiceColumns+nearRows+"= $5 AND id < $6 ORDER BY id DESC LIMIT $7",
		append(n.receiver(), len(amount), amount, n.before, nearLimit)...))
}

// above returns the next amount above one, of at most one digit more, and ""
// when there is none. Numbers of the same length compare as texts.
func (n *near) above(ctx context.Context, amount string) (string, error) {
	const query = "SELECT amount" + nearRows + "> $5 ORDER BY amount LIMIT 1"
	found, err := n.first(ctx, query, len(amount), amount)
	if found != "" || err != nil {
		return found, err
	}
	return n.first(ctx, query, len(amount)+1, "")
}

// below returns the next amount below one, of at most one digit less.
func (n *near) below(ctx context.Context, amount string) (string, error) {
	const query = "SELECT amount" + nearRows + "< $5 ORDER BY amount DESC LIMIT 1"
	found, err := n.first(ctx, query, len(amount), amount)
	if found != "" || err != nil || len(amount) == 1 {
		return found, err
	}
	return n.first(ctx, query, len(amount)-1, strings.Repeat("9", len(amount)))
}

func (n *near) first(ctx context.Context, query string, digits int, amount string) (string, error) {
	found, err := queryAll(ctx, n.q, scanID, query, append(n.receiver(), digits, amount)...)
	if len(found) == 0 {
		return "", err
	}
	return found[0], err
}

// partlyPaid finds the newest that wait for a remainder.
func (n *near) partlyPaid(ctx context.Context) error {
	return n.add(queryAll(ctx, n.q, scanInvoice, "SELECT "+invoiceColumns+` FROM invoices
		WHERE merchant_address = $1 AND chain_key = $2 AND token = $3 AND remaining IS NOT NULL AND id < $4 ORDER BY id DESC LIMIT $5`,
		append(n.receiver(), n.before, nearLimit)...))
}

// closed finds those of the very amount that were closed last.
func (n *near) closed(ctx context.Context) error {
	return n.add(queryAll(ctx, n.q, scanInvoice, "SELECT "+invoiceColumns+` FROM invoices
		WHERE amount = $1 AND merchant_address = $2 AND status <> 'open' AND id || '' < $3 ORDER BY closed_block DESC LIMIT $4`,
		n.t.Amount.String(), n.t.To.String(), n.before, nearLimit))
}
