package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/webhooks"
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
func (r *resolver) retention(path string, text *scalar) time.Duration {
	*text = cmp.Or(*text, scalar(strconv.Itoa(int(DefaultRetention/day))+"d"))
	digits, ok := strings.CutSuffix(string(*text), "d")
	days, err := strconv.ParseUint(digits, 10, 16)
	kept := time.Duration(days) * day
	if !ok || err != nil || kept < MinRetention || kept > MaxRetention {
		r.fail(path, "is %q; want a number of days of %dd to %dd", *text, MinRetention/day, MaxRetention/day)
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

// webhookProxy returns the URL of the proxy for webhooks, or nil without one.
func (r *resolver) webhookProxy(path string, l *location) *url.URL {
	if l == nil {
		return nil
	}
	text, ok := r.location(path, *l)
	if !ok {
		return nil
	}
	if err := checkURL(text, "http", "https"); err != nil {
		r.fail(path, "%w", err)
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		r.fail(path, "is %.80q; want the scheme, the host and the port of the proxy, such as http://proxy.internal:3128", origin(text))
		return nil
	}
	if l.url != "" && holdsAccount(text) {
		r.fail(path, "holds an account; %s", insteadOfURL)
	}
	return u
}

// webhookHeaders reads the headers of a merchant's endpoint.
func (r *resolver) webhookHeaders(path string, files []webhookHeaderFile) []access.WebhookHeader {
	var all []access.WebhookHeader
	for i, f := range files {
		h, at := access.WebhookHeader{Name: f.Name, Value: f.Value}, fmt.Sprintf("%s[%d]", path, i)
		referred := f.ValueEnv != "" || f.ValueFile != ""
		switch {
		case referred && f.Value != "":
			r.fail(at, "want one of value, valueEnv and valueFile")
			return nil
		case referred:
			wrong := len(r.errs)
			if h.Value = r.secret(at+".value", f.ValueEnv, f.ValueFile); len(r.errs) > wrong {
				return nil
			}
		}
		all = append(all, h)
	}
	if wrong := (*webhooks.HeaderError)(nil); errors.As(webhooks.CheckHeaders(all), &wrong) {
		at := path
		if wrong.Index >= 0 {
			at = fmt.Sprintf("%s[%d]", path, wrong.Index)
		}
		r.fail(at, "%s", wrong.Detail)
	}
	return all
}
