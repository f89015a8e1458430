package chain

import (
	"cmp"
	"fmt"
	"math/big"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/params"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

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
			if token.Decimals != TokenDecimals {
				t.Errorf("%s: %s has %d decimals", n.Key, token.Currency, token.Decimals)
			}
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
	if p != p.OrDefault() {
		t.Errorf("%s lacks a limit: %+v", key, p)
	}
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
	page, err := os.ReadFile(testdeps.Repo("docs/configuration.md"))
	expect.OK(t, err)
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
