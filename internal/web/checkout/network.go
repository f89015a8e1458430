package checkout

import (
	"cmp"
	"strings"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// networkName returns what people read for a network: the name of its chain, or the key without one.
func networkName(text *locale.Text, chainKey, name string) string {
	if chainKey == chain.Local {
		return text.T("network.local", nil)
	}
	name = cmp.Or(name, chainKey)
	if chain.IsTestnet(chainKey) && !strings.HasSuffix(name, "Testnet") {
		return text.T("network.test", values{"Name": name})
	}
	return name
}

// network returns the display name of the invoice's network.
func (s pageInput) network() string { return networkName(s.text, s.chain.Key, s.chain.Name) }
