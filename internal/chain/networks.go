package chain

import (
	"cmp"
	"slices"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/internal/invoice"
)

// network is a built-in network: all that the service knows about a chain without configuration.
type network struct {
	Chain      // its defaults, without nodes
	testnet    bool
	coin       Coin        // pays its fees; the zero Coin is ether
	publicNode string      // for wallets, as its operator publishes it; empty without one
	circle     []string    // its codes in Circle's products
	lookalikes []Lookalike // tokens that are most often mistaken for its USDC
}

// Local is the key of the development chain, and LocalID its chain id. Its token and registry are deployed when it
// starts.
const (
	Local   = "local"
	LocalID = 1337
)

// networks are the built-in networks, with Circle's native USDC. docs/configuration.md lists them, which
// TestNetworksAreDocumented checks.
var networks = []network{{
	Chain: Chain{
		Key: "ethereum", Name: "Ethereum", ID: 1, Finality: Finality{Tag: TagFinalized}, FullBloom: true,
		Tokens:   usdcAt("0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"),
		Explorer: "https://etherscan.io", Limits: SpendLimits{50 * gwei, gwei / 100, 2 * gwei, coin / 10, coin / 5},
	},
	circle: []string{"ETH"}, publicNode: "https://eth.merkle.io",
	lookalikes: []Lookalike{
		tether("0xdAC17F958D2ee523a2206206994597C13D831ec7"),
		euro("0x1aBaEA1f7C830bD89Acc67eC4af516284b1bC33c"),
	},
}, {
	Chain: Chain{
		Key: "base", Name: "Base", ID: 8453, Finality: Finality{Tag: TagSafe}, FullBloom: true,
		Tokens:   usdcAt("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
		Explorer: "https://basescan.org", Limits: rollupLimits(gwei/1000, gwei/10),
	},
	circle: []string{"BASE"}, publicNode: "https://mainnet.base.org",
	lookalikes: []Lookalike{
		bridged("USDbC", "0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA"),
		tether("0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2"),
		euro("0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42"),
	},
}, {
	Chain: Chain{
		Key: "arbitrum", Name: "Arbitrum One", ID: 42161, Finality: Finality{Tag: TagSafe}, FullBloom: true,
		Tokens:   usdcAt("0xaf88d065e77c8cC2239327C5EDb3A432268e5831"),
		Explorer: "https://arbiscan.io", MaxTxGas: arbitrumMaxTxGas, Limits: rollupLimits(0, gwei/100), // its sequencer ignores tips
	},
	circle: []string{"ARB"}, publicNode: "https://arb1.arbitrum.io/rpc",
	lookalikes: []Lookalike{
		bridged("USDC.e", "0xFF970A61A04b1cA14834A43f5dE4533eBDDB5CC8"),
		tether("0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9"),
	},
}, {
	Chain: Chain{
		Key: "optimism", Name: "OP Mainnet", ID: 10, Finality: Finality{Tag: TagSafe}, FullBloom: true,
		Tokens:   usdcAt("0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85"),
		Explorer: "https://optimistic.etherscan.io", Limits: rollupLimits(gwei/1000, gwei/10),
	},
	circle: []string{"OP"}, publicNode: "https://mainnet.optimism.io",
	lookalikes: []Lookalike{
		bridged("USDC.e", "0x7F5c764cBc14f9669B88837ca1490cCa17c31607"),
		tether("0x94b008aA00579c1307B0EF2c499aD98a8ce58e58"),
	},
}, {
	Chain: Chain{
		Key: "polygon", Name: "Polygon PoS", ID: 137, Finality: Finality{Tag: TagFinalized, Depth: 128},
		Tokens:   usdcAt("0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359"),
		Explorer: "https://polygonscan.com", Limits: polygonLimits,
	},
	coin: pol, circle: []string{"POLY", "MATIC"}, publicNode: "https://polygon-rpc.com",
	lookalikes: []Lookalike{
		bridged("USDC.e", "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174"),
		tether("0xc2132D05D31c914a87C6611C10748AEb04B58e8F"),
	},
}, {
	Chain: Chain{
		Key: "avalanche", Name: "Avalanche C-Chain", ID: 43114, Finality: Finality{Depth: 1}, FullBloom: true,
		Tokens:   usdcAt("0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E"),
		Explorer: "https://snowtrace.io", Limits: avalancheLimits,
	},
	coin: avax, circle: []string{"AVAX"},
	publicNode: "https://api.avax.network/ext/bc/C/rpc",
	lookalikes: []Lookalike{
		bridged("USDC.e", "0xA7D7079b0FEaD91F3e65f86E8915Cb59c1a4C664"),
		tether("0x9702230A8Ea53601f5cD2dc00fDBc13d4dF4A8c7"),
	},
}, {
	Chain: Chain{
		Key: "arc", Name: "Arc", ID: 5042, Finality: Finality{Depth: 1},
		Tokens: arcTokens(), Limits: arcLimits,
	},
	coin: usdc, circle: []string{"ARC"},
}, {
	Chain: Chain{
		Key: "ethereum-sepolia", Name: "Ethereum Sepolia", ID: 11155111, Finality: Finality{Tag: TagFinalized}, FullBloom: true,
		Tokens:   usdcAt("0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"),
		Explorer: "https://sepolia.etherscan.io", Limits: faucetLimits(gwei / 100),
	},
	testnet: true, circle: []string{"ETH-SEPOLIA"},
	publicNode: "https://ethereum-sepolia-rpc.publicnode.com",
}, {
	Chain: Chain{
		Key: "base-sepolia", Name: "Base Sepolia", ID: 84532, Finality: Finality{Tag: TagSafe}, FullBloom: true,
		Tokens:   usdcAt("0x036CbD53842c5426634e7929541eC2318f3dCF7e"),
		Explorer: "https://sepolia.basescan.org", Limits: faucetLimits(gwei / 1000),
	},
	testnet: true, circle: []string{"BASE-SEPOLIA"}, publicNode: "https://sepolia.base.org",
}, {
	Chain: Chain{
		Key: "arbitrum-sepolia", Name: "Arbitrum Sepolia", ID: 421614, Finality: Finality{Tag: TagSafe}, FullBloom: true,
		Tokens:   usdcAt("0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d"),
		Explorer: "https://sepolia.arbiscan.io", MaxTxGas: arbitrumMaxTxGas, Limits: faucetLimits(0),
	},
	testnet: true, circle: []string{"ARB-SEPOLIA"},
	publicNode: "https://sepolia-rollup.arbitrum.io/rpc",
}, {
	Chain: Chain{
		Key: "optimism-sepolia", Name: "OP Sepolia", ID: 11155420, Finality: Finality{Tag: TagSafe}, FullBloom: true,
		Tokens:   usdcAt("0x5fd84259d66Cd46123540766Be93DFE6D43130D7"),
		Explorer: "https://sepolia-optimism.etherscan.io", Limits: faucetLimits(gwei / 1000),
	},
	testnet: true, circle: []string{"OP-SEPOLIA"}, publicNode: "https://sepolia.optimism.io",
}, {
	Chain: Chain{
		Key: "polygon-amoy", Name: "Polygon Amoy", ID: 80002, Finality: Finality{Tag: TagFinalized, Depth: 128},
		Tokens:   usdcAt("0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582"),
		Explorer: "https://amoy.polygonscan.com", Limits: polygonLimits,
	},
	testnet: true, coin: pol, publicNode: "https://rpc-amoy.polygon.technology",
	circle: []string{"POLY-AMOY", "MATIC-AMOY", "POLY-SEPOLIA", "MATIC-SEPOLIA"},
}, {
	Chain: Chain{
		Key: "avalanche-fuji", Name: "Avalanche Fuji", ID: 43113, Finality: Finality{Depth: 1}, FullBloom: true,
		Tokens:   usdcAt("0x5425890298aed601595a70AB815c96711a31Bc65"),
		Explorer: "https://testnet.snowtrace.io", Limits: avalancheLimits,
	},
	testnet: true, coin: avax, circle: []string{"AVAX-FUJI", "AVAX-SEPOLIA"},
	publicNode: "https://api.avax-test.network/ext/bc/C/rpc",
}, {
	Chain: Chain{
		Key: "arc-testnet", Name: "Arc Testnet", ID: 5042002, Finality: Finality{Depth: 1},
		Tokens: arcTokens(Emitter{
			// Before the system address logged Transfers, the testnet had these logs.
			Address:  MustAddress("0x1800000000000000000000000000000000000000"),
			Topic:    crypto.Keccak256Hash([]byte("NativeCoinTransferred(address,address,uint256)")),
			Decimals: arcDecimals,
		}),
		Explorer: "https://testnet.arcscan.app", Limits: arcLimits,
	},
	testnet: true, coin: usdc, circle: []string{"ARC-TESTNET"},
	publicNode: "https://rpc.testnet.arc.network",
}, {
	Chain: Chain{
		Key: Local, Name: "Local test chain", ID: LocalID, Finality: Finality{Depth: 2}, FullBloom: true,
		RequestCalls: 1000, // its node is on the same machine
		Sweep:        SweepPolicy{When: SweepAtOnce},
		Limits:       SpendLimits{1000 * gwei, gwei, 200 * gwei, MaxPerTxGwei, 1000 * coin}, // its money has no value
	},
	testnet: true,
}}

// arbitrumMaxTxGas is the cap of Arbitrum's networks since ArbOS 51.
const arbitrumMaxTxGas = 32_000_000

// Limits of several networks: several times the usual fees there, so that a commitment only waits during the most
// expensive hours, and a daily budget that an operator can afford to lose.
var (
	polygonLimits   = SpendLimits{1000 * gwei, 25 * gwei, 200 * gwei, MaxPerTxGwei, 20 * coin}
	avalancheLimits = SpendLimits{100 * gwei, 0, 5 * gwei, coin / 4, 2 * coin}
	arcLimits       = SpendLimits{2000 * gwei, gwei, 100 * gwei, MaxPerTxGwei, 25 * coin}
)

// rollupLimits returns the limits of a rollup with fees in ether.
func rollupLimits(minTipWei, maxTipWei uint64) SpendLimits {
	return SpendLimits{2 * gwei, minTipWei, maxTipWei, coin / 50, coin / 20}
}

// faucetLimits returns the limits of a network with ether from a faucet.
func faucetLimits(minTipWei uint64) SpendLimits {
	return SpendLimits{100 * gwei, minTipWei, 2 * gwei, coin / 2, 2 * coin}
}

// usdcAt returns the tokens of a network: USDC at a contract.
func usdcAt(address string) []Token {
	return []Token{{Currency: USDC, Address: MustAddress(address), Decimals: TokenDecimals}}
}

// arcDecimals are the decimals of Arc's native coin, which is USDC. Its ERC-20 interface has TokenDecimals.
const arcDecimals = 18

// arcTokens returns the tokens of one of Arc's networks. A system address logs every movement there, both native sends
// and calls of the token; the token logs its calls a second time. So only the system address is read.
func arcTokens(former ...Emitter) []Token {
	tokens := usdcAt("0x3600000000000000000000000000000000000000")
	system := MustAddress("0xfffffffffffffffffffffffffffffffffffffffe")
	tokens[0].Movements = append([]Emitter{{Address: system, Topic: TransferTopic, Decimals: arcDecimals}}, former...)
	return tokens
}

// Lookalike is a token of a network that is often mistaken for its USDC. It has TokenDecimals.
type Lookalike struct {
	Address invoice.Address
	Name    string // as wallets show it
	Bridges string // the currency that it is a bridged form of, or empty
}

func bridged(name, address string) Lookalike { return Lookalike{MustAddress(address), name, USDC} }
func tether(address string) Lookalike        { return Lookalike{MustAddress(address), "USDT", ""} }
func euro(address string) Lookalike          { return Lookalike{MustAddress(address), "EURC", ""} }

// networkOf returns the built-in network with a key, or an empty one.
func networkOf(key string) *network {
	return networkWhere(func(n *network) bool { return n.Key == key })
}

func networkWhere(wanted func(*network) bool) *network {
	for i := range networks {
		if wanted(&networks[i]) {
			return &networks[i]
		}
	}
	return new(network)
}

// Builtin returns a copy of the built-in networks, which need only an RPC URL as configuration. The chain Local has no
// token yet.
func Builtin() []Chain {
	all := make([]Chain, len(networks))
	for i := range networks {
		all[i], _ = Lookup(networks[i].Key)
	}
	return all
}

// Lookup returns a copy of the built-in network with that key, and whether there is one.
func Lookup(key string) (Chain, bool) {
	c := networkOf(key).Chain
	c.Tokens = slices.Clone(c.Tokens)
	return c, c.Key != ""
}

// NameIn returns the name of the chain with a key: the one among the chains, else the built-in one, else the key.
func NameIn(chains map[string]Chain, key string) string {
	c, ok := chains[key]
	if !ok {
		c = networkOf(key).Chain
	}
	return cmp.Or(c.Name, key)
}

// IsTestnet reports whether a chain is a built-in test network.
func IsTestnet(key string) bool { return networkOf(key).testnet }

// CircleChains returns the chain keys by the codes of Circle's products.
func CircleChains() map[string]string {
	all := make(map[string]string)
	for _, n := range networks {
		for _, code := range n.circle {
			all[code] = n.Key
		}
	}
	return all
}

// movements returns where the movements of a token of a built-in network are logged; nil if they are logged as usual.
func movements(chainID uint64, token invoice.Address) []Emitter {
	t, _ := networkWhere(func(n *network) bool { return n.ID == chainID }).TokenAt(token)
	return t.Movements
}

// Lookalike returns the token at an address that is often mistaken for the chain's USDC, and whether there is one.
func (c Chain) Lookalike(a invoice.Address) (Lookalike, bool) {
	all := networkWhere(func(n *network) bool { return n.ID == c.ID }).lookalikes
	i := slices.IndexFunc(all, func(l Lookalike) bool { return l.Address == a })
	if i < 0 {
		return Lookalike{}, false
	}
	return all[i], true
}
