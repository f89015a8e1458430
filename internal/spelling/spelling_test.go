package spelling_test

import (
	"testing"

	"github.com/quittance/quittance/internal/spelling"
)

func TestHint(t *testing.T) {
	t.Parallel()
	known := []string{"base", "base-sepolia", "USDC", "merchantAddress", "label"}
	for name, want := range map[string]string{
		"bass": "; did you mean base?", "BASE": "; did you mean base?", "base_sepolia": "; did you mean base-sepolia?", "usdc": "; did you mean USDC?",
		"merchantAdress": "; did you mean merchantAddress?", "lable": "; did you mean label?", "merchant_addresss": "; did you mean merchantAddress?",
		"ethereum": "; want base, base-sepolia, USDC, merchantAddress, label", "": "; want base, base-sepolia, USDC, merchantAddress, label",
	} {
		if got := spelling.Hint(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if got := spelling.Hint("x", nil); got != "" {
		t.Errorf("nothing is known: %q", got)
	}
}
