package chain

import (
	"errors"
	"net/url"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
)

// ErrExplorer is the error of ParseExplorer.
var ErrExplorer = errors.New("want a URL that begins with https:// and has no query, such as https://etherscan.io, or none")

// ParseExplorer parses the base URL of a block explorer. The text "none" means an empty URL.
func ParseExplorer(text string) (string, error) {
	if text == "none" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(text, "?#\"'<>") {
		return "", ErrExplorer
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// TransactionURL returns the page of a transaction in the block explorer, or "" without one.
func (c Chain) TransactionURL(tx invoice.Hash) string {
	if c.Explorer == "" {
		return ""
	}
	return c.Explorer + "/tx/" + tx.String()
}

// AddressURL returns the page of an account in the block explorer, or "" without one.
func (c Chain) AddressURL(a invoice.Address) string {
	if c.Explorer == "" {
		return ""
	}
	return c.Explorer + "/address/" + Checksum(a)
}
