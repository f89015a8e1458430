package config

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Limits of the settings of HTTP.
const (
	// DefaultStopDelay is how long a service that is told to stop still takes
	// requests when nothing is said of it.
	DefaultStopDelay = 2 * time.Second
	// MaxStopDelay is the longest such time.
	MaxStopDelay = 5 * time.Minute
	// MaxHosts is how many public names there may be.
	MaxHosts = 64
	// MaxHost is the length of the longest one, in bytes (RFC 1035).
	MaxHost = 253
)

// stopDelay reads a duration.
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

// hosts reads the public names.
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
