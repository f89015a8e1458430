package invoice

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Limits of a merchant's list of return hosts.
const (
	MaxReturnHosts = 50
	MaxHostName    = 253 // bytes
)

// hostName is a host name in lower case without a trailing dot.
var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// numericHost is a host that browsers read as an IPv4 address or refuse: 127.1 and
// 0x7f000001 are 127.0.0.1.
var numericHost = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)$`)

// isReturnHost reports whether the text is a host name in lower case or an IP address.
func isReturnHost(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Zone() == "" && a.String() == host
	}
	return len(host) <= MaxHostName && hostName.MatchString(host) && !numericHost.MatchString(host)
}

// isLoopbackHost reports whether browsers send a request for the host to their own
// computer.
func isLoopbackHost(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && (a.IsLoopback() || a.Unmap().IsUnspecified())
}

// isPort reports whether the text is a port or empty.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && n > 0
}

// parseReturnURL parses the URL of a link on the checkout page. It accepts only URLs that every browser reads as
// net/url does: visible ASCII characters without a backslash, an authority without user information, and no fragment.
// The scheme is https, or http for a loopback host. The error is a *FieldError.
func parseReturnURL(field, text string) (*url.URL, error) {
	if len(text) > MaxReturnURL {
		return nil, fieldErrorf(field, "must be at most %d bytes; it has %d", MaxReturnURL, len(text))
	}
	if strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune("\\\"<>^`{|}", c) }) {
		return nil, fieldErrorf(field, "must be a URL in visible ASCII characters; encode others as %%XX, and a host name as xn--…")
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Opaque != "" || !strings.HasPrefix(text, u.Scheme+"://") || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fieldErrorf(field, "must be a URL that begins with https:// and a host name")
	}
	switch {
	case u.User != nil:
		return nil, fieldErrorf(field, "must not contain a user name or password")
	case strings.Contains(text, "#"):
		return nil, fieldErrorf(field, "must not have a fragment")
	}
	return u, checkAuthority(field, u)
}

// checkAuthority checks the host and the port of a return URL, and that it is https unless
// the host is a loopback one. The error is a *FieldError.
func checkAuthority(field string, u *url.URL) error {
	switch host := u.Hostname(); {
	case !isReturnHost(host) || strings.Contains(u.Host, "%") || strings.HasSuffix(u.Host, ":"):
		return fieldErrorf(field, "must have a host name in lower case or an IP address; it has %.80q", u.Host)
	case !isPort(u.Port()):
		return fieldErrorf(field, "must have a port from 1 to 65535; it has %.80q", u.Port())
	case u.Scheme == "http" && !isLoopbackHost(host):
		return fieldErrorf(field, "must begin with https://; http:// is for localhost alone")
	}
	return nil
}

// CheckReturnURLs returns a *FieldError if the merchant does not allow the host of a return URL. A list allows only its
// hosts. Without a list, every host is allowed with https. The URLs must have passed Details.Check.
func (m Merchant) CheckReturnURLs(d Details) error {
	for _, f := range []struct{ field, text string }{{"returnUrl", d.ReturnURL}, {"cancelUrl", d.CancelURL}} {
		if f.text == "" {
			continue
		}
		u, err := parseReturnURL(f.field, f.text)
		if err != nil {
			return err
		}
		host := u.Hostname()
		switch {
		case slices.Contains(m.ReturnHosts, host), isLoopbackHost(host) && m.LoopbackReturns:
		case len(m.ReturnHosts) > 0:
			return fieldErrorf(f.field, "must have a host on the merchant's list returnHosts; %.80s is not on it", host)
		case isLoopbackHost(host):
			return fieldErrorf(f.field, "must not lead to the payer's own computer, unless the merchant's list returnHosts has %.80s", host)
		}
	}
	return nil
}

// CheckReturnHosts returns a *FieldError if a list of return hosts is invalid.
func CheckReturnHosts(hosts []string) error {
	if len(hosts) > MaxReturnHosts {
		return fieldErrorf("returnHosts", "must be at most %d; there are %d", MaxReturnHosts, len(hosts))
	}
	for i, host := range hosts {
		if !isReturnHost(host) {
			return fieldErrorf(fmt.Sprintf("returnHosts[%d]", i), "must be a host name in lower case or an IP address, without scheme and port; it is %.80q", host)
		}
	}
	return nil
}
