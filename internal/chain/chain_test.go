package chain

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
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
		expect.Equal(t, f.String(), s, "%+v is written", f)
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

// TestNetworks checks that each built-in network has all facts, that no two of them share one by mistake, and that the
// spending limits agree with each other.
func TestNetworks(t *testing.T) {
	keys, ids, circle := map[string]bool{}, map[uint64]bool{}, map[string]bool{}
	for _, n := range networks {
		if keys[n.Key] || ids[n.ID] {
			t.Errorf("%s (%d) is listed twice", n.Key, n.ID)
		}
		keys[n.Key], ids[n.ID] = true, true
		if f, err := ParseFinality(n.Finality.String()); err != nil || f != n.Finality {
			t.Errorf("%s: finality %s does not parse back: %v", n.Key, n.Finality, err)
		}
		checkSpendLimits(t, n.Key, n.Limits)
		if n.Key == Local {
			continue // it gets its token when it starts
		}
		if _, ok := n.Token(USDC); !ok {
			t.Errorf("%s: the tokens are %+v, without USDC", n.Key, n.Tokens)
		}
		for _, token := range n.Tokens {
			expect.Equal(t, token.Decimals, TokenDecimals, "%s: %s has … decimals:", n.Key, token.Currency)
		}
		if len(n.circle) == 0 || n.Name == "" || n.Key != strings.ToLower(n.Key) {
			t.Errorf("%s: the name is %q, Circle's codes are %q", n.Key, n.Name, n.circle)
		}
		for _, code := range n.circle {
			if circle[code] || CircleChains()[code] != n.Key {
				t.Errorf("%s: Circle's code %s belongs to %s", n.Key, code, CircleChains()[code])
			}
			circle[code] = true
		}
		for _, url := range []string{n.Explorer, n.publicNode} {
			if _, err := ParseExplorer(cmp.Or(url, "none")); err != nil || strings.HasSuffix(url, "/") {
				t.Errorf("%s: %q: %v", n.Key, url, err)
			}
		}
		for _, l := range n.lookalikes {
			if _, counted := n.TokenAt(l.Address); counted || l.Name == "" {
				t.Errorf("%s: the look-alike %+v is the network's USDC, or has no name", n.Key, l)
			}
		}
	}
	checkSpendLimits(t, "not built in", DefaultSpendLimits())
	if DefaultMaxTxGas != params.MaxTxGas {
		t.Errorf("the default gas limit is %d, want go-ethereum's, %d", DefaultMaxTxGas, params.MaxTxGas)
	}
}

// checkSpendLimits checks that a network lacks no limit, that the limits are in order, and that a transaction of 200
// commitments, 5,000,000 gas, is within the daily budget at a hundredth of the highest fee.
func checkSpendLimits(t *testing.T, key string, p SpendLimits) {
	t.Helper()
	expect.Equal(t, p, p.OrDefault(), "%s lacks a limit:", key)
	inOrder := p.MinTipWei <= p.MaxTipWei && p.MaxTipWei <= p.MaxFeeWei && p.PerTxGwei <= p.PerDayGwei
	if !inOrder || p.PerTxGwei > MaxPerTxGwei {
		t.Errorf("%s has limits out of order: %+v", key, p)
	}
	if most := 5_000_000 * (p.MaxFeeWei / 100); most > gwei*p.PerDayGwei && key != Local {
		t.Errorf("%s: at a hundredth of the highest fee a transaction is above the daily budget", key)
	}
}

// TestLookup expects a copy of a network, the names of networks, and look-alikes by the chain's id.
func TestLookup(t *testing.T) {
	base, ok := Lookup("base")
	if !ok || base.ID != 8453 || base.MaxTxGas != 0 {
		t.Fatalf("Lookup(base) = %+v, %t", base, ok)
	}
	base.Tokens[0].Currency = "X"
	if again, _ := Lookup("base"); again.Tokens[0].Currency != USDC {
		t.Error("a caller's change reached the table")
	}
	if _, ok := Lookup("bitcoin"); ok {
		t.Error("Lookup(bitcoin) found a chain")
	}
	if len(Builtin()) != len(networks) || Builtin()[0].Key != networks[0].Key {
		t.Errorf("Builtin() = %v", Builtin())
	}
	configured := map[string]Chain{"house": {Key: "house", Name: "House chain"}, "bare": {Key: "bare"}}
	names := NameIn(configured, "house") + ", " + NameIn(configured, "bare") + ", " + NameIn(configured, "arbitrum") + ", " + NameIn(nil, "house")
	if names != "House chain, bare, Arbitrum One, house" || IsTestnet("base") || !IsTestnet("arc-testnet") || IsTestnet("house") {
		t.Errorf("the names are %s", names)
	}
	if arbitrum, _ := Lookup("arbitrum"); arbitrum.MaxTxGas != 32_000_000 || arbitrum.Coin() != ether {
		t.Errorf("arbitrum = %+v", arbitrum)
	}
	other := Chain{Key: "house", ID: 8453}
	l, ok := other.Lookalike(MustAddress("0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA"))
	if !ok || l.Name != "USDbC" || l.Bridges != USDC {
		t.Errorf("a look-alike is %+v", l)
	}
	if l, ok := other.Lookalike(invoice.Address{}); ok {
		t.Errorf("the zero address is %+v", l)
	}
}

// TestNetworksAreDocumented compares both tables of networks in docs/configuration.md with the built-in ones.
func TestNetworksAreDocumented(t *testing.T) {
	page := expect.Must(os.ReadFile(testdeps.Repo("docs/configuration.md")))
	table := func(head string) string {
		_, table, _ := strings.Cut(string(page), "\n"+head)
		table, _, _ = strings.Cut(table, "\n\n")
		for _, key := range regexp.MustCompile("[|,] `([a-z-]+)`").FindAllStringSubmatch(table, -1) {
			if networkOf(key[1]).Key == "" && key[1] != TagSafe && key[1] != TagFinalized {
				t.Errorf("configuration.md has the network %s, which is not built in", key[1])
			}
		}
		return table
	}
	chains, limits := table("| key | chain id |"), table("| network | `maxFeeGwei` |")
	for _, n := range networks {
		if n.Key == Local {
			continue
		}
		finality := "`" + n.Finality.String() + "`"
		if n.Finality == (Finality{Depth: 1}) {
			finality = "1 block"
		}
		if row := fmt.Sprintf("| `%s` | %d | %s |", n.Key, n.ID, finality); !strings.Contains(chains, row) {
			t.Errorf("configuration.md has no row with %s", row)
		}
		checkLimitsRow(t, limits, n.Key, n.Limits)
	}
	checkLimitsRow(t, limits, "any other", DefaultSpendLimits())
}

// checkLimitsRow checks that a network is in a row with its spending limits.
func checkLimitsRow(t *testing.T, table, key string, p SpendLimits) {
	t.Helper()
	units := func(billionths uint64) string {
		decimal := new(big.Rat).SetFrac64(int64(billionths), gwei).FloatString(9)
		return strings.TrimRight(strings.TrimRight(decimal, "0"), ".")
	}
	limits := fmt.Sprintf("| %s | %s to %s | %s | %s |", units(p.MaxFeeWei), units(p.MinTipWei), units(p.MaxTipWei),
		units(p.PerTxGwei), units(p.PerDayGwei))
	row := fmt.Sprintf("(?m)^\\| (.*`)?%s(`.*)? %s$", key, regexp.QuoteMeta(limits))
	if !regexp.MustCompile(row).MatchString(table) {
		t.Errorf("configuration.md has no row of %s with %s", key, limits)
	}
}

func TestLeastSweep(t *testing.T) {
	usdc, coarse := Token{Decimals: 6}, Token{Decimals: 0}
	for name, test := range map[string]struct {
		policy SweepPolicy
		token  Token
		cost   int64 // in wei
		want   string
	}{
		"no bound":               {SweepPolicy{When: SweepAtOnce}, usdc, 1 << 40, "0"},
		"an amount":              {SweepPolicy{When: SweepAbove, Amount: 12_500_000_000}, usdc, 1 << 40, "12500000"},
		"a part of a minor unit": {SweepPolicy{When: SweepAbove, Amount: 1_500_000_000}, coarse, 0, "2"},
		// 90,000 gas at 1 gwei and 2,500 units are 0.225 units, a percent of 22.5.
		"a percent":               {SweepPolicy{MaxCost: SweepCost{Percent: billion, CoinPrice: 2500 * billion}}, usdc, 90_000 * gwei, "22500000"},
		"free gas":                {SweepPolicy{MaxCost: SweepCost{Percent: billion, CoinPrice: 2500 * billion}}, usdc, 0, "0"},
		"the larger of both":      {SweepPolicy{When: SweepAbove, Amount: 50 * billion, MaxCost: SweepCost{Percent: billion, CoinPrice: 2500 * billion}}, usdc, 90_000 * gwei, "50000000"},
		"the larger of both, too": {SweepPolicy{When: SweepAbove, Amount: billion, MaxCost: SweepCost{Percent: billion, CoinPrice: 2500 * billion}}, usdc, 90_000 * gwei, "22500000"},
		"rounded up":              {SweepPolicy{MaxCost: SweepCost{Percent: 100 * billion, CoinPrice: billion}}, usdc, 1, "1"},
	} {
		least, ok := test.policy.Least(test.token, big.NewInt(test.cost))
		if !ok || least.String() != test.want {
			t.Errorf("%s: %s, %t; want %s", name, least, ok, test.want)
		}
	}
	costly := SweepPolicy{MaxCost: SweepCost{Percent: 1, CoinPrice: math.MaxUint64}}
	if least, ok := costly.Least(Token{Decimals: 36}, new(big.Int).Lsh(big.NewInt(1), 200)); ok {
		t.Errorf("an amount of %s would suffice", least)
	}
}

func TestBoundaryOfADay(t *testing.T) {
	p := SweepPolicy{When: SweepDaily, At: 3 * time.Hour}
	at := func(text string) time.Time {
		parsed := expect.Must(time.Parse(time.RFC3339, text))
		return parsed
	}
	for now, want := range map[string]string{
		"2026-11-22T03:00:00Z":      "2026-11-22T03:00:00Z",
		"2026-11-22T02:59:59Z":      "2026-11-21T03:00:00Z",
		"2026-11-22T23:59:59Z":      "2026-11-22T03:00:00Z",
		"2026-11-22T01:30:00-03:00": "2026-11-22T03:00:00Z",
	} {
		if got := p.Boundary(at(now)); !got.Equal(at(want)) {
			t.Errorf("at %s the day began at %s, want %s", now, got, want)
		}
	}
}

// testKey is the first account of every development chain.
const testKey = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"

func sign(t testing.TB, text string) (signature string, by invoice.Address) {
	t.Helper()
	key := expect.Must(crypto.HexToECDSA(testKey))
	sig, err := crypto.Sign(accounts.TextHash([]byte(text)), key)
	expect.OK(t, err)
	return "0x" + hex.EncodeToString(sig), invoice.Address(crypto.PubkeyToAddress(key.PublicKey))
}

func TestPersonalSigner(t *testing.T) {
	const text = "a text\nwith two lines, and é"
	signature, signer := sign(t, text)
	last := len(signature) - 2
	recovery := signature[last:]
	legacy := map[string]string{"00": "1b", "01": "1c"}[recovery]
	for name, s := range map[string]string{
		"as crypto.Sign writes it": signature,
		"as wallets write it":      signature[:last] + legacy,
		"in upper case":            "0x" + strings.ToUpper(signature[2:]),
	} {
		if got, err := PersonalSigner(text, s); err != nil || got != signer {
			t.Errorf("%s: signed by %s, %v; want %s", name, got, err, signer)
		}
	}
	if got, err := PersonalSigner(text+" ", signature); err == nil && got == signer {
		t.Error("the signature holds for another text")
	}
	if !bytes.Equal(PersonalHash(text), accounts.TextHash([]byte(text))) {
		t.Error("the hash is not go-ethereum's")
	}
	// The other s for the same signature, which a wallet never makes.
	highS := signature[:66] + "f" + signature[67:]
	for name, s := range map[string]string{
		"nothing": "", "no prefix": signature[2:], "short": signature[:last], "long": signature + "00",
		"no hex": signature[:last] + "zz", "recovery id 2": signature[:last] + "02", "recovery id 35": signature[:last] + "23",
		"zeros": "0x" + strings.Repeat("0", 130), "large s": highS,
	} {
		if got, err := PersonalSigner(text, s); err == nil {
			t.Errorf("%s: signed by %s, want an error", name, got)
		}
	}
}

// TestClaimTextNamesWhatItIsFor changes each part of a claim: a signature of one text must not be valid for another.
func TestClaimTextNamesWhatItIsFor(t *testing.T) {
	inv := invoice.Invoice{Terms: invoice.Terms{Merchant: invoice.Address{1}}, ID: "inv_1", MerchantID: "shop"}
	tx := invoice.Hash{2}
	text := ClaimText(1, inv, tx)
	signature, signer := sign(t, text)
	other, at := inv, inv
	other.ID, at.Merchant = "inv_2", invoice.Address{9}
	for name, changed := range map[string]string{
		"invoice": ClaimText(1, other, tx), "address": ClaimText(1, at, tx),
		"chain": ClaimText(10, inv, tx), "transaction": ClaimText(1, inv, invoice.Hash{3}),
	} {
		if got, err := PersonalSigner(changed, signature); err == nil && got == signer {
			t.Errorf("the signature holds for another %s", name)
		}
	}
}

func FuzzPersonalSigner(f *testing.F) {
	signature, _ := sign(f, "text")
	f.Add("text", signature)
	f.Add("", "0x")
	f.Add("text", "0x"+strings.Repeat("f", 130))
	f.Fuzz(func(t *testing.T, text, signature string) {
		by, err := PersonalSigner(text, signature)
		if err != nil {
			if !by.IsZero() {
				t.Errorf("an error came with the account %s", by)
			}
			return
		}
		if again, err := PersonalSigner(text, signature); err != nil || again != by {
			t.Errorf("signed by %s, then by %s, %v", by, again, err)
		}
	})
}
