package checkout

import (
	"strings"

	"github.com/quittance/quittance/internal/checkout/locale"
)

// networks are the display names of the built-in networks.
var networks = map[string]string{
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
	"local":            "", // named by a text
}

// networkName returns the display name of a network, or its key if it is not built in.
func networkName(text *locale.Text, chainKey string) string {
	name, ok := networks[chainKey]
	if !ok {
		return chainKey
	}
	if name == "" {
		return text.T("network.local", nil)
	}
	if _, network, _ := strings.Cut(chainKey, "-"); network != "" && network != "testnet" { // the name of Arc Testnet says it
		return text.T("network.test", values{"Name": name})
	}
	return name
}

// network returns the display name of the invoice's network.
func (s pageInput) network() string { return s.networkName(s.chain.Key) }

// networkName returns the display name of a network.
func (s pageInput) networkName(chainKey string) string { return networkName(s.text, chainKey) }
