package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// TestDepositsCallWithoutAService prints the call for terms that are given.
func TestDepositsCallWithoutAService(t *testing.T) {
	t.Parallel()
	const factory, merchant = "0x5FbDB2315678afecb367f032d93F642f64180aa3", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
	id := "0x" + strings.Repeat("ab", 32)
	given := []string{"deposits", "call", "--factory", factory, "--merchant", merchant, "--id", id, "--chain-id", "8453", "--json"}
	execute := func(args ...string) (stdout, stderr string, code int) {
		var out, errs bytes.Buffer
		code = run(t.Context(), environment{stdout: &out, stderr: &errs}, args)
		return out.String(), errs.String(), code
	}
	out, errs, code := execute(append(slices.Clone(given), "--token", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913")...)
	if code != 0 || !strings.Contains(out, `"to":"`+factory+`"`) || !strings.Contains(out, `"data":"0x`) || !strings.Contains(out, strings.Repeat("ab", 32)) ||
		!strings.Contains(out, strings.ToLower(merchant[2:])) || !strings.Contains(out, "833589fcd6edb6e08f4c7c32d4f71b54bda02913") || !strings.Contains(out, `"chainId":8453`) {
		t.Errorf("exit code %d:\n%s%s", code, out, errs)
	}
	for name, args := range map[string][]string{
		"no token":       given,
		"no terms":       {"deposits", "call"},
		"a token's name": append(slices.Clone(given), "--token", "USDC"),
		"no key":         append(slices.Clone(given), "--token", "coin", "--rpc", "http://127.0.0.1:1"),
		"not a hash":     {"deposits", "call", "--factory", factory, "--merchant", merchant, "--id", "0x1", "--token", "coin"},
	} {
		if out, _, code := execute(args...); code != 2 || out != "" {
			t.Errorf("%s: exit code %d, %s", name, code, out)
		}
	}
}

func TestTokenFlag(t *testing.T) {
	t.Parallel()
	base, _ := chain.Lookup("base")
	usdc, _ := base.Token(chain.USDC)
	for name, want := range map[string]invoice.Address{chain.USDC: usdc.Address, coinToken: {}, usdc.Address.String(): usdc.Address} {
		if got, err := tokenFlag(base, name); err != nil || *got != want {
			t.Errorf("%s is %v, %v; want %s", name, got, err, want)
		}
	}
	if got, err := tokenFlag(base, "DAI"); err == nil {
		t.Errorf("a currency that is not configured is %v", got)
	}
}
