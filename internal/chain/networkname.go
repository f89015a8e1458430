package chain

import "cmp"

// networkNames are the display names of the built-in networks.
var networkNames = map[string]string{
	"ethereum":         "Ethereum",
	"base":             "Base",
	"arbitrum":         "Arbitrum One",
	"optimism":         "OP Mainnet",
	"polygon":          "Polygon PoS",
	"avalanche":        "Avalanche C-Chain",
	"arc":              "Arc",
	"ethereum-sepolia": "Ethereum Sepolia",
	"base-sepolia":     "Base Sepolia",
	"arbitrum-sepolia": "Arbitrum Sepolia",
	"optimism-sepolia": "OP Sepolia",
	"polygon-amoy":     "Polygon Amoy",
	"avalanche-fuji":   "Avalanche Fuji",
	"arc-testnet":      "Arc Testnet",
}

// NetworkName returns the display name of a chain's network, or its key if the network is not built in.
func NetworkName(key string) string { return cmp.Or(networkNames[key], key) }
