package checkout

import (
	"net/url"
	"strings"
)

// walletLink opens a page in the browser of a wallet on a phone.
type walletLink struct{ Name, URL string }

// walletLinks returns the links that open a page in each known wallet, or nil without a public URL.
// The formats are documented at
// docs.metamask.io/metamask-connect/evm/guides/metamask-exclusive/use-deeplinks,
// docs.cdp.coinbase.com/coinbase-wallet/developer-guidance/mobile-dapp-integration and
// developer.trustwallet.com/developer/develop-for-trust/deeplinking. Rabby documents no format: it is
// read from useUniversalLinkOnTop in github.com/RabbyHub/rabby-mobile.
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
		{"Rabby", "https://go.rabby.io/mobile/?_cmd=open-dapp&dapp=" + escaped},
	}
}
