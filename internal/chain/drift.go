package chain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
)

// DifferenceKind is what a change of the configuration needs.
type DifferenceKind string

// The kinds of changes.
const (
	Harmless  DifferenceKind = "harmless"  // it is applied
	Work      DifferenceKind = "work"      // it is applied, and the service makes the necessary changes
	Dangerous DifferenceKind = "dangerous" // the service does not start
)

// ConfigChange is a difference between the configuration and the database's record of earlier ones.
type ConfigChange struct {
	Kind DifferenceKind `json:"kind"`
	Text string         `json:"text"` // for a person: what changed, and the consequences
	// Command is the command that makes a dangerous change on purpose, or finishes the change; may be empty.
	Command string `json:"command,omitempty"`
}

// String is the change in one line.
func (c ConfigChange) String() string {
	switch {
	case c.Command == "":
		return c.Text
	case c.Kind == Work:
		return c.Text + "; once it is not needed any more, run: " + c.Command
	}
	return c.Text + "; to do it on purpose, run: " + c.Command
}

// ConfiguredChains is the part of the configuration that affects money.
type ConfiguredChains struct {
	Chains    []Chain
	Merchants map[string]invoice.Merchant // by id
	Screening string                      // mode of the screening hook; empty without one
}

// RememberedChains is the database's record of earlier configurations.
type RememberedChains struct {
	Chains []KnownChain
}

// KnownChain is a chain that was configured.
type KnownChain struct {
	Key        string
	IDKey      string          // ids of its payments contain it: the first key of the chain
	ID         uint64          // 0 if it is only known from stored rows
	Genesis    *invoice.Header // number and hash of the nodes' oldest block; nil until a node was asked
	Read       bool            // blocks of it were read
	Configured bool            // by the newest revision
	Retired    bool            // by an operator: its chain id may have another chain key
	Tokens     []KnownToken
	Factories  []invoice.Address
	Relays     []invoice.Address
}

// KnownToken is a token that a chain was configured with.
type KnownToken struct {
	Token
	Configured bool    // by the newest revision
	FirstBlock *uint64 // first block that was read for it; nil means the chain's first one
	LastBlock  *uint64 // newest block that was read for it, if it was retired; nil while it is read
	// MissedThrough is the newest block to read again for it before it accepts invoices; nil if there is no such block.
	MissedThrough *uint64
}

// Retired reports whether the token is no longer read.
func (t KnownToken) Retired() bool { return t.LastBlock != nil }

// isVerified reports whether a node has confirmed the chain's id, or blocks were read.
func (c KnownChain) isVerified() bool { return c.Genesis != nil || c.Read }

// TokenAt returns the token of a contract.
func (c KnownChain) TokenAt(a invoice.Address) (KnownToken, bool) {
	if i := slices.IndexFunc(c.Tokens, func(t KnownToken) bool { return t.Address == a }); i >= 0 {
		return c.Tokens[i], true
	}
	return KnownToken{}, false
}

// Chain returns the recorded chain of a key, and whether there is one.
func (r RememberedChains) Chain(key string) (KnownChain, bool) {
	if i := slices.IndexFunc(r.Chains, func(c KnownChain) bool { return c.Key == key }); i >= 0 {
		return r.Chains[i], true
	}
	return KnownChain{}, false
}

// CompareConfigured returns the differences between the record and the configuration, the dangerous ones first.
func CompareConfigured(was RememberedChains, now ConfiguredChains) []ConfigChange {
	var all []ConfigChange
	for _, c := range now.Chains {
		if known, ok := was.Chain(c.Key); ok {
			all = append(all, known.compare(c)...)
		} else {
			all = append(all, was.newChain(c, now))
		}
	}
	for _, c := range was.Chains {
		if c.Configured && !slices.ContainsFunc(now.Chains, func(n Chain) bool { return n.Key == c.Key }) {
			all = append(all, ConfigChange{Kind: Harmless, Text: fmt.Sprintf("chain %s left the configuration: its blocks are not read until it returns", c.Key)})
		}
	}
	rank := map[DifferenceKind]int{Dangerous: 0, Work: 1, Harmless: 2}
	slices.SortStableFunc(all, func(a, b ConfigChange) int { return rank[a.Kind] - rank[b.Kind] })
	return all
}

// newChain returns the change of a chain with a key that was never used. It is dangerous if it is a
// known chain under another key.
func (r RememberedChains) newChain(c Chain, now ConfiguredChains) ConfigChange {
	for _, known := range r.Chains {
		moved := slices.ContainsFunc(now.Chains, func(n Chain) bool { return n.Key == known.Key && n.ID != known.ID })
		if known.ID == c.ID && known.isVerified() && !known.Retired && !moved {
			return ConfigChange{
				Kind: Dangerous,
				Text: fmt.Sprintf("chain %s has chain id %d, which the database knows as %s: under another key, its invoices would never settle or expire. Keep the key %s",
					c.Key, c.ID, known.Key, known.Key),
				Command: RenameCommand(known.Key, c.Key),
			}
		}
	}
	return ConfigChange{Kind: Harmless, Text: fmt.Sprintf("chain %s is new", c.Key)}
}

// RenameCommand returns the command that gives a chain another key.
func RenameCommand(from, to string) string {
	return fmt.Sprintf("quittance chain rename --config FILE --from %s --to %s --yes", from, to)
}

// retireToken is the command that stops reading a token.
func retireToken(chainKey string, t Token) string {
	return fmt.Sprintf("quittance chain retire-token --config FILE --chain %s --token %s --yes", chainKey, Checksum(t.Address))
}

// compare returns how a chain's configuration differs from the chain that the database records.
func (c KnownChain) compare(now Chain) []ConfigChange {
	switch {
	case c.Retired:
		return []ConfigChange{{Kind: Dangerous, Text: fmt.Sprintf("chain %s was retired: configure it under a key that was never used", c.Key)}}
	case c.ID != 0 && c.ID != now.ID && c.isVerified():
		return []ConfigChange{{
			Kind: Dangerous, Text: fmt.Sprintf("chain %s has chain id %d in the database, and %d in the configuration: correct chainId, or give the other chain a key of its own", c.Key, c.ID, now.ID),
			Command: fmt.Sprintf("quittance chain retire --config FILE --chain %s --yes (then use a key that was never used)", c.Key),
		}}
	}
	var all []ConfigChange
	if c.ID != 0 && c.ID != now.ID {
		all = append(all, ConfigChange{Kind: Harmless, Text: fmt.Sprintf("the chain id of %s changed from %d to %d before any node confirmed it", c.Key, c.ID, now.ID)})
	}
	if !c.Configured {
		all = append(all, ConfigChange{Kind: Harmless, Text: fmt.Sprintf("chain %s returned: it is read from where reading ended", c.Key)})
	}
	for _, t := range now.Tokens {
		all = append(all, c.compareToken(t)...)
	}
	for _, t := range c.Tokens {
		if _, still := now.TokenAt(t.Address); t.Configured && !still && !t.Retired() {
			all = append(all, ConfigChange{
				Kind:    Work,
				Text:    fmt.Sprintf("%s at %s left the configuration of chain %s: it takes no new invoices, and is still read for those it had", t.Currency, Checksum(t.Address), c.Key),
				Command: retireToken(c.Key, t.Token),
			})
		}
	}
	return append(all, c.compareContracts(now)...)
}

// compareToken returns how the configuration of a token differs from the token that the database records.
func (c KnownChain) compareToken(t Token) []ConfigChange {
	at := Checksum(t.Address)
	known, ok := c.TokenAt(t.Address)
	switch {
	case ok && known.Retired():
		return []ConfigChange{{Kind: Work, Text: fmt.Sprintf("%s at %s returned to chain %s: blocks above %d are read again before invoices in it are taken", t.Currency, at, c.Key, *known.LastBlock)}}
	case ok && known.Currency != t.Currency && c.isVerified():
		return []ConfigChange{{
			Kind:    Dangerous,
			Text:    fmt.Sprintf("the token at %s on chain %s is %s in the database, and %s in the configuration: payments of one would count for invoices in the other. Keep the code %s", at, c.Key, known.Currency, t.Currency, known.Currency),
			Command: retireToken(c.Key, known.Token),
		}}
	case ok && known.Decimals != t.Decimals && c.isVerified():
		return []ConfigChange{{
			Kind:    Dangerous,
			Text:    fmt.Sprintf("%s at %s on chain %s has %d decimals in the database, and %d in the configuration: its amounts would change. Keep %d", known.Currency, at, c.Key, known.Decimals, t.Decimals, known.Decimals),
			Command: retireToken(c.Key, known.Token),
		}}
	case ok && !known.Configured:
		return []ConfigChange{{Kind: Harmless, Text: fmt.Sprintf("%s at %s returned to chain %s, which was read for it all the time", t.Currency, at, c.Key)}}
	case ok:
		return nil
	case !c.Read || c.ID == 0:
		return []ConfigChange{{Kind: Harmless, Text: fmt.Sprintf("%s at %s is new on chain %s", t.Currency, at, c.Key)}}
	}
	return []ConfigChange{{Kind: Work, Text: fmt.Sprintf("%s at %s is new on chain %s: the next blocks are read for it, by replicas that know it only", t.Currency, at, c.Key)}}
}

// compareContracts returns the contracts of a chain that were not used before.
func (c KnownChain) compareContracts(now Chain) (all []ConfigChange) {
	for _, contract := range []struct {
		name string
		at   invoice.Address
		used []invoice.Address
	}{
		{"deposit factory", now.DepositFactory, c.Factories},
		{"authorization relay", now.AuthorizationRelay, c.Relays},
	} {
		if !contract.at.IsZero() && !slices.Contains(contract.used, contract.at) {
			all = append(all, ConfigChange{Kind: Harmless, Text: fmt.Sprintf("the %s of chain %s is %s from now on", contract.name, c.Key, Checksum(contract.at))})
		}
	}
	return all
}

// CompareGenesis returns the change of a chain with nodes that have another oldest block than the recorded one, or nil.
func (c KnownChain) CompareGenesis(found invoice.Header) *ConfigChange {
	if c.Genesis == nil || c.Genesis.Number != found.Number || c.Genesis.Hash == found.Hash {
		return nil
	}
	return &ConfigChange{
		Kind: Dangerous,
		Text: fmt.Sprintf("block %d of chain %s is %s in the database, and %s on the nodes: they serve another chain with the same chain id. Correct rpc",
			found.Number, c.Key, c.Genesis.Hash, found.Hash),
		Command: fmt.Sprintf("quittance chain retire --config FILE --chain %s --yes (then use a key that was never used)", c.Key),
	}
}

// RefusedError is the error of a start with dangerous changes.
type RefusedError struct{ Changes []ConfigChange }

// RefuseChanges returns a *RefusedError with the dangerous changes, or nil without any.
func RefuseChanges(changes []ConfigChange) error {
	dangerous := slices.DeleteFunc(slices.Clone(changes), func(c ConfigChange) bool { return c.Kind != Dangerous })
	if len(dangerous) == 0 {
		return nil
	}
	return &RefusedError{dangerous}
}

// Error names the changes.
func (e *RefusedError) Error() string {
	texts := make([]string, len(e.Changes))
	for i, c := range e.Changes {
		texts[i] = c.String()
	}
	return "the configuration contradicts what the database remembers: " + strings.Join(texts, "; ")
}
