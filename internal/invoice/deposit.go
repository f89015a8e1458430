package invoice

import (
	"slices"
	"time"
)

// Collection is how payers pay an invoice.
type Collection string

// The ways to collect payments.
const (
	// Direct: payers transfer to the merchant's settlement address. The transaction or the amount identifies the
	// invoice.
	Direct Collection = "direct"
	// Deposit: payers transfer to an address that only this invoice has. The money can only go from there to the
	// merchant's settlement address.
	Deposit Collection = "deposit"
)

// Collections are all ways to collect payments.
var Collections = []Collection{Direct, Deposit}

// CheckCollection returns a *FieldError for the field collection unless c is one of
// Collections.
func CheckCollection(c Collection) error {
	if !slices.Contains(Collections, c) {
		return fieldErrorf("collection", "must be direct or deposit")
	}
	return nil
}

// IsDeposit reports whether payments are collected at a deposit address.
func (inv Invoice) IsDeposit() bool { return inv.Collection == Deposit }

// isDepositedBy reports whether t goes to the invoice's deposit address. A draft has no such address.
func (inv Invoice) isDepositedBy(t Transfer) bool {
	return !inv.DepositAddress.IsZero() && inv.DepositAddress == t.To
}

// PayTo returns the address that payers transfer to.
func (inv Invoice) PayTo() Address {
	if inv.IsDeposit() {
		return inv.DepositAddress
	}
	return inv.Merchant
}

// Sweep is a transfer out of a deposit address, which anyone can cause. It is neither a
// payment nor a refund. Its own times are in UTC and whole seconds.
type Sweep struct {
	Transfer
	ID          string
	InvoiceID   string // the invoice with the deposit address it empties
	Status      PaymentStatus
	ObservedAt  time.Time
	ConfirmedAt time.Time // zero unless confirmed
}
