package invoice_test

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
)

func TestParseTolerance(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]invoice.Tolerance{
		"":       {},
		"0":      {},
		"500000": {Amount: invoice.NewAmount(500_000)},
		"0%":     {},
		"0.5%":   {BasisPoints: 50},
		"0.01%":  {BasisPoints: 1},
		"50%":    {BasisPoints: 5000},
		"2.50%":  {BasisPoints: 250},
	} {
		if got, err := invoice.ParseTolerance(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := invoice.ParseTolerance(want.String()); err != nil || again != want {
			t.Errorf("%+v is written %q, which is %+v, %v", want, want, again, err)
		}
	}
	for text, want := range map[string]string{
		"-1": "integer", "0.5": "integer", "1 %": "percentage", "%": "percentage", "0.001%": "two decimals",
		"50.01%": "at most 50%", "100%": "at most 50%", "1e1%": "percentage", "1%%": "percentage", strings.Repeat("9", 79): "256-bit",
		strings.Repeat("9", 79) + "%": "percentage",
	} {
		if got, err := invoice.ParseTolerance(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %v, want an error that says %q", text, got, err, want)
		}
	}
}

func TestToleranceOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fixed  uint64
		points uint16
		amount uint64
		want   uint64
	}{
		{0, 0, 100, 0},
		{7, 0, 100, 7},
		{49, 0, 100, 49},
		{99, 0, 100, 50},
		{5, 100, 400, 5},
		{5, 100, 600, 6},
		{0, 50, 199, 0},
		{0, 50, 200, 1},
		{0, 9999, 100, 50},
		{9, 5000, 1, 0},
	} {
		tolerance := invoice.Tolerance{Amount: invoice.NewAmount(test.fixed), BasisPoints: test.points}
		if got := tolerance.Of(invoice.NewAmount(test.amount)); got != invoice.NewAmount(test.want) {
			t.Errorf("%+v of %d is %s, want %d", tolerance, test.amount, got, test.want)
		}
	}
	// Compare with arithmetic that has no limbs.
	rapid.Check(t, func(t *rapid.T) {
		word := [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "amount"))
		points := rapid.Uint16Range(0, 5000).Draw(t, "points")
		got := invoice.Tolerance{BasisPoints: points}.Of(invoice.AmountFromBytes(word)).Bytes()
		want := new(big.Int).SetBytes(word[:])
		want.Mul(want, big.NewInt(int64(points))).Div(want, big.NewInt(10_000))
		if new(big.Int).SetBytes(got[:]).Cmp(want) != 0 {
			t.Fatalf("%d basis points are %x, want %s", points, got, want)
		}
	})
}
