package invoice

import (
	"fmt"
	"slices"
	"time"
)

// ItemKind is why something needs a decision.
type ItemKind string

// The kinds of items.
const (
	ItemUnattributed ItemKind = "unattributed" // a payment without an invoice
	ItemClaimed      ItemKind = "claimed"      // such a payment that payers claim
	ItemUnderpaid    ItemKind = "underpaid"    // an invoice of that exception, as are the next three
	ItemOverpaid     ItemKind = "overpaid"
	ItemLate         ItemKind = "late"
	ItemDuplicate    ItemKind = "duplicate"
	ItemApproval     ItemKind = "approval" // a refund to an address that nobody has signed for
	// ItemWithoutPayment is a refund on the chain that lacks its payment.
	ItemWithoutPayment ItemKind = "refund_without_payment"
)

// ItemKinds are all kinds of items.
var ItemKinds = []ItemKind{ItemUnattributed, ItemClaimed, ItemUnderpaid, ItemOverpaid, ItemLate, ItemDuplicate, ItemApproval, ItemWithoutPayment}

// Outcome is what was decided.
type Outcome string

// The outcomes of decisions. Neither changes a payment, an invoice or a refund.
const (
	Dismissed Outcome = "dismissed" // nothing is to be done
	Accepted  Outcome = "accepted"  // what is missing of an underpaid invoice is waived
)

// Outcomes are all outcomes.
var Outcomes = []Outcome{Dismissed, Accepted}

// Decision is what a person decided about an item. It is in force until it is taken back,
// for the version of the item that the person saw.
type Decision struct {
	ID         string
	MerchantID string // whose inbox it is; empty for that of the operator alone
	Kind       ItemKind
	ObjectID   string // payment, invoice or refund
	Version    string
	Outcome    Outcome
	Reason     string
	By         string
	At         time.Time
	UndoneBy   string // empty unless it was taken back
	UndoneAt   time.Time
}

// ItemOf returns the kind of the item that an invoice is and its version, or "" if it needs
// no decision: it has no exception, awaits the rest of its amount, was paid within its
// tolerance, or all that counts against its terms was refunded.
func ItemOf(inv Invoice) (kind ItemKind, version string) {
	inv = inv.withoutSentBack()
	if inv.Exception == "" || inv.Exception == Underpaid && (inv.Status == Open || inv.Status == Paid) {
		return "", ""
	}
	owed := inv.AmountPaid
	if inv.Status == Paid {
		owed = inv.Surplus().Plus(inv.Sums.Tally.Returned) // which is among what was refunded, or will be
	}
	if !inv.AmountRefunded.Less(owed) {
		return "", ""
	}
	return ItemKind(inv.Exception), fmt.Sprintf("%s %s %s", inv.Status, inv.AmountPaid, inv.AmountRefunded)
}

// withoutSentBack returns the invoice without the payments beyond the amount due, such as late ones, if
// as much was refunded since. So it is the same item as before they came, and the decision about that
// item holds again.
func (inv Invoice) withoutSentBack() Invoice {
	t := &inv.Sums.Tally
	extra := inv.AmountPaid.Minus(t.Due)
	if inv.Exception == "" || extra.IsZero() || inv.AmountRefunded.Minus(t.Returned).Less(extra) {
		return inv
	}
	inv.AmountPaid, inv.AmountRefunded, t.BeyondDust = t.Due, inv.AmountRefunded.Minus(extra), Amount{}
	inv.Exception = inv.exception()
	return inv
}

// ItemOfPayment returns the kind of the item that a payment is and its version, or "" if it
// needs no decision. refunded is what was refunded of it, and claims how many there are.
func ItemOfPayment(p Payment, refunded Amount, claims int) (kind ItemKind, version string) {
	if p.Attributed() || p.Status == Orphaned || !refunded.Less(p.Amount) {
		return "", ""
	}
	if kind = ItemUnattributed; claims > 0 {
		kind = ItemClaimed
	}
	return kind, fmt.Sprintf("%d %s", claims, refunded)
}

// ItemOfRefund returns the kind of the item that a refund is at a time and its version, or ""
// if it needs no decision.
func ItemOfRefund(r RefundRecord, now time.Time) (kind ItemKind, version string) {
	switch {
	case r.StatusAt(now) == RefundAwaitingApproval:
		return ItemApproval, r.To.String()
	case r.LacksPayment():
		return ItemWithoutPayment, fmt.Sprintf("%s %s", r.Transfer.Status, r.PaymentID)
	}
	return "", ""
}

// CheckOutcome returns a *FieldError if a kind of items has no such outcome.
func CheckOutcome(kind ItemKind, o Outcome) error {
	if !slices.Contains(Outcomes, o) || o == Accepted && kind != ItemUnderpaid {
		return &FieldError{Field: "decision", Detail: "must be dismissed or, for an underpaid invoice, accepted"}
	}
	return nil
}
