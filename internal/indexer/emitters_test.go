package indexer

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// minor is one minor unit of USDC in 18 decimals.
const minor = 1_000_000_000_000

// arc is a built-in network with a registry that uses its native coin as its token.
func arc(t *testing.T, key string) (c chain.Chain, usdc, system, legacy invoice.Address) {
	t.Helper()
	c, ok := chain.Lookup(key)
	if !ok {
		t.Fatalf("there is no network %s", key)
	}
	c.Registry = registry
	return c, chain.MustAddress("0x3600000000000000000000000000000000000000"),
		chain.MustAddress("0xfffffffffffffffffffffffffffffffffffffffe"), chain.MustAddress("0x1800000000000000000000000000000000000000")
}

// TestArc reads the movements of a token with two interfaces to one balance: each is counted once, in six decimals.
func TestArc(t *testing.T) {
	type movement struct {
		ordinal  int
		amount   invoice.Amount
		evidence invoice.Evidence
	}
	mainnet, usdc, system, legacy := arc(t, "arc")
	testnet, _, _, _ := arc(t, "arc-testnet")
	native := func(from, to invoice.Address, wei uint64) chaintest.Log {
		return chaintest.Transfer(system, from, to, invoice.NewAmount(wei))
	}
	token := func(from, to invoice.Address, n uint64) chaintest.Log {
		return chaintest.Transfer(usdc, from, to, invoice.NewAmount(n))
	}
	old := native(alice, merchant, 4*minor)
	old.Address, old.Topics[0] = common.Address(legacy), crypto.Keccak256Hash([]byte("NativeCoinTransferred(address,address,uint256)"))
	pretender := native(alice, merchant, 9*minor)
	pretender.Address = common.Address(other)
	none := invoice.Evidence{}
	for name, test := range map[string]struct {
		chain chain.Chain
		logs  []chaintest.Log
		want  []movement
	}{
		"native send":             {mainnet, []chaintest.Log{native(alice, merchant, 5*minor)}, []movement{{0, invoice.NewAmount(5), none}}},
		"call of the token":       {mainnet, []chaintest.Log{native(alice, merchant, 5*minor), token(alice, merchant, 5)}, []movement{{0, invoice.NewAmount(5), none}}},
		"call, other order":       {mainnet, []chaintest.Log{token(alice, merchant, 5), native(alice, merchant, 5*minor)}, []movement{{1, invoice.NewAmount(5), none}}},
		"the token's copy alone":  {mainnet, []chaintest.Log{token(alice, merchant, 5)}, nil},
		"two of the same":         {mainnet, []chaintest.Log{native(alice, merchant, minor), native(alice, merchant, minor)}, []movement{{0, invoice.NewAmount(1), none}, {1, invoice.NewAmount(1), none}}},
		"dust":                    {mainnet, []chaintest.Log{native(alice, merchant, minor-1)}, nil},
		"a unit and dust":         {mainnet, []chaintest.Log{native(alice, merchant, 2*minor-1)}, []movement{{0, invoice.NewAmount(1), none}}},
		"another contract":        {mainnet, []chaintest.Log{pretender}, nil},
		"legacy, on the mainnet":  {mainnet, []chaintest.Log{old}, nil},
		"legacy, on the testnet":  {testnet, []chaintest.Log{old}, []movement{{0, invoice.NewAmount(4), none}}},
		"native, on the testnet":  {testnet, []chaintest.Log{native(alice, merchant, 5*minor), token(alice, merchant, 5)}, []movement{{0, invoice.NewAmount(5), none}}},
		"authorization":           {mainnet, []chaintest.Log{chaintest.AuthorizationUsed(usdc, alice, id1), native(alice, merchant, 5*minor), token(alice, merchant, 5)}, []movement{{1, invoice.NewAmount(5), invoice.Evidence{Authorization: id1}}}},
		"authorization, pretends": {mainnet, []chaintest.Log{chaintest.AuthorizationUsed(system, alice, id1), native(alice, merchant, 5*minor)}, []movement{{1, invoice.NewAmount(5), none}}},
		"registry": {mainnet, []chaintest.Log{
			native(alice, merchant, 5*minor), token(alice, merchant, 5), chaintest.Paid(registry, id1, alice, merchant, usdc, five),
		}, []movement{{0, invoice.NewAmount(5), invoice.Evidence{Registry: id1}}}},
		"registry, other amount": {mainnet, []chaintest.Log{
			native(alice, merchant, 5*minor), token(alice, merchant, 5), chaintest.Paid(registry, id1, alice, merchant, usdc, invoice.NewAmount(6)),
		}, []movement{{0, invoice.NewAmount(5), none}}},
	} {
		d := newDecoder(test.chain)
		found, err := d.transfers(header10, receipt(test.logs...), nil, map[invoice.Address]bool{merchant: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []movement
		for _, tr := range found {
			got = append(got, movement{tr.Ordinal, tr.Amount, tr.Evidence})
			if tr.Token != usdc || tr.Currency != chain.USDC {
				t.Errorf("%s: the token is %s %s", name, tr.Currency, tr.Token)
			}
			if !d.receiptHolds(receipt(test.logs...), &tr) {
				t.Errorf("%s: the receipt does not prove its own transfer", name)
			}
		}
		expect.NoDiff(t, cmp.Diff(test.want, got, cmp.AllowUnexported(movement{}, invoice.Amount{})), "%s", name)
		for _, l := range receipt(test.logs...).Logs {
			if _, ok := d.movement(&l); ok && !selects(d.filter(), l) {
				t.Errorf("%s: a log that counts is not asked for", name)
			}
		}
	}
}

// TestArcIsIndexed follows a native send and a call of the token until they are
// final.
func TestArcIsIndexed(t *testing.T) {
	c, usdc, system, _ := arc(t, "arc")
	f := &fixture{chain: chaintest.New(c.ID), ledger: newMemory(merchant)}
	f.chain.Token(usdc, 6)
	f.chain.Contract(registry)
	f.node = f.chain.Serve(t)
	f.restart(t, func(conf *Config) { conf.Chain = c })
	f.catchUp(t)
	wei := func(n uint64) chaintest.Log {
		return chaintest.Transfer(system, alice, merchant, invoice.NewAmount(n*minor))
	}
	f.chain.Mine(chaintest.NewTx(wei(1)), chaintest.NewTx(wei(2), chaintest.Transfer(usdc, alice, merchant, invoice.NewAmount(2))))
	f.chain.MineEmpty(1)
	f.catchUp(t)
	f.expect(t, 2, 1, 0, 2, 0)
}

// TestLookalikeContracts reads a transaction full of logs that are not payments, and batches of payments, each of which
// counts once.
func TestLookalikeContracts(t *testing.T) {
	watched := map[invoice.Address]bool{merchant: true}
	nft := pays(alice, 5)
	nft.Topics, nft.Data = append(nft.Topics, common.Hash{31: 5}), nil // ERC-721 has the id as its fourth topic
	bare := pays(alice, 5)
	bare.Topics, bare.Data = bare.Topics[:1], append(append(bare.Topics[1][:], bare.Topics[2][:]...), bare.Data...) // no indexed argument
	short := pays(alice, 5)
	short.Data = short.Data[1:]
	fake := chaintest.Transfer(other, alice, merchant, five)
	poison := pays(alice, 0)
	r := receipt(nft, bare, short, fake, poison, chaintest.Transfer(token, merchant, alice, invoice.NewAmount(0)))
	gone := receipt(pays(alice, 5)).Logs[0]
	gone.Removed = true
	r.Logs = append(r.Logs, gone)
	got, err := testDecoder.transfers(header10, r, nil, watched)
	if err != nil || len(got) != 0 {
		t.Errorf("counted %+v, %v; want nothing", got, err)
	}
	expect.Len(t, testDecoder.touching(r.Logs, watched), 0, "transactions that matter are")

	var batch []chaintest.Log
	for n := range uint64(500) {
		batch = append(batch, pays(alice, n+1))
	}
	got, err = testDecoder.transfers(header10, receipt(batch...), nil, watched)
	if err != nil || len(got) != 500 {
		t.Fatalf("%d transfers of a batch of 500, %v", len(got), err)
	}
	for i, tr := range got {
		if tr.Ordinal != i || tr.Amount != invoice.NewAmount(uint64(i+1)) {
			t.Fatalf("transfer %d is %+v", i, tr)
		}
	}

	self := []types.Log{receipt(chaintest.Transfer(token, merchant, merchant, five)).Logs[0]}
	expect.Len(t, testDecoder.touching(self, watched), 1, "a transfer of a merchant to itself is in")
}

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
