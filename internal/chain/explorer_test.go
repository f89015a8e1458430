package chain_test

import (
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

func TestExplorer(t *testing.T) {
	for text, want := range map[string]string{
		"none": "", "https://etherscan.io": "https://etherscan.io", "https://scan.example/base/": "https://scan.example/base",
	} {
		if got, err := chain.ParseExplorer(text); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "etherscan.io", "http://etherscan.io", "https://", "https://a:b@x.example", "https://x.example/?q=", "javascript:alert(1)", `https://x.example/"`} {
		if _, err := chain.ParseExplorer(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	c, _ := chain.Lookup("base")
	if got, want := c.TransactionURL(invoice.Hash{31: 1}), "https://basescan.org/tx/0x0000000000000000000000000000000000000000000000000000000000000001"; got != want {
		t.Errorf("%s", got)
	}
	if got, want := c.AddressURL(invoice.Address{19: 1}), "https://basescan.org/address/0x0000000000000000000000000000000000000001"; got != want {
		t.Errorf("%s", got)
	}
	local, _ := chain.Lookup(chain.Local)
	if got := local.TransactionURL(invoice.Hash{}) + local.AddressURL(invoice.Address{}); got != "" {
		t.Errorf("a chain without an explorer links to %s", got)
	}
}
