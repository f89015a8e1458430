// Package config reads and checks the configuration of quittance serve.
//
// The file is YAML; JSON is accepted as its subset. What it does not know is
// refused, since a misspelt setting is worse than a missing one. Secrets are
// never in it: it names the environment variables or the files that hold them.
package config

import (
	"bytes"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"runtime"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/keyring"
)

// MaxSize is how many bytes a configuration file may have.
const MaxSize = 1 << 20

// Config is a checked configuration.
type Config struct {
	Listen string // address and port, on a loopback interface
	// Hosts are the service's public names.
	Hosts []string
	// StopDelay is how long a service that is told to stop still takes requests
	// while it calls itself not ready.
	StopDelay time.Duration
	Database  string // sqlite:PATH or postgres://…
	Merchants []Merchant
	Providers []Provider
	Chains    []Chain
	// WebhookAllow are the ranges of addresses that webhooks may reach beside
	// the public internet, and without TLS.
	WebhookAllow []netip.Prefix
	// KeepEvents and KeepAttempts are how long finished events, and the
	// attempts to deliver them, are kept.
	KeepEvents, KeepAttempts time.Duration
	// Keyring seals the secrets of endpoints that are set through the API. It is
	// nil without a master key: then none can be set.
	Keyring *keyring.Keyring
	// Warnings are what a careful operator would change.
	Warnings []string
}

// Merchant is a merchant whose invoices the service takes.
type Merchant struct {
	ID             string
	WebhookURL     string              // http or https; empty when it is set through the API
	WebhookSecret  string              // empty without a URL
	OptionalEvents []invoice.EventType // that the merchant asks for beside the five of the interface
	Tolerance      invoice.Tolerance   // how much less than an invoice's amount pays it
}

// Provider is an external transfer provider whose notices are accepted.
type Provider struct {
	Name       string            // the last segment of its endpoint's path
	Secret     string            // key of its signatures
	Chains     map[string]string // its name of a chain → chainKey
	Currencies map[string]string // its code of a currency → ours
}

// Chain is a chain that is indexed. OperatorKey signs the registry's
// transactions; it is nil where commitments are not recorded on chain.
type Chain struct {
	chain.Chain
	OperatorKey *ecdsa.PrivateKey
}

// Source is where a configuration finds what it refers to.
type Source struct {
	Env  func(name string) (string, bool)
	File func(path string) ([]byte, error)
	// Mode returns who may use a file; nil where the system does not say.
	Mode func(path string) (fs.FileMode, error)
}

// System reads the environment and the files of the process.
var System = Source{Env: os.LookupEnv, File: os.ReadFile, Mode: systemMode()}

func systemMode() func(path string) (fs.FileMode, error) {
	if runtime.GOOS == "windows" { // whose modes say nothing of others
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

// Load reads the file at path, JSON or YAML, and checks it. The error names
// every setting that is wrong, what was expected and what is there; it never
// shows a secret.
func Load(path string, src Source) (Config, error) {
	raw, err := src.File(path)
	if err != nil {
		return Config{}, fmt.Errorf("read the configuration: %w", err)
	}
	cfg, err := Parse(raw, src)
	if err != nil {
		return Config{}, fmt.Errorf("the configuration %s is not usable:\n%w", path, err)
	}
	return cfg, nil
}

// Parse is Load for bytes that were read already.
func Parse(raw []byte, src Source) (Config, error) {
	if len(raw) > MaxSize {
		return Config{}, fmt.Errorf("it has %d bytes; at most %d are read", len(raw), MaxSize)
	}
	var f file
	err := yaml.NewDecoder(bytes.NewReader(raw), yaml.Strict(), yaml.DisallowUnknownField()).Decode(&f)
	if errors.Is(err, io.EOF) {
		return Config{}, errors.New("it is empty")
	}
	if err != nil {
		return Config{}, explain(err)
	}
	return f.resolve(src)
}

// explain says where the YAML is wrong, and of which setting the value is. It
// leaves out the lines around the place, which yaml would show: they may hold
// the password of the database, or a secret that was written where it must
// not be.
func explain(err error) error {
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
		what = fmt.Sprintf("there is no setting %q here", at.Value)
	case *yaml.TypeError: // of a text: what is not one is read by resolve
		what = "want a text"
	case *yaml.UnexpectedNodeTypeError:
		if what = "want settings, each as NAME: VALUE"; wrong.Expected == ast.SequenceType {
			what = "want a list"
		}
	}
	return fmt.Errorf("  line %d, column %d: %s%s", at.Position.Line, at.Position.Column, setting, what)
}
