package chain

import (
	"cmp"
	"errors"
	"net/url"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
)

// ErrExplorer is the error of ParseExplorer.
var ErrExplorer = errors.New("want a URL that begins with https:// and has no query, such as https://etherscan.io, or none")

// ParseExplorer parses the base URL of a block explorer. The text "none" means an empty URL.
func ParseExplorer(text string) (string, error) {
	if text == "none" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(text, "?#\"'<>") {
		return "", ErrExplorer
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// TransactionURL returns the page of a transaction in the block explorer, or "" without one.
func (c Chain) TransactionURL(tx invoice.Hash) string {
	if c.Explorer == "" {
		return ""
	}
	return c.Explorer + "/tx/" + tx.String()
}

// AddressURL returns the page of an account in the block explorer, or "" without one.
func (c Chain) AddressURL(a invoice.Address) string {
	if c.Explorer == "" {
		return ""
	}
	return c.Explorer + "/address/" + Checksum(a)
}

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
