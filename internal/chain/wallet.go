package chain

import "cmp"

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

// Coin returns the chain's coin. It is ether if the chain is not built in.
func (c Chain) Coin() Coin { return cmp.Or(networkOf(c.Key).coin, ether) }

// WalletNodes returns nodes with which a wallet can add the chain. They are public nodes, because the configured nodes
// are the service's; only the development chain uses its configured node.
func (c Chain) WalletNodes() []string {
	if node := networkOf(c.Key).publicNode; node != "" {
		return []string{node}
	}
	if c.Key != Local {
		return nil
	}
	return c.RPC
}
