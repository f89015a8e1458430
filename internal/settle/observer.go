package settle

import (
	"context"
	"fmt"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// observeChunk is how many transfers share the questions to the database.
const observeChunk = 1000

// observer stores the contents of a chain's blocks in one transaction.
type observer struct {
	*Service
	tx       *store.Tx
	outbox   *outbox
	chainKey string
	final    bool   // what is observed is final
	moved    bool   // a pending payment was found in another block than it was in
	height   uint64 // how far the chain was read before
	// unread is the newest block that was never read, nil when there is none.
	// What is above may depend on what it and those below it hold.
	unread *uint64
	// line is the newest final block, where what is stored lies below and
	// above it; 0 where final says what is.
	line uint64
}

// observe stores what the blocks hold, in its order.
func (o *observer) observe(ctx context.Context, blocks []Block) error {
	var transfers []invoice.Transfer
	var sights []store.IntentObservation
	for _, b := range blocks {
		for _, t := range b.Transfers {
			if !t.Amount.IsZero() { // anyone may send nothing from anywhere to anywhere
				transfers = append(transfers, t)
			}
		}
		for _, e := range b.Registry {
			sights = append(sights, e.sights(b.Number)...)
		}
	}
	for part := range slices.Chunk(transfers, observeChunk) {
		if err := newTransferBatch(o, part).store(ctx); err != nil {
			return fmt.Errorf("transfers in the blocks %d to %d of %s: %w",
				part[0].BlockNumber, part[len(part)-1].BlockNumber, o.chainKey, err)
		}
	}
	return o.tx.MarkIntentsObserved(ctx, o.chainKey, sights)
}

// isAbove reports whether a position lies above blocks that were never read.
func (o *observer) isAbove(p invoice.Position) bool {
	return o.unread != nil && p.BlockNumber > *o.unread
}

// sights returns which intents the registry has carried out. Paid and Closed
// end an intent to open as well: the commitment is past being opened.
func (e RegistryEvent) sights(block uint64) []store.IntentObservation {
	opened := store.IntentObservation{Registry: e.Registry, CommitmentID: e.CommitmentID, Kind: invoice.IntentOpen, Block: block}
	if e.Kind == RegistryOpened {
		return []store.IntentObservation{opened}
	}
	return []store.IntentObservation{opened, {Registry: e.Registry, CommitmentID: e.CommitmentID, Kind: invoice.IntentClose, Block: block}}
}

// status returns what becomes of a transfer that is observed, and since when
// it is confirmed.
func (o *observer) status() (invoice.PaymentStatus, int64) {
	if o.final {
		return invoice.Confirmed, o.Now().Unix()
	}
	return invoice.Pending, 0
}
