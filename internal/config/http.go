package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/chain"
)

// Limits of the settings of HTTP.
const (
	// DefaultStopDelay is the default time for which a stopping service still serves requests.
	DefaultStopDelay = 2 * time.Second
	// MaxStopDelay bounds that setting. With 20 s for requests and 15 s for deliveries a stop takes 60 s at most, after
	// which systemd, Compose and Kubernetes kill the process.
	MaxStopDelay = 25 * time.Second
	// MaxHosts is the largest number of public names.
	MaxHosts = 64
	// MaxHost is the greatest length of a name, in bytes (RFC 1035).
	MaxHost = 253
)

// Limits of requests a second.
const (
	// DefaultPerOwner is how many requests a second an owner of keys may make by default.
	DefaultPerOwner = 500
	// DefaultPerAddress is how many requests a client address may make at the public
	// door by default.
	DefaultPerAddress = 50
	// MaxRate bounds these settings.
	MaxRate = 1_000_000
)

// hostPattern is a host name (RFC 1123) or an IPv4 address.
var hostPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

// hosts checks the public names.
func (r *resolver) hosts(path string, names []string) []string {
	if n := len(names); n > MaxHosts {
		r.fail(path, "has %d names; want at most %d", n, MaxHosts)
		return nil
	}
	out := make([]string, len(names))
	seen := make(map[string]bool)
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", path, i)
		out[i] = strings.ToLower(name)
		if len(name) > MaxHost || !hostPattern.MatchString(out[i]) {
			r.fail(at, "is %.80q; want a host name such as pay.example.com, without scheme, port and path", name)
		}
		r.unique(seen, at, out[i])
	}
	return out
}

// baseURL checks the URL of a door and returns it without a trailing slash, with its host name.
func (r *resolver) baseURL(path, text string) (base, host string) {
	if text == "" {
		return "", ""
	}
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		r.fail(path, "is %.80q; want a scheme and a host such as https://pay.example.com, without a path", origin(text))
		return "", ""
	}
	host = strings.ToLower(u.Hostname())
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || !IsLoopback(host)):
		r.fail(path, "is %.80q; want https://, or http:// and a loopback name", origin(text))
	case len(host) > MaxHost || !hostPattern.MatchString(host):
		r.fail(path, "is %.80q; want a host name such as pay.example.com", origin(text))
	default:
		if err := chain.CheckURL(text); err != nil {
			r.fail(path, "%w", err)
		}
	}
	// Browsers leave out the scheme's own port, and an origin with it would never equal theirs.
	return u.Scheme + "://" + strings.TrimSuffix(strings.ToLower(u.Host), map[string]string{"https": ":443", "http": ":80"}[u.Scheme]), host
}
