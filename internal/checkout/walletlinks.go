package checkout

import (
	"net/url"
	"strings"
)

// walletLink opens a page in the browser of a wallet on a phone.
type walletLink struct{ Name, URL string }

// walletLinks returns the links that open a page in each known wallet, or nothing without a
// public URL.
func walletLinks(publicURL, path string) []walletLink {
	if publicURL == "" {
		return nil
	}
	page := publicURL + path
	escaped := url.QueryEscape(page)
	_, hostAndPath, _ := strings.Cut(page, "://")
	return []walletLink{
		{"MetaMask", "https://link.metamask.io/dapp/" + hostAndPath},
		{"Coinbase Wallet", "https://go.cb-w.com/dapp?cb_url=" + escaped},
		{"Trust", "https://link.trustwallet.com/open_url?coin_id=60&url=" + escaped},
		{"Rabby", "https://rabby.io/dapp?url=" + escaped},
	}
}
