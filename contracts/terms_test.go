package contracts_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/contracts"
)

func TestIDIsTheContracts(t *testing.T) {
	w := newWorld(t)
	bytesOf := func(r *rapid.T, n int, label string) []byte { return rapid.SliceOfN(rapid.Byte(), n, n).Draw(r, label) }
	rapid.Check(t, func(r *rapid.T) {
		terms := contracts.Terms{
			Merchant:  common.BytesToAddress(bytesOf(r, 20, "merchant")),
			Token:     common.BytesToAddress(bytesOf(r, 20, "token")),
			Amount:    new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(r, "amount")),
			ExpiresAt: rapid.Uint64().Draw(r, "expiresAt"),
			Salt:      [32]byte(bytesOf(r, 32, "salt")),
		}
		want := common.BytesToHash(w.call(w.Registry, w.registry.PackIdOf(terms)))
		if got := w.id(terms); got != want {
			r.Fatalf("id is %s, the contract says %s", got, want)
		}
	})
}

func TestIDDependsOnChainAndRegistry(t *testing.T) {
	terms := contracts.Terms{Amount: big.NewInt(1)}
	id := terms.ID(big.NewInt(1), common.Address{1})
	if id == terms.ID(big.NewInt(2), common.Address{1}) {
		t.Error("the id is the same on another chain")
	}
	if id == terms.ID(big.NewInt(1), common.Address{2}) {
		t.Error("the id is the same in another registry")
	}
}

func TestSalt(t *testing.T) {
	if got, want := contracts.Salt("inv_1"), crypto.Keccak256Hash([]byte("inv_1")); got != want {
		t.Errorf("salt is %s, want %s", got, want)
	}
}
