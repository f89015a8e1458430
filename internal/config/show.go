package config

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/quittance/quittance/internal/chain"
)

// Show returns the settings in effect for the file at path, as YAML: the file's settings, and the
// defaults of the settings that it leaves out. Secrets are shown as the file's references; if the file
// contains the URL of a database or node, parts that may hold a secret are left out. It fails like
// Load.
func Show(path string, src Source) ([]byte, error) {
	raw, err := src.File(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	cfg, err := Load(path, src)
	if err != nil {
		return nil, err
	}
	f, err := decode(raw)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = yaml.NewEncoder(&out, yaml.OmitEmpty(), yaml.IndentSequence(true)).Encode(f.withDefaults(cfg))
	return out.Bytes(), err
}

// withDefaults returns the file with the defaults of the settings that it leaves out. cfg is its
// result.
func (f file) withDefaults(cfg Config) file {
	f.Listen = cmp.Or(f.Listen, DefaultListen)
	f.DashboardURL = cfg.DashboardURL
	f.SMTP.fill(cfg.SMTP)
	f.Screening.fill(cfg.Screening)
	if cfg.OIDC != nil {
		f.Access.OIDC.Name = cfg.OIDC.Name
	}
	f.HTTP.StopDelay = scalar(cfg.StopDelay.String())
	f.Access.AllowListDelay = hours(cfg.AllowListDelay)
	f.HTTP.ForwardedHeader = cfg.Proxies.Header
	f.Limits = limitsFile{PerOwner: number(uint64(cfg.PerOwner)), PerAddress: number(uint64(cfg.PerAddress))}
	f.Log = logFile{Format: string(cfg.Log.Format), Level: strings.ToLower(cfg.Log.Level.String())}
	f.Webhooks.Retention = retentionFile{Events: days(cfg.KeepEvents), Attempts: days(cfg.KeepAttempts)}
	if f.Database.location == (location{}) {
		f.Database.url = DefaultDatabase
	}
	if !strings.HasPrefix(f.Database.url, "sqlite:") {
		f.Database.url = origin(f.Database.url)
	}
	if l := f.Database.readOnly; l != nil {
		l.url = origin(l.url)
	}
	for i := range f.Merchants {
		f.Merchants[i].fill(cfg.Merchants[f.Merchants[i].ID])
	}
	for i := range f.Providers {
		f.Providers[i].Chains, f.Providers[i].Currencies = cfg.Providers[i].Chains, cfg.Providers[i].Currencies
	}
	for i := range f.Chains {
		f.Chains[i].fill(cfg.Chains[i].Chain)
		f.Chains[i].Gasless.fill(cfg.Chains[i].Gasless)
		f.Chains[i].Latency, f.Chains[i].IdleInterval = minutes(cfg.Chains[i].Latency), minutes(cfg.Chains[i].IdleInterval)
	}
	return f
}

// hours returns a duration of whole hours as 24h, and another as Go writes it.
func hours(d time.Duration) scalar {
	if d%time.Hour == 0 {
		return scalar(fmt.Sprint(int64(d/time.Hour), "h"))
	}
	return scalar(d.String())
}

// minutes returns a duration of whole minutes as 1m, and another as Go writes it.
func minutes(d time.Duration) scalar {
	if d > 0 && d%time.Minute == 0 {
		return scalar(fmt.Sprint(int64(d/time.Minute), "m"))
	}
	return scalar(d.String())
}

// fill sets the settings of a chain to the values in its result.
func (f *chainFile) fill(c chain.Chain) {
	for i, node := range f.RPC {
		f.RPC[i].url = origin(node.url)
	}
	f.Name = cmp.Or(c.Name, c.Key)
	f.ChainID = number(c.ID)
	f.AuditCalls = number(uint64(c.AuditCallsPerMinute))
	f.CompareLogs = "off"
	if c.CompareLogs {
		f.CompareLogs = "on"
	}
	f.MaxAnswerMiB = number(uint64(cmp.Or(c.MaxAnswer, chain.MaxResponse)) >> 20)
	f.RequestCalls = number(uint64(cmp.Or(c.RequestCalls, chain.DefaultRequestCalls)))
	f.Explorer = scalar(cmp.Or(c.Explorer, "none"))
	f.Quorum = number(uint64(max(c.Quorum, 1)))
	finality := scalar(c.Finality.String())
	f.Finality = &finality
	f.Tokens = make([]tokenFile, len(c.Tokens))
	for i, t := range c.Tokens {
		f.Tokens[i] = tokenFile{Currency: t.Currency, Address: scalar(t.Address.String()), Decimals: number(uint64(t.Decimals))}
	}
	f.Sweep.fill(c.Sweep)
	f.Writer = writerFile{
		MaxFee: inBillions(c.Limits.MaxFeeWei), MinTip: inBillions(c.Limits.MinTipWei), MaxTip: inBillions(c.Limits.MaxTipWei),
		PerTx: inBillions(c.Limits.PerTxGwei), PerDay: inBillions(c.Limits.PerDayGwei),
	}
}

func number(n uint64) *scalar {
	text := scalar(strconv.FormatUint(n, 10))
	return &text
}

func days(d time.Duration) scalar { return scalar(strconv.Itoa(int(d/day)) + "d") }

// inBillions writes a number of billionths in the form that billionths reads. It leaves out 0, which
// billionths does not accept.
func inBillions(n uint64) scalar {
	if n == 0 {
		return ""
	}
	text := new(big.Rat).SetFrac(new(big.Int).SetUint64(n), big.NewInt(1_000_000_000)).FloatString(gweiDecimals)
	return scalar(strings.TrimSuffix(strings.TrimRight(text, "0"), "."))
}

// MarshalYAML writes the form that was read.
func (l location) MarshalYAML() (any, error) {
	switch {
	case l.env != "":
		return map[string]string{"urlEnv": l.env}, nil
	case l.file != "":
		return map[string]string{"urlFile": l.file}, nil
	}
	return l.url, nil
}

// MarshalYAML writes a mapping if there is a standby.
func (d databaseFile) MarshalYAML() (any, error) {
	if d.readOnly == nil {
		return d.location.MarshalYAML()
	}
	return databaseMapping{d.url, d.env, d.file, d.readOnly}, nil
}

// MarshalYAML writes a whole number as such, and any other text as text.
func (s scalar) MarshalYAML() (any, error) {
	if n, err := strconv.ParseUint(string(s), 10, 64); err == nil && strconv.FormatUint(n, 10) == string(s) {
		return n, nil
	}
	return string(s), nil
}
