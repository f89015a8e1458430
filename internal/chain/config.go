package chain

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/internal/invoice"
)

// Chain describes a network that the service takes payments on.
type Chain struct {
	Key        string // the interface's chainKey
	Name       string // that people read; empty shows the key
	ID         uint64 // of EIP-155
	RPC        []string
	Nodes      []NodeSettings // in the order of RPC; further nodes have no settings
	Finality   Finality
	Tokens     []Token
	Former     []Token         // earlier tokens of the configuration; they take no new invoices
	Retired    []Token         // earlier tokens that are not read any more; recorded amounts are shown in them
	Registry   invoice.Address // zero if no registry is deployed
	StartBlock *uint64         // first block to read on the first start; nil for the newest final one
	Explorer   string          // base URL of the block explorer that pages link to; empty without one
	Quorum     int             // how many nodes must report the same payment before it confirms: 2; 0 and 1 mean one

	DepositFactory     invoice.Address // deploys and sweeps deposit addresses; zero without one
	AuthorizationRelay invoice.Address // submits several signed authorizations at once; zero without one
	// FormerContracts are deposit factories and relays that were configured before; a current one may be among them.
	FormerContracts []invoice.Address

	Limits SpendLimits // for the transaction manager
	// MaxTxGas is the largest gas limit of a transaction that the network accepts; 0 is DefaultMaxTxGas.
	MaxTxGas uint64
	Sweep    SweepPolicy // for deposits
	// MaxAnswer bounds each answer of a node, in bytes; 0 is MaxResponse.
	MaxAnswer int64
	// RequestCalls bounds the calls per second on behalf of requests; 0 is DefaultRequestCalls.
	RequestCalls int

	// CompareLogs makes the indexer compare the logs of a block with its receipts, or with another node, when it is
	// first read.
	CompareLogs bool
	// AuditCallsPerMinute bounds the calls with which final blocks are read a second time; 0 turns the audit off.
	AuditCallsPerMinute int

	// FullBloom is set if every log of a block is in its header's bloom filter. Blocks can then be skipped by their
	// filters, once logs were found in the filters of a node's headers. It is false if this is not known: Bor leaves
	// out the logs of state syncs, and some networks leave the filter empty.
	FullBloom bool
}

// NodeSettings are the settings of one node. Its limits are also learned from its answers; a setting avoids the refused
// requests.
type NodeSettings struct {
	MaxBatch uint64      // maximum calls in a batch; 0 is MaxBatch
	MaxRange uint64      // maximum blocks in a range of logs; 0 is MaxRange
	Headers  http.Header // of each request; the values may be secrets
	// CallsPerSecond is how many calls are made per second, where each call in a batch counts; 0 means that only the
	// node limits them.
	CallsPerSecond uint64
}

// Token is a currency on one network.
type Token struct {
	Currency string
	Address  invoice.Address
	Decimals int // of an amount in minor units; 6 for USDC

	// Movements are where the token's movements are logged. nil means at Address, as ERC-20 Transfers with Decimals. It
	// differs if the token is also the network's native coin.
	Movements []Emitter
}

// Emitter is a contract or system address that logs a token's movements: from
// and to are indexed, the amount is the data.
type Emitter struct {
	Address  invoice.Address
	Topic    common.Hash // first topic of the logs
	Decimals int         // of the amount
}

// TransferTopic is the first topic of ERC-20's Transfer logs.
var TransferTopic = crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))

// Emitters returns where the token's movements are logged, so that each movement appears once.
func (t Token) Emitters() []Emitter {
	if t.Movements != nil {
		return t.Movements
	}
	return []Emitter{{Address: t.Address, Topic: TransferTopic, Decimals: t.Decimals}}
}

// USDC is the code of the currency that every built-in network has.
const USDC = "USDC"

// TokenDecimals are the decimals of every token. Suffixes and round amounts are defined in minor units.
const TokenDecimals = 6

// DefaultMaxTxGas is the cap of EIP-7825. Networks that have not adopted it accept a transaction with this limit, too.
const DefaultMaxTxGas = 1 << 24

// CheckDistinct returns an error that names the keys if two of the chains have the same chain id. They would be the
// same chain, and each transfer on it would be counted under both keys.
func CheckDistinct(chains []Chain) error {
	keys := make(map[uint64]string, len(chains))
	for _, c := range chains {
		if other, ok := keys[c.ID]; ok && c.ID != 0 {
			return fmt.Errorf("the chains %s and %s have one chain id, %d; each of its transfers would pay twice, so keep one of them", other, c.Key, c.ID)
		}
		keys[c.ID] = c.Key
	}
	return nil
}

// AllTokens returns the tokens that the chain is read for: the configured ones, then the former ones.
func (c Chain) AllTokens() []Token { return slices.Concat(c.Tokens, c.Former) }

// Token returns the chain's token for a currency that accepts new invoices, and whether it has one.
func (c Chain) Token(currency string) (Token, bool) {
	return findToken(func(t Token) bool { return t.Currency == currency }, c.Tokens)
}

// findToken returns the first wanted token of the lists.
func findToken(wanted func(Token) bool, lists ...[]Token) (Token, bool) {
	for _, list := range lists {
		if i := slices.IndexFunc(list, wanted); i >= 0 {
			return list[i], true
		}
	}
	return Token{}, false
}

// TokenNamed returns a token for a currency, to show amounts in it: the configured one, or else a former or a retired one.
func (c Chain) TokenNamed(currency string) (Token, bool) {
	return findToken(func(t Token) bool { return t.Currency == currency }, c.Tokens, c.Former, c.Retired)
}

// TokenAt returns the chain's token at a contract address, and whether there is one. It may be a former one.
func (c Chain) TokenAt(a invoice.Address) (Token, bool) {
	return findToken(func(t Token) bool { return t.Address == a }, c.Tokens, c.Former)
}

// KeepsMoney reports whether an address is a token, the registry, or a present or former deposit factory or
// authorization relay. Tokens sent there are lost.
func (c Chain) KeepsMoney(a invoice.Address) bool {
	_, isToken := c.TokenAt(a)
	return !a.IsZero() && (isToken || a == c.Registry || a == c.DepositFactory || a == c.AuthorizationRelay || slices.Contains(c.FormerContracts, a))
}

// Revision is a configuration that replicas run.
type Revision struct {
	Number int64 // from 1
	Hash   string
}

// Hash identifies the settings. Two configurations with the same hash treat money the same way.
func (c ConfiguredChains) Hash() string {
	h := sha256.New()
	chains := slices.SortedFunc(slices.Values(c.Chains), func(a, b Chain) int { return cmp.Compare(a.Key, b.Key) })
	for _, c := range chains {
		fmt.Fprintf(h, "chain %q %d %s %s %s\n", c.Key, c.ID, c.Registry, c.DepositFactory, c.AuthorizationRelay)
		tokens := slices.SortedFunc(slices.Values(c.Tokens), func(a, b Token) int { return cmp.Compare(a.Address.String(), b.Address.String()) })
		for _, t := range tokens {
			fmt.Fprintf(h, "token %q %s %d\n", t.Currency, t.Address, t.Decimals)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Merchants)) {
		m := c.Merchants[id]
		fmt.Fprintf(h, "merchant %q %s %s\n", id, m.Tolerance, cmp.Or(m.Collection, invoice.Direct))
		for _, a := range slices.SortedFunc(slices.Values(m.Allowed), func(a, b invoice.AllowedAddress) int {
			return cmp.Or(cmp.Compare(a.ChainKey, b.ChainKey), bytes.Compare(a.Address[:], b.Address[:]))
		}) {
			fmt.Fprintf(h, "allowed %q %s\n", a.ChainKey, a.Address)
		}
	}
	if c.Screening != "" {
		fmt.Fprintf(h, "screening %s\n", c.Screening)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// StaleError is the error of a replica with an older revision than the others.
type StaleError struct{ Own, Newest int64 }

// Error returns what to do.
func (e *StaleError) Error() string {
	return fmt.Sprintf("runs configuration revision %d; the others run %d; restart it with the current configuration", e.Own, e.Newest)
}

// Unavailable returns the error text for a client.
func (e *StaleError) Unavailable() string {
	return fmt.Sprintf("This replica runs configuration revision %d, and the others run %d. Repeat the request; another replica answers it.", e.Own, e.Newest)
}
