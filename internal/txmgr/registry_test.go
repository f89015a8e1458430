package txmgr

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestIntentsOfAnotherRegistryAreLeftAlone stores intents for a registry that is no longer configured.
func TestIntentsOfAnotherRegistryAreLeftAlone(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		theirs, ours := commitments(3), commitments(2)
		configured := w.registry
		w.registry = common.Address{0xaa}
		w.enqueueIntents(invoice.IntentOpen, theirs...)
		w.registry = configured
		writer := w.writer()
		w.tick(writer)
		w.wantTxs()
		if s := writer.Status(); s.Due != 0 || s.Elsewhere != 3 {
			t.Errorf("status is %+v, want 3 that wait for another registry", s)
		}
		w.enqueueIntents(invoice.IntentOpen, ours...)
		w.tick(writer)
		w.seal(1)
		w.wantStatus(statusOpen, ours...)
		w.wantStatus(statusNone, theirs...)
	})
}

// TestReplacementCallsTheRegistryOfItsAttempts replaces the registry while a transaction to the former one is in
// flight.
func TestReplacementCallsTheRegistryOfItsAttempts(t *testing.T) {
	w := onSQLite(t)
	ids := commitments(1)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.tick(w.writer())
	before := w.registry
	w.registry = common.Address{0xaa}
	w.clock.Add(DefaultLeaseTTL)
	next := w.writer()
	w.tick(next)
	w.sealEmpty(bumpBlocks)
	w.clock.Add(bumpAfter)
	w.tick(next)
	attempts := w.wantTxs(TxSent)[0].Attempts
	last, err := decode(attempts[len(attempts)-1])
	must(t, err)
	if len(attempts) != 2 || *last.To() != before {
		t.Errorf("the last of %d attempts calls %s, want %s", len(attempts), last.To(), before)
	}
}

// TestExpiredCommitmentsAreClosedTogether closes two commitments before they expire and three afterwards, in a separate
// transaction. The registry stores that the first two are closed, and stores nothing for the others.
func TestExpiredCommitmentsAreClosedTogether(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		writer := w.writer()
		ids := commitments(5)
		invoices := make([]invoice.Invoice, len(ids))
		for i, id := range ids {
			invoices[i] = invoice.Invoice{
				ID: "inv_" + id.String(), CommitmentID: id, MerchantID: "m", ChainKey: chain.Local, Currency: chain.USDC, Status: invoice.Open, CreatedAt: invoice.Unix(1),
				Terms: invoice.Terms{Merchant: invoice.Address{1}, Token: invoice.Address{2}, Amount: invoice.NewAmount(1), ExpiresAt: invoice.Unix([]int64{2, 9_000_000_000}[i%2])},
			}
		}
		must(t, w.store.Update(w.ctx, func(tx *db.Tx) error {
			owners := []access.SettlementAddress{{ChainKey: chain.Local, Address: invoice.Address{1}, MerchantID: "m"}}
			if err := access.InsertSettlementAddresses(w.ctx, tx, owners, invoice.Unix(1)); err != nil {
				return err
			}
			_, err := ledger.InsertInvoices(w.ctx, tx, invoices)
			return err
		}))
		w.enqueueIntents(invoice.IntentClose, ids...)
		for range 3 {
			w.tick(writer)
			w.seal(1)
		}
		w.wantStatus(statusClosed, ids...)
		head, err := w.node().head(w.ctx)
		must(t, err)
		stored, err := w.node().statuses(w.ctx, w.registry, *head.Hash, ids)
		must(t, err)
		if want := []contracts.Status{statusNone, statusClosed, statusNone, statusClosed, statusNone}; !slices.Equal(stored, want) {
			t.Errorf("%v are stored, want %v", stored, want)
		}
		for i, tx := range w.wantTxs(TxMined, TxMined) {
			if _, carried, err := commitmentsOf(tx); err != nil || len(carried) != 3-i {
				t.Errorf("transaction %d closes %d commitments (%v), want %d", i, len(carried), err, 3-i)
			}
		}
		w.seal(finality)
		w.index()
		w.wantAllDone()
	})
}

// TestBroadcastsFailInAnyWords has a node answer a broadcast with an error text that does not name the cause, or names
// a wrong one. The node's state decides what the writer does.
func TestBroadcastsFailInAnyWords(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *world, answer){
		"the node has it": hasIt, "the nonce is used": nonceIsUsed, "another holds the nonce": nonceIsHeld,
		"no funds": hasNoFunds, "refused": isRefused,
	} {
		for i := range 8 {
			says := answer(words.Example(i))
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				t.Logf("the node says %q", string(says))
				test(t, onSQLite(t), says)
			})
		}
	}
}

// refuseBroadcasts makes broadcasts fail with an answer, after calling first if it is not nil.
func (f *faults) refuseBroadcasts(says answer, first func()) {
	f.before = func(method string, _ []any) error {
		if method != sendRaw {
			return nil
		}
		if first != nil {
			first()
		}
		return says
	}
}

func hasIt(t *testing.T, w *world, says answer) {
	writer := w.writer()
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	w.net.after = func(method string) error {
		if method == sendRaw {
			return says
		}
		return nil
	}
	w.tick(writer)
	if w.txs()[0].Attempts[0].AcceptedAt.IsZero() {
		t.Error("the attempt is not recorded as accepted")
	}
	w.clock.Add(rebroadcastAfter)
	w.tick(writer)
	w.seal(1)
	w.tick(writer)
	expect.Equal(t, len(w.wantTxs(TxMined)[0].Attempts), 1, "attempts were signed:")
}

func nonceIsUsed(_ *testing.T, w *world, says answer) {
	writer := w.writer()
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	w.net.refuseBroadcasts(says, func() {
		w.net.before = nil
		w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0))
		w.seal(1)
	})
	w.tick(writer)
	w.wantTxs(TxSent)
}

func nonceIsHeld(t *testing.T, w *world, says answer) {
	writer := w.writer()
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	w.net.refuseBroadcasts(says, func() {
		w.net.refuseBroadcasts(says, nil)
		w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0))
	})
	w.tick(writer)
	w.sealEmpty(bumpBlocks)
	w.clock.Add(bumpAfter)
	w.tick(writer)
	attempts := w.wantTxs(TxSent)[0].Attempts
	if len(attempts) != 2 || attempts[1].TipCap.Cmp(new(big.Int).Lsh(attempts[0].TipCap, 1)) < 0 {
		t.Errorf("the attempts are %+v, want a second one with twice the fee", attempts)
	}
}

func hasNoFunds(t *testing.T, w *world, says answer) {
	poor := &byzantine{Client: w.net, method: "eth_getBalance", mutate: value(`"0x1"`)}
	writer := w.writer(func(c *Config) { c.Client = poor })
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	w.net.refuseBroadcasts(says, func() { poor.times = -1 })
	for range 3 {
		if err := writer.tick(w.ctx); !errors.Is(err, errInsufficientFunds) {
			t.Fatalf("a round ends with %v", err)
		}
		w.sealEmpty(bumpBlocks)
		w.clock.Add(bumpAfter)
	}
	expect.Equal(t, len(w.wantTxs(TxSent)[0].Attempts), 1, "attempts were signed for a sender without funds:")
	w.net.before, poor.times = nil, 0
	w.tick(writer)
	w.seal(1)
	w.tick(writer)
	w.wantTxs(TxMined)
}

func isRefused(t *testing.T, w *world, says answer) {
	writer := w.writer()
	ids := commitments(1)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.net.refuseBroadcasts(says, nil)
	for range 5 {
		if err := writer.tick(w.ctx); !errors.Is(err, says) {
			t.Fatalf("a round ends with %v", err)
		}
		w.clock.Add(rebroadcastAfter)
	}
	w.net.before = nil
	w.tick(writer)
	w.seal(1)
	w.tick(writer)
	w.wantTxs(TxMined)
	w.wantStatus(statusOpen, ids...)
	w.wantSameContents()
}
