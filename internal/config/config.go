// Package config reads and checks the configuration of quittance serve.
//
// The file is YAML; JSON is accepted as a subset of it. Unknown settings are refused, since a misspelt
// setting is worse than a missing one. The file holds no secrets: it names the environment variables
// or files that hold them.
package config

import (
	"bytes"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/identity"
	"github.com/quittance/quittance/internal/limits"
)

// MaxSize is how many bytes ReadFile reads of a file.
const MaxSize = 1 << 20

// Config is a checked configuration.
type Config struct {
	// Addresses are the addresses of the doors. Each door is at one address.
	Addresses []Address
	// PublicURL is the base URL under which payers reach the public door, without a
	// trailing slash; empty if it is not configured.
	PublicURL string
	// DashboardURL is the base URL under which people reach the dashboard, without a trailing slash. Unless it
	// is configured, it is PublicURL if both doors have one address, and else empty.
	DashboardURL string
	TLS          *TLS // nil without a certificate
	// Proxies are the reverse proxies that report the address of a client.
	Proxies limits.Proxies
	// PerOwner and PerAddress are how many requests a second the owner of keys may make, and a client
	// address at the public door.
	PerOwner, PerAddress int
	// Hosts are the service's public names, including the ones in PublicURL and DashboardURL.
	Hosts []string
	// StopDelay is how long a stopping service still serves requests while its
	// readiness check fails.
	StopDelay time.Duration
	Database  string // sqlite:PATH or postgres://…
	ReadOnly  string // postgres://… of a standby of the database that serves lists; may be empty
	Log       Log
	Merchants map[string]access.MerchantSettings // by id
	Providers []Provider
	Chains    []Chain
	// WebhookAllow are the address ranges that webhooks may reach in addition to
	// the public internet, with or without TLS.
	WebhookAllow []netip.Prefix
	// WebhookCA has certificates in PEM. Receivers' certificates are checked with them, in addition to the
	// certificates that the machine trusts. It may be empty.
	WebhookCA []byte
	// WebhookProxy is the proxy for webhooks; nil without one.
	WebhookProxy *url.URL
	// KeepEvents and KeepAttempts are the retention of finished events and of the
	// attempts to deliver them.
	KeepEvents, KeepAttempts time.Duration
	// Keyring seals the secrets of endpoints that are set through the API. It is nil without a master key,
	// and then the API cannot set endpoints.
	Keyring *access.Keyring
	// OperatorKey is a key of the operator, in addition to the keys in the database. It is the zero Key if
	// the configuration has no operator key.
	OperatorKey access.Key
	// OIDC is the provider that signs people in, without RedirectURL and Now; nil without one.
	OIDC *identity.Config
	// SMTP is the server that takes mails about invoices and sign-in links; nil without one.
	SMTP *SMTP
	// Screening is the hook that is asked about payers; nil without one.
	Screening *Screening
	// AllowListDelay is the delay before a change of a merchant's allowed addresses takes effect.
	AllowListDelay time.Duration
	// Warnings name settings that are valid but unwise.
	Warnings []string
}

// Provider is a transfer provider. The service accepts its notices.
type Provider struct {
	Name   string // the last segment of its endpoint's path
	Secret string // key of its signatures
	// OtherSecret is a second key for signatures while one replaces the other, or empty.
	OtherSecret string
	Chains      map[string]string // its name of a chain → chainKey
	Currencies  map[string]string // its code of a currency → ours
}

// Chain is a chain that is indexed.
type Chain struct {
	chain.Chain
	// OperatorKey signs the registry's transactions. It is nil if commitments are not recorded on chain.
	OperatorKey *ecdsa.PrivateKey
	// Gasless bounds the authorizations that the service sends for payers. It is nil if the service does
	// not send authorizations.
	Gasless *Gasless
	// Latency is how long a new block may wait until it is read. IdleInterval is the same for a chain on
	// which no payment is awaited.
	Latency, IdleInterval time.Duration
}

// Source gives access to the variables and files that a configuration names.
type Source struct {
	Dir  string // the folder of relative paths; empty: that of the process
	Env  func(name string) (string, bool)
	File func(path string) ([]byte, error)
	// Mode returns a file's permissions; nil on systems without them.
	Mode func(path string) (fs.FileMode, error)
}

// System reads the environment and the files of the process.
var System = Source{Env: os.LookupEnv, File: ReadFile, Mode: systemMode()}

// ReadFile returns the content of a file. It fails for one of more than MaxSize bytes, such as a device.
func ReadFile(path string) (raw []byte, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	raw, err = io.ReadAll(io.LimitReader(file, MaxSize+1))
	if len(raw) > MaxSize {
		return nil, fmt.Errorf("read %s: it has more than %d bytes", path, MaxSize)
	}
	return raw, err
}

// ReplaceFile writes a file that only its owner can read, durably. A file at path stays unless the new one is complete. A
// path that is no regular file, such as /dev/stdout, is written to.
func ReplaceFile(path string, content []byte) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, content, 0)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return err
}

func systemMode() func(path string) (fs.FileMode, error) {
	if runtime.GOOS == "windows" { // modes do not show other users' access
		return nil
	}
	return func(path string) (fs.FileMode, error) {
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		return info.Mode(), nil
	}
}

// Load reads and checks the file at path, JSON or YAML. Relative paths in it are relative to its folder.
// The error names every wrong setting with its value and what was expected, and never shows a secret.
func Load(path string, src Source) (Config, error) {
	_, cfg, err := load(path, src)
	return cfg, err
}

// load is Load. It also returns the content of the file, with the defaults of the settings that it leaves out.
func load(path string, src Source) (f file, cfg Config, err error) {
	raw, err := src.File(path)
	if err != nil {
		return f, Config{}, fmt.Errorf("read the configuration: %w", err)
	}
	src.Dir = filepath.Dir(path)
	if f, err = decode(raw); err == nil {
		cfg, err = f.resolve(src)
	}
	if err != nil {
		return f, Config{}, fmt.Errorf("the configuration %s is not usable:\n%w", path, err)
	}
	return f, cfg, nil
}

// Parse is Load for the content of a file.
func Parse(raw []byte, src Source) (Config, error) {
	f, err := decode(raw)
	if err != nil {
		return Config{}, err
	}
	return f.resolve(src)
}

// decode parses the content of a file. It refuses unknown settings.
func decode(raw []byte) (f file, err error) {
	raw = bytes.TrimPrefix(raw, []byte("\ufeff")) // editors on Windows write a byte order mark
	decoder := yaml.NewDecoder(bytes.NewReader(raw), yaml.Strict(), yaml.DisallowUnknownField())
	err = decoder.Decode(&f)
	if errors.Is(err, io.EOF) {
		return file{}, errors.New("it is empty")
	}
	if err != nil {
		return file{}, explain(raw, err)
	}
	var more any
	if err := decoder.Decode(&more); more != nil || err != nil && !errors.Is(err, io.EOF) {
		return file{}, errors.New("it has a second document behind ---; write all settings into one")
	}
	return f, nil
}

// explain returns an error with the position and setting of a fault in the YAML. It leaves out the
// surrounding lines, which yaml.Error shows, because they may hold a password or a misplaced secret.
func explain(raw []byte, err error) error {
	var wrong yaml.Error
	if !errors.As(err, &wrong) || wrong.GetToken() == nil {
		return err
	}
	at, setting := wrong.GetToken(), ""
	if colon := at.Prev; colon != nil && colon.Type == token.MappingValueType && colon.Prev != nil {
		setting = colon.Prev.Value + ": "
	}
	what := wrong.GetMessage()
	switch wrong := wrong.(type) {
	case *yaml.UnknownFieldError:
		what = fmt.Sprintf("there is no setting %q here", at.Value) + suggest(raw, at)
	case *yaml.TypeError: // only texts have types here; resolve parses the rest
		what = "want a text"
	case *yaml.UnexpectedNodeTypeError:
		if what = "want settings, each as NAME: VALUE"; wrong.Expected == ast.SequenceType {
			what = "want a list"
		}
	}
	return fmt.Errorf("  line %d, column %d: %s%s", at.Position.Line, at.Position.Column, setting, what)
}
