package client_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
)

// amountErrors are the errors by their names in testdata/amounts.json.
var amountErrors = map[string]error{
	"": nil, "syntax": client.ErrAmountSyntax, "precision": client.ErrAmountPrecision, "range": client.ErrAmountRange,
	"units": client.ErrMinorUnits, "decimals": client.ErrDecimals,
}

type amountVector struct {
	Text, Amount          string
	Decimals, MinDecimals int
	Want, Error           string
}

// TestAmountVectors reads testdata/amounts.json, as the tests of the TypeScript client do.
func TestAmountVectors(t *testing.T) {
	text := expect.Must(os.ReadFile("testdata/amounts.json"))
	var vectors struct{ Parse, Format []amountVector }
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors.Parse) == 0 || len(vectors.Format) == 0 {
		t.Fatalf("%d and %d vectors, %v", len(vectors.Parse), len(vectors.Format), err)
	}
	for _, v := range vectors.Parse {
		if got, err := client.ParseAmount(v.Text, v.Decimals); got != v.Want || !errors.Is(err, amountErrors[v.Error]) {
			t.Errorf("ParseAmount(%q, %d) = %q, %v, want %q, %s", v.Text, v.Decimals, got, err, v.Want, v.Error)
		}
	}
	for _, v := range vectors.Format {
		if got, err := client.FormatAmount(v.Amount, v.Decimals, v.MinDecimals); got != v.Want || !errors.Is(err, amountErrors[v.Error]) {
			t.Errorf("FormatAmount(%q, %d, %d) = %q, %v, want %q, %s", v.Amount, v.Decimals, v.MinDecimals, got, err, v.Want, v.Error)
		}
	}
}

// TestAmountsSurviveTheirText formats any amount, with any decimals, and parses it again.
func TestAmountsSurviveTheirText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "units")).String()
		decimals := rapid.IntRange(0, 77).Draw(t, "decimals")
		text, err := client.FormatAmount(units, decimals, rapid.IntRange(0, 77).Draw(t, "minDecimals"))
		expect.OK(t, err)
		if got, err := client.ParseAmount(text, decimals); err != nil || got != units {
			t.Fatalf("%s with %d decimals is %q, and that is %q, %v", units, decimals, text, got, err)
		}
	})
}

// FuzzParseAmount compares the result with math/big, which accepts more texts.
func FuzzParseAmount(f *testing.F) {
	for _, text := range []string{"4.90", "0.000001", "01", "1e3", strings.Repeat("9", 78), "-1", ""} {
		f.Add(text, 6)
	}
	plain := regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?$`)
	f.Fuzz(func(t *testing.T, text string, decimals int) {
		got, err := client.ParseAmount(text, decimals)
		if decimals < 0 || decimals > 77 || !plain.MatchString(text) {
			if err == nil {
				t.Fatalf("ParseAmount(%q, %d) = %q", text, decimals, got)
			}
			return
		}
		exact, _ := new(big.Rat).SetString(text)
		exact.Mul(exact, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)))
		_, fraction, _ := strings.Cut(text, ".")
		if fits := exact.Num().BitLen() <= 256 && len(fraction) <= decimals; fits != (err == nil) || fits && (!exact.IsInt() || exact.Num().String() != got) {
			t.Fatalf("ParseAmount(%q, %d) = %q, %v, want %s", text, decimals, got, err, exact)
		}
	})
}
