package contracts_test

import (
	"bytes"
	"crypto/ecdsa"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// coin is the token of a sweep of the network's coin.
var coin common.Address

// swept is a result of a sweep, as in the factory's event.
type swept struct {
	Deposit, Token common.Address
	Amount         int64 // -1 if it failed
}

const failed = -1

// depositID returns the id of the n-th deposit of a test.
func depositID(n int) common.Hash { return common.BigToHash(big.NewInt(int64(n))) }

// depositOf returns the deposit address of a sweep.
func (w *world) depositOf(s contracts.Sweep) common.Address {
	return contracts.DepositAddress(w.DepositFactory, s.Merchant, s.Id)
}

// toMerchant returns the sweep of a token from the n-th deposit to the test's merchant.
func (w *world) toMerchant(n int, token common.Address) contracts.Sweep {
	return contracts.Sweep{Merchant: w.merchant, Id: depositID(n), Token: token}
}

// sweep sends sweeps with the largest gas limit, and returns the events.
func (w *world) sweep(sweeps ...contracts.Sweep) []swept {
	w.Helper()
	return w.sweptIn(w.transactWithGas(w.Keys.Payer, w.DepositFactory, w.factory.PackSweep(sweeps), params.MaxTxGas))
}

// sweptIn returns the factory's events in the receipt of a transaction that must have succeeded.
func (w *world) sweptIn(receipt *types.Receipt) []swept {
	w.Helper()
	if receipt.Status != types.ReceiptStatusSuccessful {
		w.Fatalf("the sweep failed with %d gas used", receipt.GasUsed)
	}
	var all []swept
	for _, log := range receipt.Logs {
		if log.Address != w.DepositFactory {
			continue
		}
		switch log.Topics[0] {
		case w.factory.GetABI().Events["Swept"].ID:
			event, err := w.factory.UnpackSweptEvent(log)
			w.must(err)
			if got := contracts.DepositCode(w.DepositFactory, event.Merchant); !bytes.Equal(got, w.code(event.Deposit)) {
				w.Errorf("the event's merchant %s is not that of the deposit", event.Merchant)
			}
			if got, err := contracts.ParseSwept(*log); err != nil || got != (contracts.Swept{Deposit: event.Deposit, Token: event.Token, Merchant: event.Merchant}) {
				w.Errorf("the event %+v is parsed as %+v, %v", event, got, err)
			}
			all = append(all, swept{event.Deposit, event.Token, event.Amount.Int64()})
		case w.factory.GetABI().Events["SweepFailed"].ID:
			event, err := w.factory.UnpackSweepFailedEvent(log)
			w.must(err)
			all = append(all, swept{event.Deposit, event.Token, failed})
		default:
			w.Errorf("the factory logged %s", log.Topics[0])
		}
	}
	return all
}

func (w *world) wantSwept(got []swept, want ...swept) {
	w.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("-want +swept:\n%s", diff)
	}
}

func (w *world) code(at common.Address) []byte {
	w.Helper()
	code, err := w.Client().CodeAt(w.Context(), at, nil)
	w.must(err)
	return code
}

// held returns an account's balance of a token or of the coin.
func (w *world) held(token, holder common.Address) int64 {
	w.Helper()
	if token == coin {
		amount, err := w.Client().BalanceAt(w.Context(), holder, nil)
		w.must(err)
		if !amount.IsInt64() {
			w.Fatalf("%s has %s wei; use an account without coin", holder, amount)
		}
		return amount.Int64()
	}
	return new(big.Int).SetBytes(w.call(token, w.token.PackBalanceOf(holder))).Int64()
}

// sendCoin sends wei, with data. A nil receiver creates a contract.
func (w *world) sendCoin(to *common.Address, wei int64, data []byte) *types.Receipt {
	w.Helper()
	nonce, err := w.Client().NonceAt(w.Context(), w.payer, nil)
	w.must(err)
	tx, err := types.SignNewTx(w.Keys.Payer, types.LatestSignerForChainID(w.ChainID()), &types.DynamicFeeTx{
		ChainID: w.ChainID(), Nonce: nonce, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(10 * params.GWei),
		Gas: 1_000_000, To: to, Value: big.NewInt(wei), Data: data,
	})
	w.must(err)
	w.must(w.Client().SendTransaction(w.Context(), tx))
	w.must(w.Seal(w.Context()))
	receipt, err := w.Mined(w.Context(), tx.Hash())
	w.must(err)
	return receipt
}

// forceCoin sends wei to an address from a contract that destroys itself, which no code at the address can refuse.
func (w *world) forceCoin(to common.Address, wei int64) {
	w.Helper()
	const push20, selfDestruct = 0x73, 0xff
	receipt := w.sendCoin(nil, wei, slices.Concat([]byte{push20}, to.Bytes(), []byte{selfDestruct}))
	if receipt.Status != types.ReceiptStatusSuccessful {
		w.Fatal("the contract did not destroy itself")
	}
}

// fund sends tokens, or coin, from the payer.
func (w *world) fund(token, to common.Address, amount int64) {
	w.Helper()
	if token != coin {
		w.do(w.Keys.Payer, token, w.token.PackTransfer(to, big.NewInt(amount)))
		return
	}
	if receipt := w.sendCoin(&to, amount, nil); receipt.Status != types.ReceiptStatusSuccessful {
		w.Fatalf("%s did not take coin", to)
	}
}

func TestDepositAddressIsTheContracts(t *testing.T) {
	w := newWorld(t)
	if got := common.BytesToAddress(w.call(w.DepositFactory, w.factory.PackImplementation())); got != contracts.DepositImplementation(w.DepositFactory) {
		t.Errorf("implementation is %s, the contract says %s", contracts.DepositImplementation(w.DepositFactory), got)
	}
	rapid.Check(t, func(r *rapid.T) {
		merchant := common.BytesToAddress(rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(r, "merchant"))
		id := common.BytesToHash(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(r, "id"))
		want := common.BytesToAddress(w.call(w.DepositFactory, w.factory.PackDepositAddress(merchant, id)))
		if got := contracts.DepositAddress(w.DepositFactory, merchant, id); got != want {
			r.Fatalf("deposit address is %s, the contract says %s", got, want)
		}
	})
}

func TestCodeHashes(t *testing.T) {
	w := newWorld(t)
	for name, contract := range map[string]struct {
		at   common.Address
		want common.Hash
	}{
		"DepositFactory":     {w.DepositFactory, contracts.DepositFactoryCodeHash},
		"Deposit":            {contracts.DepositImplementation(w.DepositFactory), contracts.DepositCodeHash},
		"AuthorizationRelay": {w.AuthorizationRelay, contracts.AuthorizationRelayCodeHash},
	} {
		if got := crypto.Keccak256Hash(w.code(contract.at)); got != contract.want {
			t.Errorf("the code of %s has the hash %s, codehashes.go says %s", name, got, contract.want)
		}
	}
}

// TestSweep pays a deposit address before and after its code is deployed. The result of the sweep does not depend on
// its sender.
func TestSweep(t *testing.T) {
	w := newWorld(t)
	s := w.toMerchant(1, w.Token)
	deposit := w.depositOf(s)
	w.fund(w.Token, deposit, 600)
	w.fund(w.Token, deposit, 400)
	w.wantSwept(w.sweep(s), swept{deposit, w.Token, 1000})
	w.wantBalance(w.merchant, 1000)
	if got, want := w.code(deposit), contracts.DepositCode(w.DepositFactory, w.merchant); !bytes.Equal(got, want) {
		t.Errorf("the deposit's code is %#x, want %#x", got, want)
	}
	w.wantSwept(w.sweep(s)) // the deposit is empty
	for i, caller := range []*ecdsa.PrivateKey{w.Keys.Merchant, w.Keys.Payer, w.Keys.Operator} {
		w.fund(w.Token, deposit, 10)
		receipt := w.do(caller, w.DepositFactory, w.factory.PackSweep([]contracts.Sweep{s}))
		w.wantSwept(w.sweptIn(receipt), swept{deposit, w.Token, 10})
		w.wantBalance(w.merchant, 1000+int64(i+1)*10)
	}
}

// TestSweepTheDepositItself calls the deposit without the factory.
func TestSweepTheDepositItself(t *testing.T) {
	w := newWorld(t)
	s := w.toMerchant(1, w.Token)
	deposit := w.depositOf(s)
	w.wantSwept(w.sweep(s)) // deploys it
	w.fund(w.Token, deposit, 70)
	w.do(w.Keys.Operator, deposit, w.deposit.PackSweep(w.Token))
	w.wantBalance(w.merchant, 70)
	if got := common.BytesToAddress(w.call(deposit, w.deposit.PackMerchant())); got != w.merchant {
		t.Errorf("the deposit names the merchant %s, want %s", got, w.merchant)
	}
}

// TestImplementationIsNoDeposit calls the implementation of the deposits' clones.
func TestImplementationIsNoDeposit(t *testing.T) {
	w := newWorld(t)
	implementation := contracts.DepositImplementation(w.DepositFactory)
	w.fund(w.Token, implementation, 5)
	notADeposit := w.deposit.GetABI().Errors["NotADeposit"]
	w.refused(w.Keys.Payer, implementation, w.deposit.PackSweep(w.Token), notADeposit)
	w.refused(w.Keys.Payer, implementation, w.deposit.PackSweep(coin), notADeposit)
	w.wantBalance(implementation, 5)
}

// TestSweepEmpty sweeps a deposit that was never paid, and one deposit twice in a batch.
func TestSweepEmpty(t *testing.T) {
	w := newWorld(t)
	w.wantSwept(w.sweep())
	paid, unpaid := w.toMerchant(1, w.Token), w.toMerchant(2, w.Token)
	w.fund(w.Token, w.depositOf(paid), 3)
	w.wantSwept(w.sweep(unpaid, paid, paid, unpaid), swept{w.depositOf(paid), w.Token, 3})
	w.wantSwept(w.sweep(w.toMerchant(3, coin), w.toMerchant(3, coin)))
	w.wantBalance(w.merchant, 3)
}

// TestSweepAfterAnother has another caller deploy and sweep first.
func TestSweepAfterAnother(t *testing.T) {
	w := newWorld(t)
	s, other := w.toMerchant(1, w.Token), w.toMerchant(2, w.Token)
	w.fund(w.Token, w.depositOf(s), 4)
	w.fund(w.Token, w.depositOf(other), 5)
	w.do(w.Keys.Operator, w.DepositFactory, w.factory.PackSweepOne(s))
	w.wantSwept(w.sweep(s, other), swept{w.depositOf(other), w.Token, 5})
	w.wantBalance(w.merchant, 9)
}

// TestOtherTermsAreOtherDeposits sweeps with another merchant or id, which does not affect the deposit.
func TestOtherTermsAreOtherDeposits(t *testing.T) {
	w := newWorld(t)
	s := w.toMerchant(1, w.Token)
	w.fund(w.Token, w.depositOf(s), 8)
	theirs, another := s, s
	theirs.Merchant = w.payer
	another.Id[0] = 1
	w.wantSwept(w.sweep(theirs, another))
	w.wantBalance(w.depositOf(s), 8)
	w.wantSwept(w.sweep(s), swept{w.depositOf(s), w.Token, 8})
}

// TestSweepOfCoin sends coin to a deposit before it has code and after, also by force.
func TestSweepOfCoin(t *testing.T) {
	w := newWorld(t)
	s := contracts.Sweep{Merchant: common.Address{0xc0}, Id: depositID(1), Token: coin}
	deposit, merchant := w.depositOf(s), int64(0)
	for range 2 {
		w.fund(coin, deposit, 30)
		w.forceCoin(deposit, 12)
		w.wantSwept(w.sweep(s), swept{deposit, coin, 42})
		merchant += 42
		if got := w.held(coin, s.Merchant); got != merchant {
			t.Errorf("the merchant has %d wei, want %d", got, merchant)
		}
	}
	if got, want := w.code(deposit), contracts.DepositCode(w.DepositFactory, s.Merchant); !bytes.Equal(got, want) {
		t.Errorf("the deposit's code is %#x, want %#x", got, want)
	}
}

// TestSweepToADestroyedContract has a merchant with a contract that destroyed itself.
func TestSweepToADestroyedContract(t *testing.T) {
	w := newWorld(t)
	const caller, selfDestruct = 0x33, 0xff
	merchant := w.sendCoin(nil, 1, []byte{caller, selfDestruct}).ContractAddress
	for _, token := range []common.Address{coin, w.Token} {
		s := contracts.Sweep{Merchant: merchant, Id: depositID(1), Token: token}
		w.fund(token, w.depositOf(s), 6)
		w.wantSwept(w.sweep(s), swept{w.depositOf(s), token, 6})
		if got := w.held(token, merchant); got != 6 {
			t.Errorf("the merchant has %d of %s, want 6", got, token)
		}
	}
}

// TestSweepToContracts sends coin to merchants that are contracts. The behavior of one does not affect the others'
// coin, or any tokens.
func TestSweepToContracts(t *testing.T) {
	for _, test := range []struct {
		manner string
		taken  bool
	}{
		{"Takes", true}, {"TakesWithMuch", true}, {"SendsBack", true},
		{"Refuses", false}, {"RefusesWithMuch", false}, {"BurnsGas", false},
	} {
		t.Run(test.manner, func(t *testing.T) {
			w := newWorld(t)
			merchant := w.mock("CoinReceiver", common.Address{})
			merchant.do("behave", uint8(slices.Index(receiverManners, test.manner)))
			before, after := w.toMerchant(1, coin), w.toMerchant(2, coin)
			theirs := contracts.Sweep{Merchant: merchant.address, Id: depositID(3), Token: coin}
			tokens := contracts.Sweep{Merchant: merchant.address, Id: depositID(3), Token: w.Token}
			for _, s := range []contracts.Sweep{before, after, theirs, tokens} {
				w.fund(s.Token, w.depositOf(s), 9)
			}
			want := swept{w.depositOf(theirs), coin, failed}
			if test.taken {
				want.Amount = 9
			}
			w.wantSwept(w.sweep(before, theirs, after, tokens),
				swept{w.depositOf(before), coin, 9}, want, swept{w.depositOf(after), coin, 9}, swept{w.depositOf(tokens), w.Token, 9})
			kept := int64(9)
			if test.taken && test.manner != "SendsBack" {
				kept = 0
			}
			if got := w.held(coin, w.depositOf(theirs)); got != kept {
				t.Errorf("the deposit has %d wei, want %d", got, kept)
			}
		})
	}
	t.Run("without receive", func(t *testing.T) {
		w := newWorld(t)
		merchant := w.mock("MerchantWallet", common.Address{})
		coins := contracts.Sweep{Merchant: merchant.address, Id: depositID(1), Token: coin}
		tokens := contracts.Sweep{Merchant: merchant.address, Id: depositID(1), Token: w.Token}
		w.fund(coin, w.depositOf(coins), 9)
		w.fund(w.Token, w.depositOf(coins), 9)
		w.wantSwept(w.sweep(coins, tokens), swept{w.depositOf(coins), coin, failed}, swept{w.depositOf(coins), w.Token, 9})
		w.wantBalance(merchant.address, 9)
	})
}

// TestSweepOfHostileTokens sweeps a token that misbehaves between two honest ones.
func TestSweepOfHostileTokens(t *testing.T) {
	w := newWorld(t)
	hostile := w.hostile()
	for i, test := range []struct {
		manner string
		taken  bool
	}{
		{"Honest", true}, {"ReturnsNothing", true}, {"ReturnsMuch", true},
		{"ReturnsFalse", false}, {"MovesNothing", false}, {"Reverts", false}, {"RevertsWithMuch", false}, {"BurnsGas", false},
		{"HidesBalances", false}, {"BurnsAtBalances", false},
	} {
		t.Run(test.manner, func(t *testing.T) {
			w := w.in(t)
			before, after, theirs := w.toMerchant(3*i+1, w.Token), w.toMerchant(3*i+2, w.Token), w.toMerchant(3*i+3, hostile.address)
			hostile.behave("Honest")
			for _, s := range []contracts.Sweep{before, after, theirs} {
				w.fund(s.Token, w.depositOf(s), 9)
			}
			merchant := w.held(hostile.address, w.merchant)
			hostile.behave(test.manner)
			want, moved := swept{w.depositOf(theirs), hostile.address, failed}, int64(0)
			if test.taken {
				want.Amount, moved = 9, 9
			}
			w.wantSwept(w.sweep(before, theirs, after),
				swept{w.depositOf(before), w.Token, 9}, want, swept{w.depositOf(after), w.Token, 9})
			hostile.behave("Honest")
			if got := w.held(hostile.address, w.merchant) - merchant; got != moved {
				t.Errorf("the merchant received %d, want %d", got, moved)
			}
			if got := w.held(hostile.address, w.depositOf(theirs)); got != 9-moved {
				t.Errorf("the deposit has %d, want %d", got, 9-moved)
			}
			if !test.taken { // a failed sweep can be repeated later
				w.wantSwept(w.sweep(theirs), swept{w.depositOf(theirs), hostile.address, 9})
			}
		})
	}
}

// TestSweepOfFeeToken reports the amount that left the deposit; the merchant receives less.
func TestSweepOfFeeToken(t *testing.T) {
	w := newWorld(t)
	fee, parsed := w.deploy("FeeToken", w.payer)
	for manner := range uint8(3) {
		w.do(w.Keys.Payer, fee, pack(w, parsed, "behave", manner))
		s := w.toMerchant(int(manner), fee)
		w.fund(fee, w.depositOf(s), 1000) // 990 of them arrive
		merchant := w.held(fee, w.merchant)
		w.wantSwept(w.sweep(s), swept{w.depositOf(s), fee, 990})
		if got := w.held(fee, w.merchant) - merchant; got != 981 {
			t.Errorf("the merchant received %d, want 981", got)
		}
	}
}

// TestSweepOfNoToken sweeps tokens that do not exist: an account, and a contract that is not a token.
func TestSweepOfNoToken(t *testing.T) {
	w := newWorld(t)
	for i, token := range []common.Address{w.payer, w.Registry, w.DepositFactory, common.BytesToAddress([]byte{4})} {
		s := w.toMerchant(i, token)
		paid := w.toMerchant(i+100, w.Token)
		w.fund(w.Token, w.depositOf(paid), 2)
		w.wantSwept(w.sweep(s, paid), swept{w.depositOf(s), token, failed}, swept{w.depositOf(paid), w.Token, 2})
	}
}

// TestSweepToABlacklistedMerchant keeps the tokens until the merchant can receive them.
func TestSweepToABlacklistedMerchant(t *testing.T) {
	w := newWorld(t)
	token := w.hostile()
	theirs := contracts.Sweep{Merchant: w.operator, Id: depositID(1), Token: token.address}
	other := w.toMerchant(1, token.address)
	w.fund(token.address, w.depositOf(theirs), 11)
	w.fund(token.address, w.depositOf(other), 12)
	token.do("blacklist", w.operator, true)
	w.wantSwept(w.sweep(theirs, other), swept{w.depositOf(theirs), token.address, failed}, swept{w.depositOf(other), token.address, 12})
	if got := w.held(token.address, w.depositOf(theirs)); got != 11 {
		t.Errorf("the deposit has %d, want 11", got)
	}
	token.do("blacklist", w.operator, false)
	w.wantSwept(w.sweep(theirs), swept{w.depositOf(theirs), token.address, 11})
}

// TestSweepReentrancy lets a token, and a merchant, call back while a deposit is swept. Whatever the call does, each
// amount arrives once, at its merchant.
func TestSweepReentrancy(t *testing.T) {
	w := newWorld(t)
	for i, name := range []string{"same deposit", "other deposit", "the deposit itself", "deploy another", "a batch"} {
		n := 10 * i
		call := func(token common.Address, merchant common.Address) (common.Address, []byte) {
			same := contracts.Sweep{Merchant: merchant, Id: depositID(n + 1), Token: token}
			other := contracts.Sweep{Merchant: w.merchant, Id: depositID(n + 2), Token: w.Token}
			fresh := contracts.Sweep{Merchant: w.merchant, Id: depositID(n + 3), Token: coin}
			switch name {
			case "same deposit":
				return w.DepositFactory, w.factory.PackSweepOne(same)
			case "other deposit":
				return w.DepositFactory, w.factory.PackSweepOne(other)
			case "the deposit itself":
				return w.depositOf(same), w.deposit.PackSweep(token)
			case "deploy another":
				return w.DepositFactory, w.factory.PackSweepOne(fresh)
			}
			return w.DepositFactory, w.factory.PackSweep([]contracts.Sweep{same, other, fresh})
		}
		t.Run("token: "+name, func(t *testing.T) {
			w := w.in(t)
			token := w.hostile()
			theirs, other := w.toMerchant(n+1, token.address), w.toMerchant(n+2, w.Token)
			w.fund(token.address, w.depositOf(theirs), 21)
			w.fund(w.Token, w.depositOf(other), 22)
			merchant := w.held(w.Token, w.merchant)
			target, payload := call(token.address, w.merchant)
			token.do("arm", target, payload)
			first := w.sweep(theirs, other)
			if !token.is("attempted") && first[0].Amount != failed { // a failure undoes the call back, too
				t.Error("the token did not call back")
			}
			token.behave("Honest")
			w.sweep(theirs)
			w.wantBalance(w.depositOf(other), 0)
			if got := w.held(w.Token, w.merchant) - merchant; got != 22 {
				t.Errorf("the merchant received %d of the other token, want 22", got)
			}
			if got := w.held(token.address, w.merchant); got != 21 {
				t.Errorf("the merchant has %d of the token, want 21", got)
			}
		})
		t.Run("merchant: "+name, func(t *testing.T) {
			w := w.in(t)
			merchant := w.mock("CoinReceiver", common.Address{})
			theirs := contracts.Sweep{Merchant: merchant.address, Id: depositID(n + 1), Token: coin}
			other := w.toMerchant(n+2, w.Token)
			w.fund(coin, w.depositOf(theirs), 23)
			w.fund(w.Token, w.depositOf(other), 24)
			before := w.held(w.Token, w.merchant)
			target, payload := call(coin, merchant.address)
			merchant.do("arm", target, payload)
			w.sweep(theirs, other)
			if !merchant.is("attempted") {
				t.Error("the merchant did not call back")
			}
			if got := w.held(coin, merchant.address); got != 23 {
				t.Errorf("the merchant has %d wei, want 23", got)
			}
			if got := w.held(w.Token, w.merchant) - before; got != 24 {
				t.Errorf("the other merchant received %d, want 24", got)
			}
		})
	}
}

// TestOneFailsAmong200 sweeps 200 deposits, one of which burns all its gas.
func TestOneFailsAmong200(t *testing.T) {
	w := newWorld(t)
	hostile := w.hostile()
	disperse, parsed := w.deploy("Disperse", common.Address{})
	sweeps, to, amounts := make([]contracts.Sweep, 200), make([]common.Address, 200), make([]*big.Int, 200)
	for i := range sweeps {
		sweeps[i] = w.toMerchant(i, w.Token)
		to[i], amounts[i] = w.depositOf(sweeps[i]), big.NewInt(5)
	}
	w.do(w.Keys.Payer, w.Token, w.token.PackApprove(disperse, big.NewInt(1_000_000)))
	for i := 0; i < len(to); i += 50 {
		receipt := w.transactWithGas(w.Keys.Payer, disperse, pack(w, parsed, "disperse", w.Token, to[i:i+50], amounts[i:i+50]), params.MaxTxGas)
		if receipt.Status != types.ReceiptStatusSuccessful {
			t.Fatal("the deposits were not paid")
		}
	}
	sweeps[100].Token = hostile.address
	w.fund(hostile.address, w.depositOf(sweeps[100]), 5)
	hostile.behave("BurnsGas")
	got := w.sweep(sweeps...)
	for i, s := range got {
		want := swept{w.depositOf(sweeps[i]), w.Token, 5}
		if i == 100 {
			want = swept{want.Deposit, hostile.address, failed}
		}
		if s != want {
			t.Errorf("%d: %+v, want %+v", i, s, want)
		}
	}
	if len(got) != 200 {
		t.Errorf("%d results, want 200", len(got))
	}
	w.wantBalance(w.merchant, 199*5)
}

// TestSweepWithTheEstimatedGas sends batches with exactly the gas that the node estimates. An estimate is the least gas
// with which a transaction succeeds, so it must be enough for every sweep in it.
func TestSweepWithTheEstimatedGas(t *testing.T) {
	w := newWorld(t)
	hostile := w.hostile()
	n := 0
	for _, size := range []int{1, 2, 7, 30} {
		for _, failing := range []bool{false, true} {
			hostile.behave("Honest")
			var sweeps []contracts.Sweep
			var want []swept
			for range size {
				n++
				sweeps = append(sweeps, w.toMerchant(n, w.Token))
				w.fund(w.Token, w.depositOf(sweeps[len(sweeps)-1]), 5)
				want = append(want, swept{w.depositOf(sweeps[len(sweeps)-1]), w.Token, 5})
			}
			if failing {
				sweeps[0].Token = hostile.address
				w.fund(hostile.address, w.depositOf(sweeps[0]), 5)
				hostile.behave("BurnsGas")
				want[0] = swept{w.depositOf(sweeps[0]), hostile.address, failed}
			}
			data := w.factory.PackSweep(sweeps)
			gas, err := w.Client().EstimateGas(w.Context(), ethereum.CallMsg{From: w.payer, To: &w.DepositFactory, Data: data})
			w.must(err)
			w.wantSwept(w.sweptIn(w.transactWithGas(w.Keys.Payer, w.DepositFactory, data, gas)), want...)
		}
	}
}

// TestSweepToNewMerchants sweeps to merchants that never held the token, which costs the most, with a quarter more gas
// than the node estimates, as the service does.
func TestSweepToNewMerchants(t *testing.T) {
	w := newWorld(t)
	var sweeps []contracts.Sweep
	var want []swept
	for i := range 40 {
		s := contracts.Sweep{Merchant: common.BigToAddress(big.NewInt(int64(0x10000 + i))), Id: depositID(i), Token: w.Token}
		_, err := w.SendToken(w.Context(), w.Keys.Payer, w.depositOf(s), big.NewInt(5), nil)
		w.must(err)
		sweeps, want = append(sweeps, s), append(want, swept{w.depositOf(s), w.Token, 5})
	}
	w.must(w.Seal(w.Context()))
	data := w.factory.PackSweep(sweeps)
	gas, err := w.Client().EstimateGas(w.Context(), ethereum.CallMsg{From: w.payer, To: &w.DepositFactory, Data: data})
	w.must(err)
	w.wantSwept(w.sweptIn(w.transactWithGas(w.Keys.Payer, w.DepositFactory, data, gas+gas/4)), want...)
}

// TestSweepWantsEnoughGas sends a batch with so little gas that its sweeps could fail only for that reason.
func TestSweepWantsEnoughGas(t *testing.T) {
	w := newWorld(t)
	s := w.toMerchant(1, w.Token)
	w.fund(w.Token, w.depositOf(s), 5)
	data := w.factory.PackSweep([]contracts.Sweep{s, w.toMerchant(2, w.Token), w.toMerchant(3, w.Token)})
	receipt := w.transactWithGas(w.Keys.Payer, w.DepositFactory, data, 3*sweepGas)
	if receipt.Status != types.ReceiptStatusFailed || len(receipt.Logs) > 0 {
		t.Errorf("the status is %d with %d logs, want failure", receipt.Status, len(receipt.Logs))
	}
	w.wantBalance(w.depositOf(s), 5)
	gas, err := w.factory.UnpackGASPERSWEEP(w.call(w.DepositFactory, w.factory.PackGASPERSWEEP()))
	w.must(err)
	if gas.Uint64() != sweepGas {
		t.Errorf("the factory wants %s gas, the test supposes %d", gas, sweepGas)
	}
}

// TestFirstSweepAfterABurner sweeps a token that uses up all gas, and then USDC to a merchant that never held it, which
// costs more than the gas reserved for each. With little gas the USDC stays where it is; with more it arrives.
func TestFirstSweepAfterABurner(t *testing.T) {
	w := newWorld(t)
	hostile := w.hostile()
	hostile.behave("BurnsAtBalances")
	burner := w.toMerchant(1, hostile.address)
	first := contracts.Sweep{Merchant: common.Address{0xc1}, Id: depositID(2), Token: w.Token}
	w.fund(w.Token, w.depositOf(first), 5)
	sweep := func(gas uint64, want int64) {
		t.Helper()
		receipt := w.transactWithGas(w.Keys.Payer, w.DepositFactory, w.factory.PackSweep([]contracts.Sweep{burner, first}), gas)
		w.wantSwept(w.sweptIn(receipt), swept{w.depositOf(burner), hostile.address, failed}, swept{w.depositOf(first), w.Token, want})
	}
	sweep(params.TxGas+60_000+10_000+2*(sweepGas+2_000), failed)
	w.wantBalance(w.depositOf(first), 5)
	sweep(params.MaxTxGas, 5)
}

// sweepGas is the factory's GAS_PER_SWEEP.
const sweepGas = 80_000

// TestFactoryTakesNoCoin sends coin to the factory, and with a sweep.
func TestFactoryTakesNoCoin(t *testing.T) {
	w := newWorld(t)
	for _, data := range [][]byte{nil, w.factory.PackSweep(nil), w.factory.PackSweepOne(w.toMerchant(1, coin))} {
		if receipt := w.sendCoin(&w.DepositFactory, 1, data); receipt.Status != types.ReceiptStatusFailed {
			t.Errorf("the factory took coin with %#x", data)
		}
	}
	if receipt := w.sendCoin(&w.AuthorizationRelay, 1, nil); receipt.Status != types.ReceiptStatusFailed {
		t.Error("the relay took coin")
	}
}

// TestABIsHaveNoMore expects only the known functions: no function changes what a deposit does.
func TestABIsHaveNoMore(t *testing.T) {
	for name, contract := range map[string]struct {
		methods []string
		got     []string
	}{
		"Deposit":        {[]string{"merchant", "sweep"}, methodsOf(contracts.NewDeposit().GetABI())},
		"DepositFactory": {[]string{"GAS_BESIDES", "GAS_PER_SWEEP", "depositAddress", "implementation", "sweep", "sweepOne"}, methodsOf(contracts.NewDepositFactory().GetABI())},
		"AuthorizationRelay": {
			[]string{"GAS_BESIDES", "GAS_PER_BYTE", "relay", "relayOne"},
			methodsOf(contracts.NewAuthorizationRelay().GetABI()),
		},
	} {
		if diff := cmp.Diff(contract.methods, contract.got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	// A clone cannot change its code or destroy itself: its implementation has neither of these instructions.
	for _, op := range opcodes(t, contracts.DepositMetaData.Bin) {
		if op == "DELEGATECALL" || op == "CALLCODE" || op == "SELFDESTRUCT" || op == "SSTORE" || op == "CREATE" || op == "CREATE2" {
			t.Errorf("the deposit's code has %s", op)
		}
	}
}

// TestSweepOfALimitedToken sweeps a token that limits each transfer to a part of the balance: every call sends some of
// it, and no amount is lost.
func TestSweepOfALimitedToken(t *testing.T) {
	w := newWorld(t)
	token := w.mock("LimitedToken", w.payer)
	const held = 100_000
	for n, limit := range []int64{held, held - 1, held / 2, held / 7, held / 100, held / 4000} {
		s := w.toMerchant(n, token.address)
		deposit, before := w.depositOf(s), w.held(token.address, w.merchant)
		token.do("setLimit", big.NewInt(1e12))
		w.fund(token.address, deposit, held)
		token.do("setLimit", big.NewInt(limit))
		calls := 0
		for left := int64(held); left > 0; calls++ {
			got := w.sweep(s)
			now := w.held(token.address, deposit)
			w.wantSwept(got, swept{deposit, token.address, left - now})
			if moved := w.held(token.address, w.merchant) - before; now >= left || moved+now != held {
				t.Fatalf("with a limit of %d, %d are left of %d, and the merchant has %d", limit, now, left, moved)
			}
			left = now
		}
		t.Logf("a limit of %d in %d takes %d calls", limit, held, calls)
		if limit >= held/7 && calls > 1 {
			t.Errorf("a limit of %d in %d took %d calls, want 1", limit, held, calls)
		}
	}
	// A token that refuses every part fails, at a bounded cost.
	s := w.toMerchant(99, token.address)
	token.do("setLimit", big.NewInt(1e12))
	w.fund(token.address, w.depositOf(s), held)
	token.do("setLimit", new(big.Int))
	receipt := w.transactWithGas(w.Keys.Payer, w.DepositFactory, w.factory.PackSweep([]contracts.Sweep{s}), params.MaxTxGas)
	w.wantSwept(w.sweptIn(receipt), swept{w.depositOf(s), token.address, failed})
	if receipt.GasUsed > 200_000 {
		t.Errorf("a sweep that the token refuses used %d gas", receipt.GasUsed)
	}
	t.Logf("a sweep that the token refuses used %d gas", receipt.GasUsed)
	for _, left := range []int64{1, 2, 3, 5} { // the smallest parts
		s := w.toMerchant(100+int(left), token.address)
		token.do("setLimit", big.NewInt(1e12))
		w.fund(token.address, w.depositOf(s), left)
		token.do("setLimit", big.NewInt(1))
		w.wantSwept(w.sweep(s), swept{w.depositOf(s), token.address, left})
	}
}

// TestCoinWithAStipend sends coin with 2,300 gas in addition to the transaction's, like contracts that use `transfer`:
// an address without code accepts it, and a swept deposit does not.
func TestCoinWithAStipend(t *testing.T) {
	w := newWorld(t)
	to := w.depositOf(w.toMerchant(1, coin))
	send := func(gas uint64) uint64 {
		nonce, err := w.Client().NonceAt(w.Context(), w.payer, nil)
		w.must(err)
		tx, err := types.SignNewTx(w.Keys.Payer, types.LatestSignerForChainID(w.ChainID()), &types.DynamicFeeTx{
			ChainID: w.ChainID(), Nonce: nonce, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(10 * params.GWei), Gas: gas, To: &to, Value: big.NewInt(5),
		})
		w.must(err)
		w.must(w.Client().SendTransaction(w.Context(), tx))
		w.must(w.Seal(w.Context()))
		receipt, err := w.Mined(w.Context(), tx.Hash())
		w.must(err)
		return receipt.Status
	}
	const stipend = 2300
	if send(params.TxGas+stipend) != types.ReceiptStatusSuccessful {
		t.Error("an address without code refuses the coin")
	}
	w.sweep(w.toMerchant(1, coin))
	if send(params.TxGas+stipend) != types.ReceiptStatusFailed {
		t.Error("a deposit takes coin with a stipend: correct docs/deposits.md")
	}
	if send(params.TxGas+10_000) != types.ReceiptStatusSuccessful {
		t.Error("a deposit refuses coin")
	}
}

// depositVectors are the vectors of docs/deposits.md. They were computed by another program.
var depositVectors = []struct{ factory, merchant, commitmentID, implementation, address string }{
	{
		"0x5FbDB2315678afecb367f032d93F642f64180aa3", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
		"0xf50018c19eb432afb27ae507ee3561502278b4cb6e8462cce89832eb8afb2104",
		"0xa16E02E87b7454126E5E10d957A927A7F5B5d2be", "0x9Cb4aB670769679475648191DB5872d181519F28",
	},
	{
		"0x5FbDB2315678afecb367f032d93F642f64180aa3", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
		"0x0000000000000000000000000000000000000000000000000000000000000000",
		"0xa16E02E87b7454126E5E10d957A927A7F5B5d2be", "0xd4fd272b5d3831135F2348030B06eca55C5812Dd",
	},
	{
		"0xFFfFfFffFFfffFFfFFfFFFFFffFFFffffFfFFFfF", "0x0000000000000000000000000000000000000001",
		"0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"0xa34794Dff7e5d2B06f5B98F3B27AAe9B919F3469", "0x7276c2348259C288662DD09BDBE64019419B609d",
	},
}

func TestDepositAddress(t *testing.T) {
	for _, v := range depositVectors {
		factory, merchant, id := common.HexToAddress(v.factory), common.HexToAddress(v.merchant), common.HexToHash(v.commitmentID)
		if got := contracts.DepositImplementation(factory); got != common.HexToAddress(v.implementation) {
			t.Errorf("implementation of %s is %s, want %s", v.factory, got, v.implementation)
		}
		if got := contracts.DepositAddress(factory, merchant, id); got != common.HexToAddress(v.address) {
			t.Errorf("deposit address is %s, want %s", got, v.address)
		}
	}
}

// TestDepositDocs expects docs/deposits.md to have the vectors and the hashes of the code.
func TestDepositDocs(t *testing.T) {
	text := expect.Must(os.ReadFile(testdeps.Repo("docs/deposits.md")))
	rows := []string{
		fmt.Sprintf("| `DepositFactory` | `%s` |", contracts.DepositFactoryCodeHash),
		fmt.Sprintf("| its `implementation()` | `%s` |", contracts.DepositCodeHash),
		fmt.Sprintf("| `AuthorizationRelay` | `%s` |", contracts.AuthorizationRelayCodeHash),
	}
	for _, v := range depositVectors {
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` | `%s` | `%s` |", v.factory, v.merchant, v.commitmentID, v.address))
	}
	for _, row := range rows {
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/deposits.md lacks the row %s", row)
		}
	}
}
