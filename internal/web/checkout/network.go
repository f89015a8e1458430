package checkout

import (
	"strings"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// networkName returns the display name of a network, or its key if it is not built in.
func networkName(text *locale.Text, chainKey string) string {
	if chainKey == chain.Local {
		return text.T("network.local", nil)
	}
	name := chain.NetworkName(chainKey)
	if chain.IsTestnet(chainKey) && !strings.HasSuffix(name, "Testnet") {
		return text.T("network.test", values{"Name": name})
	}
	return name
}

// network returns the display name of the invoice's network.
func (s pageInput) network() string { return s.networkName(s.chain.Key) }

// networkName returns the display name of a network.
func (s pageInput) networkName(chainKey string) string { return networkName(s.text, chainKey) }
