package config

import (
	"net/netip"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// Limits of the settings of webhooks.
const (
	// DefaultRetention is how long events and their attempts are kept by default.
	DefaultRetention = 30 * day
	// MinRetention and MaxRetention bound the retention. A delivery is retried for
	// a day, and its result stays visible for at least another.
	MinRetention = 2 * day
	MaxRetention = 3650 * day
)

// retention parses a number of days, such as 30d.
func (r *resolver) retention(path string, text scalar) time.Duration {
	if text == "" {
		return DefaultRetention
	}
	digits, ok := strings.CutSuffix(string(text), "d")
	days, err := strconv.ParseUint(digits, 10, 16)
	kept := time.Duration(days) * day
	if !ok || err != nil || kept < MinRetention || kept > MaxRetention {
		r.fail(path, "is %q; want a number of days of %dd to %dd", text, MinRetention/day, MaxRetention/day)
	}
	return kept
}

// prefix parses an address range in CIDR notation (RFC 4632) or one address.
func (r *resolver) prefix(path string, text scalar) netip.Prefix {
	p, err := netip.ParsePrefix(string(text))
	if a, one := netip.ParseAddr(string(text)); one == nil && a.Zone() == "" {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	if err != nil || p != p.Masked() {
		r.fail(path, "is %q; want a range of addresses such as 10.1.0.0/16 or fd00::/8, with zeros behind its prefix, or one address", text)
	}
	return p
}
