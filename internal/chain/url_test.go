package chain_test

import (
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/chain"
)

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://shop.example/hook":         "",
		"https://shop.example:443/hook?a=b": "",
		"https://shop.example:65535":        "",
		"https://[2001:db8::1]:8443/":       "",
		"https://shop.example/%20":          "",
		"https://shop.example/é":            "",
		"https://shop.example/hook ":        "has a blank",
		" https://shop.example/hook":        "has a blank",
		"https://shop.example/a b":          "has a blank",
		"https://shop.example/\u00a0":       "has a blank",
		"https://shop.example/\t":           "has a blank",
		"https://shop.example/\n":           "has a blank",
		"https://shop.example/\x7f":         "has a blank",
		"https://shop.example:99999/hook":   "has the port 99999; want 1 to 65535",
		"https://shop.example:65536":        "has the port 65536",
		"https://shop.example:0/":           "has the port 0",
		"https://[2001:db8::1]:70000/":      "has the port 70000",
	} {
		switch err := chain.CheckURL(text); {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
