package config

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/quittance/quittance/internal/chain"
)

// Limits of the settings of a node.
const (
	// MaxCallsPerSecond bounds the setting of that name.
	MaxCallsPerSecond = 10_000
	// MaxNodeHeaders is the largest number of headers for requests to a node.
	MaxNodeHeaders = 10
	// MaxHeaderValue is the greatest length of a header's value, in bytes.
	MaxHeaderValue = 4096
)

// nodeFile is a node: its URL, or a mapping of its URL, which can be a reference, and its settings.
type nodeFile struct {
	location
	known nodeSettings
}

type nodeSettings struct {
	MaxBatch *scalar      `yaml:"maxBatch,omitempty"`
	MaxRange *scalar      `yaml:"maxRange,omitempty"`
	Headers  []headerFile `yaml:"headers,omitempty"`
	Calls    *scalar      `yaml:"callsPerSecond,omitempty"`
}

// headerFile is a header of the requests to a node. Its value is given by reference.
type headerFile struct {
	Name string `yaml:"name"`
	Env  string `yaml:"valueEnv,omitempty"`
	File string `yaml:"valueFile,omitempty"`
}

// nodeMapping is a nodeFile as a mapping.
type nodeMapping struct {
	URL   string       `yaml:"url,omitempty"`
	Env   string       `yaml:"urlEnv,omitempty"`
	File  string       `yaml:"urlFile,omitempty"`
	Known nodeSettings `yaml:",inline"`
}

// UnmarshalYAML accepts both forms.
func (n *nodeFile) UnmarshalYAML(node ast.Node) error {
	if _, ok := node.(*ast.MappingNode); !ok {
		return n.location.UnmarshalYAML(node)
	}
	var m nodeMapping
	err := yaml.NodeToValue(node, &m, yaml.Strict(), yaml.DisallowUnknownField())
	n.location, n.known = location{m.URL, m.Env, m.File}, m.Known
	return err
}

// MarshalYAML writes a mapping if there is more than the location.
func (n nodeFile) MarshalYAML() (any, error) {
	if n.known.MaxBatch == nil && n.known.MaxRange == nil && n.known.Headers == nil && n.known.Calls == nil {
		return n.location.MarshalYAML()
	}
	return nodeMapping{n.url, n.env, n.file, n.known}, nil
}

// nodes reads the URLs and properties of a chain's nodes. Duplicates are refused, because a node would
// be asked to confirm its own answers.
func (r *resolver) nodes(path string, files []nodeFile) (urls []string, settings []chain.NodeSettings) {
	if n := len(files); n < 1 || n > MaxNodes {
		r.fail(path, "has %d; want 1 to %d URLs of nodes", n, MaxNodes)
	}
	for i, f := range files {
		at := fmt.Sprintf("%s[%d]", path, i)
		url, ok := r.nodeURL(at, f)
		if !ok {
			continue
		}
		if slices.Contains(urls, url) {
			r.fail(at, "is the same as one before it")
		}
		urls, settings = append(urls, url), append(settings, r.nodeSettings(at, f.known))
	}
	return urls, settings
}

// nodeURL reads the URL of a node.
func (r *resolver) nodeURL(at string, f nodeFile) (url string, ok bool) {
	if f.url != "" && (f.env != "" || f.file != "") {
		r.fail(at, "want one of url, urlEnv and urlFile")
		return "", false
	}
	url, ok = r.location(at, f.location)
	if !ok {
		return "", false
	}
	switch err := CheckNodeURL(url); {
	case err != nil && f.url == "": // err would show the secret
		r.fail(at, "refers to what is no URL that begins with http or https")
	case err != nil:
		r.fail(at, "%w", err)
	case f.url != "" && holdsAccount(url):
		r.fail(at, "holds an account; %s", insteadOfURL)
	}
	return url, true
}

// nodeSettings reads the properties of a node.
func (r *resolver) nodeSettings(at string, f nodeSettings) (s chain.NodeSettings) {
	if f.MaxBatch != nil {
		s.MaxBatch = r.number(at+".maxBatch", *f.MaxBatch, 1, chain.MaxBatch)
	}
	if f.MaxRange != nil {
		s.MaxRange = r.number(at+".maxRange", *f.MaxRange, 1, chain.MaxRange)
	}
	if f.Calls != nil {
		s.CallsPerSecond = r.number(at+".callsPerSecond", *f.Calls, 1, MaxCallsPerSecond)
	}
	s.Headers = r.nodeHeaders(at, f.Headers)
	return s
}

// nodeHeaders reads the headers of the requests to a node, or nil without configured headers.
func (r *resolver) nodeHeaders(at string, configured []headerFile) (headers http.Header) {
	if n := len(configured); n > MaxNodeHeaders {
		r.fail(at+".headers", "has %d; want at most %d", n, MaxNodeHeaders)
	}
	for i, h := range configured {
		path := fmt.Sprintf("%s.headers[%d]", at, i)
		name := http.CanonicalHeaderKey(h.Name)
		switch {
		case h.Name == "" || strings.Trim(h.Name, headerChars) != "":
			r.fail(path+".name", "is %.80q; want the name of a header, of letters, digits and hyphens", h.Name)
		case slices.Contains(ownHeaders, name) || strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "Sec-"):
			r.fail(path+".name", "is %s, which the service or its connection sets", name)
		case headers.Get(name) != "":
			r.fail(path+".name", "is %s, as one before it", name)
		}
		value := r.secret(path+".value", h.Env, h.File)
		if len(value) > MaxHeaderValue || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) {
			r.fail(path+".value", "is refused; want at most %d printable characters of ASCII", MaxHeaderValue)
			continue
		}
		if headers == nil {
			headers = http.Header{}
		}
		headers.Set(name, value)
	}
	return headers
}

// headerChars are the characters of a header's name.
const headerChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"

// ownHeaders are headers that the settings may not set.
var ownHeaders = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host",
	"Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}
