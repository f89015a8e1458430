package checkout

// networks are the names by which people know the built-in networks.
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

// networkName returns the name of a network, or its key when an operator has
// brought the network along.
func networkName(chainKey string) string {
	if name, ok := networks[chainKey]; ok {
		return name
	}
	return chainKey
}
