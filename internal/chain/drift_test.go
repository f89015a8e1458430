package chain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

func driftToken(currency string, address byte) chain.Token {
	return chain.Token{Currency: currency, Address: invoice.Address{address}, Decimals: 6}
}

func base(tokens ...chain.Token) chain.Chain {
	return chain.Chain{Key: "base", ID: 8453, Tokens: tokens}
}

// remembered returns the record after configurations were in force, one after the other, while the
// chain base was read up to block 100.
func remembered(configs ...[]chain.Chain) chain.RememberedChains {
	var was chain.RememberedChains
	for _, chains := range configs {
		was, _ = chain.Apply(was, chain.ConfiguredChains{Chains: chains}, map[string]uint64{"base": 100})
	}
	for i := range was.Chains {
		was.Chains[i].Read = true
	}
	return was
}

func TestCompare(t *testing.T) {
	t.Parallel()
	usdc, eurc := driftToken("USDC", 1), driftToken("EURC", 2)
	genesis := &invoice.Header{Hash: invoice.Hash{7}}
	withGenesis := remembered([]chain.Chain{base(usdc)})
	withGenesis.Chains[0].Genesis, withGenesis.Chains[0].Read = genesis, false
	unverified := remembered([]chain.Chain{base(usdc)})
	unverified.Chains[0].Read = false
	retired := remembered([]chain.Chain{base(usdc)}, []chain.Chain{})
	retired.Chains[0].Retired = true
	retiredToken := remembered([]chain.Chain{base(usdc, eurc)}, []chain.Chain{base(usdc)})
	retiredToken.Chains[0].Tokens[1].LastBlock = new(uint64(90))
	eighteen := usdc
	eighteen.Decimals = 18
	moved := base(usdc)
	moved.ID = 10
	renamed := base(usdc)
	renamed.Key = "base2"
	for name, c := range map[string]struct {
		was  chain.RememberedChains
		now  chain.Chain
		want []string // kinds, each with part of the text
	}{
		"the first start":             {chain.RememberedChains{}, base(usdc), []string{"harmless: chain base is new"}},
		"no change":                   {remembered([]chain.Chain{base(usdc)}), base(usdc), nil},
		"a new token":                 {remembered([]chain.Chain{base(usdc)}), base(usdc, eurc), []string{"work: EURC"}},
		"a removed token":             {remembered([]chain.Chain{base(usdc, eurc)}), base(usdc), []string{"work: EURC"}},
		"a token that returned":       {remembered([]chain.Chain{base(usdc, eurc)}, []chain.Chain{base(usdc)}), base(usdc, eurc), []string{"harmless: EURC"}},
		"a retired token returned":    {retiredToken, base(usdc, eurc), []string{"work: EURC at 0x0200000000000000000000000000000000000000 returned to chain base: blocks above 90"}},
		"a changed address":           {remembered([]chain.Chain{base(usdc)}), base(driftToken("USDC", 3)), []string{"work: USDC at 0x03", "work: USDC at 0x01"}},
		"a renamed currency":          {remembered([]chain.Chain{base(usdc)}), base(driftToken("USDX", 1)), []string{"dangerous: the token at 0x01"}},
		"other decimals":              {remembered([]chain.Chain{base(usdc)}), base(eighteen), []string{"dangerous: USDC at 0x01"}},
		"another chain id":            {remembered([]chain.Chain{base(usdc)}), moved, []string{"dangerous: chain base has chain id 8453 in the database, and 10"}},
		"another chain id, verified":  {withGenesis, moved, []string{"dangerous: chain base has chain id 8453"}},
		"a chain id that was a typo":  {unverified, moved, []string{"harmless: the chain id"}},
		"a renamed chain":             {remembered([]chain.Chain{base(usdc)}), renamed, []string{"dangerous: chain base2 has chain id 8453, which the database knows as base", "harmless: chain base left"}},
		"a new key, the old retired":  {retired, renamed, []string{"harmless: chain base2 is new"}},
		"a retired chain":             {retired, base(usdc), []string{"dangerous: chain base was retired"}},
		"a chain that returned":       {remembered([]chain.Chain{base(usdc)}, []chain.Chain{}), base(usdc), []string{"harmless: chain base returned"}},
		"a new key before any answer": {unverified, renamed, []string{"harmless: chain base2 is new", "harmless: chain base left"}},
	} {
		got := chain.CompareConfigured(c.was, chain.ConfiguredChains{Chains: []chain.Chain{c.now}})
		matches := slices.EqualFunc(got, c.want, func(g chain.ConfigChange, want string) bool {
			return strings.HasPrefix(fmt.Sprintf("%s: %s", g.Kind, g.Text), want)
		})
		if !matches {
			t.Errorf("%s: got %v, want %q", name, got, c.want)
		}
		for _, g := range got {
			if g.Kind == chain.Dangerous && g.Command == "" && !c.was.Chains[0].Retired {
				t.Errorf("%s: %q names no command", name, g.Text)
			}
		}
	}
}

func TestCompareGenesis(t *testing.T) {
	t.Parallel()
	known := chain.KnownChain{Key: "base", Genesis: &invoice.Header{Number: 5, Hash: invoice.Hash{1}}}
	for want, found := range map[bool]invoice.Header{
		false: {Number: 5, Hash: invoice.Hash{1}},
		true:  {Number: 5, Hash: invoice.Hash{2}},
	} {
		if got := known.CompareGenesis(found); (got != nil) != want {
			t.Errorf("%v: got %v", found, got)
		}
	}
	if got := known.CompareGenesis(invoice.Header{Number: 6}); got != nil {
		t.Errorf("another block: got %v", got)
	}
	if got := (chain.KnownChain{}).CompareGenesis(invoice.Header{Number: 6}); got != nil {
		t.Errorf("without a genesis: got %v", got)
	}
}

// TestApplied changes the configuration repeatedly. After a change is applied, no difference is left.
// No token that was ever read is dropped or gets another currency.
func TestApplied(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var was chain.RememberedChains
		indexed := map[string]uint64{}
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			var now chain.ConfiguredChains
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 2, rapid.ID).Draw(t, "keys") {
				c := chain.Chain{Key: key, ID: uint64(rapid.IntRange(1, 3).Draw(t, "id"))}
				for _, at := range rapid.SliceOfNDistinct(rapid.ByteRange(1, 3), 0, 3, rapid.ID).Draw(t, "tokens") {
					c.Tokens = append(c.Tokens, driftToken(rapid.SampledFrom([]string{"USDC", "EURC"}).Draw(t, "currency"), at))
				}
				now.Chains = append(now.Chains, c)
			}
			if chain.CheckDistinct(now.Chains) != nil || chain.RefuseChanges(chain.CompareConfigured(was, now)) != nil {
				continue
			}
			before := was
			was, _ = chain.Apply(was, now, indexed)
			for i, c := range was.Chains {
				if c.Configured {
					indexed[c.Key] += 10
					was.Chains[i].Read = true
				}
				for j, k := range c.Tokens {
					if rapid.IntRange(0, 9).Draw(t, "retire") == 0 && !k.Configured {
						was.Chains[i].Tokens[j].LastBlock = new(indexed[c.Key])
					}
				}
			}
			if left := chain.CompareConfigured(was, now); len(left) > 0 {
				t.Fatalf("after %v was applied, it differs: %v", now, left)
			}
			for _, c := range before.Chains {
				after, _ := was.Chain(c.Key)
				for _, k := range c.Tokens {
					if now, ok := after.TokenAt(k.Address); !ok || now.Currency != k.Currency && !k.Retired() {
						t.Fatalf("%v of chain %s became %v", k, c.Key, now)
					}
				}
			}
		}
	})
}

func TestHash(t *testing.T) {
	t.Parallel()
	hash := func(c chain.Chain) string { return chain.ConfiguredChains{Chains: []chain.Chain{c}}.Hash() }
	first := base(driftToken("USDC", 1), driftToken("EURC", 2))
	for name, change := range map[string]func(*chain.Chain){
		"finality": func(c *chain.Chain) { c.Finality.Depth = 9 },
		"nodes":    func(c *chain.Chain) { c.RPC = []string{"http://127.0.0.1:1"} },
		"order":    func(c *chain.Chain) { c.Tokens = []chain.Token{c.Tokens[1], c.Tokens[0]} },
	} {
		other := first
		change(&other)
		if hash(other) != hash(first) {
			t.Errorf("%s decides about no money, and changes the hash", name)
		}
	}
	for name, change := range map[string]func(*chain.Chain){
		"chain id": func(c *chain.Chain) { c.ID = 1 },
		"registry": func(c *chain.Chain) { c.Registry = invoice.Address{9} },
		"factory":  func(c *chain.Chain) { c.DepositFactory = invoice.Address{9} },
		"relay":    func(c *chain.Chain) { c.AuthorizationRelay = invoice.Address{9} },
		"tokens":   func(c *chain.Chain) { c.Tokens = c.Tokens[:1] },
		"currency": func(c *chain.Chain) { c.Tokens = []chain.Token{driftToken("USDX", 1), c.Tokens[1]} },
	} {
		other := first
		change(&other)
		if hash(other) == hash(first) {
			t.Errorf("another %s has the same hash", name)
		}
	}
	home, bank := invoice.AllowedAddress{ChainKey: "base", Address: invoice.Address{1}}, invoice.AllowedAddress{ChainKey: "base", Address: invoice.Address{2}}
	of := func(m invoice.Merchant) string {
		return chain.ConfiguredChains{Merchants: map[string]invoice.Merchant{m.ID: m}}.Hash()
	}
	shop := invoice.Merchant{ID: "shop", Allowed: []invoice.AllowedAddress{home, bank}, Collection: invoice.Direct}
	for name, m := range map[string]invoice.Merchant{
		"id": {ID: "cafe", Allowed: shop.Allowed}, "list": {ID: "shop", Allowed: shop.Allowed[:1]}, "collection": {ID: "shop", Allowed: shop.Allowed, Collection: invoice.Deposit},
		"tolerance": {ID: "shop", Allowed: shop.Allowed, Tolerance: invoice.Tolerance{BasisPoints: 1}},
	} {
		if of(m) == of(shop) {
			t.Errorf("another %s of a merchant has the same hash", name)
		}
	}
	if other := (invoice.Merchant{ID: "shop", Allowed: []invoice.AllowedAddress{bank, home}, Timezone: "Europe/Berlin"}); of(other) != of(shop) {
		t.Error("the order of addresses, or a time zone, changes the hash")
	}
}
