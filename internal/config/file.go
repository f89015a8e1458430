package config

import (
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// file is the configuration file's content.
type file struct {
	Listen    string    `yaml:"listen"`
	Doors     doorsFile `yaml:"doors,omitzero"`
	PublicURL string    `yaml:"publicUrl"`
	// DashboardURL is the URL of the API's door for people.
	DashboardURL string         `yaml:"dashboardUrl"`
	TLS          tlsFile        `yaml:"tls,omitzero"`
	HTTP         httpFile       `yaml:"http"`
	Limits       limitsFile     `yaml:"limits"`
	Log          logFile        `yaml:"log"`
	Database     databaseFile   `yaml:"database"`
	Merchants    []merchantFile `yaml:"merchants"`
	Providers    []providerFile `yaml:"providers"`
	Chains       []chainFile    `yaml:"chains"`
	Webhooks     webhooksFile   `yaml:"webhooks"`

	Access accessFile `yaml:"access"`
	SMTP   smtpFile   `yaml:"smtp,omitzero"`

	Screening screeningFile `yaml:"screening,omitzero"`

	MasterKey     masterKeyFile   `yaml:",inline"`
	OldMasterKeys []masterKeyFile `yaml:"oldMasterKeys"`
}

type httpFile struct {
	Hosts           []string `yaml:"hosts"`
	StopDelay       scalar   `yaml:"stopDelay"`
	TrustedProxies  []scalar `yaml:"trustedProxies"`
	ForwardedHeader string   `yaml:"forwardedHeader"`
}

type logFile struct {
	Format string `yaml:"format"`
	Level  string `yaml:"level"`
}

type accessFile struct {
	OperatorKeyEnv  string `yaml:"operatorKeyEnv"`
	OperatorKeyFile string `yaml:"operatorKeyFile"`
	AllowListDelay  scalar `yaml:"allowListDelay"`

	OIDC oidcFile `yaml:"oidc,omitzero"`
}

type limitsFile struct {
	PerOwner   *scalar `yaml:"perOwner"`
	PerAddress *scalar `yaml:"perAddress"`
}

type masterKeyFile struct {
	Env  string `yaml:"masterKeyEnv"`
	File string `yaml:"masterKeyFile"`
}

type webhooksFile struct {
	Allow     []scalar      `yaml:"allow"`
	CAFile    string        `yaml:"caFile"`
	Proxy     *location     `yaml:"proxy"`
	Retention retentionFile `yaml:"retention"`
}

type retentionFile struct {
	Events   scalar `yaml:"events"`
	Attempts scalar `yaml:"attempts"`
}

type webhookHeaderFile struct {
	Name      string `yaml:"name"`
	Value     string `yaml:"value"`
	ValueEnv  string `yaml:"valueEnv"`
	ValueFile string `yaml:"valueFile"`
}

type allowedFile struct {
	ChainKey string `yaml:"chainKey"`
	Address  scalar `yaml:"address"`
}

type providerFile struct {
	Name            string `yaml:"name"`
	SecretEnv       string `yaml:"secretEnv"`
	SecretFile      string `yaml:"secretFile"`
	OtherSecretEnv  string `yaml:"otherSecretEnv"`
	OtherSecretFile string `yaml:"otherSecretFile"`

	Chains     map[string]string `yaml:"chains"`
	Currencies map[string]string `yaml:"currencies"`
}

type chainFile struct {
	ChainKey        string      `yaml:"chainKey"`
	Name            string      `yaml:"name"`
	ChainID         *scalar     `yaml:"chainId"`
	RPC             []nodeFile  `yaml:"rpc"`
	MaxAnswerMiB    *scalar     `yaml:"maxAnswerMiB"`
	RequestCalls    *scalar     `yaml:"requestCallsPerSecond"`
	CompareLogs     scalar      `yaml:"compareLogs"`
	AuditCalls      *scalar     `yaml:"auditCallsPerMinute"`
	Latency         scalar      `yaml:"latency"`
	IdleInterval    scalar      `yaml:"idleInterval"`
	Quorum          *scalar     `yaml:"quorum"`
	Finality        *scalar     `yaml:"finality"`
	Tokens          []tokenFile `yaml:"tokens"`
	Registry        scalar      `yaml:"registry"`
	DepositFactory  scalar      `yaml:"depositFactory"`
	Relay           scalar      `yaml:"authorizationRelay"`
	StartBlock      *scalar     `yaml:"startBlock"`
	Explorer        scalar      `yaml:"explorer"`
	OperatorKeyEnv  string      `yaml:"operatorKeyEnv"`
	OperatorKeyFile string      `yaml:"operatorKeyFile"`
	Writer          writerFile  `yaml:"writer"`
	Gasless         gaslessFile `yaml:"gasless"`
	Sweep           sweepFile   `yaml:"sweep"`
}

type tokenFile struct {
	Currency string  `yaml:"currency"`
	Address  scalar  `yaml:"address"`
	Decimals *scalar `yaml:"decimals"`
}

// location is a URL: written out or, when it holds a secret, as {urlEnv: NAME} or
// {urlFile: PATH}.
type location struct {
	url, env, file string
}

// locationMapping is a location by reference.
type locationMapping struct {
	Env  string `yaml:"urlEnv"`
	File string `yaml:"urlFile"`
}

// UnmarshalYAML accepts the three forms.
func (l *location) UnmarshalYAML(node ast.Node) error {
	if _, ok := node.(*ast.MappingNode); !ok {
		return yaml.NodeToValue(node, &l.url)
	}
	var reference locationMapping
	err := yaml.NodeToValue(node, &reference, yaml.Strict(), yaml.DisallowUnknownField())
	l.env, l.file = reference.Env, reference.File
	return err
}

// databaseFile is a location, or a mapping with the URL as url or by reference and a standby as
// readOnly.
type databaseFile struct {
	location
	readOnly *location // nil without one
}

// databaseMapping is a databaseFile as a mapping.
type databaseMapping struct {
	URL      string    `yaml:"url,omitempty"`
	Env      string    `yaml:"urlEnv,omitempty"`
	File     string    `yaml:"urlFile,omitempty"`
	ReadOnly *location `yaml:"readOnly"`
}

// UnmarshalYAML accepts both forms.
func (d *databaseFile) UnmarshalYAML(node ast.Node) error {
	if _, ok := node.(*ast.MappingNode); !ok {
		return d.location.UnmarshalYAML(node)
	}
	var m databaseMapping
	err := yaml.NodeToValue(node, &m, yaml.Strict(), yaml.DisallowUnknownField())
	d.location, d.readOnly = location{m.URL, m.Env, m.File}, m.ReadOnly
	return err
}

// scalar is the text of a value. The resolver parses it, so that one run shows all errors. YAML would
// read an address without quotes as a number.
type scalar string

// UnmarshalYAML keeps the text unchanged.
func (s *scalar) UnmarshalYAML(node ast.Node) error {
	*s = scalar(node.GetToken().Value)
	return nil
}
