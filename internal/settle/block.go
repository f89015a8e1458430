package settle

import (
	"errors"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// Gap are older blocks that are still to be read, or read again.
type Gap = store.Gap

// Block is what the indexer read of one block: the transfers that touch a
// settlement address, in the order of their logs, and the registry's events.
type Block struct {
	invoice.Header
	Transfers []invoice.Transfer
	Registry  []RegistryEvent
}

// RegistryEvent is a change of a commitment that a registry announced.
type RegistryEvent struct {
	Registry     invoice.Address
	Kind         RegistryEventKind
	CommitmentID invoice.Hash
}

// RegistryEventKind is the state that a commitment moved to.
type RegistryEventKind string

// The events of the registry.
const (
	RegistryOpened RegistryEventKind = "opened"
	RegistryPaid   RegistryEventKind = "paid"
	RegistryClosed RegistryEventKind = "closed"
)

// Cursor is how far a chain is read. Indexed is the newest block whose
// transfers are stored; Confirmed the newest whose transfers are final. A
// chain that was never read has Started false and zero headers. Halted is the
// reason why the chain's indexer stopped, empty while it runs. Gap is nil when
// no older blocks are to be read. Revision is what Confirm wants to be told.
type Cursor struct {
	Started   bool
	Indexed   invoice.Header
	Confirmed invoice.Header
	Halted    string
	Gap       *Gap
	Revision  int64
}

// Errors by which the ledger refuses what an indexer hands it.
var (
	// ErrCursorMoved: the chain is read up to another block than the one that
	// was to be continued. Another replica reads it too: load the cursor again.
	ErrCursorMoved = errors.New("the chain has been read up to another block")
	// ErrFinalityViolated: the change would undo blocks that are final.
	ErrFinalityViolated = errors.New("the change would undo a final block")
	// ErrNotStarted: the chain was never read.
	ErrNotStarted = errors.New("the chain was never read")
)
