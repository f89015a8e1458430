package invoice

import "cmp"

// Position is the position of a transfer on its chain.
type Position struct {
	BlockNumber uint64
	BlockHash   Hash
	BlockTime   int64 // Unix seconds, as the block says
	LogIndex    int   // within the block
}

// Before reports whether p comes earlier on the chain than q.
func (p Position) Before(q Position) bool { return p.Compare(q) < 0 }

// Compare returns -1, 0 or +1 as p comes before q on the chain, at the same
// place or after it.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.BlockNumber, q.BlockNumber), cmp.Compare(p.LogIndex, q.LogIndex))
}

// Transfer is one movement of a watched token, as its log tells.
type Transfer struct {
	Position
	ChainKey string
	TxHash   Hash
	Ordinal  int // of the log within its transaction, from 0
	Token    Address
	Currency string
	From, To Address
	Amount   Amount
	Evidence Evidence
}

// SameMovement reports whether t and u move the same money between the same
// accounts, wherever they were mined.
func (t Transfer) SameMovement(u Transfer) bool {
	return t.Token == u.Token && t.From == u.From && t.To == u.To && t.Amount == u.Amount
}

// Evidence is what a transaction says about the invoice that a transfer is
// meant for. A zero Hash is no evidence of that kind.
type Evidence struct {
	Registry      Hash // of the registry's Paid event that follows the transfer
	Authorization Hash // nonce of the ERC-3009 authorization that made the transfer
	Calldata      Hash // the last 32 bytes of the transaction's input, where the payer answers for that
}

// PaymentStatus is the state of a payment or a refund.
type PaymentStatus string

// The states of a payment. A pending one can be confirmed or orphaned, an
// orphaned one can be mined again, and a confirmed one is final.
const (
	Pending   PaymentStatus = "pending"
	Confirmed PaymentStatus = "confirmed"
	Orphaned  PaymentStatus = "orphaned"
)

// Method tells how a payment was attributed to its invoice.
type Method string

// The methods of attribution, strongest first.
const (
	ByRegistry       Method = "registry"
	ByAuthorization  Method = "authorization"
	ByCalldata       Method = "calldata"
	ByTransferAmount Method = "transfer_amount"
	ByAmount         Method = "amount"
	ByTolerance      Method = "tolerance"
	// ByHand: somebody said so, since no rule did.
	ByHand Method = "by_hand"
	// ByClaim: the account that paid signed that it is for the invoice.
	ByClaim Method = "by_claim"
)

// Guessed reports whether a payment was attributed by an amount that its payer
// was not told to send, so that a transfer which pays back another payment may
// have it by coincidence.
func (m Method) Inferred() bool { return m == ByAmount || m == ByTolerance }

// ByWord reports whether somebody's word attributed the payment, which no
// evidence on the chain can change.
func (m Method) OffChain() bool { return m == ByHand || m == ByClaim }

// Payment is a transfer to a settlement address. InvoiceID, MerchantID and
// Method are empty while it is not attributed to an invoice.
type Payment struct {
	Transfer
	ID          string
	InvoiceID   string
	MerchantID  string
	Method      Method
	Status      PaymentStatus
	ObservedAt  int64 // Unix seconds
	ConfirmedAt int64 // Unix seconds; 0 unless confirmed

	// Who attributed it by hand or by a claim, and when (Unix seconds). Empty for
	// every other method.
	AttributedBy string
	AttributedAt int64
}

// Attributed reports whether the payment belongs to an invoice.
func (p Payment) Attributed() bool { return p.InvoiceID != "" }

// Attributed reports whether the payment that is paid back belongs to an
// invoice.
func (r Refund) Attributed() bool { return r.InvoiceID != "" }

// Of returns the payment as one of the invoice that the attribution names, or
// of none.
func (p Payment) Of(a Attribution) Payment {
	p.InvoiceID, p.MerchantID, p.Method = a.Invoice.ID, a.Invoice.MerchantID, a.Method
	p.AttributedBy, p.AttributedAt = "", 0
	return p
}

// Refund is a transfer from a settlement address back to the account that
// made a payment. InvoiceID and MerchantID are those of the payment, and empty
// while it is not attributed.
type Refund struct {
	Transfer
	ID          string
	PaymentID   string
	InvoiceID   string
	MerchantID  string
	Status      PaymentStatus
	ObservedAt  int64 // Unix seconds
	ConfirmedAt int64 // Unix seconds; 0 unless confirmed
}
