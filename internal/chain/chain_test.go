package chain

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestParseAddress(t *testing.T) {
	const good = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
	for _, s := range []string{good, strings.ToLower(good), "0x" + strings.ToUpper(good[2:])} {
		a, err := ParseAddress(s)
		if err != nil || Checksum(a) != good {
			t.Errorf("ParseAddress(%q) = %s, %v; want %s", s, Checksum(a), err, good)
		}
	}
	for _, s := range []string{"", "0x", good[2:], good + "0", good[:41], "0X" + good[2:], " " + good, "0xg" + good[3:], "name.eth"} {
		if a, err := ParseAddress(s); err == nil {
			t.Errorf("ParseAddress(%q) = %s; want an error", s, a)
		}
	}
	wrong := strings.Replace(good, "A0b8", "a0b8", 1)
	if _, err := ParseAddress(wrong); err == nil || !strings.Contains(err.Error(), good) {
		t.Errorf("ParseAddress(%q): %v; want an error that names %s", wrong, err, good)
	}
}

func TestChecksumRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := invoice.Address(rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "address"))
		got, err := ParseAddress(Checksum(a))
		if err != nil || got != a {
			t.Fatalf("ParseAddress(%s) = %s, %v", Checksum(a), got, err)
		}
	})
}

// TestCommitmentID compares the id with the formula in words, encoded by go-ethereum's ABI encoder.
func TestCommitmentID(t *testing.T) {
	typ := func(name string) abi.Argument {
		y, err := abi.NewType(name, "", nil)
		expect.OK(t, err)
		return abi.Argument{Type: y}
	}
	args := abi.Arguments{
		typ("uint256"), typ("address"), typ("address"), typ("address"), typ("uint256"), typ("uint256"), typ("bytes32"),
	}
	address := rapid.Custom(func(t *rapid.T) invoice.Address {
		return invoice.Address(rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "address"))
	})
	rapid.Check(t, func(rt *rapid.T) {
		chainID := rapid.Uint64().Draw(rt, "chain")
		registry := address.Draw(rt, "registry")
		word := [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(rt, "amount"))
		expiresAt := rapid.Int64Range(0, 253_402_300_799).Draw(rt, "expiresAt") // up to the year 9999
		terms := invoice.Terms{
			Merchant: address.Draw(rt, "merchant"), Token: address.Draw(rt, "token"),
			Amount: invoice.AmountFromBytes(word), ExpiresAt: invoice.Unix(expiresAt),
		}
		id := rapid.String().Draw(rt, "id")
		packed, err := args.Pack(
			new(big.Int).SetUint64(chainID), common.Address(registry), common.Address(terms.Merchant),
			common.Address(terms.Token), new(big.Int).SetBytes(word[:]), big.NewInt(expiresAt),
			crypto.Keccak256Hash([]byte(id)),
		)
		expect.OK(rt, err)
		want := invoice.Hash(crypto.Keccak256Hash(packed))
		if got := CommitmentID(chainID, registry, terms, id); got != want {
			rt.Fatalf("CommitmentID = %s, want %s", got, want)
		}
	})
}

// TestDepositAddress expects the address of contracts.DepositAddress, and no address without a factory.
func TestDepositAddress(t *testing.T) {
	merchant, commitment := MustAddress("0x70997970C51812dc3A010C7d01b50e0d17dc79C8"), invoice.Hash{}
	c := Chain{DepositFactory: MustAddress("0x5FbDB2315678afecb367f032d93F642f64180aa3")}
	if got, want := c.DepositAddress(merchant, commitment), MustAddress("0xd4fd272b5d3831135F2348030B06eca55C5812Dd"); got != want {
		t.Errorf("deposit address is %s, want %s", got, want)
	}
	if got := (Chain{}).DepositAddress(merchant, commitment); !got.IsZero() {
		t.Errorf("without a factory, the deposit address is %s", got)
	}
}

// TestKeepsMoney expects the addresses of the chain's tokens and contracts, and no address for a contract that is not
// configured.
func TestKeepsMoney(t *testing.T) {
	c := Chain{
		Registry: invoice.Address{1}, DepositFactory: invoice.Address{2}, AuthorizationRelay: invoice.Address{3},
		Tokens: []Token{{Address: invoice.Address{4}}, {Address: invoice.Address{5}}},
	}
	for i := range byte(7) {
		if got, want := c.KeepsMoney(invoice.Address{i}), 0 < i && i < 6; got != want {
			t.Errorf("KeepsMoney(%s) = %t", invoice.Address{i}, got)
		}
	}
	if (Chain{}).KeepsMoney(invoice.Address{}) {
		t.Error("the zero address is a contract of a chain without any")
	}
}

func TestParseFinality(t *testing.T) {
	for s, want := range map[string]Finality{
		"0": {}, "12": {Depth: 12}, "10000": {Depth: MaxDepth}, "safe": {Tag: TagSafe}, "finalized": {Tag: TagFinalized},
		"finalized+128": {Tag: TagFinalized, Depth: 128}, "safe+10000": {Tag: TagSafe, Depth: MaxDepth},
	} {
		f, err := ParseFinality(s)
		if err != nil || f != want {
			t.Errorf("ParseFinality(%q) = %+v, %v; want %+v", s, f, err, want)
		}
		if f.String() != s {
			t.Errorf("%+v is written %q, want %q", f, f.String(), s)
		}
	}
	for _, s := range []string{
		"", "-1", "+1", "1.5", "latest", "Safe", "safe+", "safe+x", "safe+-1", "+safe", "1+safe", "safe+finalized",
		"10001", "safe+10001", "99999999999999999999999", " 1",
	} {
		if f, err := ParseFinality(s); err == nil {
			t.Errorf("ParseFinality(%q) = %+v; want an error", s, f)
		}
	}
}

func TestFinalityLine(t *testing.T) {
	for _, c := range []struct {
		f            Finality
		head, tagged uint64
		line         uint64
		ok           bool
	}{
		{Finality{}, 0, 0, 0, true},
		{Finality{}, 7, 0, 7, true},
		{Finality{Depth: 2}, 1, 0, 0, false},
		{Finality{Depth: 2}, 2, 0, 0, true},
		{Finality{Depth: 2}, 10, 3, 8, true},
		{Finality{Tag: TagSafe}, 10, 3, 3, true},
		{Finality{Tag: TagSafe, Depth: 8}, 10, 3, 2, true},
		{Finality{Tag: TagSafe, Depth: 2}, 10, 9, 8, true},
		{Finality{Tag: TagSafe}, 10, 12, 10, true},
	} {
		if line, ok := c.f.Height(c.head, c.tagged); line != c.line || ok != c.ok {
			t.Errorf("%+v.Line(%d, %d) = %d, %t; want %d, %t", c.f, c.head, c.tagged, line, ok, c.line, c.ok)
		}
	}
}

// TestEmitters checks where movements are logged: at the token, except on Arc, where native sends are logged elsewhere.
func TestEmitters(t *testing.T) {
	base, _ := Lookup("base")
	usdc := base.Tokens[0]
	if got := usdc.Emitters(); len(got) != 1 || got[0] != (Emitter{usdc.Address, TransferTopic, 6}) {
		t.Errorf("base: %+v", got)
	}
	native := Emitter{MustAddress("0xffffFFFfFFffffffffffffffFfFFFfffFFFfFFfE"), TransferTopic, 18}
	former := Emitter{
		MustAddress("0x1800000000000000000000000000000000000000"),
		common.HexToHash("0x62f084c00a442dcf51cdbb51beed2839bf42a268da8474b0e98f38edb7db5a22"), 18,
	}
	for key, want := range map[string][]Emitter{"arc": {native}, "arc-testnet": {native, former}} {
		c, _ := Lookup(key)
		if got := c.Tokens[0].Emitters(); !slices.Equal(got, want) || c.FullBloom {
			t.Errorf("%s: %+v, want %+v", key, got, want)
		}
	}
}
