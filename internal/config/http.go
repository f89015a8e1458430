package config

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Limits of the settings of HTTP.
const (
	// DefaultStopDelay is how long a stopping service still serves requests by
	// default.
	DefaultStopDelay = 2 * time.Second
	// MaxStopDelay bounds that setting.
	MaxStopDelay = 5 * time.Minute
	// MaxHosts is how many public names there may be.
	MaxHosts = 64
	// MaxHost is the greatest length of a name, in bytes (RFC 1035).
	MaxHost = 253
)

// stopDelay parses a duration.
func (r *resolver) stopDelay(path string, text scalar) time.Duration {
	if text == "" {
		return DefaultStopDelay
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 || d > MaxStopDelay {
		r.fail(path, "is %q; want a duration of 0s to %s, such as 10s", text, MaxStopDelay)
	}
	return d
}

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

// CheckLoopback refuses an address and port that is not of a loopback interface,
// because the API has no access keys.
func CheckLoopback(listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("is %q; want an address and a port such as %s", listen, DefaultListen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("is %q; want a port of 0 to %d", listen, math.MaxUint16)
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || (err == nil && ip.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("is %q, which others can reach; want a loopback address such as %s, since the API has no access keys yet", listen, DefaultListen)
}
