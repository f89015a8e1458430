package contracts_test

import (
	"crypto/ecdsa"
	"encoding/binary"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/dev/devchain"
)

// gift returns an authorization from an account over 10 minor units to the merchant, with a unique nonce.
func (w *world) gift(from common.Address) contracts.Authorization {
	*w.salts++
	return contracts.Authorization{
		From: from, To: w.merchant, Value: big.NewInt(10), ValidAfter: new(big.Int),
		ValidBefore: new(big.Int).SetUint64(w.now() + 3600), Nonce: contracts.Salt(string(binary.AppendUvarint(nil, uint64(*w.salts)))),
	}
}

// signed returns an authorization with the signature of a key.
func (w *world) signed(a contracts.Authorization, key *ecdsa.PrivateKey) contracts.SignedAuthorization {
	w.Helper()
	sig, err := a.Sign(w.domain(), key)
	w.must(err)
	return a.Signed(w.Token, sig.Bytes())
}

// paid returns a valid authorization of the payer.
func (w *world) paid() contracts.SignedAuthorization {
	w.Helper()
	return w.signed(w.gift(w.payer), w.Keys.Payer)
}

// Total gas that the tests allow for an authorization, without and with the deployment of its account, as in the
// service.
const (
	mostGas       = 300_000
	mostDeployGas = 650_000
)

// packRelay returns the call that submits authorizations, and the gas that it requires.
func packRelay(all ...contracts.SignedAuthorization) (data []byte, needed uint64) {
	limits := make([]uint64, len(all))
	for i, a := range all {
		most := uint64(mostGas)
		if a.Deployer != (common.Address{}) {
			most = mostDeployGas
		}
		limits[i] = contracts.RelayLimit(a, most)
		needed += contracts.RelayGas(a, limits[i])
	}
	return contracts.PackRelay(all, limits), needed
}

// relayed returns the call that submits authorizations.
func relayed(all ...contracts.SignedAuthorization) []byte {
	data, _ := packRelay(all...)
	return data
}

// send submits authorizations with the largest gas limit.
func (w *world) send(all ...contracts.SignedAuthorization) *types.Receipt {
	w.Helper()
	data, _ := packRelay(all...)
	receipt := w.transactWithGas(w.Keys.Operator, w.AuthorizationRelay, data, params.MaxTxGas)
	if receipt.Status != types.ReceiptStatusSuccessful {
		w.Fatalf("the relay failed with %d gas used", receipt.GasUsed)
	}
	return receipt
}

// refusals returns the reasons of the Refused events of a receipt by the authorization's nonce.
func (w *world) refusals(receipt *types.Receipt) map[common.Hash][]byte {
	w.Helper()
	reasons := make(map[common.Hash][]byte)
	for _, log := range receipt.Logs {
		if log.Address == w.AuthorizationRelay {
			event, err := w.relay.UnpackRefusedEvent(log)
			w.must(err)
			reasons[event.Nonce] = event.Reason
		}
	}
	return reasons
}

// wantRelayed requires that a receipt has exactly the refusals in refused, and that the token moved the value of all
// other authorizations.
func (w *world) wantRelayed(receipt *types.Receipt, all []contracts.SignedAuthorization, refused ...contracts.SignedAuthorization) map[common.Hash][]byte {
	w.Helper()
	got := w.refusals(receipt)
	if len(got) != len(refused) {
		w.Errorf("%d authorizations were refused, want %d: %x", len(got), len(refused), got)
	}
	used := w.token.GetABI().Events["AuthorizationUsed"].ID
	for _, a := range all {
		isRefused := slices.ContainsFunc(refused, func(r contracts.SignedAuthorization) bool { return r.Nonce == a.Nonce && r.From == a.From })
		moved := slices.ContainsFunc(receipt.Logs, func(log *types.Log) bool {
			return log.Address == a.Token && log.Topics[0] == used && log.Topics[1] == common.BytesToHash(a.From.Bytes()) && log.Topics[2] == a.Nonce
		})
		if _, ok := got[a.Nonce]; ok != isRefused || moved == isRefused {
			w.Errorf("authorization %x: refused %t, used %t; want refused %t", a.Nonce, ok, moved, isRefused)
		}
	}
	return got
}

// wantReason requires that a reason is the token's custom error.
func (w *world) wantReason(reason []byte, want abi.Error) {
	w.Helper()
	if len(reason) < 4 || [4]byte(reason[:4]) != [4]byte(want.ID[:4]) {
		w.Errorf("the reason is %#x, want %s", reason, want.Sig)
	}
}

// TestRelay submits several authorizations, with one refused for each reason. The others are not affected.
func TestRelay(t *testing.T) {
	w := newWorld(t)
	used := w.paid()
	w.send(used)
	other := w.gift(w.payer)
	for name, test := range map[string]struct {
		refused contracts.SignedAuthorization
		reason  abi.Error
	}{
		"used nonce":      {used, w.tokenError("AuthorizationUsedOrCanceled")},
		"wrong signature": {w.signed(other, w.Keys.Merchant), w.tokenError("InvalidSignature")},
		"no signature":    {w.gift(w.payer).Signed(w.Token, nil), w.tokenError("InvalidSignature")},
		"65 zero bytes":   {w.gift(w.payer).Signed(w.Token, make([]byte, 65)), w.tokenError("InvalidSignature")},
		"not covered":     {w.signed(w.gift(w.operator), w.Keys.Operator), w.tokenError("ERC20InsufficientBalance")},
		"expired": {w.signed(func() contracts.Authorization {
			a := w.gift(w.payer)
			a.ValidBefore = new(big.Int).SetUint64(w.now())
			return a
		}(), w.Keys.Payer), w.tokenError("AuthorizationExpired")},
		"not yet valid": {w.signed(func() contracts.Authorization {
			a := w.gift(w.payer)
			a.ValidAfter = new(big.Int).SetUint64(w.now() + 1800)
			return a
		}(), w.Keys.Payer), w.tokenError("AuthorizationNotYetValid")},
		"another chain's": {func() contracts.SignedAuthorization {
			a := w.gift(w.payer)
			sig, err := a.Sign(contracts.TestUSDCDomain(big.NewInt(1), w.Token), w.Keys.Payer)
			w.must(err)
			return a.Signed(w.Token, sig.Bytes())
		}(), w.tokenError("InvalidSignature")},
		"no token": {func() contracts.SignedAuthorization {
			a := w.paid()
			a.Token = w.merchant
			return a
		}(), w.relay.GetABI().Errors["NoToken"]},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			before, err := w.Balance(w.Context(), w.merchant)
			w.must(err)
			all := []contracts.SignedAuthorization{w.paid(), test.refused, w.paid()}
			reasons := w.wantRelayed(w.send(all...), all, test.refused)
			w.wantReason(reasons[test.refused.Nonce], test.reason)
			w.wantBalance(w.merchant, before.Int64()+20)
			// Submitted separately, it reverts with the reason.
			w.refused(w.Keys.Operator, w.AuthorizationRelay, w.relay.PackRelayOne(test.refused), test.reason)
		})
	}
}

// TestRelayTwiceInABatch submits one authorization twice.
func TestRelayTwiceInABatch(t *testing.T) {
	w := newWorld(t)
	a := w.paid()
	reasons := w.refusals(w.send(a, a, w.paid()))
	w.wantReason(reasons[a.Nonce], w.tokenError("AuthorizationUsedOrCanceled"))
	w.wantBalance(w.merchant, 20)
}

func TestRelayNothing(t *testing.T) {
	w := newWorld(t)
	if receipt := w.send(); len(receipt.Logs) > 0 {
		t.Errorf("nothing left %d logs", len(receipt.Logs))
	}
}

// TestRelayForContractAccounts accepts signatures of a deployed account by ERC-1271, of 65 bytes and of other lengths.
func TestRelayForContractAccounts(t *testing.T) {
	w := newWorld(t)
	account := w.mock("SmartAccount", w.operator)
	w.fund(w.Token, account.address, 100)
	short := w.signed(w.gift(account.address), w.Keys.Operator)
	long := w.signed(w.gift(account.address), w.Keys.Operator)
	long.Signature = append([]byte{0}, long.Signature...)
	wrong := w.signed(w.gift(account.address), w.Keys.Payer)
	wrongLong := w.signed(w.gift(account.address), w.Keys.Payer)
	wrongLong.Signature = append([]byte{0}, wrongLong.Signature...)
	all := []contracts.SignedAuthorization{wrong, short, wrongLong, long}
	w.wantRelayed(w.send(all...), all, wrong, wrongLong)
	w.wantBalance(w.merchant, 20)
	account.do("burn") // from now on it burns all gas of a signature check
	burning := w.signed(w.gift(account.address), w.Keys.Operator)
	all = []contracts.SignedAuthorization{w.paid(), burning, w.paid()}
	w.wantRelayed(w.send(all...), all, burning)
	w.wantBalance(w.merchant, 40)
}

// TestRelayDeploysAccounts accepts signatures of accounts that are not deployed yet (ERC-6492), and of accounts that
// somebody has deployed in between.
func TestRelayDeploysAccounts(t *testing.T) {
	w := newWorld(t)
	factory := w.mock("SmartAccountFactory", common.Address{})
	account := common.BytesToAddress(w.call(factory.address, pack(w, factory.abi, "accountOf", w.operator)))
	w.fund(w.Token, account, 100)
	fresh := func(deployer common.Address, data []byte) contracts.SignedAuthorization {
		a := w.signed(w.gift(account), w.Keys.Operator)
		a.Signature = append([]byte{0}, a.Signature...)
		a.Deployer, a.DeployData = deployer, data
		return a
	}
	deploys := pack(w, factory.abi, "deploy", w.operator)
	undeployed := fresh(common.Address{}, deploys)
	wrongCall := fresh(factory.address, pack(w, factory.abi, "deploy", w.payer))
	all := []contracts.SignedAuthorization{undeployed, wrongCall}
	w.wantRelayed(w.send(all...), all, all...)
	deployed, again := fresh(factory.address, deploys), fresh(factory.address, deploys)
	all = []contracts.SignedAuthorization{deployed, again, w.paid()}
	w.wantRelayed(w.send(all...), all)
	if len(w.code(account)) == 0 {
		t.Error("the account is not deployed")
	}
	all = []contracts.SignedAuthorization{fresh(w.payer, nil), fresh(w.Token, []byte{1}), fresh(common.Address{}, nil)}
	w.wantRelayed(w.send(all...), all) // whatever the deployer is, the account exists
	w.wantBalance(w.merchant, 60)
}

// TestRelayHostileDeployers has deployers burn gas, revert with much data, and call back. Only their authorization is
// affected.
func TestRelayHostileDeployers(t *testing.T) {
	w := newWorld(t)
	for _, manner := range []string{"BurnsGas", "Reverts", "RevertsWithMuch"} {
		t.Run(manner, func(t *testing.T) {
			w := w.in(t)
			hostile := w.hostile()
			hostile.behave(manner)
			theirs := w.paid()
			theirs.Deployer, theirs.DeployData = hostile.address, pack(w, hostile.abi, "deploy")
			all := []contracts.SignedAuthorization{w.paid(), theirs, w.paid()}
			var refused []contracts.SignedAuthorization
			if manner == "BurnsGas" { // too little gas is left for the token
				refused = append(refused, theirs)
			}
			w.wantRelayed(w.send(all...), all, refused...)
		})
	}
	t.Run("CallsBack", func(t *testing.T) {
		w := w.in(t)
		hostile := w.hostile()
		theirs, inner, later := w.paid(), w.paid(), w.paid()
		theirs.Deployer, theirs.DeployData = hostile.address, pack(w, hostile.abi, "deploy")
		before, err := w.Balance(w.Context(), w.merchant)
		w.must(err)
		hostile.do("arm", w.AuthorizationRelay, contracts.PackRelay([]contracts.SignedAuthorization{inner, later}, []uint64{120_000, 120_000}))
		all := []contracts.SignedAuthorization{theirs, inner, w.paid()}
		reasons := w.refusals(w.send(all...))
		if !hostile.is("succeeded") {
			t.Error("the inner call failed")
		}
		// The inner call used the second authorization, which is therefore refused in the batch; the token accepts each
		// one only once.
		w.wantReason(reasons[inner.Nonce], w.tokenError("AuthorizationUsedOrCanceled"))
		if len(reasons) != 1 {
			t.Errorf("%d authorizations were refused, want 1", len(reasons))
		}
		w.wantBalance(w.merchant, before.Int64()+40)
	})
}

// TestRelayHostileTokens has tokens misbehave between two authorizations of another token.
func TestRelayHostileTokens(t *testing.T) {
	w := newWorld(t)
	hostile := w.hostile()
	for _, manner := range []string{"Reverts", "RevertsWithMuch", "BurnsGas", "CallsBack"} {
		t.Run(manner, func(t *testing.T) {
			w := w.in(t)
			theirs := w.gift(w.payer).Signed(hostile.address, make([]byte, 65))
			hostile.behave(manner)
			refused := []contracts.SignedAuthorization{theirs}
			if manner == "CallsBack" {
				hostile.do("arm", w.AuthorizationRelay, relayed(theirs, w.paid()))
				refused = nil
			}
			all := []contracts.SignedAuthorization{w.paid(), theirs, w.paid()}
			reasons := w.wantRelayed(w.send(all...), all, refused...)
			if reason := reasons[theirs.Nonce]; manner == "RevertsWithMuch" && len(reason) != 256 {
				t.Errorf("the reason has %d bytes, want 256 of the token's", len(reason))
			}
		})
	}
}

// TestRelayWithTheEstimatedGas sends batches with exactly the gas that the node estimates.
func TestRelayWithTheEstimatedGas(t *testing.T) {
	w := newWorld(t)
	factory := w.mock("SmartAccountFactory", common.Address{})
	for i, size := range []int{1, 2, 20} {
		signer, err := crypto.ToECDSA(common.BigToHash(big.NewInt(int64(i + 1))).Bytes())
		w.must(err)
		key := devchain.Address(signer)
		account := common.BytesToAddress(w.call(factory.address, pack(w, factory.abi, "accountOf", key)))
		w.fund(w.Token, account, 100)
		deployed := w.signed(w.gift(account), signer)
		deployed.Signature = append([]byte{0}, deployed.Signature...)
		deployed.Deployer, deployed.DeployData = factory.address, pack(w, factory.abi, "deploy", key)
		all := []contracts.SignedAuthorization{deployed}
		for range size - 1 {
			all = append(all, w.paid())
		}
		data, _ := packRelay(all...)
		gas, err := w.Client().EstimateGas(w.Context(), ethereum.CallMsg{From: w.operator, To: &w.AuthorizationRelay, Data: data})
		w.must(err)
		w.wantRelayed(w.transactWithGas(w.Keys.Operator, w.AuthorizationRelay, data, gas), all)
	}
	all := []contracts.SignedAuthorization{w.paid(), w.paid()}
	data, needed := packRelay(all...)
	before, _ := contracts.TransactionGas(data)
	w.wantRelayed(w.transactWithGas(w.Keys.Operator, w.AuthorizationRelay, data, before+needed+5_000), all)
	data, needed = packRelay(w.paid(), w.paid())
	receipt := w.transactWithGas(w.Keys.Operator, w.AuthorizationRelay, data, before+needed)
	if receipt.Status != types.ReceiptStatusFailed {
		t.Error("the relay took too little gas")
	}
}

// FuzzRelayCaller sends any calldata to the relay, which must not move tokens without a signature.
func FuzzRelayCaller(f *testing.F) {
	w := newFixedWorld(f)
	good := w.paid()
	for i := range 3 {
		a := good
		a.Signature = slices.Clone(good.Signature)
		a.Signature[20*i]++
		f.Add(relayed(a))
		f.Add(w.relay.PackRelayOne(a))
	}
	theft := good
	theft.To = w.operator
	theft.Deployer, theft.DeployData = w.Token, w.token.PackTransferFrom(w.payer, w.operator, common.Big1)
	f.Add(relayed(theft))
	before := w.holdings(w.Token)
	f.Fuzz(func(t *testing.T, data []byte) {
		w := w.in(t)
		if len(data) > 4096 {
			return
		}
		w.transactWithGas(w.Keys.Merchant, w.AuthorizationRelay, data, 2_000_000)
		if after := w.holdings(w.Token); after != before {
			t.Errorf("balances were %+v and are %+v", before, after)
		}
	})
}

// TestRelayGasIsBounded has deployers and accounts burn their gas, and leave more or less of it, one at a time and
// among others. A transaction with one of them uses no more than the stated limit, and the others are carried out.
func TestRelayGasIsBounded(t *testing.T) {
	w := newWorld(t)
	burner := w.mock("GasBurner", common.Address{})
	w.fund(w.Token, burner.address, 1000)
	deploys := pack(w, burner.abi, "deploy")
	for name, test := range map[string]struct {
		theirs func() contracts.SignedAuthorization
		most   uint64
	}{
		"a key's account and a deployer": {func() contracts.SignedAuthorization {
			a := w.paid()
			a.Deployer, a.DeployData = burner.address, deploys
			return a
		}, mostDeployGas},
		"a deployer with much data": {func() contracts.SignedAuthorization {
			a := w.paid()
			a.Deployer, a.DeployData = burner.address, append(slices.Clone(deploys), slices.Repeat([]byte{1}, 8000)...)
			return a
		}, mostDeployGas},
		"an account": {func() contracts.SignedAuthorization {
			return w.gift(burner.address).Signed(w.Token, []byte{1})
		}, mostGas},
		"an account with a long signature": {func() contracts.SignedAuthorization {
			return w.gift(burner.address).Signed(w.Token, slices.Repeat([]byte{1}, 4000))
		}, mostGas},
		"an account that has a deployer": {func() contracts.SignedAuthorization {
			a := w.gift(burner.address).Signed(w.Token, []byte{1})
			a.Deployer, a.DeployData = burner.address, deploys
			return a
		}, mostDeployGas},
	} {
		for _, leaves := range []int64{0, 20_000, 60_000, 100_000, 6_000_000} {
			burner.do("burn", big.NewInt(leaves))
			if used := w.send(test.theirs()).GasUsed; used > test.most {
				t.Errorf("%s that leaves %d: a transaction used %d gas, want at most %d", name, leaves, used, test.most)
			}
			theirs := test.theirs()
			all := []contracts.SignedAuthorization{theirs, w.paid(), theirs, w.paid()}
			for nonce := range w.refusals(w.send(all...)) {
				if nonce != theirs.Nonce {
					t.Errorf("%s that leaves %d: another authorization was refused", name, leaves)
				}
			}
		}
	}
	// Its floor price already exceeds the limit.
	if got := contracts.RelayLimit(w.gift(burner.address).Signed(w.Token, slices.Repeat([]byte{1}, 8000)), mostGas); got != 0 {
		t.Errorf("with 8,000 bytes of signature it may use %d gas, want none", got)
	}
}

// TestRelaySkipsTheDeployer names a factory that burns all its gas for an existing account, because the account was
// deployed after the payer signed.
func TestRelaySkipsTheDeployer(t *testing.T) {
	w := newWorld(t)
	factory, burner := w.mock("SmartAccountFactory", common.Address{}), w.mock("GasBurner", common.Address{})
	account := common.BytesToAddress(w.call(factory.address, pack(w, factory.abi, "accountOf", w.operator)))
	factory.do("deploy", w.operator)
	burner.do("burn", new(big.Int))
	w.fund(w.Token, account, 100)
	for _, deployer := range []mock{factory, burner} {
		a := w.signed(w.gift(account), w.Keys.Operator)
		a.Deployer, a.DeployData = deployer.address, pack(w, factory.abi, "deploy", w.operator)
		receipt := w.send(a)
		w.wantRelayed(receipt, []contracts.SignedAuthorization{a})
		if receipt.GasUsed > 120_000 {
			t.Errorf("it used %d gas", receipt.GasUsed)
		}
	}
}

// TestRelayConstants compares the contract's constants with Go's.
func TestRelayConstants(t *testing.T) {
	w := newWorld(t)
	number := func(data []byte) uint64 { return new(big.Int).SetBytes(w.call(w.AuthorizationRelay, data)).Uint64() }
	besides, perByte := number(w.relay.PackGASBESIDES()), number(w.relay.PackGASPERBYTE())
	a := contracts.SignedAuthorization{Signature: make([]byte, 3), DeployData: make([]byte, 7)}
	if got, want := contracts.RelayGas(a, 63_000), 64_000+besides+10*perByte; got != want {
		t.Errorf("an authorization needs %d gas, want %d", got, want)
	}
}
