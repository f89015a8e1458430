package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// Limits of a chain's settings.
const (
	// MaxNodes is the largest number of nodes of a chain.
	MaxNodes = 16
	// MaxAnswerMiB bounds the setting for the largest answer of a node.
	MaxAnswerMiB = 1024
	// MaxRequestCalls bounds the setting requestCallsPerSecond.
	MaxRequestCalls = 10_000
	// MaxAuditCalls bounds the setting for the calls of an audit.
	MaxAuditCalls = 6000
	// DefaultLatency is how long a new block may wait until it is read, unless a chain has its own
	// value, from MinLatency to MaxLatency.
	DefaultLatency = time.Second
	MinLatency     = 100 * time.Millisecond
	MaxLatency     = time.Minute
	// DefaultIdleInterval is how often a chain is read while no payment is awaited on it. MaxIdleInterval
	// is the longest interval.
	DefaultIdleInterval = 2 * time.Minute
	MaxIdleInterval     = 10 * time.Minute
	// MaxChainName is the largest number of characters of a chain's name.
	MaxChainName = 40
	// MaxQuorum is the largest quorum that a chain may ask for.
	MaxQuorum = 2
)

// defaultAuditCalls is about the number of calls a day for a chain that is read every 30 seconds.
const defaultAuditCalls = 4

func (r *resolver) chain(path string, f *chainFile) Chain {
	c, builtin := chain.Lookup(f.ChainKey)
	if f.ChainKey == "" {
		r.fail(path+".chainKey", "is missing")
	}
	c.Key = f.ChainKey
	r.chainName(path+".name", f.Name, &c)
	c.ID = r.chainID(path+".chainId", f, c.ID)
	if f.StartBlock != nil {
		start := r.number(path+".startBlock", *f.StartBlock, 0, math.MaxInt64)
		c.StartBlock = &start
	}
	r.nodeLimits(path, f, &c)
	c.CompareLogs = r.isOn(path+".compareLogs", &f.CompareLogs, "on")
	c.AuditCallsPerMinute = int(r.count(path+".auditCallsPerMinute", &f.AuditCalls, defaultAuditCalls, 0, MaxAuditCalls))
	c.Quorum = r.quorum(path, f)
	if f.Finality != nil || !builtin {
		c.Finality = r.finality(path+".finality", f.Finality)
	}
	if len(f.Tokens) > 0 {
		c.Tokens = r.tokens(path+".tokens", f.Tokens, c)
	}
	if len(c.Tokens) == 0 {
		r.fail(path+".tokens", "want at least one token")
	}
	r.contracts(path, f, &c)
	r.explorer(path+".explorer", f.Explorer, &c)
	c.Limits = r.spendLimits(path+".writer", &f.Writer, c.Limits)
	c.Sweep = r.sweepPolicy(path+".sweep", &f.Sweep, c.Sweep.Time())
	f.fill(c)
	out := Chain{Chain: c}
	if f.OperatorKeyEnv != "" || f.OperatorKeyFile != "" {
		if f.Registry == "" && f.DepositFactory == "" {
			r.fail(path+".registry", "is missing; an operator key needs the registry that it operates, or a depositFactory to sweep deposits (see quittance chain deploy)")
		}
		out.OperatorKey = r.key(path+".operatorKey", f.OperatorKeyEnv, f.OperatorKeyFile)
	}
	r.readIntervals(path, f, &out)
	out.Gasless = r.gasless(path+".gasless", &f.Gasless)
	if out.Gasless != nil && f.OperatorKeyEnv == "" && f.OperatorKeyFile == "" {
		r.fail(path+".gasless.enabled", "is on; it needs an operator key, which pays for the gas")
	}
	return out
}

// fill adds the settings of a built-in chain that the file leaves out.
func (f *chainFile) fill(c chain.Chain) {
	f.Name, f.Explorer = cmp.Or(c.Name, c.Key), cmp.Or(f.Explorer, scalar(cmp.Or(c.Explorer, "none")))
	if f.ChainID == nil {
		f.ChainID = number(c.ID)
	}
	if f.Quorum == nil {
		f.Quorum = number(1)
	}
	if f.Finality == nil {
		f.Finality = new(scalar(c.Finality.String()))
	}
	if len(f.Tokens) == 0 {
		for _, t := range c.Tokens {
			f.Tokens = append(f.Tokens, tokenFile{Currency: t.Currency, Address: scalar(chain.Checksum(t.Address))})
		}
	}
	for i := range f.Tokens {
		f.Tokens[i].Decimals = number(chain.TokenDecimals)
	}
}

// nodeLimits reads the nodes of a chain, and the limits of calls and answers.
func (r *resolver) nodeLimits(path string, f *chainFile, c *chain.Chain) {
	c.RPC, c.Nodes = r.nodes(path+".rpc", f.RPC)
	answer := uint64(cmp.Or(c.MaxAnswer, chain.MaxResponse))
	c.MaxAnswer = int64(r.count(path+".maxAnswerMiB", &f.MaxAnswerMiB, answer>>20, 1, MaxAnswerMiB)) << 20
	calls := uint64(cmp.Or(c.RequestCalls, chain.DefaultRequestCalls))
	c.RequestCalls = int(r.count(path+".requestCallsPerSecond", &f.RequestCalls, calls, 1, MaxRequestCalls))
}

// isOn reads a setting that is on or off.
func (r *resolver) isOn(path string, text *scalar, byDefault scalar) bool {
	if *text = cmp.Or(*text, byDefault); *text != "on" && *text != "off" {
		r.fail(path, "is %q; want on or off", *text)
	}
	return *text == "on"
}

// readIntervals reads how often a chain is read.
func (r *resolver) readIntervals(path string, f *chainFile, c *Chain) {
	c.Latency = r.duration(path+".latency", &f.Latency, DefaultLatency, MinLatency, MaxLatency)
	c.IdleInterval = r.duration(path+".idleInterval", &f.IdleInterval, DefaultIdleInterval, MinLatency, MaxIdleInterval)
}

// duration reads a duration within bounds.
func (r *resolver) duration(path string, text *scalar, otherwise, least, most time.Duration) time.Duration {
	*text = cmp.Or(*text, brief(otherwise))
	d, err := time.ParseDuration(string(*text))
	if err != nil || d < least || d > most {
		r.fail(path, "is %q; want a duration of %s to %s, such as %s", *text, least, most, otherwise)
	}
	return d
}

// contracts reads the addresses of the service's contracts on a chain.
func (r *resolver) contracts(path string, f *chainFile, c *chain.Chain) {
	for _, contract := range []struct {
		key  string
		text scalar
		at   *invoice.Address
	}{
		{"registry", f.Registry, &c.Registry},
		{"depositFactory", f.DepositFactory, &c.DepositFactory},
		{"authorizationRelay", f.Relay, &c.AuthorizationRelay},
	} {
		if contract.text != "" {
			*contract.at = r.address(path+"."+contract.key, contract.text)
		}
	}
}

// explorer reads the URL of a chain's block explorer.
func (r *resolver) explorer(path string, text scalar, c *chain.Chain) {
	if text == "" {
		return
	}
	var err error
	if c.Explorer, err = chain.ParseExplorer(string(text)); err != nil {
		r.fail(path, "is %.80q; %w", string(text), err)
	}
}

// chainName reads the name of a chain.
func (r *resolver) chainName(path, name string, c *chain.Chain) {
	if name == "" {
		return
	}
	if utf8.RuneCountInString(name) > MaxChainName || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		r.fail(path, "is %.80q; want up to %d printable characters", name, MaxChainName)
	}
	c.Name = name
}

// chainID reads a chain id. It must be the built-in chain's, if there is one.
func (r *resolver) chainID(path string, f *chainFile, builtin uint64) uint64 {
	if f.ChainID == nil {
		if builtin == 0 {
			r.fail(path, "is missing; %q is not built in", f.ChainKey)
		}
		return builtin
	}
	id := r.number(path, *f.ChainID, 1, math.MaxInt64)
	if builtin != 0 && id != 0 && id != builtin {
		r.fail(path, "is %d; %s has %d", id, f.ChainKey, builtin)
	}
	return id
}

func (r *resolver) finality(path string, text *scalar) chain.Finality {
	if text == nil {
		r.fail(path, "is missing; want a number of blocks, safe or finalized")
		return chain.Finality{}
	}
	finality, err := chain.ParseFinality(string(*text))
	if err != nil {
		r.fail(path, "%w", err)
	}
	return finality
}

// quorum returns how many nodes must confirm a payment, and 0 when the file does
// not set it.
func (r *resolver) quorum(path string, f *chainFile) int {
	if f.Quorum == nil {
		return 0
	}
	n := int(r.number(path+".quorum", *f.Quorum, 1, MaxQuorum))
	if n > len(f.RPC) {
		r.fail(path+".quorum", "is %d, but rpc names %d; want at least as many nodes", n, len(f.RPC))
	}
	return n
}

// tokens reads the tokens of a chain. known holds the built-in tokens, which keep their recorded
// changes.
func (r *resolver) tokens(path string, files []tokenFile, known chain.Chain) []chain.Token {
	var tokens []chain.Token
	currencies, addresses := make(map[string]bool), make(map[string]bool)
	for i, f := range files {
		at := fmt.Sprintf("%s[%d]", path, i)
		if f.Currency == "" {
			r.fail(at+".currency", "is missing")
		}
		r.unique(currencies, at+".currency", f.Currency)
		r.unique(addresses, at+".address", strings.ToLower(string(f.Address)))
		t := chain.Token{Currency: f.Currency, Address: r.address(at+".address", f.Address), Decimals: chain.TokenDecimals}
		if f.Decimals != nil && *f.Decimals != scalar(strconv.Itoa(chain.TokenDecimals)) {
			r.fail(at+".decimals", "is %q; this version takes only tokens with %d decimals, because its limits of small amounts assume them", *f.Decimals, chain.TokenDecimals)
		}
		if same, ok := known.TokenAt(t.Address); ok {
			t.Movements = same.Movements
		}
		tokens = append(tokens, t)
	}
	return tokens
}

// distinct refuses several chains with one chain id. It leaves duplicate keys to
// unique.
func (r *resolver) distinct(chains []Chain) {
	for i, c := range chains {
		first := slices.IndexFunc(chains[:i], func(d Chain) bool { return d.ID == c.ID && d.Key != c.Key })
		if first < 0 || c.ID == 0 {
			continue
		}
		if err := chain.CheckDistinct([]chain.Chain{chains[first].Chain, c.Chain}); err != nil {
			r.fail(fmt.Sprintf("chains[%d].chainId", i), "%w", err)
		}
	}
}
