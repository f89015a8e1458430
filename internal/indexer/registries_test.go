package indexer

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// TestFormerRegistries pays through a registry that is no longer configured, and
// through one that the ledger does not know.
func TestFormerRegistries(t *testing.T) {
	f := newFixture(t, nil)
	former := invoice.Address{0x4f}
	f.ledger.registries = []invoice.Address{former}
	f.catchUp(t)
	through := func(address invoice.Address, id invoice.Hash, amount uint64) chaintest.Tx {
		event := paid(id, alice, amount)
		event.Address = common.Address(address)
		opened := chaintest.Opened(address, id)
		return chaintest.NewTx(pays(alice, amount), event, opened)
	}
	f.chain.Mine(through(former, id1, 5), through(other, id2, 6))
	f.catchUp(t)
	for kind, paidTo := range map[ledger.RegistryEventKind]invoice.Address{ledger.RegistryPaid: merchant, ledger.RegistryOpened: {}} {
		if got := f.ledger.events[ledger.RegistryEvent{Registry: former, Kind: kind, CommitmentID: id1, Merchant: paidTo}]; got != 1 {
			t.Errorf("%d events %s of the registry of before, want 1", got, kind)
		}
		if got := f.ledger.events[ledger.RegistryEvent{Registry: other, Kind: kind, CommitmentID: id2, Merchant: paidTo}]; got != 0 {
			t.Errorf("%d events %s of a stranger's contract", got, kind)
		}
	}
	evidence := map[string]invoice.Hash{}
	for _, r := range f.ledger.records {
		evidence[r.Amount.String()] = r.Evidence.Registry
	}
	if evidence["5"] != id1 || !evidence["6"].IsZero() {
		t.Errorf("the registries' evidence is %v", evidence)
	}
}
