package config

import (
	"maps"
	"net/url"
	"slices"

	"github.com/quittance/quittance/internal/chain"
)

func (r *resolver) provider(path string, p *providerFile, chains []Chain) Provider {
	out := Provider{
		Name: p.Name, Secret: r.webhookSecret(path+".secret", p.SecretEnv, p.SecretFile),
	}
	if p.OtherSecretEnv != "" || p.OtherSecretFile != "" {
		out.OtherSecret = r.webhookSecret(path+".otherSecret", p.OtherSecretEnv, p.OtherSecretFile)
	}
	if p.Name == "" || url.PathEscape(p.Name) != p.Name {
		r.fail(path+".name", "is %q; want a name that can stand in a path, such as circle", p.Name)
	}
	if p.Chains == nil {
		p.Chains = chain.CircleChains()
	} else {
		for _, name := range slices.Sorted(maps.Keys(p.Chains)) {
			key := p.Chains[name]
			if !slices.ContainsFunc(chains, func(c Chain) bool { return c.Key == key }) {
				r.fail(path+".chains."+name, "is %q, which is none of the chains", key)
			}
		}
	}
	if p.Currencies == nil {
		p.Currencies = CircleCurrencies()
	}
	out.Chains, out.Currencies = p.Chains, p.Currencies
	return out
}

// CircleCurrencies returns our currencies by the codes of Circle's products. USD there means USDC.
func CircleCurrencies() map[string]string {
	return map[string]string{"USD": "USDC", "USDC": "USDC"}
}
