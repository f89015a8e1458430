package config

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/crypto"
)

// ParseKey reads a private key, 64 hex digits with or without 0x. The error
// does not show it.
func ParseKey(text string) (*ecdsa.PrivateKey, error) {
	key, err := crypto.HexToECDSA(strings.TrimPrefix(strings.TrimSpace(text), "0x"))
	if err != nil {
		return nil, errors.New("is not a private key; want 64 hex digits")
	}
	return key, nil
}

// CheckLoopback accepts an address and port of a loopback interface alone:
// while the API has no access keys, whoever reaches it may use it.
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

// CheckWebhookURL accepts an absolute http or https URL.
func CheckWebhookURL(text string) error { return checkURL(text, "http", "https") }

// CheckNodeURL accepts an absolute URL of a node's JSON-RPC, of the scheme http,
// https, ws or wss.
func CheckNodeURL(text string) error { return checkURL(text, "http", "https", "ws", "wss") }

func checkURL(text string, schemes ...string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
		return fmt.Errorf("is %.80q; want a URL that begins with %s://", origin(text), strings.Join(schemes, ":// or "))
	}
	return nil
}

// insteadOfURL says what to write for a URL that holds a secret.
const insteadOfURL = "secrets are not written here: write {urlEnv: NAME} or {urlFile: PATH} instead, and the URL there"

// holdsAccount reports whether a URL that parses names an account or a
// password.
func holdsAccount(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.User != nil
}

// holdsPassword reports whether a database's URL holds a password, in one of
// the two places where PostgreSQL's may stand.
func holdsPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return strings.Contains(text, "@")
	}
	_, has := u.User.Password()
	return has || u.Query().Has("password")
}

// origin is what may be shown of a URL, however wrong it is: no account, and
// nothing behind the host, where keys are.
func origin(text string) string {
	start, rest := "", text
	if kind := scheme(text) + "://"; kind != "://" && strings.HasPrefix(text, kind) {
		start, rest = kind, text[len(kind):]
	}
	if strings.Contains(rest, "@") {
		return start + "…"
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end+1] + "…"
	}
	return start + rest
}

// scheme returns what stands before the first colon, if that is the scheme of a
// URL (RFC 3986).
func scheme(text string) string {
	kind, _, found := strings.Cut(text, ":")
	if !found || strings.Trim(kind, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.") != "" {
		return ""
	}
	return kind
}
