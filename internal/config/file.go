package config

import (
	"fmt"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"github.com/quittance/quittance/internal/chain"
)

// file is the configuration as it is written.
type file struct {
	Listen    string         `yaml:"listen"`
	Database  string         `yaml:"database"`
	Merchants []merchantFile `yaml:"merchants"`
	Providers []providerFile `yaml:"providers"`
	Chains    []chainFile    `yaml:"chains"`
}

type merchantFile struct {
	ID                string `yaml:"id"`
	WebhookURL        string `yaml:"webhookUrl"`
	WebhookSecretEnv  string `yaml:"webhookSecretEnv"`
	WebhookSecretFile string `yaml:"webhookSecretFile"`
}

type providerFile struct {
	Name       string            `yaml:"name"`
	SecretEnv  string            `yaml:"secretEnv"`
	SecretFile string            `yaml:"secretFile"`
	Chains     map[string]string `yaml:"chains"`
	Currencies map[string]string `yaml:"currencies"`
}

type chainFile struct {
	ChainKey        string        `yaml:"chainKey"`
	ChainID         uint64        `yaml:"chainId"`
	RPC             []string      `yaml:"rpc"`
	Finality        *finalityText `yaml:"finality"`
	Tokens          []tokenFile   `yaml:"tokens"`
	Registry        addressText   `yaml:"registry"`
	StartBlock      *uint64       `yaml:"startBlock"`
	OperatorKeyEnv  string        `yaml:"operatorKeyEnv"`
	OperatorKeyFile string        `yaml:"operatorKeyFile"`
}

type tokenFile struct {
	Currency string      `yaml:"currency"`
	Address  addressText `yaml:"address"`
	Decimals *int        `yaml:"decimals"`
}

// addressText is an address as it is written. YAML takes one without quotes
// for a number, and one with enough leading zeros for a number that it can
// hold.
type addressText string

// UnmarshalYAML takes the text as it stands.
func (a *addressText) UnmarshalYAML(node ast.Node) error {
	*a = addressText(node.GetToken().Value)
	return nil
}

// finalityText is a number of blocks or a text, as chain.ParseFinality reads
// it.
type finalityText struct{ chain.Finality }

// UnmarshalYAML reads the number or the text.
func (f *finalityText) UnmarshalYAML(decode func(any) error) error {
	var v any
	if err := decode(&v); err != nil {
		return err
	}
	var text string
	switch v := v.(type) {
	case string:
		text = v
	case uint64:
		text = strconv.FormatUint(v, 10)
	default:
		return fmt.Errorf("finality is %v; want a number of blocks, safe, finalized, or a tag and a number such as finalized+128", v)
	}
	var err error
	f.Finality, err = chain.ParseFinality(text)
	return err
}
