package invoice

// PaymentUse is the use of a payment. A payment has one use at a time: money that paid for goods is not sent back as
// well.
type PaymentUse string

// The uses of a payment.
const (
	UseUndecided PaymentUse = "undecided" // it has no invoice, and the rest of it awaits a decision
	UseCounted   PaymentUse = "counted"   // it belongs to an invoice
	UseRefunding PaymentUse = "refunding" // a refund of it is prepared, or its transfer is not final
	UseRefunded  PaymentUse = "refunded"  // all of it was sent back
	UseDismissed PaymentUse = "dismissed" // it has no invoice, and a person decided not to act on it
	// UseAttributing: a person attributes it to an invoice, and can still undo that.
	UseAttributing PaymentUse = "attributing"
)

// PaymentUses are all uses.
var PaymentUses = []PaymentUse{UseUndecided, UseCounted, UseRefunding, UseRefunded, UseDismissed, UseAttributing}

// UseAct is an act on a payment that a person or a payer's signature requests.
type UseAct string

// The acts.
const (
	// ActNone only recomputes the use after a change in the facts that determine it. Blocks of the chain are not
	// refused.
	ActNone      UseAct = ""
	ActAttribute UseAct = "attribute" // to an invoice, by hand, by a claim or by a rule that is tried again
	ActRefund    UseAct = "refund"    // to prepare a refund
	ActDismiss   UseAct = "dismiss"   // to decide not to act on the payment
	ActAccept    UseAct = "accept"    // to waive the rest of its invoice's amount
)

// UseFacts are the facts that decide the use of a payment.
type UseFacts struct {
	Amount      Amount // of the payment
	Counted     bool   // it belongs to an invoice
	Dismissed   bool   // a dismissal that was made since the payment last changed is in force
	Attributing bool   // a person decided on an invoice for it, which has not taken effect
	Accepted    bool   // somebody waived the rest of its invoice's amount
	Reserved    Amount // by prepared refunds that can be sent, or have a transfer that may be mined
	Pending     Amount // by refunds that are in blocks and not final
	Refunded    Amount // by final refunds
}

// UsedError means that a payment has a use that excludes the requested act.
type UsedError struct{ Use PaymentUse }

// Error names the use.
func (e *UsedError) Error() string { return "the payment is " + string(e.Use) }

// ChangeUse returns the use of a payment after an act, or a *UsedError that names the use that
// excludes it. No other function decides the use of a payment. Facts of the chain take precedence over
// decisions of people, because a mined transfer cannot be undone by a decision.
func ChangeUse(f UseFacts, act UseAct) (PaymentUse, error) {
	is := f.use()
	switch {
	case is.Excludes(act), act == ActRefund && f.Accepted:
		return is, &UsedError{is}
	case act == ActAttribute:
		return UseCounted, nil
	case act == ActDismiss:
		return UseDismissed, nil
	case act == ActRefund:
		return UseRefunding, nil // within the rest of the payment
	}
	return is, nil
}

// Excludes reports whether a payment with the use cannot be put to another one by an act. The
// zero value, of a payment that is not stored, excludes no act.
func (u PaymentUse) Excludes(act UseAct) bool {
	switch act {
	case ActAttribute:
		return u != UseUndecided && u != ""
	case ActDismiss: // another merchant of the address may have dismissed it before
		return u != UseUndecided && u != UseDismissed && u != ""
	case ActRefund:
		return u == UseDismissed || u == UseRefunded || u == UseAttributing
	case ActAccept:
		return u == UseRefunding
	case ActNone:
	}
	return false
}

// use returns the use that follows from the facts.
func (f UseFacts) use() PaymentUse {
	switch {
	case !f.Reserved.IsZero() || !f.Pending.IsZero():
		return UseRefunding
	case !f.Refunded.IsZero() && !f.Refunded.Less(f.Amount):
		return UseRefunded
	case f.Counted:
		return UseCounted
	case f.Attributing:
		return UseAttributing
	case f.Dismissed:
		return UseDismissed
	}
	return UseUndecided
}
