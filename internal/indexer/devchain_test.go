package indexer

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestRealNode reads a go-ethereum node over both transports: every way to pay, with its evidence, and a reorg that
// moves all payments.
func TestRealNode(t *testing.T) {
	ctx := t.Context()
	world, err := devchain.Start(ctx, devchain.Config{})
	expect.OK(t, err)
	t.Cleanup(func() { expect.NoError(t, world.Close()) })
	local, _ := chain.Lookup(chain.Local)
	local.Tokens = []chain.Token{{Currency: chain.USDC, Address: invoice.Address(world.Token), Decimals: 6}}
	local.Registry = invoice.Address(world.Registry)
	payer, to := world.Keys.Payer, devchain.Address(world.Keys.Merchant)

	f := &fixture{node: &chaintest.Node{URL: world.RPCURL()}, ledger: newMemory(invoice.Address(to))}
	f.restart(t, func(c *Config) { c.Chain = local })
	f.catchUp(t)
	seal := func() {
		t.Helper()
		expect.OK(t, world.Seal(ctx))
		f.catchUp(t)
	}
	must := func(hash common.Hash, err error) invoice.Hash {
		t.Helper()
		expect.OK(t, err)
		return invoice.Hash(hash)
	}
	terms := func(id string, amount int64) (contracts.Terms, invoice.Hash) {
		tm := contracts.Terms{
			Merchant: to, Token: world.Token, Amount: big.NewInt(amount),
			ExpiresAt: uint64(time.Now().Add(time.Hour).Unix()), Salt: contracts.Salt(id),
		}
		return tm, invoice.Hash(tm.ID(world.ChainID(), world.Registry))
	}

	tag := invoice.Hash{0xaa}
	byRegistry, registryID := terms("a", 3)
	byBoth, bothID := terms("b", 4)
	authorization := contracts.Authorization{
		From: devchain.Address(payer), To: to, Value: big.NewInt(5), ValidAfter: new(big.Int),
		ValidBefore: big.NewInt(time.Now().Add(time.Hour).Unix()), Nonce: common.Hash(tag),
	}
	want := map[invoice.Hash]struct {
		amount   uint64
		evidence invoice.Evidence
	}{
		must(world.SendToken(ctx, payer, to, big.NewInt(1), nil)):                             {1, invoice.Evidence{Calldata: invoice.NewAmount(1).Bytes()}},
		must(world.SendToken(ctx, payer, to, big.NewInt(2), tag[:])):                          {2, invoice.Evidence{Calldata: tag}},
		must(world.Pay(ctx, payer, byRegistry)):                                               {3, invoice.Evidence{Registry: registryID, Calldata: invoice.Hash(byRegistry.Salt)}},
		must(world.PayWithAuthorization(ctx, world.Keys.Operator, payer, byBoth)):             {4, invoice.Evidence{Registry: bothID, Authorization: bothID}},
		must(world.TransferWithAuthorization(ctx, world.Keys.Operator, payer, authorization)): {5, invoice.Evidence{Authorization: tag}},
	}
	seal()
	expect.Equal(t, f.ledger.count(invoice.Pending), len(want), "transfers are pending:")
	for _, r := range f.ledger.records {
		w, ok := want[r.TxHash]
		if !ok || r.Amount != invoice.NewAmount(w.amount) || r.To != invoice.Address(to) || r.From != invoice.Address(devchain.Address(payer)) {
			t.Errorf("recorded %+v", r)
		}
		if w.evidence.Calldata.IsZero() {
			r.Evidence.Calldata = invoice.Hash{} // the end of a signature
		}
		expect.Equal(t, r.Evidence, w.evidence, "the evidence of %s is", r.Amount)
	}
	for _, id := range []invoice.Hash{registryID, bothID} {
		if f.ledger.events[ledger.RegistryEvent{Registry: invoice.Address(world.Registry), Kind: ledger.RegistryPaid, CommitmentID: id, Merchant: invoice.Address(to)}] != 1 {
			t.Errorf("the payment of %s was not announced: %v", id, f.ledger.events)
		}
	}

	// Two blocks take the place of the one with the payments.
	expect.OK(t, world.Fork(ctx, 1, []*types.Transaction{}, []*types.Transaction{}))
	f.catchUp(t)
	expect.Equal(t, f.ledger.count(invoice.Orphaned), len(want), "transfers are orphaned:")
	// The replaced transactions went back to the pool, and are mined again.
	late := must(world.SendToken(ctx, payer, to, big.NewInt(6), nil))
	for range local.Finality.Depth + 1 {
		seal()
	}
	r := f.ledger.records[invoice.TransferID(invoice.PrefixPayment, local.Key, late, 0)]
	if n := f.ledger.count(invoice.Confirmed); r.Status != invoice.Confirmed || n != len(want)+1 || len(f.ledger.breaches) > 0 {
		t.Errorf("after the reorg %d transfers are confirmed, the new one is %q; breaches %v", n, r.Status, f.ledger.breaches)
	}
}
