package invoice

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Position is the position of a transfer on its chain.
type Position struct {
	BlockNumber uint64
	BlockHash   Hash
	BlockTime   time.Time // timestamp of the block
	LogIndex    int       // within the block
}

// Before reports whether p comes earlier on the chain than q.
func (p Position) Before(q Position) bool { return p.Compare(q) < 0 }

// Compare returns -1, 0 or +1 as p is before q on the chain, equal to it or after
// it. Block hash and time are not compared.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.BlockNumber, q.BlockNumber), cmp.Compare(p.LogIndex, q.LogIndex))
}

// Transfer is one transfer of a watched token, as in its log.
type Transfer struct {
	Position
	ChainKey string
	TxHash   Hash
	Ordinal  int // number of the log within its transaction, from 0
	Token    Address
	Currency string
	From, To Address
	Amount   Amount
	Evidence Evidence
}

// SameMovement reports whether t and u transfer the same amount of the same token
// between the same accounts, in any block.
func (t Transfer) SameMovement(u Transfer) bool {
	return t.Token == u.Token && t.From == u.From && t.To == u.To && t.Amount == u.Amount
}

// SweptElsewhere is the evidence of a transfer that sweeps a deposit address of another service: the money paid an
// invoice there. It is not a commitment id.
var SweptElsewhere = Hash([]byte("deposit swept by another service"))

// Evidence is the commitment ids with which a transaction identifies the invoice that a transfer pays. A zero Hash
// means no evidence of that kind.
type Evidence struct {
	Registry      Hash // of the registry's Paid event that follows the transfer, or SweptElsewhere
	Authorization Hash // nonce of the ERC-3009 authorization that made the transfer
	Calldata      Hash // the last 32 bytes of the transaction's input, if the payer chose it
}

// NamesAny reports whether the evidence names an invoice, known or not. It leaves out calldata that ends in an amount,
// an address or padding, which have zeros at one end.
func (e Evidence) NamesAny() bool {
	const zeros = "\x00\x00\x00\x00\x00\x00\x00\x00"
	return slices.ContainsFunc(e.Commitments(), func(c Hash) bool {
		return !strings.HasPrefix(string(c[:]), zeros) && !strings.HasSuffix(string(c[:]), zeros)
	})
}

// Commitments returns the commitments that the evidence names, each once.
func (e Evidence) Commitments() (named []Hash) {
	for _, c := range []Hash{e.Registry, e.Authorization, e.Calldata} {
		if !c.IsZero() && !slices.Contains(named, c) {
			named = append(named, c)
		}
	}
	return named
}

// PaymentStatus is the state of a payment or a refund.
type PaymentStatus string

// The states of a payment. A pending one can be confirmed, held or orphaned, and an orphaned one can be mined again. A
// held one is final and not confirmed: it counts once its screening ends. A confirmed one is final. A refund is never
// held.
const (
	Pending   PaymentStatus = "pending"
	Held      PaymentStatus = "held"
	Confirmed PaymentStatus = "confirmed"
	Orphaned  PaymentStatus = "orphaned"
)

// Method is how a payment was attributed to its invoice.
type Method string

// The methods of attribution, strongest first.
const (
	// ByDeposit: the transfer went to the invoice's deposit address.
	ByDeposit        Method = "deposit"
	ByRegistry       Method = "registry"
	ByAuthorization  Method = "authorization"
	ByCalldata       Method = "calldata"
	ByTransferAmount Method = "transfer_amount"
	ByAmount         Method = "amount"
	ByTolerance      Method = "tolerance"
	// ByHand: the merchant or an operator attributed it.
	ByHand Method = "by_hand"
	// ByClaim: the payer's account signed that it is for the invoice.
	ByClaim Method = "by_claim"
)

// Inferred reports whether a payment was attributed by an amount that is not a transfer amount. A transfer that refunds
// another payment may have that amount by coincidence.
func (m Method) Inferred() bool { return m == ByAmount || m == ByTolerance }

// OffChain reports whether the attribution rests on a statement made off the
// chain, which evidence on the chain cannot change.
func (m Method) OffChain() bool { return m == ByHand || m == ByClaim }

// Payment is a transfer to a settlement or deposit address. InvoiceID, MerchantID and Method
// are empty while it is not attributed to an invoice. Its own times are in UTC and
// whole seconds.
type Payment struct {
	Transfer
	ID          string
	InvoiceID   string
	MerchantID  string
	Method      Method
	Status      PaymentStatus
	ObservedAt  time.Time
	ConfirmedAt time.Time // zero unless confirmed

	// DepositOf is the invoice with the deposit address that received the payment, and SettlesTo is the settlement
	// address of that invoice. Both are zero for a payment to a settlement address. If the payment is in another
	// currency than the invoice, it is not attributed.
	DepositOf string
	SettlesTo Address

	// Returned is how much of the payment was refunded, or was to be refunded by a prepared refund, while its invoice
	// was open. It does not count for the invoice.
	Returned Amount

	// AttributedBy and AttributedAt are set only for off-chain methods.
	AttributedBy string
	AttributedAt time.Time

	// Screening is the state of the screening, and ScreeningReason is why; ScreeningSince is when it began to wait for
	// the verdict, by the schedule's clock, and zero unless it waits.
	Screening       Screening
	ScreeningReason string
	ScreeningSince  time.Time
}

// Attributed reports whether the payment belongs to an invoice.
func (p Payment) Attributed() bool { return p.InvoiceID != "" }

// returned returns Returned, or the amount if that is smaller.
func (p Payment) returned() Amount {
	if p.Amount.Less(p.Returned) {
		return p.Amount
	}
	return p.Returned
}

// Counted returns how much of a payment in time counts for its invoice.
func (p Payment) Counted() Amount { return p.Amount.Minus(p.Returned) }

// InOtherCurrency reports whether the payment went to a deposit address in another currency than the invoice's. It
// counts for no invoice, and is swept like any other.
func (p Payment) InOtherCurrency() bool {
	return p.DepositOf != "" && !p.Attributed() && p.Screening != ScreeningRejected
}

// RefundedFrom returns the settlement address from which the merchant refunds the payment.
func (p Payment) RefundedFrom() Address {
	if !p.SettlesTo.IsZero() {
		return p.SettlesTo
	}
	return p.To
}

// Attributed reports whether the refunded payment belongs to an invoice.
func (r Refund) Attributed() bool { return r.InvoiceID != "" }

// WithAttribution returns the payment attributed to the invoice in a, or to no invoice.
func (p Payment) WithAttribution(a Attribution) Payment {
	if p.InvoiceID != a.Invoice.ID {
		p.Returned = Amount{} // see Returning
	}
	p.InvoiceID, p.MerchantID, p.Method = a.Invoice.ID, a.Invoice.MerchantID, a.Method
	p.AttributedBy, p.AttributedAt = "", time.Time{}
	return p
}

// Refund is a transfer from a settlement address back to the account that made a
// payment. InvoiceID and MerchantID are the payment's, and empty while it is not
// attributed. Its own times are in UTC and whole seconds.
type Refund struct {
	Transfer
	ID          string
	PaymentID   string
	InvoiceID   string
	MerchantID  string
	Status      PaymentStatus
	ObservedAt  time.Time
	ConfirmedAt time.Time // zero unless confirmed
	PreparedID  string    // of the prepared refund that it pays; empty without one
}
