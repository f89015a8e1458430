package checkout

// networks are the display names of the built-in networks.
var networks = map[string]string{
	"ethereum":         "Ethereum",
	"base":             "Base",
	"arbitrum":         "Arbitrum One",
	"optimism":         "OP Mainnet",
	"polygon":          "Polygon PoS",
	"avalanche":        "Avalanche C-Chain",
	"arc":              "Arc",
	"ethereum-sepolia": "Ethereum Sepolia (test network)",
	"base-sepolia":     "Base Sepolia (test network)",
	"arbitrum-sepolia": "Arbitrum Sepolia (test network)",
	"optimism-sepolia": "OP Sepolia (test network)",
	"polygon-amoy":     "Polygon Amoy (test network)",
	"avalanche-fuji":   "Avalanche Fuji (test network)",
	"arc-testnet":      "Arc Testnet",
	"local":            "Local test chain",
}

// networkName returns the display name of a network, or its key if it is not built in.
func networkName(chainKey string) string {
	if name, ok := networks[chainKey]; ok {
		return name
	}
	return chainKey
}
