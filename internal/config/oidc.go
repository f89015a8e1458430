package config

import (
	"cmp"
	"net/url"

	"github.com/quittance/quittance/internal/identity"
	"github.com/quittance/quittance/internal/invoice"
)

type oidcFile struct {
	Issuer           string `yaml:"issuer"`
	ClientID         string `yaml:"clientId"`
	ClientSecretEnv  string `yaml:"clientSecretEnv"`
	ClientSecretFile string `yaml:"clientSecretFile"`
	Name             string `yaml:"name"`
}

// oidc checks the settings of the provider. It returns nil without settings.
func (r *resolver) oidc(f *oidcFile, dashboardURL string) *identity.Config {
	if *f == (oidcFile{}) {
		return nil
	}
	u, err := url.Parse(f.Issuer)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !IsLoopback(u.Hostname())) || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		r.fail("access.oidc.issuer", "is %.80q; want an https URL such as https://accounts.google.com", origin(f.Issuer))
		return nil
	}
	f.Name = cmp.Or(f.Name, u.Hostname())
	p := &identity.Config{Issuer: f.Issuer, ClientID: f.ClientID, Name: f.Name}
	if err := invoice.CheckLabel("name", p.Name); err != nil {
		r.fail("access.oidc.name", "%w", err)
	}
	if f.ClientID == "" {
		r.fail("access.oidc.clientId", "want the id that the provider gave to this service")
	}
	if f.ClientSecretEnv != "" || f.ClientSecretFile != "" {
		p.ClientSecret = r.secret("access.oidc.clientSecret", f.ClientSecretEnv, f.ClientSecretFile)
	}
	if dashboardURL == "" {
		r.fail("access.oidc", "needs dashboardUrl, to which the provider leads back")
	}
	return p
}
