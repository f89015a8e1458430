package config

import (
	"cmp"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// Defaults of settings that may be left out.
const (
	DefaultListen   = "127.0.0.1:8080"
	DefaultDatabase = "sqlite:quittance.db"
)

// defaultDecimals is how many a token has that does not say: those of USDC.
const defaultDecimals = 6

// Limits of a configuration. Its size has one too, MaxSize.
const (
	// MaxDecimals is how many decimals a token may have.
	MaxDecimals = 36
	// MaxNodes is how many nodes a chain may have.
	MaxNodes = 16
	// MaxAnswerMiB is how large an answer of a node may be allowed to be.
	MaxAnswerMiB = 1024
	// MaxQuorum is the largest quorum that a chain may ask for.
	MaxQuorum = 2
)

// resolver collects what is wrong while a file becomes a Config, so that one
// run shows all of it.
type resolver struct {
	src      Source
	errs     []error
	warnings []string
}

func (r *resolver) fail(path, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("  %s: %w", path, fmt.Errorf(format, args...)))
}

func (f file) resolve(src Source) (Config, error) {
	r := &resolver{src: src}
	cfg := Config{Listen: cmp.Or(f.Listen, DefaultListen), Database: r.database(f.Database)}
	if err := CheckLoopback(cfg.Listen); err != nil {
		r.fail("listen", "%w", err)
	}
	cfg.Hosts = r.hosts("http.hosts", f.HTTP.Hosts)
	cfg.StopDelay = r.stopDelay("http.stopDelay", f.HTTP.StopDelay)
	if len(f.Merchants) == 0 {
		r.fail("merchants", "want at least one merchant")
	}
	if len(f.Chains) == 0 {
		r.fail("chains", "want at least one chain")
	}
	seen := make(map[string]bool)
	for i, m := range f.Merchants {
		path := fmt.Sprintf("merchants[%d]", i)
		cfg.Merchants = append(cfg.Merchants, r.merchant(path, m))
		r.unique(seen, path+".id", m.ID)
	}
	clear(seen)
	for i, c := range f.Chains {
		path := fmt.Sprintf("chains[%d]", i)
		cfg.Chains = append(cfg.Chains, r.chain(path, c))
		r.unique(seen, path+".chainKey", c.ChainKey)
	}
	r.distinct(cfg.Chains)
	clear(seen)
	for i, p := range f.Providers {
		path := fmt.Sprintf("providers[%d]", i)
		cfg.Providers = append(cfg.Providers, r.provider(path, p, cfg.Chains))
		r.unique(seen, path+".name", p.Name)
	}
	for i, text := range f.Webhooks.Allow {
		cfg.WebhookAllow = append(cfg.WebhookAllow, r.prefix(fmt.Sprintf("webhooks.allow[%d]", i), text))
	}
	cfg.KeepEvents = r.retention("webhooks.retention.events", f.Webhooks.Retention.Events)
	cfg.KeepAttempts = r.retention("webhooks.retention.attempts", f.Webhooks.Retention.Attempts)
	cfg.Keyring = r.keyring(f.MasterKey, f.OldMasterKeys)
	cfg.Warnings = r.warnings
	return cfg, errors.Join(r.errs...)
}

func (r *resolver) unique(seen map[string]bool, path, value string) {
	if seen[value] && value != "" {
		r.fail(path, "%q stands there twice", value)
	}
	seen[value] = true
}

// distinct refuses chains of one chain id, unless they have one key, which is
// another fault.
func (r *resolver) distinct(chains []Chain) {
	for i, c := range chains {
		first := slices.IndexFunc(chains[:i], func(d Chain) bool { return d.ID == c.ID && d.Key != c.Key })
		if first < 0 || c.ID == 0 {
			continue
		}
		if err := chain.CheckDistinct([]chain.Chain{chains[first].Chain, c.Chain}); err != nil {
			r.fail(fmt.Sprintf("chains[%d].chainId", i), "%w", err)
		}
	}
}

func (r *resolver) database(l location) string {
	if l == (location{}) {
		return DefaultDatabase
	}
	url, ok := r.location("database", l)
	if !ok {
		return ""
	}
	switch kind := scheme(url); {
	case kind == "sqlite", kind == "postgres", kind == "postgresql":
		if l.url != "" && holdsPassword(url) {
			r.fail("database", "holds a password; %s", insteadOfURL)
		}
	case kind == "", l.url == "":
		r.fail("database", "names no kind of database; want sqlite:PATH or postgres://…")
	default:
		r.fail("database", "is %s:…; want sqlite:PATH or postgres://…", kind)
	}
	return url
}

func (r *resolver) merchant(path string, m merchantFile) Merchant {
	if !invoice.ValidMerchantID(m.ID) {
		r.fail(path+".id", "is %q; want 1 to %d characters of A-Z, a-z, 0-9, '_', '.' and '-'", m.ID, invoice.MaxMerchantID)
	}
	out := Merchant{ID: m.ID, WebhookURL: m.WebhookURL}
	switch secretless := m.WebhookSecretEnv == "" && m.WebhookSecretFile == ""; {
	case m.WebhookURL != "":
		if err := CheckWebhookURL(m.WebhookURL); err != nil {
			r.fail(path+".webhookUrl", "%w", err)
		}
		out.WebhookSecret = r.webhookSecret(path+".webhookSecret", m.WebhookSecretEnv, m.WebhookSecretFile)
	case !secretless:
		r.fail(path+".webhookUrl", "is missing, but the secret is there; leave out both when the URL is set through the API, which makes the secret")
	}
	for i, name := range m.OptionalEvents {
		if typ := invoice.EventType(name); slices.Contains(invoice.OptionalEventTypes, typ) {
			out.OptionalEvents = append(out.OptionalEvents, typ)
		} else {
			r.fail(fmt.Sprintf("%s.optionalEvents[%d]", path, i), "is %q; want %s", name, invoice.EventUnattributed)
		}
	}
	if m.Tolerance != "" {
		var err error
		if out.Tolerance, err = invoice.ParseTolerance(string(m.Tolerance)); err != nil {
			r.fail(path+".tolerance", "is %q; %w", m.Tolerance, err)
		}
	}
	return out
}

func (r *resolver) provider(path string, p providerFile, chains []Chain) Provider {
	out := Provider{
		Name: p.Name, Secret: r.webhookSecret(path+".secret", p.SecretEnv, p.SecretFile),
		Chains: p.Chains, Currencies: p.Currencies,
	}
	if p.Name == "" || url.PathEscape(p.Name) != p.Name {
		r.fail(path+".name", "is %q; want a name that can stand in a path, such as circle", p.Name)
	}
	if out.Chains == nil {
		out.Chains = CircleChains()
	} else {
		for _, name := range slices.Sorted(maps.Keys(out.Chains)) {
			key := out.Chains[name]
			if !slices.ContainsFunc(chains, func(c Chain) bool { return c.Key == key }) {
				r.fail(path+".chains."+name, "is %q, which is none of the chains", key)
			}
		}
	}
	if out.Currencies == nil {
		out.Currencies = CircleCurrencies()
	}
	return out
}

func (r *resolver) chain(path string, f chainFile) Chain {
	c, builtin := chain.Lookup(f.ChainKey)
	if f.ChainKey == "" {
		r.fail(path+".chainKey", "is missing")
	}
	c.Key = f.ChainKey
	switch {
	case f.ChainID != nil:
		id := r.number(path+".chainId", *f.ChainID, 1, math.MaxInt64)
		if builtin && c.ID != id && id != 0 {
			r.fail(path+".chainId", "is %d; %s has %d", id, f.ChainKey, c.ID)
		}
		c.ID = id
	case !builtin:
		r.fail(path+".chainId", "is missing; %q is not built in", f.ChainKey)
	}
	if f.StartBlock != nil {
		start := r.number(path+".startBlock", *f.StartBlock, 0, math.MaxInt64)
		c.StartBlock = &start
	}
	c.RPC = r.nodes(path+".rpc", f.RPC)
	if f.MaxAnswerMiB != nil {
		c.MaxAnswer = int64(r.number(path+".maxAnswerMiB", *f.MaxAnswerMiB, 1, MaxAnswerMiB)) << 20
	}
	c.Quorum = r.quorum(path, f)
	switch {
	case f.Finality != nil:
		var err error
		if c.Finality, err = chain.ParseFinality(string(*f.Finality)); err != nil {
			r.fail(path+".finality", "%w", err)
		}
	case !builtin:
		r.fail(path+".finality", "is missing; want a number of blocks, safe or finalized")
	}
	if len(f.Tokens) > 0 {
		c.Tokens = r.tokens(path+".tokens", f.Tokens, c)
	}
	if len(c.Tokens) == 0 {
		r.fail(path+".tokens", "want at least one token")
	}
	if f.Registry != "" {
		c.Registry = r.address(path+".registry", f.Registry)
	}
	c.Limits = r.purse(path+".writer", f.Writer, c.Limits)
	out := Chain{Chain: c}
	if f.OperatorKeyEnv != "" || f.OperatorKeyFile != "" {
		if f.Registry == "" {
			r.fail(path+".registry", "is missing; an operator key needs the registry that it operates (see quittance chain deploy)")
		}
		out.OperatorKey = r.key(path+".operatorKey", f.OperatorKeyEnv, f.OperatorKeyFile)
	}
	return out
}

// quorum returns how many nodes must confirm a payment, and 0 when the file does
// not say. The key's former name, agree, still counts, with a warning.
func (r *resolver) quorum(path string, f chainFile) int {
	key, given := path+".quorum", f.Quorum
	if f.Agree != nil {
		if given != nil {
			r.fail(path+".agree", "is the former name of quorum, which is set as well; remove it")
			return 0
		}
		key, given = path+".agree", f.Agree
		r.warnings = append(r.warnings, key+": is called quorum now; rename it")
	}
	if given == nil {
		return 0
	}
	n := int(r.number(key, *given, 1, MaxQuorum))
	if n > len(f.RPC) {
		r.fail(key, "is %d, but rpc names %d; want at least as many nodes", n, len(f.RPC))
	}
	return n
}

// nodes reads the URLs of a chain's nodes. One that stands there twice would be
// asked to confirm its own word.
func (r *resolver) nodes(path string, files []location) []string {
	if n := len(files); n < 1 || n > MaxNodes {
		r.fail(path, "has %d; want 1 to %d URLs of nodes", n, MaxNodes)
	}
	var urls []string
	for i, f := range files {
		at := fmt.Sprintf("%s[%d]", path, i)
		url, ok := r.location(at, f)
		if !ok {
			continue
		}
		switch err := CheckNodeURL(url); {
		case err != nil && f.url == "": // err would show what stands there
			r.fail(at, "refers to what is no URL that begins with http, https, ws or wss")
		case err != nil:
			r.fail(at, "%w", err)
		case f.url != "" && holdsAccount(url):
			r.fail(at, "holds an account; %s", insteadOfURL)
		}
		if slices.Contains(urls, url) {
			r.fail(at, "is the same as one before it")
		}
		urls = append(urls, url)
	}
	return urls
}

// tokens reads the tokens of a chain, of which those that are built in are
// known.
func (r *resolver) tokens(path string, files []tokenFile, known chain.Chain) []chain.Token {
	var tokens []chain.Token
	currencies, addresses := make(map[string]bool), make(map[string]bool)
	for i, f := range files {
		at := fmt.Sprintf("%s[%d]", path, i)
		if f.Currency == "" {
			r.fail(at+".currency", "is missing")
		}
		r.unique(currencies, at+".currency", f.Currency)
		r.unique(addresses, at+".address", strings.ToLower(string(f.Address)))
		t := chain.Token{Currency: f.Currency, Address: r.address(at+".address", f.Address), Decimals: defaultDecimals}
		if f.Decimals != nil {
			t.Decimals = int(r.number(at+".decimals", *f.Decimals, 0, MaxDecimals))
		}
		if same, ok := known.TokenAt(t.Address); ok {
			t.Movements = same.Movements
		}
		tokens = append(tokens, t)
	}
	return tokens
}

func (r *resolver) address(path string, text scalar) invoice.Address {
	a, err := chain.ParseAddress(string(text))
	if err != nil {
		r.fail(path, "%w", err)
	}
	return a
}

// number reads a whole number between two others. It returns 0 when it is none.
func (r *resolver) number(path string, text scalar, least, most uint64) uint64 {
	n, err := strconv.ParseUint(string(text), 0, 64)
	if err != nil || n < least || n > most {
		r.fail(path, "is %q; want a whole number of %d to %d", text, least, most)
		return 0
	}
	return n
}

// location reads a URL. It reports whether there is one.
func (r *resolver) location(path string, l location) (url string, ok bool) {
	if l.env == "" && l.file == "" {
		return l.url, true
	}
	url = r.secret(path+".url", l.env, l.file)
	return url, url != ""
}

// secret reads a secret from where the settings NAMEEnv or NAMEFile say.
func (r *resolver) secret(path, env, file string) string {
	var value string
	switch {
	case (env == "") == (file == ""):
		r.fail(path, "want either %sEnv, the name of an environment variable, or %sFile, the path of a file", last(path), last(path))
		return ""
	case env != "":
		var ok bool
		if value, ok = r.src.Env(env); !ok {
			r.fail(path+"Env", "the environment variable %s is not set", env)
			return ""
		}
	default:
		raw, err := r.src.File(file)
		if err != nil {
			r.fail(path+"File", "%w", err)
			return ""
		}
		r.checkMode(path+"File", file)
		value = strings.TrimRight(string(raw), "\r\n")
	}
	if value == "" {
		r.fail(path, "is empty")
	}
	return value
}

// checkMode looks at who else may use a secret's file. That others may write it
// is refused: they could put a secret of theirs in its place. That they may read
// it is a warning, since containers mount secrets so.
func (r *resolver) checkMode(path, file string) {
	if r.src.Mode == nil {
		return
	}
	mode, err := r.src.Mode(file)
	switch {
	case err != nil:
		r.fail(path, "%w", err)
	case mode.Perm()&othersWrite != 0:
		r.fail(path, "others may write %s, which has mode %#o; run chmod 600 on it", file, mode.Perm())
	case mode.Perm()&othersRead != 0:
		r.warnings = append(r.warnings, fmt.Sprintf("%s: others may read %s, which has mode %#o; run chmod 600 on it", path, file, mode.Perm()))
	}
}

// Bits of a file's mode: who besides its owner may write and read it.
const (
	othersWrite fs.FileMode = 0o022
	othersRead  fs.FileMode = 0o044
)

func (r *resolver) key(path, env, file string) *ecdsa.PrivateKey {
	before := len(r.errs)
	text := r.secret(path, env, file)
	if len(r.errs) > before {
		return nil
	}
	key, err := ParseKey(text)
	if err != nil {
		r.fail(path, "%w", err)
	}
	return key
}

func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
