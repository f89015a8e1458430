package config

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// Defaults of optional settings.
const (
	DefaultListen   = "127.0.0.1:8080"
	DefaultDatabase = "sqlite:quittance.db"
)

// resolver turns a file into a Config and collects all errors, so that one run
// shows them all.
type resolver struct {
	src      Source
	errs     []error
	warnings []string
}

func (r *resolver) fail(path, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("  %s: %w", path, fmt.Errorf(format, args...)))
}

// path returns the path of a file that a setting names.
func (r *resolver) path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.src.Dir, name)
}

// resolve returns the configuration in a file, and adds to the file the defaults of the settings that it leaves out.
func (f *file) resolve(src Source) (Config, error) {
	r := &resolver{src: src}
	cfg := Config{Database: r.database(&f.Database.location), TLS: r.tls(f.TLS, f.MasterKey != (masterKeyFile{})), Proxies: r.proxies(&f.HTTP)}
	cfg.ReadOnly = r.readOnly(f.Database.readOnly, cfg.Database)
	cfg.Addresses = r.addresses(f, cfg.TLS != nil, len(cfg.Proxies.Trusted) > 0)
	cfg.Hosts = r.hosts("http.hosts", f.HTTP.Hosts)
	var public, dashboard string
	cfg.PublicURL, public = r.baseURL("publicUrl", f.PublicURL)
	cfg.DashboardURL, dashboard = r.baseURL("dashboardUrl", f.DashboardURL)
	if slices.ContainsFunc(cfg.Addresses, func(a Address) bool {
		return slices.Contains(a.Doors, PublicDoor) && slices.Contains(a.Doors, APIDoor)
	}) {
		cfg.DashboardURL = cmp.Or(cfg.DashboardURL, cfg.PublicURL)
	}
	for _, host := range []string{public, dashboard} {
		if host != "" && !slices.Contains(cfg.Hosts, host) {
			cfg.Hosts = append(cfg.Hosts, host)
		}
	}
	f.DashboardURL = cfg.DashboardURL
	cfg.PerOwner = int(r.count("limits.perOwner", &f.Limits.PerOwner, DefaultPerOwner, 1, MaxRate))
	cfg.PerAddress = int(r.count("limits.perAddress", &f.Limits.PerAddress, DefaultPerAddress, 1, MaxRate))
	cfg.StopDelay = r.duration("http.stopDelay", &f.HTTP.StopDelay, DefaultStopDelay, 0, MaxStopDelay)
	cfg.Log = r.log(&f.Log)
	if len(f.Chains) == 0 {
		r.fail("chains", "want at least one chain")
	}
	seen := make(map[string]bool)
	cfg.Merchants = make(map[string]access.MerchantSettings, len(f.Merchants))
	for i := range f.Merchants {
		path, m := fmt.Sprintf("merchants[%d]", i), &f.Merchants[i]
		cfg.Merchants[m.ID] = r.merchant(path, m, f.Chains)
		r.unique(seen, path+".id", m.ID)
	}
	clear(seen)
	for i := range f.Chains {
		path, c := fmt.Sprintf("chains[%d]", i), &f.Chains[i]
		cfg.Chains = append(cfg.Chains, r.chain(path, c))
		r.unique(seen, path+".chainKey", c.ChainKey)
	}
	r.distinct(cfg.Chains)
	clear(seen)
	for i := range f.Providers {
		path, p := fmt.Sprintf("providers[%d]", i), &f.Providers[i]
		cfg.Providers = append(cfg.Providers, r.provider(path, p, cfg.Chains))
		r.unique(seen, path+".name", p.Name)
	}
	cfg.WebhookAllow = r.webhookAllow(f)
	cfg.WebhookCA = r.certificates("webhooks.caFile", f.Webhooks.CAFile)
	cfg.WebhookProxy = r.webhookProxy("webhooks.proxy", f.Webhooks.Proxy)
	cfg.KeepEvents = r.retention("webhooks.retention.events", &f.Webhooks.Retention.Events)
	cfg.KeepAttempts = r.retention("webhooks.retention.attempts", &f.Webhooks.Retention.Attempts)
	cfg.Keyring = r.keyring(f.MasterKey, f.OldMasterKeys)
	cfg.OperatorKey = r.operatorKey(f.Access)
	cfg.AllowListDelay = r.duration("access.allowListDelay", &f.Access.AllowListDelay, DefaultAllowListDelay, MinAllowListDelay, MaxAllowListDelay)
	cfg.OIDC = r.oidc(&f.Access.OIDC, cfg.DashboardURL)
	cfg.SMTP = r.smtp(&f.SMTP, cfg.PublicURL)
	cfg.Screening = r.screening(&f.Screening)
	cfg.Warnings = r.warnings
	return cfg, errors.Join(r.errs...)
}

func (r *resolver) unique(seen map[string]bool, path, value string) {
	if seen[value] && value != "" {
		r.fail(path, "%q is given twice", value)
	}
	seen[value] = true
}

// number parses a whole number between least and most. It returns 0 on error.
func (r *resolver) number(path string, text scalar, least, most uint64) uint64 {
	n, err := strconv.ParseUint(string(text), 0, 64)
	isOctal := len(text) > 1 && text[0] == '0' && text[1] <= '9' // 010 would be 8
	if err != nil || isOctal || n < least || n > most {
		r.fail(path, "is %q; want a whole number of %d to %d", text, least, most)
		return 0
	}
	return n
}

// count is number for a setting with a default.
func (r *resolver) count(path string, text **scalar, byDefault, least, most uint64) uint64 {
	if *text == nil {
		*text = number(byDefault)
	}
	return r.number(path, **text, least, most)
}

func (r *resolver) address(path string, text scalar) invoice.Address {
	a, err := chain.ParseAddress(string(text))
	if err != nil {
		r.fail(path, "%w", err)
	}
	return a
}
