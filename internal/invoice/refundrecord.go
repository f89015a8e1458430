package invoice

import (
	"crypto/sha256"
	"slices"
	"time"
)

// Limits of prepared refunds.
const (
	// RefundLifetime is how long a prepared refund waits to be sent before it expires.
	RefundLifetime = 14 * 24 * time.Hour
	// MaxPreparedRefunds bounds the prepared refunds of a payment, in any state, also restored ones.
	MaxPreparedRefunds = 100
	// ManyInvoices is the number of invoices an account pays at an address from which a refund to it has a warning: the
	// account may be an exchange's.
	ManyInvoices = 10
)

// RefundStatus is the state of a RefundRecord.
type RefundStatus string

// The states of a refund. A transfer on the chain makes any prepared refund pending, and then confirmed. A reorg that
// drops the transfer undoes that.
const (
	RefundAwaitingAddress  RefundStatus = "awaiting_address"  // the payer has not named an address
	RefundAwaitingApproval RefundStatus = "awaiting_approval" // the merchant has not approved the address
	RefundPending          RefundStatus = "pending"           // it can be sent, or its transfer is not final
	RefundConfirmed        RefundStatus = "confirmed"
	RefundCanceled         RefundStatus = "canceled"
	RefundExpired          RefundStatus = "expired"
	RefundOrphaned         RefundStatus = "orphaned" // a transfer that was not prepared, dropped by a reorg
)

// RefundStatuses are all states of a refund.
var RefundStatuses = []RefundStatus{
	RefundAwaitingAddress, RefundAwaitingApproval, RefundPending, RefundConfirmed, RefundCanceled, RefundExpired, RefundOrphaned,
}

// AccountKind is what kind of account an address is, as far as known.
type AccountKind string

// The kinds of accounts.
const (
	AccountWithKey  AccountKind = "account"  // it has a key; it may delegate to a contract
	AccountContract AccountKind = "contract" // it has code
	AccountUnknown  AccountKind = "unknown"  // no node answered
)

// RefundWarning is something to consider before a prepared refund is sent.
type RefundWarning string

// The warnings.
const (
	WarnContract         RefundWarning = "contract"          // the recipient is a contract
	WarnAccountUnknown   RefundWarning = "account_unknown"   // the recipient may be a contract
	WarnManyInvoices     RefundWarning = "many_invoices"     // the payer has paid ManyInvoices invoices
	WarnOtherRecipient   RefundWarning = "other_recipient"   // the recipient is not the payer
	WarnExceedsRemainder RefundWarning = "exceeds_remainder" // less is left of the payment, or other refunds of it are being sent
	WarnInvoicePaid      RefundWarning = "invoice_paid"      // the invoice was paid after the refund was prepared
	WarnTransferDropped  RefundWarning = "transfer_dropped"  // a transfer that a reorg dropped may be mined again
	WarnNotMined         RefundWarning = "not_mined"         // it can no longer be sent, and its transaction may be mined
	WarnMayBeRefunded    RefundWarning = "may_be_refunded"   // an unrecognized or undecided transfer may have refunded the payment
)

// RefundRecord is a refund in the list of refunds: one that was prepared, or a transfer
// that was not. Tag and the fields after it are zero for the latter.
type RefundRecord struct {
	ID         string
	PaymentID  string
	InvoiceID  string // of the payment; empty while the payment has no invoice
	MerchantID string // of that invoice, or the merchant who prepared the refund
	ChainKey   string
	Token      Address
	Currency   string
	From       Address // the settlement address
	Payer      Address
	Left       Amount // the amount of the payment that the refunds on the chain leave
	// PaymentStatus is the state of the payment.
	PaymentStatus PaymentStatus
	Exceeded      bool // the refunds on the chain exceed the payment
	// InvoicePaid is set if the invoice became paid while a prepared refund could still be sent.
	InvoicePaid bool
	Status      RefundStatus
	CreatedAt   time.Time
	Transfer    Refund // the transfer that pays it; zero without one

	Tag          Hash // the last word of the transaction's calldata
	Amount       Amount
	To           Address // zero while the payer has not named it
	Reason       string
	Account      AccountKind // of To
	ManyInvoices bool        // the payer had paid ManyInvoices
	ClaimToken   string      // of the page on which the payer names To; empty if there is no page or it is unknown
	ClaimHash    Hash        // of ClaimToken; only the hash is stored; zero without a token
	Signature    string      // the payer's signature for To; empty without one
	ExpiresAt    time.Time
	CanceledAt   time.Time // zero unless it was canceled

	// SubmittedTx is the transaction of the submission that is in force; zero without one.
	SubmittedTx Hash
	Submitted   bool // a submission is in force, also one without a known transaction
	// MayReturn is set if a reorg dropped a transfer of the payment's refunds, which was not mined again.
	MayReturn bool
	// MayBeRefunded is set if a transfer from From may have refunded the payment: an unrecognized one, or an undecided
	// one to To or Payer.
	MayBeRefunded bool
	// Underway is the amount of other refunds of the payment that were submitted and are in no block.
	Underway Amount
}

// HashClaimToken returns the SHA-256 of a token of a refund's page.
func HashClaimToken(token string) Hash { return sha256.Sum256([]byte(token)) }

// Prepared reports whether the refund was prepared.
func (r RefundRecord) Prepared() bool { return !r.Tag.IsZero() }

// Sent reports whether a transfer on the chain pays the refund.
func (r RefundRecord) Sent() bool { return r.Transfer.ID != "" && r.Transfer.Status != Orphaned }

// Unsent returns the state of the refund without a transfer on the chain.
func (r RefundRecord) Unsent() RefundStatus {
	switch {
	case !r.Prepared():
		return RefundOrphaned
	case !r.CanceledAt.IsZero():
		return RefundCanceled
	}
	return RefundPending
}

// IsAwaited reports whether the refund's transfer, which a reorg dropped, is expected to be mined again.
// A transfer that was seen is a submission until somebody withdraws it.
func (r RefundRecord) IsAwaited() bool {
	return r.Transfer.Status == Orphaned && !r.SubmittedTx.IsZero() && r.SubmittedTx == r.Transfer.TxHash
}

// LacksPayment reports whether a transfer on the chain refunds a payment that did not arrive: a reorg dropped the
// payment, and it was not mined again, or with a smaller amount, or with other accounts.
func (r RefundRecord) LacksPayment() bool {
	return r.Sent() && (r.PaymentStatus == Orphaned || r.Exceeded || r.Transfer.Token != r.Token || r.Transfer.From != r.From)
}

// IsOpen reports whether a prepared refund is in no block and can still be mined at a time. A refund with a submitted
// transaction does not expire, since it may be mined at any time.
func (r RefundRecord) IsOpen(now time.Time) bool {
	return r.waits() && (!r.SubmittedTx.IsZero() || now.Before(r.ExpiresAt))
}

// StatusAt returns the state at a time. A refund that has expired is stored as expired a
// little later.
func (r RefundRecord) StatusAt(now time.Time) RefundStatus {
	if r.waits() && !r.IsOpen(now) {
		return RefundExpired
	}
	return r.Status
}

// waits reports whether a prepared refund is not sent, and was neither canceled nor stored
// as expired.
func (r RefundRecord) waits() bool {
	return r.Prepared() && !r.Sent() && (r.Status == RefundAwaitingAddress || r.Status == RefundAwaitingApproval || r.Status == RefundPending)
}

// mayBeMined reports whether somebody submitted a transaction of the refund that is in no block.
func (r RefundRecord) mayBeMined() bool { return !r.Sent() && !r.SubmittedTx.IsZero() }

// CanBeSent reports whether the transaction of a prepared refund may be sent. Other refunds of the payment that
// somebody sends count as sent. A transfer that may have refunded the payment prevents it.
func (r RefundRecord) CanBeSent(now time.Time) bool {
	return r.Status == RefundPending && r.waits() && now.Before(r.ExpiresAt) && !r.IsAwaited() && !r.exceeds() && !r.MayBeRefunded
}

// exceeds reports whether less is left of the payment, or will be left once the submitted refunds are mined.
func (r RefundRecord) exceeds() bool { return r.Left.Minus(r.Underway).Less(r.Amount) }

// Reserved returns how much of the payment a prepared refund reserves, in addition to the amount that its transfer has
// refunded. The reservation lasts until the refund is stored as expired, even if a clock shows a later time: if that
// clock is set back, two refunds of the same money must not be sendable. A smaller transfer than prepared releases the
// rest only once it is final, because a reorg may drop it before. The amount of an awaited transfer is reserved,
// whether or not it was prepared. If the refund's transaction was recorded after the refund was canceled or stored as
// expired, its amount is reserved as well, unless less is left of the payment: such a transfer would not become a
// refund.
func (r RefundRecord) Reserved() Amount {
	switch {
	case r.IsAwaited() && (!r.waits() || r.Amount.Less(r.Transfer.Amount)):
		return r.Transfer.Amount
	case r.waits():
		return r.Amount
	case r.mayBeMined():
		amount := r.Amount
		if !r.Prepared() {
			amount = r.Transfer.Amount
		}
		if r.Left.Less(amount) {
			return Amount{}
		}
		return amount
	case r.Status == RefundPending && r.Sent() && r.CanceledAt.IsZero() && r.Transfer.Amount.Less(r.Amount):
		return r.Amount.Minus(r.Transfer.Amount)
	}
	return Amount{}
}

// NamedBy reports whether the calldata of a transfer from the settlement address names the
// prepared refund, wherever the transfer goes.
func (r RefundRecord) NamedBy(t Transfer) bool {
	return r.Prepared() && t.Evidence.Calldata == r.Tag && r.ChainKey == t.ChainKey && r.From == t.From
}

// Names reports whether a transfer's calldata names the prepared refund, and it goes to
// the refund's recipient or back to the payer.
func (r RefundRecord) Names(t Transfer) bool {
	return r.NamedBy(t) && r.from(t) && !r.To.IsZero() && (t.To == r.To || t.To == r.Payer)
}

// Fits reports whether a transfer has the recipient and the amount of a pending prepared
// refund. A wallet that cannot send the tag makes such a transfer.
func (r RefundRecord) Fits(t Transfer) bool {
	return r.Prepared() && r.Status == RefundPending && r.from(t) && t.To == r.To && t.Amount == r.Amount
}

// WouldBeSent reports whether a transfer with the recipient and the amount of the prepared refund would have been recorded
// as a refund at any time since its recipient is known. Left only falls while a reorg does not drop a transfer. One that
// a person approved was not pending before.
func (r RefundRecord) WouldBeSent() bool {
	approved := !r.ClaimHash.IsZero() && r.Signature == ""
	return r.Prepared() && r.Status == RefundPending && !approved && r.CanceledAt.IsZero() && !r.Sent() && !r.Left.Less(r.Amount) &&
		r.PaymentStatus == Confirmed && !r.MayReturn && !r.MayBeRefunded
}

// from reports whether a transfer moves the refund's token from its settlement address.
func (r RefundRecord) from(t Transfer) bool {
	return t.ChainKey == r.ChainKey && t.Token == r.Token && t.From == r.From
}

// Takes reports whether the transfer with the id can pay the refund, because no other transfer pays it.
func (r RefundRecord) Takes(transferID string) bool { return !r.Sent() || r.Transfer.ID == transferID }

// Warnings returns the warnings about a prepared refund at a time.
func (r RefundRecord) Warnings(now time.Time) (all []RefundWarning) {
	if !r.Prepared() || r.To.IsZero() {
		return nil
	}
	all = append(r.recipientWarnings(), r.paymentWarnings()...)
	if r.MayReturn && !r.Sent() {
		all = append(all, WarnTransferDropped)
	}
	if r.IsOpen(now) && !now.Before(r.ExpiresAt) || !r.waits() && r.mayBeMined() && !r.IsAwaited() {
		all = append(all, WarnNotMined)
	}
	return all
}

// paymentWarnings returns the warnings about the payment.
func (r RefundRecord) paymentWarnings() (all []RefundWarning) {
	if r.Status == RefundPending && !r.Sent() && r.exceeds() {
		all = append(all, WarnExceedsRemainder)
	}
	if r.InvoicePaid && r.waits() {
		all = append(all, WarnInvoicePaid)
	}
	if r.MayBeRefunded && r.waits() {
		all = append(all, WarnMayBeRefunded)
	}
	return all
}

// recipientWarnings returns the warnings about the recipient.
func (r RefundRecord) recipientWarnings() (all []RefundWarning) {
	switch r.Account {
	case AccountContract:
		all = append(all, WarnContract)
	case AccountUnknown:
		all = append(all, WarnAccountUnknown)
	case AccountWithKey:
	}
	if r.To != r.Payer {
		all = append(all, WarnOtherRecipient)
	} else if r.ManyInvoices {
		all = append(all, WarnManyInvoices)
	}
	return all
}

// Cancel returns the canceled refund; ok is false if the refund was sent, canceled, or stored as expired.
func (r RefundRecord) Cancel(now time.Time) (canceled RefundRecord, ok bool) {
	if !r.waits() {
		return r, false
	}
	r.Status, r.CanceledAt = RefundCanceled, now
	return r, true
}

// Approve returns the refund with the approval of an address; ok is false unless it
// waits for the approval of that address.
func (r RefundRecord) Approve(to Address, now time.Time) (approved RefundRecord, ok bool) {
	if r.Status != RefundAwaitingApproval || r.To != to || !r.IsOpen(now) {
		return r, false
	}
	r.Status = RefundPending
	return r, true
}

// NameAddress returns the refund with the address that the payer names. With the payer's signature the refund can be
// sent; otherwise it waits for an approval. ok is false if the refund awaits no address. A signed address replaces one
// that was named without a signature.
func (r RefundRecord) NameAddress(to Address, account AccountKind, signature string, now time.Time) (named RefundRecord, ok bool) {
	expected := r.Status == RefundAwaitingAddress || r.Status == RefundAwaitingApproval && signature != ""
	if !expected || !r.IsOpen(now) {
		return r, false
	}
	r.To, r.Account, r.Signature, r.Status = to, account, signature, RefundAwaitingApproval
	if signature != "" {
		r.Status = RefundPending
	}
	return r, true
}

// underway returns how much of the payment a submitted refund takes that is in no block: its amount, or the amount of the
// transfer that a reorg dropped, if that is more or the refund itself was canceled or has expired.
func (r RefundRecord) underway() Amount {
	switch {
	case r.Sent(), !r.Submitted, r.SubmittedTx.IsZero() && !r.waits():
		return Amount{}
	case !r.Prepared(), r.IsAwaited() && (!r.waits() || r.Amount.Less(r.Transfer.Amount)):
		return r.Transfer.Amount
	}
	return r.Amount
}

// AddOthers sets MayReturn and Underway of refunds. reserving are, of their payments, the prepared refunds and the
// transfers that a reorg dropped.
func AddOthers(refunds, reserving []RefundRecord) {
	underway, mayReturn := make(map[string]Amount), make(map[string]bool)
	for _, r := range reserving {
		underway[r.PaymentID] = underway[r.PaymentID].Plus(r.underway())
		mayReturn[r.PaymentID] = mayReturn[r.PaymentID] || r.Transfer.Status == Orphaned
	}
	for i, r := range refunds {
		refunds[i].Underway, refunds[i].MayReturn = underway[r.PaymentID].Minus(r.underway()), mayReturn[r.PaymentID]
	}
}

// ReservedOf returns how much prepared refunds of a payment reserve together.
func ReservedOf(refunds []RefundRecord) (sum Amount) {
	for _, r := range refunds {
		sum = sum.Plus(r.Reserved())
	}
	return sum
}

// PreparedFor returns the prepared refund that a transfer pays, or at least the one for the payment that it refunds.
// That is the refund named in its calldata; without a name it is the first that fits and that no other transfer pays. paid
// is the id of the refund that the transfer already pays, which is preferred, or empty. One of which the transfer's
// transaction was submitted comes next, and then one with another submitted transaction. named reports whether the
// calldata names a refund; if that refund has another recipient, ok is false.
func PreparedFor(t Transfer, transferID string, prepared []RefundRecord, paid string) (r RefundRecord, named, ok bool) {
	if i := slices.IndexFunc(prepared, func(r RefundRecord) bool { return r.Names(t) }); i >= 0 {
		return prepared[i], true, true
	}
	if slices.ContainsFunc(prepared, func(r RefundRecord) bool { return r.Tag == t.Evidence.Calldata }) {
		return r, true, false
	}
	rank := func(r RefundRecord) int {
		switch {
		case r.ID == paid:
			return 3
		case r.SubmittedTx.IsZero():
			return 0
		case r.SubmittedTx == t.TxHash:
			return 2
		}
		return 1
	}
	for _, candidate := range prepared {
		if (!ok || rank(candidate) > rank(r)) && candidate.Fits(t) && candidate.Takes(transferID) {
			r, ok = candidate, true
		}
	}
	return r, false, ok
}
