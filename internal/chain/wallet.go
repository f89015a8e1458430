package chain

import "strings"

// Coin is the coin in which a network's fees are paid, in EIP-3085's form.
type Coin struct {
	Name     string `json:"name"`
	Symbol   string `json:"symbol"`
	Decimals int    `json:"decimals"`
}

var (
	ether = Coin{"Ether", "ETH", 18}
	pol   = Coin{"POL", "POL", 18}
	avax  = Coin{"Avalanche", "AVAX", 18}
	usdc  = Coin{"USDC", "USDC", 18}
)

// coins are the coins of the built-in networks that do not use ether.
var coins = map[string]Coin{
	"polygon": pol, "polygon-amoy": pol, "avalanche": avax, "avalanche-fuji": avax, "arc": usdc, "arc-testnet": usdc,
}

// Coin returns the chain's coin. It is ether if the chain is not built in.
func (c Chain) Coin() Coin {
	if coin, ok := coins[c.Key]; ok {
		return coin
	}
	return ether
}

// openNodes are public nodes of the built-in networks, as their operators publish them.
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

// WalletNodes returns nodes with which a wallet can add the chain. They are public nodes, because the configured nodes
// are the service's; only the development chain uses its configured node.
func (c Chain) WalletNodes() []string {
	if node, ok := openNodes[c.Key]; ok {
		return []string{node}
	}
	if c.Key != Local {
		return nil
	}
	var local []string
	for _, url := range c.RPC {
		local = append(local, strings.Replace(url, "ws://", "http://", 1))
	}
	return local
}
