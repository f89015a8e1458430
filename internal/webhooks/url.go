package webhooks

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/quittance/quittance/internal/chain"
)

// checkURL returns an error if events cannot be posted to the URL. The addresses of a
// host name are checked when it is dialed.
func (d *Directory) checkURL(target string) error {
	if len(target) > MaxURL {
		return fmt.Errorf("must be at most %d bytes long", MaxURL)
	}
	if err := chain.CheckURL(target); err != nil {
		return err
	}
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return errors.New("must be a URL that begins with https://, without fragment")
	}
	if u.User != nil {
		return errors.New("must not contain user information; events are signed instead")
	}
	a, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return nil //nolint:nilerr // a host name
	}
	check := d.conf.Guard.Check
	if u.Scheme == "http" {
		check = d.conf.Guard.CheckPlain
	}
	if err := check(a); err != nil {
		return fmt.Errorf("cannot be used: %w", err)
	}
	return nil
}

// ports of schemes, for URLs without one.
var ports = map[string]string{"http": "80", "https": "443"}

// sameOrigin reports whether two URLs have the same scheme, host and port.
func sameOrigin(one, other string) bool {
	a, err := url.Parse(one)
	if err != nil {
		return false
	}
	b, err := url.Parse(other)
	if err != nil {
		return false
	}
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) &&
		cmp.Or(a.Port(), ports[a.Scheme]) == cmp.Or(b.Port(), ports[b.Scheme])
}
