package checkout

import "github.com/quittance/quittance/internal/invoice"

// maxUnmatched bounds the payments without an invoice that a page looks at, newest first.
const maxUnmatched = 20

// unmatched describes the payments of a wrong amount that may be meant for an invoice. The zero value
// describes none.
type unmatched struct {
	to, token invoice.Address
	chainKey  string
	after     uint64         // the newest block that was read when the invoice was created
	due       invoice.Amount // what the page asks for
}

// unmatched returns the payments that may be meant for the invoice. At a deposit address every amount
// is attributed.
func (s pageInput) unmatched() unmatched {
	u := unmatched{to: s.invoice.Merchant, token: s.invoice.Token, chainKey: s.invoice.ChainKey, after: s.invoice.FromBlock}
	switch st := s.state(); {
	case s.invoice.IsDeposit():
	case st == waiting:
		u.due = s.invoice.Amount
	case st == partial:
		u.due = s.rest()
	}
	return u
}

// has reports whether an unattributed payment may be meant for the invoice: it differs from what is
// due by at most a half.
func (u unmatched) has(p invoice.Payment) bool {
	difference := p.Amount.Minus(u.due).Plus(u.due.Minus(p.Amount))
	return p.To == u.to && p.Token == u.token && p.ChainKey == u.chainKey && p.BlockNumber > u.after &&
		p.Status != invoice.Orphaned && !u.due.Less(difference.Plus(difference))
}
