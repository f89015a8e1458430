package chain

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/internal/invoice"
)

// Chain describes a network that the service takes payments on.
type Chain struct {
	Key        string // the interface's chainKey
	ID         uint64 // of EIP-155
	RPC        []string
	Nodes      []NodeSettings // in the order of RPC; further nodes have no settings
	Finality   Finality
	Tokens     []Token
	Former     []Token         // earlier tokens of the configuration; they take no new invoices
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

// usdcDecimals is the same on all networks.
const usdcDecimals = 6

// localRequestCalls is RequestCalls of Local. Its node is on the same machine.
const localRequestCalls = 1000

// DefaultMaxTxGas is the cap of EIP-7825. Networks that have not adopted it accept a transaction with this limit, too.
const DefaultMaxTxGas = 1 << 24

// arbitrumMaxTxGas is the cap of Arbitrum's networks since ArbOS 51.
const arbitrumMaxTxGas = 32_000_000

// Local is the key of the development chain. Its token and registry are deployed when it starts.
const Local = "local"

// builtin holds Circle's native USDC of each network. Bridged tokens of the same name are other tokens and are never
// counted.
var builtin = []Chain{
	fullBloom(network("ethereum", 1, "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", Finality{Tag: TagFinalized})),
	fullBloom(network("base", 8453, "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", Finality{Tag: TagSafe})),
	maxTxGas(arbitrumMaxTxGas, fullBloom(network("arbitrum", 42161, "0xaf88d065e77c8cC2239327C5EDb3A432268e5831", Finality{Tag: TagSafe}))),
	fullBloom(network("optimism", 10, "0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85", Finality{Tag: TagSafe})),
	network("polygon", 137, "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", Finality{Tag: TagFinalized, Depth: 128}),
	fullBloom(network("avalanche", 43114, "0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E", Finality{Depth: 1})),
	fullBloom(network("ethereum-sepolia", 11155111, "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238", Finality{Tag: TagFinalized})),
	fullBloom(network("base-sepolia", 84532, "0x036CbD53842c5426634e7929541eC2318f3dCF7e", Finality{Tag: TagSafe})),
	maxTxGas(arbitrumMaxTxGas, fullBloom(network("arbitrum-sepolia", 421614, "0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d", Finality{Tag: TagSafe}))),
	fullBloom(network("optimism-sepolia", 11155420, "0x5fd84259d66Cd46123540766Be93DFE6D43130D7", Finality{Tag: TagSafe})),
	network("polygon-amoy", 80002, "0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582", Finality{Tag: TagFinalized, Depth: 128}),
	fullBloom(network("avalanche-fuji", 43113, "0x5425890298aed601595a70AB815c96711a31Bc65", Finality{Depth: 1})),
	arc("arc", 5042),
	arc("arc-testnet", 5042002, Emitter{
		// Before the system address logged Transfers, the testnet had these logs.
		Address:  MustAddress("0x1800000000000000000000000000000000000000"),
		Topic:    crypto.Keccak256Hash([]byte("NativeCoinTransferred(address,address,uint256)")),
		Decimals: arcDecimals,
	}),
	{Key: Local, ID: 1337, Finality: Finality{Depth: 2}, FullBloom: true, RequestCalls: localRequestCalls, Sweep: SweepPolicy{When: SweepAtOnce}},
}

func network(key string, id uint64, usdc string, f Finality) Chain {
	return Chain{
		Key: key, ID: id, Finality: f,
		Tokens: []Token{{Currency: USDC, Address: MustAddress(usdc), Decimals: usdcDecimals}},
	}
}

// arcDecimals are the decimals of Arc's native coin, which is USDC. Its ERC-20 interface has usdcDecimals.
const arcDecimals = 18

// arc is one of Arc's networks. A system address logs every movement there, both native sends and calls of the token;
// the token logs its calls a second time. So only the system address is read.
func arc(key string, id uint64, former ...Emitter) Chain {
	c := network(key, id, "0x3600000000000000000000000000000000000000", Finality{Depth: 1})
	system := Emitter{Address: MustAddress("0xfffffffffffffffffffffffffffffffffffffffe"), Topic: TransferTopic, Decimals: arcDecimals}
	c.Tokens[0].Movements = append([]Emitter{system}, former...)
	return c
}

func fullBloom(c Chain) Chain {
	c.FullBloom = true
	return c
}

func maxTxGas(most uint64, c Chain) Chain {
	c.MaxTxGas = most
	return c
}

// Builtin returns a copy of the built-in networks, which need only an RPC URL as configuration. The chain Local has no
// token yet.
func Builtin() []Chain {
	all := slices.Clone(builtin)
	for i := range all {
		all[i].Tokens = slices.Clone(all[i].Tokens)
		all[i].Limits = spendLimits[all[i].Key]
		all[i].Explorer = explorers[all[i].Key]
	}
	return all
}

// Lookup returns the built-in network with that key, and whether there is one.
func Lookup(key string) (Chain, bool) {
	all := Builtin()
	i := slices.IndexFunc(all, func(c Chain) bool { return c.Key == key })
	if i < 0 {
		return Chain{}, false
	}
	return all[i], true
}

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

// Movements returns where the movements of a token of a built-in network are logged; nil if they are logged as usual.
func Movements(chainID uint64, token invoice.Address) []Emitter {
	for _, c := range builtin {
		if t, ok := c.TokenAt(token); ok && c.ID == chainID {
			return t.Movements
		}
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

// TokenNamed returns a token for a currency, to show amounts in it: the configured one, or else a former one.
func (c Chain) TokenNamed(currency string) (Token, bool) {
	return findToken(func(t Token) bool { return t.Currency == currency }, c.Tokens, c.Former)
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
