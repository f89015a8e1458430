package checkout

import (
	"github.com/quittance/quittance/internal/invoice"
)

// receiptState is the state of the invoice that a receipt shows at the top.
type receiptState string

// The states of a receipt.
const (
	receiptPaid     receiptState = "paid"
	receiptAccepted receiptState = "accepted" // within the tolerance, or by a person
	receiptPart     receiptState = "part"
	receiptLate     receiptState = "late"
	receiptVoid     receiptState = "void"
	receiptRefunded receiptState = "refunded" // all of it
)

// receiptHeadlines are the ids of the texts of the states.
var receiptHeadlines = map[receiptState]string{
	receiptPaid: "receipt.state.paid", receiptAccepted: "receipt.state.accepted", receiptPart: "receipt.state.part",
	receiptLate: "receipt.state.late", receiptVoid: "receipt.state.void", receiptRefunded: "receipt.state.refunded",
}

// receiptState returns the state of the invoice's receipt. Only final payments count.
func (s pageInput) receiptState() receiptState {
	inv := s.invoice
	switch {
	case !inv.AmountRefunded.IsZero() && !inv.AmountRefunded.Less(inv.AmountPaid):
		return receiptRefunded
	case s.waived, inv.Status == invoice.Paid && inv.Exception == invoice.Underpaid:
		return receiptAccepted
	case inv.Status == invoice.Paid:
		return receiptPaid
	case inv.Status == invoice.Void:
		return receiptVoid
	case inv.Sums.Tally.Due.IsZero():
		return receiptLate
	}
	return receiptPart
}

// receiptWords returns the state of a receipt, its headline, and the sentences below it.
func (s pageInput) receiptWords() (state receiptState, headline string, sentences []string) {
	inv, state := s.invoice, s.receiptState()
	say := func(id string, v values) { sentences = append(sentences, s.text.T(id, v)) }
	s.statusWords(say)
	if !inv.AmountRefunded.IsZero() {
		say("status.refunded", values{"Amount": s.written(inv.AmountRefunded)})
	}
	for _, p := range s.payments {
		if p.IsUnconfirmed() {
			say("receipt.text.pending", nil)
			break
		}
	}
	return state, s.text.T(receiptHeadlines[state], nil), sentences
}

// statusWords describes what the status of an invoice means for its money.
func (s pageInput) statusWords(say func(id string, v values)) {
	inv := s.invoice
	inTime := inv.Sums.Tally.Counted()
	late := inv.AmountPaid.Minus(inv.Sums.Tally.Due)
	ended := s.text.Clock(inv.ExpiresAt)
	if s.waived {
		say("receipt.text.accepted", values{"Merchant": s.merchant(), "Missing": s.written(inv.Amount.Minus(inTime))})
		return
	}
	switch inv.Status {
	case invoice.Paid:
		s.surplusWords(say)
	case invoice.Open:
		if !inv.Covered() { // by payments that are not final
			say("receipt.text.open", values{"Missing": s.written(inv.Missing())})
		}
	case invoice.Expired:
		if !inTime.IsZero() {
			say("status.expired.part.text", values{"Arrived": s.written(inTime), "Amount": s.written(inv.Amount), "Time": ended})
		}
		if !late.IsZero() {
			say("status.late", values{"Amount": s.written(late), "Time": ended})
		}
		if excess := inv.Excess(); !excess.IsZero() {
			say("receipt.text.over", values{"Surplus": s.written(excess)})
		}
	case invoice.Void, invoice.Drafted: // the headline says it; a draft has no receipt
	}
}

// surplusWords describes how the received sum differs from the amount of a paid invoice.
func (s pageInput) surplusWords(say func(id string, v values)) {
	inv := s.invoice
	kept := inv.Kept()
	switch surplus := inv.Surplus(); {
	case kept.Less(inv.Amount):
		say("receipt.text.accepted", values{"Merchant": s.merchant(), "Missing": s.written(inv.Amount.Minus(kept))})
	case !surplus.IsZero():
		say("receipt.text.over", values{"Surplus": s.written(surplus)})
	case inv.Amount.Less(kept):
		say("receipt.text.tag", values{"Extra": s.written(kept.Minus(inv.Amount))})
	}
}

// receiptTotals returns the sums of a receipt.
func (s pageInput) receiptTotals() []fact {
	inv := s.invoice
	totals := []fact{
		{Name: s.text.T("receipt.amount", nil), Value: s.written(inv.Amount)},
		{Name: s.text.T("receipt.received", nil), Value: s.written(inv.AmountPaid)},
	}
	if !inv.AmountRefunded.IsZero() {
		totals = append(totals,
			fact{Name: s.text.T("receipt.state.refunded", nil), Value: s.written(inv.AmountRefunded)},
			fact{Name: s.text.T("receipt.net", nil), Value: s.written(inv.AmountPaid.Minus(inv.AmountRefunded))},
		)
	}
	return totals
}
