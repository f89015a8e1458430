package checkout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWalletLinks(t *testing.T) {
	want := []walletLink{
		{"MetaMask", "https://link.metamask.io/dapp/pay.example.com/checkout/inv_1"},
		{"Coinbase Wallet", "https://go.cb-w.com/dapp?cb_url=https%3A%2F%2Fpay.example.com%2Fcheckout%2Finv_1"},
		{"Trust", "https://link.trustwallet.com/open_url?coin_id=60&url=https%3A%2F%2Fpay.example.com%2Fcheckout%2Finv_1"},
		{"Rabby", "https://go.rabby.io/mobile/?_cmd=open-dapp&dapp=https%3A%2F%2Fpay.example.com%2Fcheckout%2Finv_1"},
	}
	if diff := cmp.Diff(want, walletLinks("https://pay.example.com", "/checkout/inv_1")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := walletLinks("", "/checkout/inv_1"); got != nil {
		t.Errorf("without a public URL: %v", got)
	}
}
