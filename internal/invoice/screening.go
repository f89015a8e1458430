package invoice

import (
	"strings"
	"unicode"
)

// Screening is the state of a payment's screening: an operator's hook is asked about the payer before the payment
// counts. It is empty if the payment is not screened.
type Screening string

// The states of screening.
const (
	ScreeningWaiting     Screening = "waiting"     // for the hook's verdict
	ScreeningAccepted    Screening = "accepted"    // by the hook, or because it gave no answer
	ScreeningQuarantined Screening = "quarantined" // a person has to decide
	ScreeningReleased    Screening = "released"    // by a person, so that it counts
	ScreeningRejected    Screening = "rejected"    // by a person, so that it has no invoice and gets none
)

// Holds reports whether a payment in this state does not count, although its block may be final.
func (s Screening) Holds() bool { return s == ScreeningWaiting || s == ScreeningQuarantined }

// MayBecome reports whether a verdict or a decision can change the state.
func (s Screening) MayBecome(next Screening) bool {
	switch next {
	case ScreeningAccepted, ScreeningQuarantined:
		return s == ScreeningWaiting
	case ScreeningReleased, ScreeningRejected:
		return s == ScreeningQuarantined
	case ScreeningWaiting:
	}
	return false
}

// ReasonNoAnswer is the reason of a verdict that the hook did not give in time.
const ReasonNoAnswer = "no answer"

// MaxScreeningReason bounds the reason of a verdict, in characters.
const MaxScreeningReason = 200

// ValidScreeningReason reports whether a hook's reason can be stored: printable text of limited length, or none.
func ValidScreeningReason(reason string) bool {
	return reason == strings.ToValidUTF8(reason, "") && len([]rune(reason)) <= MaxScreeningReason &&
		!strings.ContainsFunc(reason, func(r rune) bool { return !unicode.IsGraphic(r) })
}

// IsFinal reports whether the payment's block is final: the chain is not asked about it again.
func (p Payment) IsFinal() bool { return p.Status == Confirmed || p.Status == Held }

// IsUnconfirmed reports whether the payment was seen and does not count yet.
func (p Payment) IsUnconfirmed() bool { return p.Status == Pending || p.Status == Held }

// Shown returns the status outside the service, where a held payment is pending.
func (s PaymentStatus) Shown() PaymentStatus {
	if s == Held {
		return Pending
	}
	return s
}

// InFinalBlock returns the status of a payment in a final block: Held while its screening holds it.
func (p Payment) InFinalBlock() PaymentStatus {
	if p.Screening.Holds() {
		return Held
	}
	return Confirmed
}
