package checkout

import (
	"strings"

	"github.com/quittance/quittance/internal/chain"
)

// coin is the coin that a network's fees are paid in, as EIP-3085 has it.
type coin struct {
	Name     string `json:"name"`
	Symbol   string `json:"symbol"`
	Decimals int    `json:"decimals"`
}

var (
	ether = coin{"Ether", "ETH", 18}
	pol   = coin{"POL", "POL", 18}
	avax  = coin{"Avalanche", "AVAX", 18}
	usdc  = coin{"USDC", "USDC", 18}
)

// coins are those of the built-in networks whose coin is not ether.
var coins = map[string]coin{
	"polygon": pol, "polygon-amoy": pol, "avalanche": avax, "avalanche-fuji": avax, "arc": usdc, "arc-testnet": usdc,
}

// coinOf returns the coin of a network. It is ether if the network is not built in.
func coinOf(chainKey string) coin {
	if c, ok := coins[chainKey]; ok {
		return c
	}
	return ether
}

// openNodes are nodes of the built-in networks that anyone may use, as their operators publish
// them.
var openNodes = map[string]string{
	"ethereum":         "https://eth.merkle.io",
	"base":             "https://mainnet.base.org",
	"arbitrum":         "https://arb1.arbitrum.io/rpc",
	"optimism":         "https://mainnet.optimism.io",
	"polygon":          "https://polygon-rpc.com",
	"avalanche":        "https://api.avax.network/ext/bc/C/rpc",
	"ethereum-sepolia": "https://ethereum-sepolia-rpc.publicnode.com",
	"base-sepolia":     "https://sepolia.base.org",
	"arbitrum-sepolia": "https://sepolia-rollup.arbitrum.io/rpc",
	"optimism-sepolia": "https://sepolia.optimism.io",
	"polygon-amoy":     "https://rpc-amoy.polygon.technology",
	"avalanche-fuji":   "https://api.avax-test.network/ext/bc/C/rpc",
	"arc-testnet":      "https://rpc.testnet.arc.network",
}

// nodesFor returns the nodes that a wallet which lacks the network may add it with. The
// configured nodes are the service's own, but for the development chain.
func nodesFor(c chain.Chain) []string {
	if node, ok := openNodes[c.Key]; ok {
		return []string{node}
	}
	if c.Key != chain.Local {
		return nil
	}
	var local []string
	for _, url := range c.RPC {
		local = append(local, strings.Replace(url, "ws://", "http://", 1))
	}
	return local
}
