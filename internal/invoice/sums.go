package invoice

import "math"

// Sums are running sums of an invoice's payments. They are stored with the
// invoice, so that no rule has to read all of its payments.
type Sums struct {
	Stale    bool  // the payments must be added up again: see Recount
	Payments int64 // number of payments attributed to the invoice, in any status

	// Sums of payments that are not orphaned, in time and late, and how much of each is dust. Late means after
	// expiresAt, or after the invoice became void. Returned is how much of InTime does not count; it is not part of
	// InTimeDust.
	InTime, InTimeDust Amount
	Late, LateDust     Amount
	Returned           Amount
	// Newest is a position that no payment is above, except orphaned ones. Only its block number and log index are set.
	Newest Position

	Tally Tally
}

// Tally is running sums of an invoice's confirmed payments, counted in the
// chain's order. Their total is AmountPaid.
type Tally struct {
	Due        Amount // mined in time, up to the payment that completed the amount
	Returned   Amount // how much of Due does not count: see Payment.Returned
	DueDust    Amount // how much of Due is dust that counts
	BeyondDust Amount // how much of AmountPaid less Due is dust
	// Last is the position of the last payment counted; zero before the first. Only
	// its block number and log index are set.
	Last Position
}

// hundredth is 1%, in hundredths of a percent.
const hundredth = 100

// DustLimit returns the amount below which a payment is dust: a hundredth of the
// invoice's amount. It is 0 for an invoice over less than 100 minor units.
func (inv Invoice) DustLimit() Amount { return inv.Amount.share(hundredth) }

// IsDust reports whether a payment is dust: below the dust limit, and not
// attributed by a transfer amount of the invoice.
func (inv Invoice) IsDust(p Payment) bool {
	return p.Method != ByTransferAmount && p.Amount.Less(inv.DustLimit())
}

// negligible reports whether a sum of dust changes no exception: it is less than
// a hundredth of the invoice's amount.
func (inv Invoice) negligible(dust Amount) bool {
	return dust.Less(inv.Amount.share(hundredth))
}

// Ceiling returns the largest sum that is not an overpayment: the amount with the
// largest suffix.
func (inv Invoice) Ceiling() Amount { return inv.Amount.Plus(NewAmount(MaxSuffix)) }

// Counted returns how much of Due counts toward the invoice's amount.
func (t Tally) Counted() Amount { return t.Due.Minus(t.Returned) }

// Surplus returns by how much the payments exceed the amount due. The amount due is the sum that settled the invoice,
// if that does not exceed Ceiling, and the invoice's amount otherwise. An amount returned before the invoice was paid
// is not a surplus.
func (inv Invoice) Surplus() Amount {
	due := inv.Sums.Tally.Counted()
	if due.Less(inv.Amount) || inv.Ceiling().Less(due) {
		due = inv.Amount
	}
	return inv.Kept().Minus(due)
}

// Excess returns by how much the payments exceed the amount due, in time or late. It is 0 if the excess is not more
// than the suffix of a transfer amount, or dust. Refunds do not change it.
func (inv Invoice) Excess() Amount {
	switch inv.Exception {
	case Overpaid, Duplicate:
		return inv.Surplus()
	case Late:
		if inv.Ceiling().Less(inv.Kept()) {
			return inv.Surplus()
		}
	case Underpaid, "":
	}
	return Amount{}
}

// Kept returns the amount paid, without amounts returned before the invoice was paid or ended.
func (inv Invoice) Kept() Amount { return inv.AmountPaid.Minus(inv.Sums.Tally.Returned) }

// held returns how much of the payments in time counts, confirmed or not.
func (inv Invoice) held() Amount { return inv.Sums.InTime.Minus(inv.Sums.Returned) }

// Covered reports whether the payments that were mined in time and are not orphaned add up to the
// amount less the tolerance. Amounts that were or are to be refunded do not count.
func (inv Invoice) Covered() bool { return !inv.held().Less(inv.threshold()) }

// HasParts reports whether payments mined in time that count are more than dust. Without such payments
// the invoice is not partly paid.
func (inv Invoice) HasParts() bool { return inv.Sums.InTimeDust.Less(inv.held()) }

// Missing returns how much of the amount was not observed in time, confirmed or not, or was returned.
func (inv Invoice) Missing() Amount { return inv.Amount.Minus(inv.held()) }

// Arrived returns the amounts mined in time and mined late, confirmed or not, without negligible dust.
func (inv Invoice) Arrived() (inTime, late Amount) {
	s := inv.Sums
	if inv.negligible(s.InTimeDust.Plus(s.LateDust)) {
		return s.InTime.Minus(s.InTimeDust), s.Late.Minus(s.LateDust)
	}
	return s.InTime, s.Late
}

// Partial reports whether the invoice is partly paid, confirmed or not. An invoice with only dust and
// returned amounts is not partly paid.
func (inv Invoice) Partial() bool {
	inTime, _ := inv.Arrived()
	return inv.Sums.Returned.Less(inTime) && !inv.Covered()
}

// Recount returns the invoice with sums and state computed from all of its
// payments. Payments of other invoices are ignored.
func (inv Invoice) Recount(payments []Payment) Invoice {
	inv.Sums = Sums{}
	for _, p := range payments {
		if p.InvoiceID == inv.ID {
			inv = inv.WithPayment(p)
		}
	}
	return inv.Settle(payments)
}

// WithPayment returns the invoice with a payment added to its sums, but not to its
// Tally: see WithConfirmed.
func (inv Invoice) WithPayment(p Payment) Invoice {
	s := &inv.Sums
	s.Payments++
	if p.Status == Orphaned {
		return inv
	}
	late := inv.IsLate(p.Position)
	sum, dust := s.of(late)
	*sum = sum.Plus(p.Amount)
	if !late {
		s.Returned = s.Returned.Plus(p.returned())
	}
	if inv.IsDust(p) {
		*dust = dust.Plus(inv.counts(p))
	}
	if s.Newest.Before(p.Position) {
		s.Newest = p.place()
	}
	return inv
}

// WithoutPayment returns the invoice without a payment that WithPayment added. The sums become stale if the payment
// cannot be subtracted because a sum was limited to MaxAmount.
func (inv Invoice) WithoutPayment(p Payment) Invoice {
	s := &inv.Sums
	s.Payments--
	if p.Status == Orphaned {
		return inv
	}
	late := inv.IsLate(p.Position)
	sum, dust := s.of(late)
	s.Stale = s.Stale || *sum == MaxAmount || sum.Less(p.Amount)
	*sum = sum.Minus(p.Amount)
	if !late {
		s.Stale = s.Stale || s.Returned.Less(p.returned())
		s.Returned = s.Returned.Minus(p.returned())
	}
	if inv.IsDust(p) {
		*dust = dust.Minus(inv.counts(p))
	}
	return inv
}

// WithoutBlocksAbove returns the invoice after a reorg replaced the blocks above
// a number. Its payments there must have been orphaned or removed.
func (inv Invoice) WithoutBlocksAbove(number uint64) Invoice {
	if inv.Sums.Newest.BlockNumber > number {
		inv.Sums.Newest = Position{BlockNumber: number, LogIndex: math.MaxInt32}
	}
	return inv
}

// counts returns how much of a payment the sums include: all of a late one, which does not pay the invoice.
func (inv Invoice) counts(p Payment) Amount {
	if inv.IsLate(p.Position) {
		return p.Amount
	}
	return p.Counted()
}

// of returns the sums for late payments, or for payments in time.
func (s *Sums) of(late bool) (sum, dust *Amount) {
	if late {
		return &s.Late, &s.LateDust
	}
	return &s.InTime, &s.InTimeDust
}

// place returns only the payment's block number and log index.
func (p Payment) place() Position {
	return Position{BlockNumber: p.BlockNumber, LogIndex: p.LogIndex}
}
