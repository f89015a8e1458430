package config

// CircleChains returns the chain codes of Circle's products, by chainKey of
// ours: the built-in mapping of a provider.
func CircleChains() map[string]string {
	return map[string]string{
		"ETH": "ethereum", "ETH-SEPOLIA": "ethereum-sepolia",
		"BASE": "base", "BASE-SEPOLIA": "base-sepolia",
		"ARB": "arbitrum", "ARB-SEPOLIA": "arbitrum-sepolia",
		"OP": "optimism", "OP-SEPOLIA": "optimism-sepolia",
		"POLY": "polygon", "MATIC": "polygon", "POLY-AMOY": "polygon-amoy", "MATIC-AMOY": "polygon-amoy",
		"AVAX": "avalanche", "AVAX-FUJI": "avalanche-fuji",
		"ARC": "arc", "ARC-TESTNET": "arc-testnet",
		"POLY-SEPOLIA": "polygon-amoy", "MATIC-SEPOLIA": "polygon-amoy", "AVAX-SEPOLIA": "avalanche-fuji",
	}
}

// CircleCurrencies returns the currency codes of Circle's products: USD stands
// for USDC there.
func CircleCurrencies() map[string]string {
	return map[string]string{"USD": "USDC", "USDC": "USDC"}
}
