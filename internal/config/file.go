package config

import "github.com/goccy/go-yaml/ast"

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
	ChainKey        string      `yaml:"chainKey"`
	ChainID         *scalar     `yaml:"chainId"`
	RPC             []string    `yaml:"rpc"`
	Finality        *scalar     `yaml:"finality"`
	Tokens          []tokenFile `yaml:"tokens"`
	Registry        scalar      `yaml:"registry"`
	StartBlock      *scalar     `yaml:"startBlock"`
	OperatorKeyEnv  string      `yaml:"operatorKeyEnv"`
	OperatorKeyFile string      `yaml:"operatorKeyFile"`
}

type tokenFile struct {
	Currency string  `yaml:"currency"`
	Address  scalar  `yaml:"address"`
	Decimals *scalar `yaml:"decimals"`
}

// scalar is a value as it is written, to be read with the others, so that one
// run shows all that are wrong. An address without quotes is a number to YAML,
// and one with enough leading zeros a number that it can hold.
type scalar string

// UnmarshalYAML takes the text as it stands.
func (s *scalar) UnmarshalYAML(node ast.Node) error {
	*s = scalar(node.GetToken().Value)
	return nil
}
