package invoice

import "time"

// Status is the state of an invoice.
type Status string

// The states of an invoice. Paid, expired and void are final.
const (
	Drafted Status = "draft"
	Open    Status = "open"
	Paid    Status = "paid"
	Expired Status = "expired"
	Void    Status = "void"
)

// Statuses lists every state, in the interface's order.
var Statuses = []Status{Drafted, Open, Paid, Expired, Void}

// Exception is how the payments of an invoice differ from its terms. It is empty if they do not differ. It is not part
// of the state.
type Exception string

// The exceptions of an invoice.
const (
	// Underpaid: transfers mined in time add up to less than the amount. The invoice is paid if the sum is within its
	// tolerance.
	Underpaid Exception = "underpaid"
	// Overpaid: the transfers that settled the invoice exceed the amount.
	Overpaid Exception = "overpaid"
	// Late: the invoice is expired, and transfers were mined after expiresAt, or in
	// time but found after it expired.
	Late Exception = "late"
	// Duplicate: more transfers were mined after the invoice was paid.
	Duplicate Exception = "duplicate"
)

// Exceptions lists all exceptions.
var Exceptions = []Exception{Underpaid, Overpaid, Late, Duplicate}

// LineItem is one line of an invoice.
type LineItem struct {
	Label  string
	Amount Amount // minor units; part of the invoice's amount
}

// Terms are what a payer agrees to. The on-chain commitment is a hash of them,
// the chain, the registry and the invoice's id.
type Terms struct {
	Merchant  Address   // settlement address
	Token     Address   // contract of the currency on the invoice's chain
	Amount    Amount    // minor units
	ExpiresAt time.Time // the last second in which a payment counts
}

// Invoice is a request for payment, and its state.
type Invoice struct {
	Terms
	ID           string
	CommitmentID Hash // the interface's onChainInvoiceId
	MerchantID   string
	Currency     string
	ChainKey     string
	Status       Status
	LineItems    []LineItem
	CreatedAt    time.Time
	// Registry is the contract that the commitment names. It is zero when there is no
	// registry, or it is unknown.
	Registry Address

	Collection Collection
	// DepositFactory and DepositAddress are fixed when a deposit invoice is opened. They
	// are zero for other invoices and for drafts.
	DepositFactory, DepositAddress Address
	// SweptTx is the transaction of the newest confirmed sweep of the invoice's token; zero before the first.
	SweptTx Hash

	// FromBlock is the newest block that was read when the invoice was created, or 0 if no block was read; transfers in
	// blocks above can pay it. A reorg of that block lowers it.
	FromBlock uint64
	// ClosedBlock is the newest block that was read when the invoice was paid, expired or void; 0 before. No transfer
	// in a block above it is awaited. For a draft it is FromBlock. An open invoice has a ClosedBlock if it ended in a
	// past that the database has lost: it does not expire, and only transfers up to that block can still pay it.
	ClosedBlock uint64

	// TransferAmount is the amount with a suffix that identifies the invoice in a plain transfer. It is zero if no
	// suffix was free, and for deposit invoices.
	TransferAmount Amount
	// Remaining is the amount left to pay after a part was paid, confirmed or not. It is zero unless the invoice is
	// open and partly paid.
	Remaining Amount
	// RemainingTransfer is Remaining with a suffix; zero if no suffix was free, and for deposit invoices.
	RemainingTransfer Amount
	// Tolerance is how much less than the amount still pays the invoice. It is fixed at creation, and less than the
	// amount.
	Tolerance Amount

	SettledTx      Hash      // the transaction that completed the amount; zero unless paid
	SettledAt      time.Time // the time of that transaction's block
	Exception      Exception
	AmountPaid     Amount // confirmed transfers, on time or not
	AmountRefunded Amount // confirmed transfers back to the payers

	Sums Sums // of the payments; Exception and AmountPaid follow from them

	// Details are read with the invoice for the API, the checkout page and events that contain the whole invoice, and
	// are zero elsewhere.
	Details Details
}

// Limits of an invoice.
const (
	// MaxLifetime is how far expiresAt may lie after creation.
	MaxLifetime = 366 * 24 * time.Hour
	// MaxLineItems is how many line items an invoice may have.
	MaxLineItems = 100
	// MaxLabel is the length of a line item's label, in characters.
	MaxLabel = 200
	// MaxMerchantID is the length of a merchant's id, in characters.
	MaxMerchantID = 64
	// MaxSuffix is the largest suffix of a transfer amount, in minor units; the
	// smallest is 1.
	MaxSuffix = 999
)

// IntentKind is the transaction that the transaction manager is to send for a commitment.
type IntentKind string

// The kinds of intent.
const (
	IntentOpen  IntentKind = "open"
	IntentClose IntentKind = "close"
)

// EventType is a type of the events that are sent to merchants.
type EventType string

// The events.
const (
	EventCreated  EventType = "invoice.created"
	EventPaid     EventType = "invoice.paid"
	EventExpired  EventType = "invoice.expired"
	EventReceived EventType = "payment.received"
	EventRefunded EventType = "payment.refunded"
	// EventUnattributed is sent only to merchants who ask for it.
	EventUnattributed EventType = "payment.unattributed"
)

// EventTypes are all types of events.
var EventTypes = []EventType{EventCreated, EventPaid, EventExpired, EventReceived, EventRefunded, EventUnattributed}

// OptionalEventTypes are those that a merchant has to ask for.
var OptionalEventTypes = []EventType{EventUnattributed}
