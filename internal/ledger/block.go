package ledger

import (
	"errors"

	"github.com/quittance/quittance/internal/invoice"
)

// Block is what the indexer read of one block: the transfers to and from
// settlement and deposit addresses, in the order of their logs, and the registry's events.
type Block struct {
	invoice.Header
	Transfers []invoice.Transfer
	Registry  []RegistryEvent
	// Unread are transactions that the nodes do not return. Their logs move a token from or to such an address.
	Unread []UnreadTransaction
}

// RegistryEvent is a change of a commitment in an event of a registry.
type RegistryEvent struct {
	Registry     invoice.Address
	Kind         RegistryEventKind
	CommitmentID invoice.Hash
	TxHash       invoice.Hash
	Merchant     invoice.Address // recipient of the payment; zero unless it was paid
}

// RegistryEventKind is the new state of a commitment.
type RegistryEventKind string

// The events of the registry.
const (
	RegistryOpened RegistryEventKind = "opened"
	RegistryPaid   RegistryEventKind = "paid"
	RegistryClosed RegistryEventKind = "closed"
)

// Progress is how far a chain is read.
type Progress struct {
	Started   bool           // false for a chain that was never read
	Indexed   invoice.Header // the newest block with stored transfers
	Confirmed invoice.Header // the newest block with final transfers
	Halted    string         // why the chain's indexer stopped; empty while it runs
	Gap       *Gap           // nil without a gap
	Revision  int64          // the argument of Confirm
}

// Errors by which the ledger rejects blocks of an indexer.
var (
	// ErrCursorMoved: the chain is read up to another block than the caller
	// continues from. Another replica reads it too: load the cursor again.
	ErrCursorMoved = errors.New("the chain has been read up to another block")
	// ErrFinalityViolated: the change would undo blocks that are final.
	ErrFinalityViolated = errors.New("the change would undo a final block")
	// ErrNotStarted: the chain was never read.
	ErrNotStarted = errors.New("the chain was never read")
)
