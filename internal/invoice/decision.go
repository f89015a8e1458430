package invoice

import (
	"fmt"
	"time"
)

// ItemKind is the reason why an item needs a decision.
type ItemKind string

// The kinds of items.
const (
	ItemUnattributed ItemKind = "unattributed" // a payment without an invoice
	ItemClaimed      ItemKind = "claimed"      // such a payment that payers claim
	ItemUnderpaid    ItemKind = "underpaid"    // an invoice with that exception, like the next three
	ItemOverpaid     ItemKind = "overpaid"
	ItemLate         ItemKind = "late"
	ItemDuplicate    ItemKind = "duplicate"
	ItemApproval     ItemKind = "approval" // a refund to an address that no payer has signed for
	// ItemWithoutPayment is a refund on the chain that lacks its payment.
	ItemWithoutPayment ItemKind = "refund_without_payment"
	// ItemQuarantined is a payment that the screening hook quarantined. Only the operator decides about it.
	ItemQuarantined ItemKind = "quarantined"
)

// ItemKinds are all kinds of items.
var ItemKinds = []ItemKind{ItemUnattributed, ItemClaimed, ItemUnderpaid, ItemOverpaid, ItemLate, ItemDuplicate, ItemApproval, ItemWithoutPayment, ItemQuarantined}

// OfPayment reports whether the items of a kind are payments.
func (k ItemKind) OfPayment() bool {
	return k == ItemUnattributed || k == ItemClaimed || k == ItemQuarantined
}

// Outcome is the result of a decision.
type Outcome string

// AttributionDelay is how long a person can undo an attribution, which takes effect and is announced after it.
const AttributionDelay = time.Minute

// The outcomes of decisions. Attributed changes a payment and an invoice after AttributionDelay, Released and Rejected
// at once; the others change neither.
const (
	Dismissed  Outcome = "dismissed"  // no action is needed
	Accepted   Outcome = "accepted"   // the missing amount of an underpaid invoice is waived
	Attributed Outcome = "attributed" // the payment is attributed to an invoice
	Released   Outcome = "released"   // the quarantined payment counts
	Rejected   Outcome = "rejected"   // the quarantined payment has no invoice, and can be refunded
)

// Outcomes are all outcomes.
var Outcomes = []Outcome{Dismissed, Accepted, Attributed, Released, Rejected}

// Decision is a person's decision about an item. It applies, until it is undone, to the version of the item that the
// person saw.
type Decision struct {
	ID         string
	MerchantID string // the merchant with the item in its inbox; empty if only the operator has it
	Kind       ItemKind
	ObjectID   string // payment, invoice or refund
	Version    string
	Outcome    Outcome
	Reason     string
	By         string
	At         time.Time
	UndoneBy   string // empty unless it was undone
	UndoneAt   time.Time
	// InvoiceID and AppliesAt are of an Attributed payment: its invoice, and when the decision is to take effect.
	// AppliedAt is when it did, also for Released and Rejected.
	InvoiceID            string
	AppliesAt, AppliedAt time.Time
}

// ItemOf returns the kind and version of an invoice's item, or "" if the invoice needs no decision: it has no
// exception, awaits the rest of its amount, was paid within its tolerance, or the whole difference from its terms was
// refunded.
func ItemOf(inv Invoice) (kind ItemKind, version string) {
	inv = inv.withoutSentBack()
	if inv.Exception == "" || inv.Exception == Underpaid && (inv.Status == Open || inv.Status == Paid) {
		return "", ""
	}
	owed := inv.AmountPaid
	if inv.Status == Paid {
		owed = inv.Surplus().Plus(inv.Sums.Tally.Returned) // which is part of the refunded amount, or will be
	}
	if !inv.AmountRefunded.Less(owed) {
		return "", ""
	}
	return ItemKind(inv.Exception), fmt.Sprintf("%s %s %s", inv.Status, inv.AmountPaid, inv.AmountRefunded)
}

// State is what lists of invoices select by.
type State struct {
	Status    Status
	Exception Exception
	Item      ItemKind // of the inbox; empty if it needs no decision
}

// States returns all states that an invoice can have.
func States() (all []State) {
	for _, s := range Statuses {
		var exceptions []Exception
		var items []ItemKind
		switch s {
		case Drafted:
		case Open:
			exceptions, items = []Exception{Underpaid, Late}, []ItemKind{"", ItemLate}
		case Paid:
			exceptions, items = []Exception{Underpaid, Overpaid, Duplicate}, []ItemKind{"", ItemOverpaid, ItemDuplicate}
		case Expired, Void:
			exceptions, items = []Exception{Underpaid, Late}, []ItemKind{"", ItemUnderpaid, ItemLate}
		}
		all = append(all, State{Status: s})
		for _, e := range exceptions {
			for _, i := range items {
				all = append(all, State{s, e, i})
			}
		}
	}
	return all
}

// withoutSentBack returns the invoice without payments beyond the amount due, such as late ones, if the same amount was
// refunded since. So the item is the same as before those payments, and the earlier decision about it applies again.
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

// ItemOfPayment returns the kind and version of a payment's item, or "" if the payment needs no decision. refunded is
// how much of it was refunded, and claims is the number of its claims.
func ItemOfPayment(p Payment, refunded Amount, claims int) (kind ItemKind, version string) {
	if p.Screening == ScreeningQuarantined && p.Status != Orphaned {
		return ItemQuarantined, fmt.Sprintf("%s %s", p.InvoiceID, refunded)
	}
	if p.Attributed() || p.Status == Orphaned || !refunded.Less(p.Amount) {
		return "", ""
	}
	if kind = ItemUnattributed; claims > 0 {
		kind = ItemClaimed
	}
	return kind, fmt.Sprintf("%d %s", claims, refunded)
}

// ItemOfRefund returns the kind and version of a refund's item at a time, or "" if the refund needs no decision.
func ItemOfRefund(r RefundRecord, now time.Time) (kind ItemKind, version string) {
	switch {
	case r.StatusAt(now) == RefundAwaitingApproval:
		return ItemApproval, r.To.String()
	case r.LacksPayment():
		return ItemWithoutPayment, fmt.Sprintf("%s %s", r.Transfer.Status, r.PaymentID)
	}
	return "", ""
}

// CheckOutcome returns a *FieldError if the outcome is not allowed for the kind of item.
func CheckOutcome(kind ItemKind, o Outcome) error {
	var ok bool
	switch o {
	case Dismissed:
		ok = kind != ItemQuarantined
	case Accepted:
		ok = kind == ItemUnderpaid
	case Attributed:
		ok = kind == ItemUnattributed || kind == ItemClaimed
	case Released, Rejected:
		ok = kind == ItemQuarantined
	}
	if !ok {
		return &FieldError{Field: "decision", Detail: "must be released or rejected for a quarantined payment; otherwise dismissed, accepted for an underpaid invoice, or attributed for a payment without an invoice"}
	}
	return nil
}
