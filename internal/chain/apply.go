package chain

import (
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// Apply returns the new record once the configuration is in force. indexed has the newest block read of each chain that
// was read. missed has the first block to read again of chains with a token that returns.
func Apply(was RememberedChains, now ConfiguredChains, indexed map[string]uint64) (after RememberedChains, missed map[string]uint64) {
	missed = make(map[string]uint64)
	for _, known := range was.Chains {
		known.Configured = false
		known.Tokens = slices.Clone(known.Tokens)
		after.Chains = append(after.Chains, known)
	}
	for _, c := range now.Chains {
		i := slices.IndexFunc(after.Chains, func(k KnownChain) bool { return k.Key == c.Key })
		if i < 0 {
			i = len(after.Chains)
			after.Chains = append(after.Chains, KnownChain{Key: c.Key, IDKey: c.Key})
		}
		height, read := indexed[c.Key]
		if from, ok := applyTo(&after.Chains[i], c, height, read); ok {
			missed[c.Key] = from
		}
	}
	return after, missed
}

// applyTo changes the record of a chain. It returns the first block to read again, if a retired token returns.
func applyTo(c *KnownChain, now Chain, indexed uint64, read bool) (from uint64, missed bool) {
	recorded := c.ID != 0 // otherwise its tokens may have been read all the time
	c.ID, c.Configured = now.ID, true
	for i := range c.Tokens {
		c.Tokens[i].Configured = false
	}
	for _, t := range now.Tokens {
		i := slices.IndexFunc(c.Tokens, func(k KnownToken) bool { return k.Address == t.Address })
		if i < 0 {
			i = len(c.Tokens)
			c.Tokens = append(c.Tokens, KnownToken{})
			if read && recorded {
				c.Tokens[i].FirstBlock = new(indexed + 1)
			}
		}
		known := &c.Tokens[i]
		known.Token, known.Configured = t, true
		if known.Retired() {
			if next := *known.LastBlock + 1; next <= indexed {
				if !missed || next < from {
					from = next
				}
				missed, known.MissedThrough = true, new(indexed)
			}
			known.LastBlock = nil
		}
	}
	c.Factories = withAddress(c.Factories, now.DepositFactory)
	c.Relays = withAddress(c.Relays, now.AuthorizationRelay)
	return from, missed
}

func withAddress(known []invoice.Address, a invoice.Address) []invoice.Address {
	if a.IsZero() || slices.Contains(known, a) {
		return known
	}
	return append(slices.Clone(known), a)
}

// Configure returns the chains of a configuration. It adds the tokens that the configuration no longer
// names: those that are still read, and the retired ones.
func (r RememberedChains) Configure(chains []Chain) []Chain {
	all := slices.Clone(chains)
	for i := range all {
		known, _ := r.Chain(all[i].Key)
		all[i].Former, all[i].Retired = nil, nil
		for _, t := range known.Tokens {
			switch _, ok := all[i].TokenAt(t.Address); {
			case ok:
			case t.Retired():
				all[i].Retired = append(all[i].Retired, t.Token)
			default:
				t.Movements = movements(all[i].ID, t.Address)
				all[i].Former = append(all[i].Former, t.Token)
			}
		}
		for _, a := range slices.Concat(known.Factories, known.Relays) {
			all[i].FormerContracts = withAddress(all[i].FormerContracts, a)
		}
	}
	return all
}

// IDKeys returns the first keys of renamed chains, by their keys.
func (r RememberedChains) IDKeys() map[string]string {
	first := make(map[string]string)
	for _, c := range r.Chains {
		if c.IDKey != c.Key {
			first[c.Key] = c.IDKey
		}
	}
	return first
}
