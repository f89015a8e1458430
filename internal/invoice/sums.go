package invoice

import "math"

// Sums are what an invoice's payments add up to. They are kept with the
// invoice, so that no rule has to read its payments one by one.
type Sums struct {
	Stale    bool  // the payments must be added up again: see Recount
	Payments int64 // attributed to the invoice, in any status

	// What was mined at or before expiresAt and after it, in payments that are
	// not orphaned, and how much of each is dust.
	InTime, InTimeDust Amount
	Late, LateDust     Amount
	// Newest is a position that no payment is above, unless it is orphaned.
	// Only its block number and log index are set.
	Newest Position

	Tally Tally
}

// Tally is what an invoice's confirmed payments add up to, in the order of the
// chain. They add up to AmountPaid.
type Tally struct {
	Due        Amount // mined in time, up to and with the one that completed the amount
	DueDust    Amount // how much of Due is dust
	BeyondDust Amount // how much of the rest, AmountPaid less Due, is dust
	// Last is the position of the last payment counted. Only its block number
	// and log index are set; both are 0 before the first.
	Last Position
}

// dustCeiling is the largest dust limit, in minor units: a cent of a currency
// with 6 decimals.
const dustCeiling = 10_000

// hundredth is 1%, in hundredths of a percent.
const hundredth = 100

// DustLimit returns the amount below which a payment is dust: 10,000 minor
// units or a hundredth of the invoice's amount, whichever is less. It is 0 for
// an invoice over less than 100 minor units, which knows no dust.
func (inv Invoice) DustLimit() Amount {
	limit := NewAmount(dustCeiling)
	if share := inv.Amount.share(hundredth); share.Less(limit) {
		return share
	}
	return limit
}

// IsDust reports whether a payment is dust: below the dust limit, and not of
// an amount that the invoice's payer was told to send.
func (inv Invoice) IsDust(p Payment) bool {
	return p.Method != ByTransferAmount && p.Amount.Less(inv.DustLimit())
}

// negligible reports whether dust that adds up to the sum changes no
// exception: it is less than a hundredth of the invoice's amount.
func (inv Invoice) negligible(dust Amount) bool {
	return dust.Less(inv.Amount.share(hundredth))
}

// Ceiling returns the largest sum that is not an overpayment: the amount and
// the largest suffix, since any suffix is part of what was asked for.
func (inv Invoice) Ceiling() Amount { return inv.Amount.Plus(NewAmount(MaxSuffix)) }

// Surplus returns how much more than was due was paid. What settled the
// invoice was due as far as it does not exceed Ceiling, with its suffix.
func (inv Invoice) Surplus() Amount {
	due := inv.Sums.Tally.Due
	if due.Less(inv.Amount) || inv.Ceiling().Less(due) {
		due = inv.Amount
	}
	return inv.AmountPaid.Minus(due)
}

// Covered reports whether the payments that are not orphaned and were mined
// in time add up to enough, confirmed or not. Such an invoice needs no further
// payment.
func (inv Invoice) Covered() bool { return !inv.Sums.InTime.Less(inv.threshold()) }

// HasParts reports whether any of what was mined in time is more than dust.
// While none is, nothing remains, whatever the order of the payments is.
func (inv Invoice) HasParts() bool { return inv.Sums.InTimeDust.Less(inv.Sums.InTime) }

// Missing returns how much of the amount has not been seen in time, confirmed
// or not.
func (inv Invoice) Missing() Amount { return inv.Amount.Minus(inv.Sums.InTime) }

// Arrived returns what was mined in time and what came late, confirmed or not,
// without dust as long as it adds up to less than a hundredth of the amount.
func (inv Invoice) Arrived() (inTime, late Amount) {
	s := inv.Sums
	if inv.negligible(s.InTimeDust.Plus(s.LateDust)) {
		return s.InTime.Minus(s.InTimeDust), s.Late.Minus(s.LateDust)
	}
	return s.InTime, s.Late
}

// Partial reports whether the invoice has some of its amount, confirmed or
// not, and not enough. Dust alone is nothing.
func (inv Invoice) Partial() bool {
	inTime, _ := inv.Arrived()
	return !inTime.IsZero() && !inv.Covered()
}

// Recount returns the invoice with the sums of its payments, which must be all
// of them, and as Settle makes it. Payments of other invoices are ignored.
func (inv Invoice) Recount(payments []Payment) Invoice {
	inv.Sums = Sums{}
	for _, p := range payments {
		if p.InvoiceID == inv.ID {
			inv = inv.WithPayment(p)
		}
	}
	return inv.Settle(payments)
}

// WithPayment returns the invoice with a payment of its own in its sums. A confirmed
// one counts as one that is seen: see WithConfirmed.
func (inv Invoice) WithPayment(p Payment) Invoice {
	s := &inv.Sums
	s.Payments++
	if p.Status == Orphaned {
		return inv
	}
	sum, dust := s.of(p, inv.Terms)
	*sum = sum.Plus(p.Amount)
	if inv.IsDust(p) {
		*dust = dust.Plus(p.Amount)
	}
	if s.Newest.Before(p.Position) {
		s.Newest = p.place()
	}
	return inv
}

// WithoutPayment returns the invoice without a payment that WithPayment added. The sums
// are stale when the payment cannot be taken out of them, because a sum was
// held at MaxAmount.
func (inv Invoice) WithoutPayment(p Payment) Invoice {
	s := &inv.Sums
	s.Payments--
	if p.Status == Orphaned {
		return inv
	}
	sum, dust := s.of(p, inv.Terms)
	s.Stale = s.Stale || *sum == MaxAmount || sum.Less(p.Amount)
	*sum = sum.Minus(p.Amount)
	if inv.IsDust(p) {
		*dust = dust.Minus(p.Amount)
	}
	return inv
}

// WithoutBlocksAbove returns the invoice after a reorg that left the blocks above a
// number. Its payments there must be orphaned or removed.
func (inv Invoice) WithoutBlocksAbove(number uint64) Invoice {
	if inv.Sums.Newest.BlockNumber > number {
		inv.Sums.Newest = Position{BlockNumber: number, LogIndex: math.MaxInt32}
	}
	return inv
}

// of returns the sums that a payment counts in.
func (s *Sums) of(p Payment, t Terms) (sum, dust *Amount) {
	if p.BlockTime > t.ExpiresAt {
		return &s.Late, &s.LateDust
	}
	return &s.InTime, &s.InTimeDust
}

// place returns where on the chain a payment is, without its block's hash and
// time.
func (p Payment) place() Position {
	return Position{BlockNumber: p.BlockNumber, LogIndex: p.LogIndex}
}
